"""The Plotly figures of the page *LLM filter*: the front, the simulated judge's accuracy, the depth of expansion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any

from pages.components.llm_cost import cost_word
from rag_core.judged.depths import Depth

BLUE, GREY, SKY, ORANGE = "#0072B2", "#8A9199", "#56B4E9", "#D55E00"
NAME = 56  # characters of a name in a figure


def _layout(figure: Any, title: str, x_title: str, y_title: str, **axes: Any) -> Any:
    figure.update_layout(
        height=400,
        margin={"l": 60, "r": 24, "t": 44, "b": 50},
        title={"text": title, "font": {"size": 14}},
        xaxis={"title": {"text": x_title}, **axes.get("x", {})},
        yaxis={"title": {"text": y_title}, **axes.get("y", {})},
        legend={"orientation": "h", "y": -0.22},
    )
    return figure


def front(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Precision over recall of every filter; filled where no other is as good in both and as cheap."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for model, label, shade, shape in (
        (False, "cheap filters", GREY, "square"),
        (True, "with a judge", BLUE, "circle"),
    ):
        some = [row for row in rows if row["model"] is model and row["SetP"] is not None and row["SetR"] is not None]
        figure.add_trace(
            go.Scatter(
                x=[row["SetR"] for row in some], y=[row["SetP"] for row in some], name=label, mode="markers+text",
                text=[escape(row["name"][:NAME]) for row in some], textposition="top center",
                customdata=[f"{escape(row['name'][:80])}<br>{_paid(row['cost'])}" for row in some],
                hovertemplate="%{customdata}<br>SetR %{x:.3f}, SetP %{y:.3f}<extra></extra>",
                marker={
                    "size": 12, "color": shade, "line": {"width": 2, "color": shade},
                    "symbol": [shape if row["on_front"] else f"{shape}-open" for row in some],
                },
            )
        )  # fmt: skip
    title = "Precision over recall; filled: no other is as good in both and as cheap"
    return _layout(
        figure, title, "SetR, recall", "SetP, precision", x={"range": [-0.05, 1.12]}, y={"range": [-0.05, 1.12]}
    )


def _paid(cost: float | None) -> str:
    return "free" if cost == 0 else cost_word(cost, 4)


def accuracy(document: Mapping[str, Any]) -> Any:
    """Mean SetF over the simulated judge's accuracy with the range over seeds, the free filters, the break-even."""
    import plotly.graph_objects as go

    rates = sorted({row["error_rate"] for row in document["rows"]}, reverse=True)
    by_rate = [[row["f1"] or 0.0 for row in document["rows"] if row["error_rate"] == rate] for rate in rates]
    means = [fmean(values) for values in by_rate]
    figure = go.Figure(
        go.Scatter(
            x=[1 - rate for rate in rates], y=means, name="simulated judge", mode="lines+markers",
            line={"color": BLUE}, marker={"size": 9},
            error_y={
                "array": [max(values) - mean for values, mean in zip(by_rate, means, strict=True)],
                "arrayminus": [mean - min(values) for values, mean in zip(by_rate, means, strict=True)],
            },
            hovertemplate="accuracy %{x:.0%}<br>SetF %{y:.3f}<extra></extra>",
        )
    )  # fmt: skip
    for at, row in enumerate(document["free"]):
        figure.add_hline(
            y=row["SetF"] or 0.0, line={"color": GREY, "dash": "dot"},
            annotation={"text": f"{escape(row['name'][:NAME])} {row['SetF'] or 0.0:.3f}"},
            annotation_position="bottom right" if at % 2 else "top left",
        )  # fmt: skip
    even = document["break_even_error_rate"]
    if even is not None:
        figure.add_vline(
            x=1 - even, line={"color": ORANGE, "dash": "dash"},
            annotation={"text": f"break-even {1 - even:.1%}"}, annotation_position="top left",
        )  # fmt: skip
    title = "How good must a judge be? Mean SetF, bars from the worst to the best seed"
    axis = {"range": [1 - max(rates) - 0.02, 1.02], "tickformat": ".0%"}
    return _layout(figure, title, "share of chunks the judge decides rightly", "SetF", x=axis, y={"range": [0, 1.05]})


def by_depth(rows: Sequence[Depth]) -> Any:
    """Tokens of the context per depth of expansion."""
    import plotly.graph_objects as go

    figure = go.Figure(
        go.Bar(
            x=[f"depth {row.depth}" for row in rows], y=[row.tokens for row in rows], marker_color=SKY, width=0.5,
            text=[f"{row.chunks:,.1f} chunks, {row.tokens:,.0f} tokens" for row in rows], textposition="outside",
            cliponaxis=False, hovertemplate="%{x}: %{y:,.0f} tokens<extra></extra>",
        )
    )  # fmt: skip
    top = max((row.tokens for row in rows), default=1.0)
    return _layout(figure, "What references bring", "steps along references", "tokens", y={"range": [0, top * 1.15]})
