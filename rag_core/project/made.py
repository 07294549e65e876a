"""More questions for a project, made from slots, by a model or taken from a log: one way for page and command.

Whatever they come from is marked with them and counted apart in every figure; they judge neither the rules nor the
models that they may come from. Questions of a log are people's own and bring no label.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Event
from typing import Any

import numpy as np

from rag_core.errors import Cancelled, InputError
from rag_core.eval_sets.facts import LOG
from rag_core.judged import questions as model_questions
from rag_core.judged.questions import RefusedQuestion, ask_for_questions, asked_for, question_prompt
from rag_core.labelling.unusual import NEIGHBOURS, unusual_first
from rag_core.llm.judge import RecordedJudge
from rag_core.llm.prompt import Prompt
from rag_core.llm.run import RunLimits
from rag_core.project.project import COLLECTION, add_questions
from rag_core.project.session import Session
from rag_core.retrieve.question import check_question
from rag_core.rules import slots
from rag_core.rules.questions import MadeQuestion, make_questions
from rag_core.sources.mapping import read_log
from rag_core.text import counted, fold, words
from rag_core.types import Case, Chunk, Query

SLOTS, MODEL = slots.MADE_FROM, model_questions.MADE_FROM
FROM = (SLOTS, MODEL, LOG)
FROM_LOG = "from log"
JUDGES_NOT = {"rules": (SLOTS, MODEL), "judge": (MODEL,)}
"""What a stage of that drawer may itself come from: questions made from it are no evidence for it."""
BESIDE = 3  # chunks shown beside the one that a model is to ask for
NEAR = 0.95  # cosine of two questions from which they ask the same, where they name the same numbers
MOST_LOGGED = 2_000  # different questions of a log that are looked at, those asked most often first


@dataclass(frozen=True)
class Made:
    """Questions that could be added, and in one sentence what they were made of; what was refused, and why."""

    origin: str
    questions: tuple[MadeQuestion, ...]
    about: str
    facts: Mapping[str, Any]
    refused: tuple[RefusedQuestion, ...] = ()
    unanswered: Mapping[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "from": self.origin,
            "questions": [one.to_json() for one in self.questions],
            "refused": [asdict(one) for one in self.refused],
            "reasons": dict(Counter(one.reason for one in self.refused)),
            "unanswered": dict(self.unanswered or {}),
            **self.facts,
        }

    def to_text(self) -> str:
        """How many of what, and each reason of a refusal with its count."""
        lines = [f"{counted(len(self.questions), 'question', 'questions')} {self.about}"]
        reasons = Counter(one.reason for one in self.refused)
        lines += [f"refused {count}: {reason}" for reason, count in reasons.most_common()]
        silent = Counter((self.unanswered or {}).values())
        lines += [f"no answer for {count}: {reason}" for reason, count in silent.most_common()]
        return "\n".join(lines)


def add(session: Session, made: Made) -> int:
    """Add them to the project with the labels they have; how many are new."""
    return add_questions(
        session.project,
        [one.query for one in made.questions],
        {one.query.id: one.grades for one in made.questions},
    )


# From slots


def from_slots(session: Session, count: int, family: str | None = None) -> Made:
    """Questions from what near-duplicate titles differ in, with their labels."""
    chunks = _chunks(session)
    families = slots.named_so(slots.propose(chunks), family)
    made = make_questions(families, chunks, count)
    return Made(SLOTS, tuple(made), f"from {len(families)} families", {"families": len(families)})


# By a model


def model_prompts(session: Session, count: int) -> list[Prompt]:
    """What a model is asked: one call for each of `count` chunks, with those nearest to it beside it."""
    drawn = asked_for(_chunks(session), count)
    return [question_prompt(chunk, _nearest(session, chunk)) for chunk in drawn]


def by_model(
    session: Session,
    prompts: Sequence[Prompt],
    judge: RecordedJudge,
    limits: RunLimits | None = None,
    progress: Any = None,
    cancel: Event | None = None,
) -> Made:
    """Questions that a model writes, each labelled with the chunk asked for; what is stored is not paid again."""
    families = {one.chunk_id: family.name for family in slots.propose(_chunks(session)) for one in family.members}
    brought = ask_for_questions(prompts, judge, limits, progress, cancel, families)
    if brought.run.cancelled:
        raise Cancelled(f"stopped after {brought.run.done} of {brought.run.total} calls; make them again, it resumes")
    known = [case.query for case in session.cases]
    new = [one.query for one in brought.made]
    repeated = _repeated(session, new, [one for one in known if one.id not in {query.id for query in new}])
    again = [
        RefusedQuestion(next(iter(one.grades)), "it asks what another question asks", one.query.text)
        for one in brought.made
        if one.query.id in repeated
    ]
    return Made(
        MODEL,
        tuple(one for one in brought.made if one.query.id not in repeated),
        f"by {judge.model} from {counted(len(prompts), 'chunk', 'chunks')}; what else is relevant to them is not known",
        {"model": judge.model, "run": brought.run.to_json()},
        (*brought.refused, *again),
        brought.unanswered,
    )


def _nearest(session: Session, chunk: Chunk) -> list[Chunk]:
    """The chunks nearest to one: by its stored vector, by words where nothing is embedded."""
    index = session.source.index
    if index.snapshot.dimension:
        vector = index.snapshot.vectors[index.rows_by_id[chunk.id]]
        rows, _ = index.scan.nearest(vector, index.scan.scores(vector), BESIDE + 1, None)
        found = [index.snapshot.chunks[int(row)] for row in rows]
    else:
        found = [hit.chunk for hit in index.lexical_reader(f"{chunk.title} {chunk.text[:500]}").read(0, BESIDE + 1)]
    return [one for one in found if one.id != chunk.id and one.text != chunk.text][:BESIDE]


# From a log


def from_log(
    session: Session,
    content: bytes,
    name: str,
    count: int,
    preset: str = "auto",
    paths: Mapping[str, str] | None = None,
) -> Made:
    """The questions of a log that this project does not have, each once, those unlike its own first; without labels."""
    _chunks(session)
    reading = read_log(content, name, preset, paths)
    known = [case.query for case in session.cases]
    asked: Counter[str] = Counter()
    texts: dict[str, str] = {}
    unusable = 0
    for case in reading.cases:
        try:
            text = check_question(case.query.text)
        except InputError:
            unusable += 1
            continue
        key = _folded(text)
        asked[key] += 1
        texts.setdefault(key, text)
    there = sum(key in texts for key in {_folded(query.text) for query in known})
    often = [key for key, _ in asked.most_common(MOST_LOGGED)]
    queries = [_logged(texts[key]) for key in often]
    repeated = _repeated(session, queries, known)
    left = [Case(query, {}) for query in queries if query.id not in repeated]
    own = [Case(query, {}) for query in known]
    order = "those asked most often first"
    if len(own) > NEIGHBOURS and left and session.source.index.snapshot.dimension:
        search = session.pipeline("unfiltered")
        left = unusual_first(session.capture(search, left), session.capture(search, own))
        order = "those unlike the project's own first"
    taken = tuple(MadeQuestion(_logged(case.query.text), {}, "") for case in left[:count])
    facts = {
        "preset": reading.preset,
        "records": reading.read,
        "different": len(texts),
        "there": there,
        "near_the_same": len(repeated) - there,
        "unusable": unusable,
        "left": len(left) - len(taken),
        "order": order,
    }
    about = (
        f"of {len(texts):,} different ones in {reading.read:,} records ({reading.preset}), {order}; "
        f"{there:,} were here, {facts['near_the_same']:,} ask nearly what another asks, "
        f"{facts['left']:,} are left. They bring no label"
    )
    return Made(LOG, taken, about, facts)


def _logged(text: str) -> Query:
    identity = "log-" + hashlib.sha256(_folded(text).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Query(identity, text, tags=(FROM_LOG,), metadata={"made_from": LOG})


# What all need


def _chunks(session: Session) -> Sequence[Chunk]:
    """The chunks of the project's collection; an InputError where it has none that questions could be added for."""
    if session.project.source.kind != COLLECTION:
        raise InputError(f"project {session.project.name} asks no collection, expected one to make questions for")
    return session.source.chunks


def _folded(text: str) -> str:
    return " ".join(words(text)) or " ".join(fold(text).split())


def _repeated(session: Session, queries: Sequence[Query], known: Sequence[Query]) -> set[str]:
    """Ids of the queries that ask what one before them or a known one asks.

    Of the same words, or near the same by embedding with the same numbers in it: "the E 20" is not "the E 30".
    """
    index = session.source.index
    everything = [*known, *queries]
    seen: dict[str, None] = {}
    repeated: set[str] = set()
    by_numbers: dict[tuple[str, ...], list[Any]] = {}
    for at, query in enumerate(everything):
        text = _folded(query.text)
        vector = index.embed_query(query.text) if index.snapshot.dimension else None
        beside = by_numbers.setdefault(tuple(sorted(word for word in text.split() if re.search(r"\d", word))), [])
        near = vector is not None and bool(beside) and float(np.max(np.asarray(beside) @ vector)) >= NEAR
        if at >= len(known) and (text in seen or near):
            repeated.add(query.id)
            continue
        seen[text] = None
        if vector is not None:
            beside.append(vector)
    return repeated
