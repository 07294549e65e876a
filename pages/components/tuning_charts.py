"""The Plotly figures of Tune: precision against recall. Plotly is imported when a figure is first drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pages.components.tuning import Study
from pages.components.tuning_points import Point, fixed_ks, front_of

if TYPE_CHECKING:
    from rag_core.evaluate.search import Search

BLUE, ORANGE, GREY, YELLOW, PINK = "#0072B2", "#D55E00", "#8A9199", "#E69F00", "#CC79A7"
Interval = tuple[float, float] | None
FRONT_ALT = (
    "Mean precision against mean recall: every fixed k, the front of the plane, chosen setting and held-out points"
)


def front_figure(study: Study, chosen: Point | None, held_out: Sequence[tuple[Point, Interval, Interval]]) -> Any:
    """Precision against recall over the dev queries; held-out points with intervals once they were looked at."""
    import plotly.graph_objects as go

    figure = go.Figure()
    fixed, front = fixed_ks(study), front_of(study)
    k, _ = study.baseline
    also = f"; hollow: {len(study.test)} held-out queries" if held_out else ""
    figure.add_trace(_line([p.SetR for p in fixed], [p.SetP for p in fixed], [p.name for p in fixed], "fixed k", GREY))
    names = [f"gap {row['gap_threshold']:.4f}, offset {row['distance_offset']:.4f}" for row in front]
    recalls, precisions = [row["SetR"] for row in front], [row["SetP"] for row in front]
    figure.add_trace(_line(recalls, precisions, names, "front of the plane", BLUE))
    base = next(point for point in fixed if point.name == f"fixed k {k}") if k <= len(fixed) else None
    if base is not None:
        figure.add_trace(_mark(base, f"best fixed k ({k}), dev", "square", YELLOW))
    if chosen is not None:
        figure.add_trace(_mark(chosen, "chosen setting, dev", "star", BLUE))
    for (point, precision, recall), (symbol, shade) in zip(
        held_out, (("star-open", BLUE), ("square-open", YELLOW)), strict=False
    ):
        figure.add_trace(_mark(point, f"{point.name}, held out", symbol, shade, precision, recall))
    figure.update_layout(
        height=430,
        margin={"l": 60, "r": 16, "t": 44, "b": 50},
        title={
            "text": f"Mean precision and recall, macro over {len(study.dev)} dev queries{also}",
            "font": {"size": 14},
        },
        xaxis={"title": {"text": "SetR, mean recall of the kept list"}, "range": [0, 1.03]},
        yaxis={"title": {"text": "SetP, mean precision of the kept list"}, "range": [0, 1.03]},
        legend={"orientation": "v", "x": 1.02, "y": 1},
    )
    return figure


def _line(x: Sequence[float], y: Sequence[float], names: Sequence[str], label: str, shade: str) -> Any:
    import plotly.graph_objects as go

    hover = "%{customdata}<br>recall %{x:.3f}, precision %{y:.3f}<extra></extra>"
    return go.Scatter(
        x=x, y=y, customdata=names, name=label, mode="lines+markers", line={"color": shade, "width": 2},
        marker={"size": 5}, hovertemplate=hover,
    )  # fmt: skip


def _mark(
    point: Point, label: str, symbol: str, shade: str, precision: Interval = None, recall: Interval = None
) -> Any:
    import plotly.graph_objects as go

    return go.Scatter(
        x=[point.SetR], y=[point.SetP], name=label, mode="markers",
        marker={"symbol": symbol, "size": 15, "color": shade, "line": {"width": 2, "color": shade}},
        error_x=_bars(point.SetR, recall, shade), error_y=_bars(point.SetP, precision, shade),
        hovertemplate=f"{label}<br>recall %{{x:.3f}}, precision %{{y:.3f}}, SetF {point.SetF:.3f}, "
        f"{point.kept:.1f} kept, {point.queries} queries<extra></extra>",
    )  # fmt: skip


def _bars(value: float, interval: Interval, shade: str) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {
        "type": "data",
        "symmetric": False,
        "array": [interval[1] - value],
        "arrayminus": [value - interval[0]],
        "color": shade,
    }


def search_figure(found: Search) -> Any:
    """The second objective against the first: every trial, those that no other beats, the best fixed k."""
    import plotly.graph_objects as go

    first, second = found.objectives[:2]
    groups = (
        ([row for row in found.rows if row.feasible], "trial", "circle", GREY, 6),
        (found.front, "no other beats it", "circle", BLUE, 9),
        ((found.baseline,), found.baseline.name, "square", YELLOW, 14),
    )
    figure = go.Figure()
    for rows, label, symbol, shade, size in groups:
        figure.add_trace(
            go.Scatter(
                x=[row.values[first] for row in rows],
                y=[row.values[second] for row in rows],
                name=label,
                mode="markers",
                marker={"symbol": symbol, "color": shade, "size": size},
                text=[r.name for r in rows],
                hovertemplate=f"%{{text}}<br>{first} %{{x:.4g}}, {second} %{{y:.4g}}<extra></extra>",
            )
        )
    figure.update_layout(
        height=360, margin={"l": 60, "r": 16, "t": 20, "b": 50},
        xaxis={"title": {"text": f"{first}, mean over dev queries"}},
        yaxis={"title": {"text": f"{second}, mean over dev queries"}},
        legend={"orientation": "v", "x": 1.02, "y": 1},
    )  # fmt: skip
    return figure
