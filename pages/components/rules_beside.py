"""One rule beside a query: what the list is with the stored rules, what it becomes while the rule is edited, and
what kept any other chunk out of it.

The list is read once from the collection; edits run on that list, so a change shows at once and stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from pages.components import inert_text, rules_editor, rules_state, say, why_not_box
from pages.components.chunk_table import label_word
from pages.components.inert_text import Block, marked
from pages.components.reading import Row, figure, rows_of
from pages.components.rules_editor import CHUNK, Draft
from pages.components.rules_state import Bench
from rag_core.errors import InputError
from rag_core.evaluate.experiment import Outcome, run_case
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.question import LONGEST, check_question
from rag_core.retrieve.requery import NOT_READ
from rag_core.rules.match import decide
from rag_core.types import Candidates, Case, Chunk, Query

QUERY = "rules.query"
TABLE = "rules.list"
OWN = ""


def show(bench: Bench) -> None:
    """The query, the list left and the rule right, and the box below."""
    case = _ask(bench)
    if case is None:
        return
    case = _with_list(bench, case)
    stored = run_case(case, bench.pipeline, bench.min_grade)
    side_by_side = st.container(horizontal=True, gap="medium")
    left, right = side_by_side.container(width=620), side_by_side.container(width="stretch")
    with right:
        draft = rules_editor.show(bench, case.query.text, _choices(bench, stored))
    outcome = stored if draft is None else run_case(_edited(case, draft), bench.pipeline, bench.min_grade)
    with left:
        _query(case, draft, bench)
        _figures(bench, stored, outcome, draft)
        _table(bench, stored, outcome)
    why_not_box.show(bench, case.query)


def _ask(bench: Bench) -> Case | None:
    """A labelled query, or a person's own."""
    titles = {case.query.id: f"{case.query.id}: {case.query.text}" for case in bench.cases} | {
        OWN: "A question of my own"
    }
    if st.session_state.get(QUERY) not in titles:
        st.session_state[QUERY] = next(iter(titles))
    chosen = st.selectbox(
        "Query", list(titles), format_func=lambda one: titles[one], key=QUERY, persist_state="session"
    )
    if chosen != OWN:
        return next(case for case in bench.cases if case.query.id == chosen)
    text = st.text_input(
        "Question", key="rules.own", max_chars=LONGEST, placeholder="A question", persist_state="session"
    )
    try:
        return Case(Query("own", check_question(text))) if text else None
    except InputError as error:
        say.problem("This question cannot be asked.", str(error))
        return None


def _with_list(bench: Bench, case: Case) -> Case:
    """The case with the collection's list for it, with the chunks as they stand."""
    found = Dense(index=bench.index)(Candidates(case.query))
    return replace(case, candidates=replace(found, recorded=True, reader=None, steps=(), notices=()))


def _edited(case: Case, draft: Draft) -> Case:
    """The case with one chunk's rule changed."""
    if case.candidates is None:
        return case
    raw = None if draft.rule is None else draft.rule.as_mapping()
    hits = tuple(
        replace(hit, chunk=replace(hit.chunk, query_must=raw)) if hit.chunk.id == draft.chunk_id else hit
        for hit in case.candidates.hits
    )
    return replace(case, candidates=replace(case.candidates, hits=hits))


def read_rows(outcome: Outcome, min_grade: int) -> list[Row]:
    """The rows of the chunks that the rounds read, in the order of the list."""
    return [row for row in rows_of(outcome, min_grade) if row.drop is None or row.drop.reason != NOT_READ]


def _choices(bench: Bench, stored: Outcome) -> list[Chunk]:
    """The chunks whose rule may be edited here: those read, those with a rule first, and one that was chosen before."""
    chunks = [row.hit.chunk for row in read_rows(stored, bench.min_grade)]
    chosen = bench.by_id.get(st.session_state.get(CHUNK, ""))
    if chosen is not None and chosen.id not in {chunk.id for chunk in chunks}:
        chunks.append(chosen)
    return sorted(chunks, key=lambda chunk: chunk.query_must is None)


def _query(case: Case, draft: Draft | None, bench: Bench) -> None:
    """The query with the words marked that satisfy the rule at hand."""
    rule = draft.rule if draft is not None else rules_editor.stored_rule(bench)
    parts = decide(rule, case.query.text, bench.mode).parts if rule is not None else ()
    spans = [span for part in parts for span in part.spans]
    inert_text.show([Block("lead", marked(case.query.text, spans))], key="rules.query.read")


def _figures(bench: Bench, stored: Outcome, outcome: Outcome, draft: Draft | None) -> None:
    """What is kept and how good it is: with the stored rules and with the edit, here and on all queries."""
    facts = outcome.result.steps[-1].facts
    words = f"**{outcome.scores.kept} kept** of {facts['read']} read in {facts['rounds']} rounds ({facts['stop']})"
    if outcome.case.grades:
        words += " · " + " · ".join(_compared(name, stored.scores.values, outcome.scores.values) for name in MEASURES)
    st.markdown(words)
    if draft is not None and any(case.candidates is not None for case in bench.cases):
        now, then = (rules_state.report(bench, changes).summary.means for changes in ({}, {draft.chunk_id: draft.rule}))
        st.caption(
            f"All {len(bench.cases)} labelled queries: " + " · ".join(_compared(one, now, then) for one in MEASURES)
        )


MEASURES = ("SetP", "SetR", "SetF")


def _compared(name: str, before: Mapping[str, float | None], after: Mapping[str, float | None]) -> str:
    was, now = figure(before, name), figure(after, name)
    return f"{name} {now}" + ("" if was == now else f" (was {was})")


def _table(bench: Bench, stored: Outcome, outcome: Outcome) -> None:
    """The list as it is now; what the edit changed is named."""
    rows = read_rows(outcome, bench.min_grade)
    before = {hit.key for hit in stored.result.hits}
    ids = [row.hit.chunk.id for row in rows]
    chosen = st.session_state.get(CHUNK)
    st.session_state[TABLE] = {"selection": {"rows": [ids.index(chosen)] if chosen in ids else [], "columns": []}}
    changes = [_change(row, row.hit.key in before) for row in rows]
    st.dataframe(
        {
            "rank": [row.hit.rank for row in rows],
            "distance": [row.hit.distance for row in rows],
            "verdict": ["● kept" if row.kept else "○ dropped" for row in rows],
            **({"change": changes} if any(changes) else {}),
            "title": [rules_editor.short_title(row.hit.chunk) for row in rows],
            "label": [label_word(row) for row in rows],
            "reason": [row.reason for row in rows],
        },
        hide_index=True,
        key=TABLE,
        on_select=lambda: _selected(ids),
        selection_mode="single-row",
        height=min(38 + 35 * max(1, len(rows)), 500),
        column_config={
            "title": st.column_config.TextColumn("title", width=290),
            "rank": st.column_config.NumberColumn("rank", width=52),
            "distance": st.column_config.NumberColumn("cosine distance", format="%.4f", width=108),
            "verdict": st.column_config.TextColumn("verdict", width=86),
            "change": st.column_config.TextColumn("change", width=96),
            "label": st.column_config.TextColumn("label", width=96),
        },
        alt=f"{len(rows)} chunks with rank, cosine distance, verdict, change, label, title and reason",
    )


def _change(row: Row, was_kept: bool) -> str:
    if row.kept == was_kept:
        return ""
    return "now kept" if row.kept else "now dropped"


def _selected(ids: Sequence[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        st.session_state[CHUNK] = ids[rows[0]]
