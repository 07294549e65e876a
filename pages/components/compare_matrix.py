"""Compare's heat map, query × pipeline, and its table: most different queries first, as many as can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.components.compare_view import CompareView
from pages.components.listed import paged
from rag_core.evaluate import compare
from rag_core.evaluate.compare import Matrix
from rag_core.evaluate.tally import PipelineTally


def show(tallies: Sequence[PipelineTally], view: CompareView) -> str:
    """The heat map and its table; the query a person picked in the table, '' for none."""
    found = compare.matrix(tallies, view.measure)
    order = by_spread(found)
    if not order:
        st.markdown("No query is scored: label chunks on **Labels** or **Explore** first.")
        return ""
    shown = paged(len(order), f"compare.matrix.page.{view.measure}.{len(tallies)}")
    places = order[shown.start : shown.stop]
    st.plotly_chart(
        _figure(found, places, shown, len(order)), key="compare.matrix", config={"displaylogo": False},
        alt=f"{view.measure} per query and pipeline as a heat map; the table below holds the numbers",
    )  # fmt: skip
    return _table(found, places)


def by_spread(found: Matrix) -> list[int]:
    """Places of the scored queries, those on which the pipelines differ most first."""
    known = {at: [value or 0.0 for value in row] for at, row in enumerate(found.values) if any(
        value is not None for value in row
    )}  # fmt: skip
    return sorted(known, key=lambda at: min(known[at]) - max(known[at]))


def _figure(found: Matrix, places: Sequence[int], shown: range, count: int) -> Any:
    """The pipelines stand as in the table, the first on top."""
    import plotly.graph_objects as go

    names = [escape(name[:80]) for name in found.pipelines]  # Plotly reads tags in what it shows
    figure = go.Figure(
        go.Heatmap(
            z=[[found.values[at][column] for at in places] for column in range(len(names))],
            y=names,
            customdata=[[escape(found.queries[at][:80]) for at in places]] * len(names),
            colorscale="Cividis",
            zmin=0,
            zmax=1,
            colorbar={"title": {"text": found.measure}},
            hovertemplate="%{customdata}<br>%{y}: %{z:.3f}<extra></extra>",
        )
    )
    of = f"{count:,} scored queries" if len(shown) == count else f"queries {shown.start + 1:,} to {shown.stop:,}"
    figure.update_layout(
        height=110 + 44 * len(names),
        margin={"l": 160, "r": 16, "t": 36, "b": 44},
        title={"text": f"{found.measure} of {of}, most different first", "font": {"size": 14}},
        xaxis={"title": {"text": "query"}, "showticklabels": False, "ticks": ""},
        yaxis={"autorange": "reversed"},
    )
    return figure


def _table(found: Matrix, places: Sequence[int]) -> str:
    """The numbers; the id of the row that is ticked."""
    ids = [found.queries[at] for at in places]
    event = st.dataframe(
        {"query": ids, **{name: [found.values[at][i] for at in places] for i, name in enumerate(found.pipelines)}},
        hide_index=True,
        key="compare.matrix.table",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(ids), 360),
        column_config={name: st.column_config.NumberColumn(format="%.3f") for name in found.pipelines},
        alt="Per query the measure of every pipeline; a row opens the query side by side",
    )
    rows = event["selection"]["rows"]
    return ids[rows[0]] if rows and rows[0] < len(ids) else ""
