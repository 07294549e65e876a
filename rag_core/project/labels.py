"""Labels laid over those an eval set brings: people's, given in the workspace, and a model's where people gave none.

Pages and commands count alike by them. How a label meets its chunk is store/matching.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.eval_sets.facts import chunk_texts
from rag_core.eval_sets.reading import EvalSet, folders, load_set
from rag_core.index.collection import folder_of, open_collection
from rag_core.judged.questions import MADE_FROM
from rag_core.labelling.agreement import BAR, JudgeAgreement, judge_agreement
from rag_core.labelling.estimate import Estimates, estimates, pool_bounds, questions_of, sample_of
from rag_core.labelling.pooling import pool
from rag_core.measure.experiment import PipelineReport, run_case, start_of, unique_names, with_labels
from rag_core.project.project import COLLECTION, LISTS, Project
from rag_core.project.session import Progress, Session, front_of
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.store.database import has_store, open_store
from rag_core.store.exchange.line import LabelLine
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.store.matching import Anything, AtHand, overlay
from rag_core.store.model_labels import peoples_grades, runs_of
from rag_core.types import Candidates, Case, chunks_in


class GivenLabels:
    """The labels given in a workspace laid over one eval set's own.

    All are read once; after that those of the questions about which something was said since: where twenty people label
    at once, each of their labels changes one question of thousands.
    """

    MOST = 500  # questions that are read by their ids

    def __init__(self, own: EvalSet, workspace: Path, chunks: AtHand | None = None) -> None:
        """Labels meet `chunks`; without them each case's own list, and what a label names that its list lacks counts
        as not found.
        """
        self.own, self._workspace, self._chunks = own, workspace, chunks
        self._at = {case.query.id: place for place, case in enumerate(own.cases)}
        self._lists: dict[str, AtHand] = {}
        self._now: EvalSet | None = None
        self._position = 0

    def now(self) -> EvalSet:
        """The eval set as it is with the labels of now; the same value while nothing changes."""
        if not has_store(self._workspace):
            return self.own
        name = self.own.name
        with open_store(self._workspace, create=False) as store:
            labels = LabelStore(store)
            if self._now is None and len(self.own.cases) <= self.MOST:
                changed = dict.fromkeys(self._at, labels.newest() or 0)
            else:
                changed = labels.changed_since(name, self._position)
            if not changed:
                return self._now or self.own
            some = len(changed) <= self.MOST
            # read after the positions: what comes in between is read twice, never missed
            given = labels.labels(name, queries=changed if some else None)
        cases = list((self._now or self.own).cases if some else self.own.cases)
        over = overlay(given, self._at_hand, (lambda: self._everywhere) if self._chunks is None else None)
        for query_id in changed if some else over:
            if query_id in self._at:
                place = self._at[query_id]
                cases[place] = with_labels([self.own.cases[place]], over)[0]
        self._position = max(self._position, *changed.values())
        self._now = self.own if self._now is None and not over else replace(self.own, cases=tuple(cases))
        return self._now

    def _at_hand(self, query_id: str) -> AtHand | None:
        if self._chunks is not None or query_id not in self._at:
            return self._chunks
        if query_id not in self._lists:
            hits = start_of(self.own.cases[self._at[query_id]]).hits
            self._lists[query_id] = AtHand.of(hit.chunk for hit in hits)
        return self._lists[query_id]

    @cached_property
    def _everywhere(self) -> AtHand:
        return AtHand.of(chunks_in(self.own.cases).values())


def chunks_of(index: Any) -> AtHand:
    """The chunks that labels meet in what the queries ask."""
    snapshot = getattr(index, "snapshot", None)
    return AtHand.of(snapshot.chunks) if snapshot else Anything()


def counted(eval_set: EvalSet, workspace: Path) -> EvalSet:
    """The eval set with the labels given in this workspace, as lists of sets count them: no source is asked.

    They meet the chunks that come with the set; where none do, a label counts for the chunk that it names.
    """
    texts = {name: text_hash(text) if text else "" for name, text in chunk_texts(eval_set).items()}
    return GivenLabels(eval_set, workspace, AtHand(texts) if texts else Anything()).now()


@dataclass(frozen=True)
class Unmet:
    """How many labels name a query that an eval set does not have, and of the others a chunk that it does not."""

    queries: int
    chunks: int
    missed: bool = False  # the chunks are those of lists: one that none holds was searched and not found

    @property
    def words(self) -> str:
        """What to say of them; nothing where every label counts."""
        said = {"query": self.queries, "chunk": 0 if self.missed else self.chunks}
        named = ", ".join(f"{count} of an unknown {what}" for what, count in said.items() if count)
        parts = [f"{named}: the eval set does not have it, so the label counts for nothing"] if named else []
        if self.missed and self.chunks:
            parts.append(f"{self.chunks} of a chunk that no list holds: it counts as not found")
        return "; ".join(parts)


def unmet(lines: Sequence[LabelLine], project: Project) -> Unmet:
    """The labels of a file that would meet nothing in a project. One without a source cannot tell about chunks."""
    eval_set, own = project.eval_set, project.source
    asked, texts = {case.query.id for case in eval_set.cases}, chunk_texts(eval_set)
    if own.kind == COLLECTION and folder_of(project.workspace, own.name).is_dir():
        texts = {chunk.id: chunk.text for chunk in open_collection(project.workspace, own.name).chunks}
    hashes = {text_hash(text) for text in texts.values() if text}
    known = [line for line in lines if line.query_id in asked]
    strange = [line for line in known if texts and line.chunk_id not in texts and line.text_hash not in hashes]
    return Unmet(len(lines) - len(known), len(strange), own.kind == LISTS)


def agreement_of(
    labels: LabelStore,
    eval_set: str,
    judge: str,
    workspace: Path,
    min_grade: int | None = None,
    bar: float = BAR,
    against: str = "",
) -> JudgeAgreement:
    """A model's agreement with people on an eval set; labels of the set's own files are people's too."""
    known = load_set(eval_set, workspace) if eval_set in folders(workspace) or "/" in eval_set else None
    cases = known.cases if known else ()
    files = {case.query.id: case.grades for case in cases if case.query.made_from != MADE_FROM}  # no person's
    people = peoples_grades(labels, eval_set, labels.labels(eval_set, judge), files, against)
    least = min_grade or (known.min_grade if known else 1)
    return judge_agreement(judge, people, runs_of(labels, eval_set, judge), least, bar)


def with_judge_labels(
    eval_set: str, cases: Iterable[Case], judge: str, workspace: Path, min_grade: int, bar: float = BAR
) -> tuple[list[Case], str]:
    """The cases with a model's labels where no person's is, and the sentence that figures from them must carry.

    An InputError where the model's agreement with people does not pass the bar.
    """
    cases = list(cases)
    with open_store(workspace, create=False) as store:
        labels = LabelStore(store)
        agreed = agreement_of(labels, eval_set, judge, workspace, min_grade, bar)
        if not agreed.passes:
            raise InputError(f"{agreed.words}, expected one that passes before its labels count")
        graded, people = labels.current(eval_set, judge), labels.current(eval_set)
    overlay: dict[str, dict[str, int | None]] = {}
    for case in cases:
        taken = {**case.grades, **people.get(case.query.id, {})}
        model = graded.get(case.query.id, {})
        overlay[case.query.id] = {chunk: grade for chunk, grade in model.items() if chunk not in taken}
    count = sum(map(len, overlay.values()))
    return with_labels(cases, overlay), f"{count} labels of these figures are a model's: {agreed.words}"


# What few labels let one estimate


def without_judges(pipeline: Pipeline) -> Pipeline:
    """The pipeline without stages that ask a model: those only drop, and a pool costs nobody money."""
    free = tuple(stage for stage in pipeline.stages if "judge" not in stage.needs())
    return pipeline if len(free) == len(pipeline.stages) else Pipeline(free, pipeline.label)


def kept_of(session: Session, pipeline: Pipeline, tell: Progress) -> PipelineReport:
    """What a pipeline keeps for every question, without its traces: those of 5,000 questions fill a gigabyte."""
    started = session.starts(pipeline, session.cases, tell)
    ready, outcomes = session.ready(pipeline), []
    for done, case in enumerate(started, 1):
        outcome = run_case(case, ready, session.project.min_grade, ())
        result = replace(outcome.result, drops=(), steps=())
        outcomes.append(replace(outcome, lists=(Candidates(case.query), result)))
        if done % 20 == 0:
            tell(done, len(started))
    return PipelineReport(pipeline.label, ready, tuple(outcomes), session.project.min_grade)


@dataclass(frozen=True)
class Estimated:
    """Pipelines from partial labels: what is certain, and what a sample of the labels says, if it is large enough."""

    names: tuple[str, ...]
    bounds: tuple[Mapping[str, tuple[float, float] | None], ...]
    found: Estimates | None
    questions: int
    pairs: int
    labelled: int
    sample: int
    depth: int

    def to_json(self) -> dict[str, Any]:
        """Plain values; `kind` says what stands in `pipelines`: exact, estimate or bounds."""
        rows = []
        for at, (name, bounds) in enumerate(zip(self.names, self.bounds, strict=True)):
            row: dict[str, Any] = {"name": name, "bounds": {key: pair and list(pair) for key, pair in bounds.items()}}
            if self.found:
                row["estimate"] = {key: self.found.to_json()["single"][key][at] for key in self.found.single}
            rows.append(row)
        against = self.found.to_json()["against"] if self.found else {}
        counts = {key: getattr(self, key) for key in ("questions", "pairs", "labelled", "sample", "depth")}
        return {"kind": self.kind, "pipelines": rows, "against": against, **counts}

    @property
    def kind(self) -> str:
        """What the figures are."""
        return "exact" if self.labelled == self.pairs else "estimate" if self.found else "bounds"

    def to_text(self) -> str:
        """What it stands on; then, by pipeline, the estimate with its interval beside the bounds."""
        lines = [
            f"{self.labelled:,} of {self.pairs:,} pairs of the pool (first {self.depth} chunks of each pipeline and "
            f"its search, {self.questions} questions) have a label; {self.sample:,} of them are a sample with known "
            "chances; outside of the pool only what has a label counts as relevant"
        ]
        for at, (name, bounds) in enumerate(zip(self.names, self.bounds, strict=True)):
            cells = []
            for measure, pair in bounds.items():
                told = "no relevant chunk" if pair is None else f"between {pair[0]:.3f} and {pair[1]:.3f}"
                if self.found and measure in self.found.single:
                    one = self.found.single[measure][at]
                    told = f"{one.value:.3f} ± {one.half:.3f} ({told})"
                cells.append(f"{measure} {told}")
            lines.append(f"{name}: {', '.join(cells)}")
        lines.append(self.found.to_text(self.names) if self.found else "Too few labels of that sample for an estimate.")
        return "\n".join(lines)


ALONE = "the search alone"


def with_searches(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """The pipelines, and behind them what the first two search: of a pool is also what both dropped."""
    whole = list(pipelines)
    for front in map(front_of, pipelines[:2]):
        if fingerprint(front) not in map(fingerprint, whole):
            whole.append(replace(front, label=ALONE))
    return [replace(one, label=name) for one, name in zip(whole, unique_names(whole), strict=True)]


def estimated(
    session: Session, pipelines: Sequence[Pipeline], depth: int = 15, seed: int = 0, tell: Progress = lambda *_: None
) -> Estimated:
    """What the labels of now say of pipelines whose pool is not wholly judged, as *Labels* shows it.

    Bounds hold for every way the open labels of the pool may fall; the estimate is likely, for these questions.
    """
    names = tuple(unique_names(pipelines))
    named = [replace(without_judges(one), label=name) for one, name in zip(pipelines, names, strict=True)]
    reports = [kept_of(session, one, tell) for one in with_searches(named)]
    pairs, grades = pool(reports, depth, seed), {case.query.id: case.grades for case in session.cases}
    questions = questions_of(pairs, grades, names, session.min_grade)
    bounds = tuple(pool_bounds(questions, at) for at in range(len(names)))
    labelled = sum(int((~np.isnan(one.labels)).sum()) for one in questions)
    sample = sample_of(questions, seed).size
    found = estimates(questions, seed)
    return Estimated(names, bounds, found, len(questions), len(pairs), labelled, sample, depth)
