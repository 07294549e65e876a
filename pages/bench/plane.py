"""Every gap threshold and offset of A's cut at once, over the dev questions: the plane behind the two sliders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from pages import state
from pages.widgets.take_along import take_along
from rag_core.errors import InputError
from rag_core.evaluate.chain import Table, sweep
from rag_core.evaluate.grid import Axis
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.project.session import Session
from rag_core.stage import Pipeline
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
                   marker={"symbol": "x", "size": 12, "color": "#D55E00"}, showlegend=False, name="A now")
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
