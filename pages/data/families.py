"""Families of near-duplicate chunks: what they take of the lists, and rules written from what their titles differ in.

Nothing is found before this section is opened; what was found is kept until chunks, rules or labels change. Checked is
on the dev questions alone, as rules are a choice too. Titles and names of families are foreign text: they stand in
cells, lists of choices and inert text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from pages.components import glossary, inert_text, jobs, say, who
from pages.components.inert_text import Block, TextRun
from pages.data import rules
from pages.widgets.take_along import choose, table
from rag_core.errors import InputError, WinnowError
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import run_case
from rag_core.measure.measures import SET_MEASURES
from rag_core.measure.tally import PipelineTally, measure_all
from rag_core.project.deeds import LOOK
from rag_core.project.session import Session
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.rules.check import ProposalPreview, preview
from rag_core.rules.match import decide, reason_text
from rag_core.rules.rule import Rule, read_rule
from rag_core.rules.siblings import Crowd, suggest
from rag_core.rules.slots import SlotCheck, SlotFamily, check, propose, rules_to_store, safe, settled
from rag_core.stage import Pipeline
from rag_core.types import Case, Chunk

TABLE, CHOSEN, CHUNK, PROPOSALS = "data.families", "data.family", "data.proposal", "data.proposals"
DEPTHS = (5, 10, 15, 20, 30)
ROUNDS = 3
AT_ONCE = 5_000  # chunks: of more, families are looked for as a job (700 take .3 s, 100,000 a minute)
POLICIES = {"": "as proposed", "strict": "always asked for", "named": "only where a question names one"}
MEASURES = {"SetP": "Precision", "SetR": "Recall", "SetF": "F₁"}  # of the kept list
FRESH = ("new", "replaces a rule")


@dataclass(frozen=True)
class Study:
    """The families of a source, as the labels settle them, with what they take of the dev questions' lists."""

    families: tuple[SlotFamily, ...]  # those that crowd the lists most first
    crowds: tuple[Crowd, ...]  # family by family, of the bare search
    now: tuple[Crowd, ...]  # the same with the stored rules and refill
    checks: tuple[SlotCheck, ...]
    cases: tuple[Case, ...]
    k: int

    @property
    def listed(self) -> bool:
        """Whether there are lists that families could crowd."""
        return any(case.candidates is not None for case in self.cases)


def show(session: Session) -> None:
    """The table of families, and below it the one that is taken."""
    rules.show_outcome(session.project)
    k = int(st.session_state.get("data.k", 15))
    try:
        families = _found(session)
        if families is None:  # they are still looked for
            return
        prints = session.fingerprints()
        key = f"{session.project.name} {prints['source']} {prints['rules']} {prints['labels']} {k}"
        study = _study(str(session.workspace), key, k, session, families)
    except WinnowError as error:
        say.problem("Families cannot be looked for.", str(error))
        return
    if not study.families:
        st.markdown("No family: no three chunks have titles that differ in a number, a code or a few words.")
        return
    _all(session, study)
    at = _table(session, study)
    _one(session, study, at)


# Finding


def _found(session: Session) -> tuple[SlotFamily, ...] | None:
    """The families of titles; None while they are looked for."""
    source, kind = session.source, f"families {session.project.name}"
    key = (str(session.workspace), session.project.name, source.fingerprint)
    if len(source.chunks) <= AT_ONCE or key in _kept():
        return _proposed(*key, session)
    job = jobs.current(kind)
    if job is None or not job.over.is_set():
        if not jobs.running(kind):
            try:
                jobs.start(
                    "Looking for families of titles", lambda progress: _proposed(*key, session),
                    who.deed(LOOK, session.project.name), kind=kind, verb="read", unit="titles",
                    first="comparing titles, about a minute for 100,000 …",
                )  # fmt: skip
            except InputError as error:
                say.problem("Families cannot be looked for.", str(error))
                return None
        jobs.show(kind)
        return None
    if job.problem or job.stopped:
        say.problem("Families were not found.", job.problem or job.stopped)
        st.button("Look again", on_click=jobs.put_away, args=(kind,))
        return None
    return _proposed(*key, session)


@st.cache_resource(show_spinner=False)
def _kept() -> set[tuple[str, str, str]]:
    return set()


@st.cache_resource(max_entries=4, show_spinner="Looking for families of titles …")
def _proposed(workspace: str, name: str, fingerprint: str, _session: Session) -> tuple[SlotFamily, ...]:
    families = tuple(propose(_session.source.chunks))
    _kept().add((workspace, name, fingerprint))
    return families


def refill(k: int) -> Pipeline:
    """The rules with refill, as the section measures them."""
    return Pipeline((Requery(k=k, max_iterations=ROUNDS, rules=QueryMust()),))


@st.cache_resource(max_entries=4, show_spinner="Counting what families take of the lists …")
def _study(workspace: str, key: str, k: int, _session: Session, _families: Sequence[SlotFamily]) -> Study:
    session, chunks = _session, _session.source.chunks
    dev = session.dev or list(session.cases)
    cases = tuple(session.capture(Pipeline((Dense(depth=max(DEPTHS) * ROUNDS),)), dev)) if dev else ()
    families = [settled(family, cases, session.min_grade) for family in _families]
    named = {str(at): tuple(one.chunk_id for one in family.members) for at, family in enumerate(families)}
    crowds = suggest(chunks, cases, k, session.min_grade, families=(), named=named)
    ruled = session.ready(refill(k))
    kept = [replace(case, candidates=run_case(case, ruled, session.min_grade).result) for case in cases]
    now = {crowd.name: crowd for crowd in suggest(chunks, kept, k, session.min_grade, families=(), named=named)}
    order = [int(crowd.name) for crowd in crowds]
    return Study(
        families=tuple(families[at] for at in order),
        crowds=crowds,
        now=tuple(now[crowd.name] for crowd in crowds),
        checks=tuple(check(families[at], cases, k, session.min_grade) for at in order),
        cases=cases,
        k=k,
    )


# The table


def _all(session: Session, study: Study) -> None:
    """What all families together take, and the one press that applies every family whose rules lose no answer."""
    taken = safe(study.families, study.checks)
    fresh = rules_to_store(taken, session.source.chunks)
    with st.container(horizontal=True, vertical_alignment="bottom", key="data.crowding"):  # wraps in a narrow window
        st.metric("families", f"{len(study.families):,}", width=90, help="Sets of chunks with near-duplicate titles.")
        if study.listed:
            before = sum(crowd.crowding for crowd in study.crowds)
            after = sum(crowd.crowding for crowd in study.now)
            st.metric(
                f"of the first {study.k} places: irrelevant family chunks",
                f"{after:.0%}",
                f"{before:.0%} without rules",
                delta_color="off",
                delta_arrow="off",
                width=330,
                help=f"Share of the first {study.k} places of the {len(study.cases):,} dev questions’ lists held "
                "by a family without a relevant label, with the stored rules and refill. Lower is better.",
            )
        st.select_slider("k, places of a list", DEPTHS, 15, key="data.k", width=200)
        st.button(
            f"Apply all that lose no answer ({len(fresh):,} rules)" if fresh else "Nothing to apply",
            icon=":material/done_all:",
            type="primary",
            disabled=not fresh,
            key="data.apply_all",
            on_click=rules.store,
            args=(session.project, fresh, f"from slots: {len(taken)} families"),
            help="One batch, undone with one press. Chunks that carry a rule keep theirs.",
        )
    if not study.cases:
        st.caption("Once there are questions, what each family takes of their lists stands here too.")


def _table(session: Session, study: Study) -> int:
    """The families, those that crowd the lists most first; which one is taken."""
    at = min(int(st.session_state.get(CHOSEN, 0)), len(study.families) - 1)
    columns: dict[str, list[object]] = {
        "family": [family.name for family in study.families],
        "differs in": [", ".join(f"{slot.name} ({slot.values})" for slot in family.slots) for family in study.families],
        "carry rules": [f"{crowd.with_rule} of {len(crowd.chunks)}" for crowd in study.crowds],
        "proposed": [len(family.rules) for family in study.families],
    }
    if study.listed:
        columns |= {
            "places taken": [100 * crowd.share for crowd in study.crowds],
            "not relevant": [100 * crowd.crowding for crowd in study.crowds],
            "with rules": [100 * crowd.crowding for crowd in study.now],
            "would drop rightly": [f"{one.right} of {one.irrelevant}" for one in study.checks],
            "wrongly": [f"{len(one.wrong)} of {one.relevant}" if one.wrong else "" for one in study.checks],
        }
    st.session_state[CHOSEN] = at
    places = f"of the first {study.k} places of all lists"
    choose(
        columns,
        range(len(study.families)),
        # A table of its own for each family: one that is kept would send its old selection after another was taken.
        f"{TABLE}.{at}",
        f"{len(study.families)} families with slots, rules, share of places, and what proposed rules would drop",
        CHOSEN,
        keep=True,
        tall=250,
        config={
            "differs in": {"help": "Slots, with how many values each has"},
            "proposed": {"help": "Chunks that a rule is proposed for"},
            "places taken": _share(f"Share {places} that the family takes, without rules"),
            "not relevant": _share(f"Share {places} that no label calls relevant. Lower is better."),
            "with rules": _share("The same with the stored rules and refill. Lower is better."),
            "would drop rightly": {"help": "Labelled irrelevant, and the proposed rule drops it. Higher is better."},
            "wrongly": {
                "help": "Labelled relevant, and the proposed rule would drop it: not applied. Lower is better."
            },
        },
    )
    return at


def _share(meaning: str) -> Any:
    return st.column_config.NumberColumn(help=meaning, format="%.0f %%")


# One family


@dataclass(frozen=True)
class FamilyLine:
    """One proposal: its chunk, the rule (None where it is not applied), what becomes of it and what it does."""

    chunk: Chunk
    rule: Rule | None
    state: str  # new | stored already | replaces a rule | not applied
    reason: str
    previews: tuple[ProposalPreview, ...]

    @property
    def admits(self) -> int:
        """How many questions it admits."""
        return sum(one.verdict.satisfied for one in self.previews)

    def right(self, min_grade: int, relevant: bool) -> str:
        """Of the questions the chunk is labelled relevant (irrelevant) for, how many the rule admits (drops)."""
        labelled = [one for one in self.previews if one.grade is not None and (one.grade >= min_grade) == relevant]
        return f"{sum(one.verdict.satisfied == relevant for one in labelled)} of {len(labelled)}" if labelled else ""


def _one(session: Session, study: Study, at: int) -> None:
    """The family that is taken: how strict its rules are, what they do, and the press that applies them."""
    family, crowd = study.families[at], study.crowds[at]
    inert_text.show([Block("lead", (TextRun(family.name),))], key="data.family_name")
    policy = st.segmented_control(
        "A value is", list(POLICIES), default="", required=True, format_func=lambda one: POLICIES[one],
        key=f"data.policy.{at}",
        help="Asked for always: the chunk is dropped wherever the question does not hold its value. Only where "
        "named: it is dropped only where the question names another value of the same kind.",
    )  # fmt: skip
    if policy:
        family = family.with_policy(policy)
    chunks = [session.source.by_id[identity] for identity in crowd.chunks]
    lines = _lines(chunks, family, study, session.min_grade)
    if not lines:
        st.markdown("No rule was proposed for any chunk of this family.")
        return
    _actions(session, study, family, chunks, lines)
    say.quiet("From templates of your own, or by a model: `winnow rules generate`.")
    side_by_side = st.container(horizontal=True, gap="medium")
    with side_by_side.container(width=640):
        line = _proposals(lines, session.min_grade, len(study.cases))
    with side_by_side.container(width="stretch"):
        _verdicts(line, study.cases, session.min_grade)


def _lines(chunks: Sequence[Chunk], family: SlotFamily, study: Study, min_grade: int) -> list[FamilyLine]:
    """A line per chunk that a rule is proposed for or refused, checked on the dev questions; the refused ones first."""
    lost = check(family, study.cases, study.k, min_grade).wrong
    refused = dict(family.without)
    refused |= {one.chunk_id: f"drops it where it is relevant: {one.query_id}, {one.reason}" for one in lost}
    lines = []
    for chunk in chunks:
        rule = family.rules.get(chunk.id)
        if chunk.id in refused:
            lines.append(FamilyLine(chunk, None, "not applied", refused[chunk.id], ()))
        elif rule is not None:
            stored = read_rule(chunk.query_must)
            state = "new" if stored is None else "stored already" if stored == rule else "replaces a rule"
            lines.append(FamilyLine(chunk, rule, state, "", preview(chunk.id, rule, study.cases)))
    return sorted(lines, key=lambda line: line.rule is not None)


def _actions(
    session: Session, study: Study, family: SlotFamily, chunks: Sequence[Chunk], lines: Sequence[FamilyLine]
) -> None:
    """What applying does to the dev questions, and the presses that apply or take away."""
    fresh: dict[str, Rule | None] = {line.chunk.id: line.rule for line in lines if line.state in FRESH}
    standing: dict[str, Rule | None] = {chunk.id: None for chunk in chunks if chunk.query_must is not None}
    refused = sum(line.rule is None for line in lines)
    st.markdown(
        f"**{len(lines) - refused} rules, {len(fresh)} of them new or changed"
        + (f"; {refused} chunks get none" if refused else "")
        + ".** Nothing is stored before you apply."
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Apply {len(fresh)} rules" if fresh else "Nothing to apply",
            type="primary",
            icon=":material/check:",
            disabled=not fresh,
            key="data.apply",
            on_click=rules.store,
            args=(session.project, fresh, family.name[:200]),
        )
        st.button(
            f"Take away {len(standing)} rules",
            icon=":material/remove:",
            disabled=not standing,
            key="data.take_away",
            help="As one batch, which can be undone: to see what the family does without its rules.",
            on_click=rules.store,
            args=(session.project, standing, f"taken away: {family.name}"[:200]),
        )
        changes = fresh or standing
        if changes and study.listed and any(case.grades for case in study.cases):
            now, then = (_measured(session, study, rules_then).summary for rules_then in ({}, changes))
            words = "with these applied" if fresh else "with these taken away"
            for measure in SET_MEASURES[: len(MEASURES)]:
                st.metric(
                    f"{MEASURES[measure.name]} at {study.k}",
                    glossary.digits(now.means.get(measure.name)),
                    f"{glossary.digits(then.means.get(measure.name))} {words}",
                    delta_color="off",
                    delta_arrow="off",
                    width=210,
                    help=f"{measure.name} of the kept list, rules with refill; macro "
                    f"over {now.queries_scored} of {now.queries_total} dev "
                    "questions. Higher is better.",
                )


def _measured(session: Session, study: Study, changes: Mapping[str, Rule | None]) -> PipelineTally:
    """The dev questions' lists through the rules and refill, with some rules changed."""
    raw = {identity: None if rule is None else rule.as_mapping() for identity, rule in changes.items()}
    cases = []
    for case in study.cases:
        if case.candidates is not None:
            hits = tuple(
                replace(hit, chunk=replace(hit.chunk, query_must=raw[hit.chunk.id])) if hit.chunk.id in raw else hit
                for hit in case.candidates.hits
            )
            cases.append(replace(case, candidates=replace(case.candidates, hits=hits)))
    (tally,) = measure_all(cases, [session.ready(refill(study.k))], session.min_grade, SET_MEASURES)
    return tally


def _proposals(lines: Sequence[FamilyLine], min_grade: int, questions: int) -> FamilyLine:
    """The proposals of a family as a table; the line that is taken."""
    ids = [line.chunk.id for line in lines]
    if st.session_state.get(CHUNK) not in ids:
        st.session_state[CHUNK] = ids[0]
    labels = {"relevant kept": True, "irrelevant dropped": False} if questions else {}
    choose(
        {
            "state": [line.state for line in lines],
            "title": _tails([line.chunk.title or line.chunk.id for line in lines]),
            **({"admits": [line.admits for line in lines]} if questions else {}),
            **{name: [line.right(min_grade, relevant) for line in lines] for name, relevant in labels.items()},
            "rule": ["" if line.rule is None else line.rule.as_json() for line in lines],
            "reason": [line.reason for line in lines],
        },
        ids,
        PROPOSALS,
        f"{len(lines)} proposed rules with state, title, what they admit and the reason where one is not applied",
        CHUNK,
        keep=True,
        tall=400,
        config={
            "state": {"width": 110},
            "title": {"width": 190},
            "admits": {"help": f"Questions of {questions} it admits"},
            "relevant kept": {"help": "Of the questions it is labelled relevant for. Higher is better."},
            "irrelevant dropped": {"help": "Of the questions it is labelled irrelevant for. Higher is better."},
        },
    )
    return next(line for line in lines if line.chunk.id == st.session_state[CHUNK])


def _tails(titles: Sequence[str]) -> list[str]:
    """The titles from just before the word in which they differ: that is what tells the family's chunks apart."""
    words = [title.split() for title in titles]
    shortest = min(len(one) for one in words) - 1 if len(words) > 1 else 0
    shared = next((at for at in range(shortest) if len({one[at] for one in words}) > 1), shortest) - 2
    return [f"… {' '.join(one[shared:])}" if shared > 0 else title for one, title in zip(words, titles, strict=True)]


def _verdicts(line: FamilyLine, cases: Sequence[Case], min_grade: int) -> None:
    """One proposal: its rule as chips and JSON, and its verdict on every dev question, labelled ones first."""
    blocks = [Block("text", (TextRun(line.chunk.title or line.chunk.id),))]
    if line.rule is None:
        inert_text.show([*blocks, Block("text", (TextRun(f"Not applied: {line.reason}"),))], key="data.proposal_head")
        return
    chips = rules.chips(decide(line.rule, ""), plain=True)
    inert_text.show([*blocks, Block("chips", chips)], key="data.proposal_head")
    if line.previews:
        rows = sorted(line.previews, key=lambda one: (one.grade is None, not one.verdict.satisfied))
        texts = {case.query.id: case.query.text for case in cases}
        table(
            {
                "verdict": ["● admits" if one.verdict.satisfied else "○ drops" for one in rows],
                "label": [
                    "unjudged" if one.grade is None else "relevant" if one.grade >= min_grade else "irrelevant"
                    for one in rows
                ],
                "question": [texts[one.query_id] for one in rows],
                "because": [
                    ", ".join(part.term or "" for part in one.verdict.parts)
                    if one.verdict.satisfied
                    else reason_text(one.verdict)
                    for one in rows
                ],
            },
            "data.verdicts",
            f"The rule's verdict on {len(rows)} dev questions, with label and reason",
            tall=290,
        )
    with st.expander("The rule as JSON"):
        st.code(rules.rule_text(line.rule), language="json")
