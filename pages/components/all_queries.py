"""One setting on every query of the eval set: how SetF changes, as a strip and as a table that opens a query.

Plotly is imported here, when this view is first opened, and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from pages.components import glossary, llm_controls, say, session
from pages.components.asked import Asked, working
from pages.components.view import View
from rag_core.errors import WinnowError
from rag_core.evaluate.experiment import PipelineReport, run
from rag_core.stage import Pipeline
from rag_core.types import Case

KEY = "explore.all"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A9199"


def show(view: View, asked: Asked, compared: Pipeline) -> None:
    """The page's setting beside `compared`; live lists are captured once and filtered from then on."""
    least = asked.chosen.min_grade
    try:
        cases, first = _lists(view, asked)
        now = run(cases, llm_controls.pipeline_for_all(view, asked), least)
    except WinnowError as error:
        say.problem("This setting cannot run on every query of the eval set.", str(error))
        return
    _draw(now, run(first, compared, least), asked.baseline)


def _lists(view: View, asked: Asked) -> tuple[Sequence[Case], Sequence[Case]]:
    """The cases with their lists: as this setting meets them, and as the setting it is compared with does."""
    if asked.live is None:
        return asked.cases, asked.cases
    from pages.components import live

    index, captured = asked.live, list[Case]()
    working(
        f"Searching {view.collection} for every query",
        lambda bar: captured.extend(live.capture(asked.chosen, asked.cases, view, index, bar)),
    )
    depth = live.capture_depth(view, index)
    st.caption(f"Lists of {depth:,} chunks per query, searched once and kept; refill reads no further in them.")
    return live.cut_to(captured, view), captured


def _draw(now: PipelineReport, before: PipelineReport, baseline: str = "") -> None:
    """Means with their counts, the strip, the table; `baseline` names the filter of `before`, '' for none."""
    compared = baseline or "without filter"
    summary, was = now.summary, before.summary
    st.markdown(
        f"**{_mean(summary.means.get('SetF'))}** mean SetF, macro over {summary.queries_scored} of "
        f"{summary.queries_total} queries ({compared} {_mean(was.means.get('SetF'))}); "
        f"SetP {_mean(summary.means.get('SetP'))}, SetR {_mean(summary.means.get('SetR'))}; "
        f"{summary.queries_empty} empty, {summary.queries_unjudged} without labels."
    )
    rows = _rows(now, before)
    scored = [row for row in rows if row["change"] is not None]
    if scored:
        st.plotly_chart(_strip(scored, compared), key="explore.strip", config={"displaylogo": False}, alt=STRIP_ALT)
    else:
        st.caption("No query of this eval set is labelled yet: label chunks to see the change.")
    _table(rows)


STRIP_ALT = "Change of SetF per query, from the compared list to this setting; the table below holds the same numbers."


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _rows(now: PipelineReport, before: PipelineReport) -> list[dict[str, Any]]:
    """One row per query, in the order of the eval set."""
    rows = []
    for after, first in zip(now.outcomes, before.outcomes, strict=True):
        f, was = after.scores.values["SetF"], first.scores.values["SetF"]
        rows.append(
            {
                "query": after.case.query.id,
                "kept": f"{after.scores.kept} of {len(after.result.hits) + len(after.result.drops)}",
                "SetF was": was,
                "SetF now": f,
                "change": None if f is None or was is None else f - was,
                "text": after.case.query.text,
            }
        )
    return rows


def _strip(rows: Sequence[dict[str, Any]], compared: str) -> Any:
    """One bar per query, largest loss first; blue gains, vermillion loses, and the sign is written on it."""
    import plotly.graph_objects as go

    ordered = sorted(rows, key=lambda row: row["change"])
    changes = [row["change"] for row in ordered]
    names = [escape(row["query"][:40]) for row in ordered]
    figure = go.Figure(
        go.Bar(
            x=list(range(len(ordered))),
            y=changes,
            marker_color=[BLUE if c > 0 else ORANGE if c < 0 else GREY for c in changes],
            text=[f"{c:+.3f}" for c in changes] if len(ordered) <= 20 else None,
            textposition="outside",
            customdata=names,
            hovertemplate="%{customdata}<br>change of SetF %{y:+.3f}<extra></extra>",
            cliponaxis=False,
        )
    )
    ticks = {"tickvals": list(range(len(names))), "ticktext": names} if len(names) <= 20 else {"showticklabels": False}
    figure.update_layout(
        height=260,
        margin={"l": 60, "r": 16, "t": 36, "b": 40},
        title={"text": "Change of SetF per query, largest loss first", "font": {"size": 14}},
        xaxis={"title": {"text": "query"}, **ticks},
        yaxis={"title": {"text": f"SetF now − SetF {compared}"}, "range": [-1.1, 1.1], "zeroline": True},
    )
    return figure


def _table(rows: Sequence[dict[str, Any]]) -> None:
    st.caption("Click a row to open that query.")
    ids = [row["query"] for row in rows]
    st.dataframe(
        {name: [row[name] for row in rows] for name in rows[0]},
        hide_index=True,
        key=KEY,
        on_select=lambda: _open(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(rows), 400),
        column_config=glossary.explained(
            rows[0],
            {name: st.column_config.NumberColumn(name, format="%.3f") for name in ("SetF was", "SetF now")}
            | {"change": st.column_config.NumberColumn("change", format="%+.3f")},
        ),
        alt="Per query: kept chunks, SetF before, SetF now, change",
    )


def _open(ids: Sequence[str]) -> None:
    rows = st.session_state[KEY]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        session.change(query_id=ids[rows[0]])
