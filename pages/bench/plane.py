"""Every gap threshold and offset of A's cut at once, over the dev questions: the plane behind the two sliders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from pages import state
from pages.widgets.take_along import BLUE, GREY, ORANGE, take_along
from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis
from rag_core.tune.plane import Table, sweep
from rag_core.tune.steps import cheap_knobs

MOST = 60  # values of an axis: more than a person can tell apart on a screen


def show(session: Session, pipeline: Pipeline) -> None:
    """The plane where A has an adaptive cut and a dev question is labelled; a sentence where it has none."""
    place = next((at for at, stage in enumerate(pipeline.stages) if isinstance(stage, AdaptiveGap)), None)
    if place is None:
        st.caption("The plane of thresholds needs an adaptive cut among the stages of A.")
        return
    try:
        table = session.remembered(f"plane {place}", pipeline, lambda: _swept(session, pipeline, place))
    except InputError as error:
        st.caption(f"No plane: {error}")
        return
    cut = pipeline.stages[place]
    best = table.best_at("SetF")
    if best is None:
        return
    row = table.row_at(best)
    said = f"Highest F₁ of the plane: {row['SetF']:.3f} at gap {best[0]:g} and offset {best[1]:g}, chosen on dev."
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(said)
        st.button(
            "Take this point", key="bench.plane.take", icon=":material/check:", on_click=_take,
            args=(session, pipeline, place, best),
        )  # fmt: skip
    rows = list(table.rows())
    names = ("gap_threshold", "distance_offset", "SetP", "SetR", "SetF", "kept_mean")
    rows.sort(key=lambda one: -one["SetF"])
    columns: dict[str, Sequence[Any]] = {name: [one[name] for one in rows] for name in names}
    now = (float(cut.settings()["gap_threshold"]), float(cut.settings()["distance_offset"]))
    take_along(
        "plane of thresholds", columns, lambda: _figure(table, now), "F₁ of every gap threshold and offset on dev"
    )
    _front(session, pipeline, place, table)


def _front(session: Session, pipeline: Pipeline, place: int, table: Table) -> None:
    """The settings of the plane that no other beats in mean precision and mean recall, beside every fixed k."""
    best: list[Mapping[str, Any]] = []
    for row in sorted(table.rows(), key=lambda row: (-row["SetR"], -row["SetP"])):
        if not best or row["SetP"] > best[-1]["SetP"] + 1e-9:
            best.append(row)
    fixed = session.remembered(f"fixed {place}", pipeline, lambda: _fixed(session, pipeline, place))
    rows = [("cut", row) for row in reversed(best)] + [("fixed k", row) for row in fixed]
    columns: dict[str, Sequence[Any]] = {
        "kind": [kind for kind, _ in rows],
        "gap_threshold": [row.get("gap_threshold") for _, row in rows],
        "distance_offset": [row.get("distance_offset") for _, row in rows],
        "k": [row.get("k") for _, row in rows],
        **{name: [row[name] for _, row in rows] for name in ("SetP", "SetR", "SetF", "kept_mean")},
    }
    now = session.figures(pipeline, session.dev).means

    def figure() -> Any:
        import plotly.graph_objects as go  # drawn on request: a page without the figure never waits for it

        drawn = go.Figure()
        for kind, shade, symbol in (("cut", BLUE, "circle"), ("fixed k", GREY, "square")):
            some = [row for one, row in rows if one == kind]
            drawn.add_scatter(
                x=[row["SetR"] for row in some], y=[row["SetP"] for row in some], mode="lines+markers", name=kind,
                marker={"color": shade, "symbol": symbol, "size": 6}, line={"color": shade, "width": 1},
                text=[f"k {row['k']}" if "k" in row else f"gap {row['gap_threshold']:g}, offset "
                      f"{row['distance_offset']:g}" for row in some],
                hovertemplate="%{text}<br>recall %{x:.3f}, precision %{y:.3f}<extra></extra>",
            )  # fmt: skip
        drawn.add_scatter(x=[now["SetR"]], y=[now["SetP"]], mode="markers+text", text=["A"], name="A now",
                          textposition="top center", marker={"symbol": "x", "size": 12, "color": ORANGE})  # fmt: skip
        drawn.update_layout(xaxis_title="mean recall (dev)", yaxis_title="mean precision (dev)",
                            height=400, margin={"t": 20, "b": 50})  # fmt: skip
        return drawn

    st.markdown("**Precision against recall** :gray[settings that no other beats in both; every fixed k beside them]")
    take_along("precision and recall", columns, figure, "Front of the plane, and every fixed k, over the dev questions")


def _fixed(session: Session, pipeline: Pipeline, place: int) -> list[dict[str, Any]]:
    """Every fixed k in the place of the cut, with its means."""
    ready, cases = session.ready(pipeline), session.capture(pipeline, session.dev)
    longest = max((len(case.candidates.hits) for case in cases if case.candidates is not None), default=1)
    axis = Axis("k", TopK.__name__, "k", tuple(range(1, max(1, min(50, longest)) + 1)))
    stages = (*ready.stages[:place], TopK(), *ready.stages[place + 1 :])
    return list(sweep(cases, replace(ready, stages=stages), (axis,), min_grade=session.min_grade).rows())


def _swept(session: Session, pipeline: Pipeline, place: int) -> Table:
    """Means over a grid whose axes lie where the project's gaps and distances do."""
    ready = session.ready(pipeline)
    cases = session.capture(pipeline, session.dev)
    knobs = {
        knob.setting: knob
        for knob in cheap_knobs(session.captures(pipeline, session.dev), ready, searched=session.live)
        if knob.stage == place
    }
    axes = []
    for name in ("gap_threshold", "distance_offset"):
        if name not in knobs:
            raise InputError("the cut's offset is relative, expected a distance to draw")
        places = np.unique(np.round(np.linspace(0, len(knobs[name].positions) - 1, MOST)).astype(int))
        axes.append(Axis(name, ready.stages[place].name, name, tuple(knobs[name].positions[places].tolist())))
    return sweep(cases, ready, axes, min_grade=session.project.min_grade)


def _figure(table: Table, now: tuple[float, float]) -> Any:
    import plotly.graph_objects as go  # drawn on request: a page without the figure never waits for it

    gaps, offsets = (axis.values for axis in table.axes)
    figure = go.Figure(
        go.Heatmap(x=offsets, y=gaps, z=table["SetF"], colorscale="Cividis", colorbar={"title": "F₁ (dev)"})
    )
    figure.add_trace(
        go.Scatter(x=[now[1]], y=[now[0]], mode="markers+text", text=["A"], textposition="top center",
                   marker={"symbol": "x", "size": 12, "color": ORANGE}, showlegend=False, name="A now")
    )  # fmt: skip
    figure.update_layout(
        xaxis_title="distance offset (distance)", yaxis_title="gap threshold (distance)", margin={"t": 10, "b": 40}
    )
    return figure


def _take(session: Session, pipeline: Pipeline, place: int, point: tuple[Any, ...]) -> None:
    cut = replace(pipeline.stages[place], gap_threshold=point[0], distance_offset=point[1])  # type: ignore[call-arg]
    stages = (*pipeline.stages[:place], cut, *pipeline.stages[place + 1 :])
    state.change(a=state.encode(Pipeline(stages), session))
    st.session_state.pop("bench.off", None)
