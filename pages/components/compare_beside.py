"""One query of a comparison: lists side by side, how alike they are, the reason of every difference, and the chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import beside, chunk_panel, compare_run, compare_state, resources, say
from pages.components.compare_run import Material
from pages.components.compare_view import CompareView
from pages.components.listed import columns
from pages.components.reading import Row, label_of
from pages.components.tuning_set import quiet
from rag_core.errors import StoreError
from rag_core.evaluate import overlap
from rag_core.evaluate.experiment import Outcome, kept_ids

TABLE = "compare.reasons"


def show(found: Material, view: CompareView) -> None:
    """Everything about the query the view names; a line where it names none."""
    if not view.query_id:
        quiet("Select a query above to see the lists side by side, and why they differ.")
        return
    outcomes = compare_run.outcomes(found, view.query_id)
    if outcomes is None:
        say.problem("The link names a query that this eval set does not hold.", view.query_id[:200])
        return
    names = [pipeline.label for pipeline in found.pipelines]
    st.subheader(f"Query {say.plain(view.query_id[:80])}", anchor=False)
    st.text(outcomes[0].case.query.text)
    _overlap(outcomes, names, view)
    chosen = beside.show(outcomes, names, found.chosen.min_grade, view.chunk, "compare.beside")
    if chosen and chosen != view.chunk:
        compare_state.change(chunk=chosen)
        st.rerun()
    _reasons(outcomes, names, view)
    _chunk(found, outcomes, view)


def _overlap(outcomes: Sequence[Outcome], names: Sequence[str], view: CompareView) -> None:
    """How alike the two that are compared are, and who shares what."""
    one, two = (kept_ids(outcomes[at].result) for at in (view.baseline, view.other))
    shared = overlap.venn(dict(zip(names, (kept_ids(outcome.result) for outcome in outcomes), strict=True)))
    counts = "; ".join(f"{count} by {' and '.join(owners)}" for owners, count in shared.items())
    st.text(
        f"{names[view.baseline]} and {names[view.other]}: Jaccard {overlap.jaccard(one, two):.2f}, rank-biased overlap "
        f"{overlap.rank_biased_overlap(one, two):.2f} (1 is the same). Kept by exactly these: {counts or 'nothing'}."
    )


def _reasons(outcomes: Sequence[Outcome], names: Sequence[str], view: CompareView) -> None:
    """Every chunk that only one of the two kept, and why the other lacks it."""
    pair = (names[view.baseline], names[view.other])
    found = overlap.differences(outcomes[view.baseline], outcomes[view.other], pair)
    if not found:
        quiet("Both keep the same chunks.")
        return
    st.markdown("**Why they differ**: what only one of the two kept, and the other’s reason")
    rows: list[dict[str, Any]] = [
        {
            "chunk": one.title or one.chunk_id,
            "label": "? unjudged" if one.grade is None else f"grade {one.grade}",
            "missing from": one.missing_from,
            "reason": one.reason,
            "taken out by": one.stage,
            "kept by": one.kept_by,
            "what would have kept it": "; ".join(back.text for back in one.would_keep),
        }
        for one in found
    ]
    ids = [one.chunk_id for one in found]
    st.session_state[TABLE] = {
        "selection": {"rows": [ids.index(view.chunk)] if view.chunk in ids else [], "columns": []}
    }
    st.dataframe(
        columns(rows),
        hide_index=True,
        key=TABLE,
        on_select=lambda: _selected(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(rows), 320),
        column_config={
            "chunk": st.column_config.TextColumn("chunk", width=300),
            "label": st.column_config.TextColumn("label", width=84),
            "reason": st.column_config.TextColumn("reason", width=360),
        },
        alt="Per chunk that one pipeline lacks: label, who kept it, which stage took it out, why, what would keep it",
    )


def _selected(ids: Sequence[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        compare_state.change(chunk=ids[rows[0]])


def _chunk(found: Material, outcomes: Sequence[Outcome], view: CompareView) -> None:
    """The selected chunk with its text, its fate in the pipeline that lacks it, and the buttons that label it."""
    if not view.chunk:
        quiet("Select a chunk to read it and to label it here.")
        return
    at = _lacking(outcomes, view)
    row = row_of(outcomes[at], outcomes, view.chunk, found.chosen.min_grade)
    if row is None:
        say.problem("The link names a chunk that none of these lists holds.", view.chunk[:200])
        return
    st.text(f"As {found.pipelines[at].label} sees it:")
    try:
        store = resources.label_store()
    except StoreError as error:
        say.problem("Labels cannot be read or kept here.", str(error))
        store = None
    chunk_panel.show(row, outcomes[at], store, found.chosen.name, "token")


def _lacking(outcomes: Sequence[Outcome], view: CompareView) -> int:
    """The one of the two compared that dropped the chunk; the other where it is kept by this one."""
    for at in (view.other, view.baseline):
        if any(drop.hit.chunk.id == view.chunk for drop in outcomes[at].result.drops):
            return at
    return view.other


def row_of(outcome: Outcome, outcomes: Sequence[Outcome], chunk_id: str, min_grade: int) -> Row | None:
    """The chunk as one pipeline has it, else as any other brought it; None where no list holds it."""
    grade = outcome.case.grades.get(chunk_id)
    label = label_of(grade, min_grade)
    for each in (outcome, *outcomes):
        kept = next((hit for hit in each.result.hits if hit.chunk.id == chunk_id), None)
        if kept is not None:
            return Row(kept, grade, label, None)
        dropped = next((drop for drop in reversed(each.result.drops) if drop.hit.chunk.id == chunk_id), None)
        if dropped is not None:
            return Row(dropped.hit, grade, label, dropped)
    return None
