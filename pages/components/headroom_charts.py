"""The Plotly figures of Headroom: oracles per query, distances by label, precision-recall and ROC curves, bands.

Plotly and scikit-learn are imported when a figure is first drawn. What the figures mean is said on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from pages.components.headroom_data import Chunks, Curve
from pages.components.trace import counted
from rag_core.measure.confidence import BandShare
from rag_core.tune.headroom import QueryHeadroom

BLUE, GREEN, ORANGE, GREY, SKY = "#0072B2", "#009E73", "#D55E00", "#8A9199", "#56B4E9"


def _layout(figure: Any, title: str, x_title: str, y_title: str, **axes: Any) -> Any:
    figure.update_layout(
        height=380,
        margin={"l": 60, "r": 16, "t": 44, "b": 50},
        title={"text": title, "font": {"size": 14}},
        xaxis={"title": {"text": x_title}, **axes.get("x", {})},
        yaxis={"title": {"text": y_title}, **axes.get("y", {})},
        legend={"orientation": "h", "y": -0.22},
        barmode="overlay",
    )
    return figure


def oracles(found: Sequence[QueryHeadroom], now: Sequence[float], name: str, kind: str) -> Any:
    """SetF per query: as it is, with the best cut, with a perfect filter; queries with most to gain first."""
    import plotly.graph_objects as go

    order = sorted(range(len(found)), key=lambda at: now[at] - found[at].perfect_filter)
    places = list(range(len(order)))
    ids = [escape(found[at].query_id[:80]) for at in order]  # Plotly reads tags in what it shows
    rows = (
        (name, [now[at] for at in order], GREY, "circle"),
        ("best cut of this list", [found[at].best_cut for at in order], SKY, "diamond"),
        ("perfect filter of this list", [found[at].perfect_filter for at in order], BLUE, "star"),
    )
    figure = go.Figure(
        [
            go.Scatter(
                x=places, y=values, mode="markers", name=label, customdata=ids,
                marker={"color": shade, "symbol": symbol, "size": 8},
                hovertemplate="%{customdata}<br>" + label + " SetF %{y:.3f}<extra></extra>",
            )
            for label, values, shade, symbol in rows
        ]
    )  # fmt: skip
    title = f"SetF of {len(found)} {kind}, most to gain first; what a perfect filter leaves to 1 was lost in retrieval"
    return _layout(figure, title, "query", "SetF", x={"showticklabels": False}, y={"range": [-0.03, 1.05]})


def histogram(chunks: Chunks, score: str) -> Any:
    """Distances of relevant, irrelevant and unjudged chunks, each as a share of its kind."""
    import plotly.graph_objects as go

    low, high = float(chunks.distances.min()), float(chunks.distances.max())
    size = max((high - low) / 40, 1e-9)
    figure = go.Figure()
    for label, wanted, shade in (("unjudged", -1, GREY), ("irrelevant", 0, ORANGE), ("relevant", 1, GREEN)):
        values = chunks.distances[chunks.labels == wanted]
        if len(values):
            figure.add_trace(
                go.Histogram(
                    x=values, name=f"{label} ({len(values):,} chunks)", histnorm="percent", opacity=0.6,
                    marker={"color": shade}, xbins={"start": low, "end": high + size, "size": size},
                )
            )  # fmt: skip
    title = f"Distance by label, chunks of {counted(chunks.queries, 'query', 'queries')}"
    return _layout(figure, title, score, "share of its kind (%)")


def curve(found: Curve) -> Any:
    """Both curves in one row; every point is a threshold and can be clicked."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(cols=2, subplot_titles=(f"Precision-recall, AP {found.ap:.3f}", f"ROC, AUC {found.auc:.3f}"))
    hover = "distance ≤ %{customdata:.4f}<br>%{x:.3f}, %{y:.3f}<extra></extra>"
    common = {"mode": "lines+markers", "marker": {"size": 4}, "hovertemplate": hover, "showlegend": False}
    precision = go.Scatter(x=found.recall, y=found.precision, customdata=found.thresholds, line_color=BLUE, **common)
    rates = go.Scatter(
        x=found.false_rate, y=found.true_rate, customdata=found.roc_thresholds, line_color=BLUE, **common
    )
    figure.add_trace(precision, row=1, col=1)
    figure.add_trace(rates, row=1, col=2)
    chance = {"mode": "lines", "line": {"dash": "dot", "color": GREY}, "hoverinfo": "skip", "showlegend": False}
    figure.add_trace(go.Scatter(x=[0, 1], y=[found.share, found.share], **chance), row=1, col=1)
    figure.add_trace(go.Scatter(x=[0, 1], y=[0, 1], **chance), row=1, col=2)
    figure.update_xaxes(range=[0, 1.02])
    figure.update_yaxes(range=[0, 1.03])
    figure.update_xaxes(title_text="recall (share of the relevant kept)", col=1)
    figure.update_yaxes(title_text="precision (share of the kept)", col=1)
    figure.update_xaxes(title_text="false positive rate", col=2)
    figure.update_yaxes(title_text="true positive rate", col=2)
    figure.update_layout(height=400, margin={"l": 60, "r": 16, "t": 44, "b": 50}, clickmode="event+select")
    return figure


def calibration(shares: Sequence[BandShare]) -> Any:
    """Share relevant per band with its interval."""
    import plotly.graph_objects as go

    known = [one for one in shares if one.share is not None]
    figure = go.Figure(
        go.Bar(
            x=[f"{one.band} ({one.judged} judged)" for one in known],
            y=[one.share for one in known],
            marker_color=BLUE,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [(one.high or 0) - (one.share or 0) for one in known],
                "arrayminus": [(one.share or 0) - (one.low or 0) for one in known],
            },
            hovertemplate="%{x}<br>%{y:.0%} relevant<extra></extra>",
            width=0.5,
        )
    )
    title = "Share relevant of the judged chunks, by confidence band"
    return _layout(figure, title, "band", "share relevant", y={"range": [0, 1], "tickformat": ".0%"})
