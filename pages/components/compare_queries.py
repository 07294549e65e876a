"""Compare's queries: where two pipelines differ, page by page as a strip and a table; a row opens a query."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.components import compare_state
from pages.components.compare_view import ORDERS, CompareView
from pages.components.listed import paged
from pages.components.trace import counted
from rag_core.evaluate import compare
from rag_core.evaluate.compare import Contrast
from rag_core.evaluate.tally import PipelineTally

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A9199"
TABLE = "compare.queries"


def show(tallies: Sequence[PipelineTally], view: CompareView) -> None:
    """The order, the strip and the table."""
    baseline, other = tallies[view.baseline], tallies[view.other]
    st.segmented_control(
        "Order", list(ORDERS), format_func=lambda key: ORDERS[key], required=True, label_visibility="collapsed",
        **compare_state.bind("order"),
    )  # fmt: skip
    found = compare.contrasts(baseline, other, view.measure, view.order)
    if not found:
        st.markdown("No query is scored for both: label chunks on **Labels** or **Explore** first.")
        return
    wins, losses = sum(one.difference > 0 for one in found), sum(one.difference < 0 for one in found)
    st.text(
        f"{other.name} against {baseline.name} in {view.measure}, {len(found)} of "
        f"{counted(len(baseline.queries), 'query', 'queries')}: "
        f"{wins} better, {losses} worse, {len(found) - wins - losses} the same."
    )
    opened = next((at for at, one in enumerate(found) if one.query_id == view.query_id), 0)
    key = f"compare.queries.page.{view.measure}.{view.order}.{baseline.name}.{other.name}"
    places = paged(len(found), key, opened)
    shown = found[places.start : places.stop]
    _strip(shown, view, baseline.name, other.name)
    _table(shown, view, baseline.name, other.name)


def _strip(found: Sequence[Contrast], view: CompareView, baseline: str, other: str) -> None:
    """One bar a query, in the table's order; blue better, vermillion worse, the height is the difference."""
    import plotly.graph_objects as go

    values = [one.difference for one in found]
    figure = go.Figure(
        go.Bar(
            x=list(range(len(found))),
            y=values,
            marker_color=[BLUE if value > 0 else ORANGE if value < 0 else GREY for value in values],
            customdata=[escape(one.query_id[:60]) for one in found],
            hovertemplate="%{customdata}: %{y:+.3f}<extra></extra>",
        )
    )
    figure.update_layout(
        height=220,
        margin={"l": 60, "r": 16, "t": 34, "b": 36},
        title={
            "text": f"Difference in {view.measure}: {escape(other)} − {escape(baseline)} (below 0 is worse)",
            "font": {"size": 14},
        },
        xaxis={"title": {"text": f"query, {ORDERS[view.order].lower()}"}, "showticklabels": False},
        yaxis={"range": [-1.05, 1.05], "zeroline": True},
    )
    st.plotly_chart(
        figure, key="compare.strip", config={"displaylogo": False},
        alt=f"Difference in {view.measure} per query; the table below holds the numbers",
    )  # fmt: skip


def _table(found: Sequence[Contrast], view: CompareView, baseline: str, other: str) -> None:
    ids = [one.query_id for one in found]
    columns: dict[str, list[Any]] = {
        "query": ids,
        "difference": [one.difference for one in found],
        baseline: [one.baseline for one in found],
        other: [one.other for one in found],
        "tags": [", ".join(one.tags) for one in found],
        "text": [one.query for one in found],
    }
    rows = [ids.index(view.query_id)] if view.query_id in ids else []
    st.session_state[TABLE] = {"selection": {"rows": rows, "columns": []}}
    st.dataframe(
        columns,
        hide_index=True,
        key=TABLE,
        on_select=lambda: _open(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(ids), 320),
        column_config={
            "difference": st.column_config.NumberColumn(format="%+.3f", width=90),
            baseline: st.column_config.NumberColumn(format="%.3f"),
            other: st.column_config.NumberColumn(format="%.3f"),
        },
        alt=f"Per query: difference in {view.measure}, both values, tags, text; a row opens the query side by side",
    )


def _open(ids: Sequence[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        compare_state.change(query_id=ids[rows[0]])
