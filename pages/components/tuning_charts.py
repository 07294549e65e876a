"""The Plotly figure of a search. Plotly is imported when it is first drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_core.tune.search import Search

BLUE, GREY, YELLOW = "#0072B2", "#8A9199", "#E69F00"


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
