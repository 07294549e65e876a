"""What a structure does to labelled queries: those that change with its aliases, agreement, threshold curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import glossary
from pages.components.entity_matches import STRATEGIES
from rag_core.entities import TeamFilter
from rag_core.entities.agreement import Agreement, Change, Labelled, Miss, agreement, threshold_curve

QUERY = "entities.query"
HALVES = ("all", "dev", "test")
CURVE = tuple(range(60, 101, 2))
GREY = "#8A9199"  # seen on white and on black
COLOURS = {"precision": "#0072B2", "recall": "#E69F00"}
DASHES = {"precision": "solid", "recall": "dot"}


def show_changes(changed: Sequence[Change], total: int) -> None:
    """The labelled queries whose entities change, and whether they are right now."""
    right = sum(_state(one) == "✓ right now" for one in changed)
    worse = sum(_state(one) == "✕ wrong now" for one in changed)
    counted = f"{right} right now, {worse} wrong now" if changed else "each finds what it found before"
    st.markdown(f"**{len(changed)} of {total} labelled queries change**: {counted}")
    if changed:
        st.dataframe(
            {
                "query": [one.labelled.query for one in changed],
                "verdict": [_state(one) for one in changed],
                "came": [", ".join(one.came) for one in changed],
                "went": [", ".join(one.went) for one in changed],
                "meant": [", ".join(one.labelled.teams) or "none" for one in changed],
                "id": [one.labelled.id for one in changed],
            },
            hide_index=True,
            key="entities.changes",
            **_opens("entities.changes", [one.labelled.query for one in changed]),
            height=min(38 + 35 * len(changed), 320),
            alt=f"{len(changed)} labelled queries with the entities that came and went, what is meant, and the verdict",
        )


def _opens(table: str, queries: Sequence[str]) -> dict[str, Any]:
    """Arguments that make a click on a row of a table ask that row's query."""

    def ask() -> None:
        rows = st.session_state[table]["selection"]["rows"]
        if rows and rows[0] < len(queries):
            st.session_state[QUERY] = queries[rows[0]]

    return {"on_select": ask, "selection_mode": "single-row"}


def _state(change: Change) -> str:
    """What the change did: what came and was meant is right, what came and was not is wrong."""
    meant = set(change.labelled.teams)
    wrong = (set(change.came) - meant) | (set(change.went) & meant)
    good = (set(change.came) & meant) | (set(change.went) - meant)
    return "✓ right now" if good and not wrong else "✕ wrong now" if wrong and not good else "partly"


def show_agreement(team_filter: TeamFilter, labelled: Sequence[Labelled]) -> None:
    """Precision and recall, together and per strategy, of one half of the labelled queries or of all."""
    halves = [half for half in HALVES if half == "all" or any(row.half == half for row in labelled)]
    half = (
        st.segmented_control("Half", halves, default="all", required=True, key="entities.half") if halves[1:] else "all"
    )
    rows = [row for row in labelled if half in ("all", row.half)]
    together = agreement(team_filter, rows)
    table, curve = st.columns(2, gap="medium")
    with table:
        _table([("all together", together), *((name, agreement(team_filter, rows, name)) for name in STRATEGIES)])
        _misses(together.misses)
    with curve:
        points = threshold_curve(team_filter, rows, CURVE)
        st.plotly_chart(
            _figure(points, team_filter.settings.threshold),
            key="entities.curve",
            config={"displaylogo": False},
            alt="Macro precision and recall at each threshold for misspelt names; the table below holds the numbers.",
        )
        with st.expander("The curve in numbers"):
            _curve_table(points)


def _table(measured: Sequence[tuple[str, Agreement]]) -> None:
    queries = measured[0][1].queries
    st.dataframe(
        {
            "found by": [name for name, _ in measured],
            "precision": [one.precision for _, one in measured],
            "recall": [one.recall for _, one in measured],
            "micro precision": [one.micro_precision for _, one in measured],
            "micro recall": [one.micro_recall for _, one in measured],
        },
        hide_index=True,
        key="entities.agreement",
        column_config={
            name: st.column_config.NumberColumn(name, format="%.3f", help=glossary.told(name))
            for name in ("precision", "recall", "micro precision", "micro recall")
        },
        alt="Precision and recall of all strategies together and of each alone",
    )
    st.caption(f"precision and recall: macro over {queries} labelled queries; micro: over all (query, entity) pairs.")


def _misses(misses: Sequence[Miss]) -> None:
    if not misses:
        st.markdown("Every labelled query finds exactly what it means.")
        return
    st.markdown(f"**{len(misses)} queries find something else than they mean.** Click a row to ask it.")
    st.dataframe(
        {
            "query": [miss.labelled.query for miss in misses],
            "missing": [", ".join(miss.missing) for miss in misses],
            "too much": [", ".join(miss.extra) for miss in misses],
            "id": [miss.labelled.id for miss in misses],
        },
        hide_index=True,
        key="entities.misses",
        **_opens("entities.misses", [miss.labelled.query for miss in misses]),
        height=min(38 + 35 * len(misses), 250),
        alt=f"{len(misses)} queries with entities that are missing and that are too much",
    )


def _figure(points: Sequence[tuple[float, Agreement]], now: float) -> Any:
    """Precision and recall over the threshold; the axes stay where they are when the threshold moves."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name in COLOURS:
        figure.add_scatter(
            x=[threshold for threshold, _ in points],
            y=[getattr(one, name) for _, one in points],
            name=name,
            mode="lines+markers",
            line={"color": COLOURS[name], "dash": DASHES[name]},
            hovertemplate=f"threshold %{{x}}<br>{name} %{{y:.3f}}<extra></extra>",
        )
    figure.add_vline(
        x=now,
        line_dash="dash",
        line_color=GREY,
        annotation_text=f"threshold {now:.0f}",
        annotation_position="bottom left",
    )
    lowest = min(value for _, one in points for value in (one.precision or 0, one.recall or 0))
    figure.update_layout(
        height=330,
        margin={"l": 60, "r": 16, "t": 44, "b": 48},
        title={"text": "Agreement at each threshold for misspelt names", "font": {"size": 14}},
        xaxis={"title": {"text": "threshold (likeness, 0 to 100)"}, "range": [59, 101]},
        yaxis={"title": {"text": "macro mean over queries"}, "range": [max(0, int(lowest * 10 - 1) / 10), 1.02]},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.08},
    )
    return figure


def _curve_table(points: Sequence[tuple[float, Agreement]]) -> None:
    st.dataframe(
        {
            "threshold": [threshold for threshold, _ in points],
            "precision": [one.precision for _, one in points],
            "recall": [one.recall for _, one in points],
        },
        hide_index=True,
        height=260,
        column_config=glossary.explained(
            COLOURS, {name: st.column_config.NumberColumn(name, format="%.3f") for name in COLOURS}
        ),
        alt="Precision and recall at each threshold",
    )
