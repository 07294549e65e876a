"""The chart of Explore: distance by rank beside gap to the next, with limits that can be dragged.

One component of our own (SVG, no library). A drag is previewed in the browser with a twin of the adaptive rule
(cut.js, held to rag_core.filters.adaptive by a test in Chromium); the server hears of it once, on release. What is
kept and why is decided by rag_core and comes in as `ChartData`; this draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

FOLDER = Path(__file__).parent
SCRIPTS = ("cut.js", "draw.js", "view.js", "chart.js")
HTML = '<div class="cut-chart" data-testid="cut-chart"></div>'


@dataclass(frozen=True, slots=True)
class Point:
    """One chunk on the chart. `label` is relevant, irrelevant or unjudged; `verdict` and `reason` are sentences."""

    id: str
    rank: int
    title: str
    score: float
    label: str
    grade: int | None
    kept: bool
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChartData:
    """All the chart draws. Ranges are fixed for a list, so that nothing jumps while a limit moves.

    `reaching` are the ids of the chunks that come to the adaptive filter, in its order; `adaptive` its settings, None
    while it is off; `keep_at_most` what a later TopK leaves; `total` how many chunks the list has.
    """

    points: tuple[Point, ...]
    reaching: tuple[str, ...]
    total: int
    score_kind: str  # "distance", or the list's one score
    score_name: str  # "cosine distance"
    score_title: str  # axis title with its unit and direction
    score_range: tuple[float, float]
    gap_range: float
    limit_maximum: Mapping[str, float]
    step: Mapping[str, float]
    adaptive: Mapping[str, Any] | None = None
    keep_at_most: int | None = None
    dropped_later: tuple[str, ...] = ()  # chunks that reach the LLM filter and are dropped by it
    kept_elsewhere: int = 0  # kept chunks that have no score to draw
    gap_panel: bool = True
    selected: str = ""


@dataclass(frozen=True, slots=True)
class ChartEvent:
    """What the person did: a chunk chosen by id, or limits moved to new values."""

    selected: str | None = None
    limits: Mapping[str, float] = field(default_factory=dict)


@cache
def scripts() -> str:
    """The component's JavaScript as one module; cut.js first, which a test also runs on its own."""
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)


@cache
def _component() -> Any:
    """The mounting command, registered once per process."""
    css = (FOLDER / "chart.css").read_text(encoding="utf-8")
    return st.components.v2.component("winnow_cut_chart", html=HTML, css=css, js=scripts())


def show(data: ChartData, key: str, on_change: Callable[[ChartEvent], None] | None = None) -> None:
    """Draw the chart; `on_change` is called before the next run with what the person did."""

    def changed() -> None:
        if on_change is not None:
            on_change(_event(st.session_state.get(key)))

    # In a list: in a mapping Streamlit looks for data frames, and imports pandas for it before the first chart stands.
    _component()(key=key, data=[_camel(asdict(data))], on_selected_change=changed, on_limits_change=changed)


def _event(state: Any) -> ChartEvent:
    """The component's answer as an event; anything of the wrong shape is as if nothing had happened."""
    answer = state if isinstance(state, Mapping) else {}
    selected, limits = answer.get("selected"), answer.get("limits")
    if not isinstance(limits, Mapping):
        limits = {}
    numbers = {
        str(name): float(value)
        for name, value in limits.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return ChartEvent(selected if isinstance(selected, str) else None, numbers)


def _camel(values: Mapping[str, Any]) -> dict[str, Any]:
    """The top-level names as JavaScript writes them; settings and limits keep the names of the stage."""
    return {name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:]): values[name] for name in values}
