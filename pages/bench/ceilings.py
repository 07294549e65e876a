"""What is there to gain, in the losses lens: a perfect cut, a perfect filter, what search lost, what the scores know.

Computed by rag_core/project/ceilings.py over the dev questions, as the command `headroom` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from pages.bench.sight import DISTANCES
from pages.widgets.take_along import BLUE, GREEN, GREY, ORANGE, label, take_along
from rag_core.errors import InputError
from rag_core.project.ceilings import IRRELEVANT, RELEVANT, UNJUDGED, Ceilings, ceilings
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from rag_core.text import counted

SKY = "#56B4E9"
KINDS = (("unjudged", UNJUDGED, GREY), ("irrelevant", IRRELEVANT, ORANGE), ("relevant", RELEVANT, GREEN))
THREE = st.column_config.NumberColumn(format="%.3f")


def show(session: Session, pipeline: Pipeline) -> None:
    """Verdict, ceilings and signals; by question, by distance, as curves or by band what stands behind them."""
    try:
        reached = ceilings(session, pipeline)
    except InputError as error:
        st.caption(f"No ceilings: {error}.")
        return
    st.markdown(
        f"**What is there to gain** :gray[before A’s last cut, over {len(reached.rows)} labelled dev questions]"
    )
    st.markdown(reached.verdict)
    means = reached.means
    rows = {
        f"best fixed k = {reached.fixed_k}": ("what anybody has without a filter of ours", means["fixed"]),
        "best cut": ("each list ended at its own best place", means["best_cut"]),
        "perfect filter": ("exactly the relevant chunks of each list", means["perfect_filter"]),
        "nothing lost": ("the relevant chunks that search never brought were in the lists too", 1.0),
    }
    take_along(
        "ceilings",
        {"if": list(rows), "what that is": [why for why, _ in rows.values()], "F₁": [f for _, f in rows.values()]},
        config={"F₁": THREE},
    )
    if reached.signals:
        take_along(
            "what the scores know",
            {
                "score": [one.name for one in reached.signals],
                "AUC": [one.auc for one in reached.signals],
                "95 % from": [one.low for one in reached.signals],
                "to": [one.high for one in reached.signals],
                "questions": [one.queries for one in reached.signals],
                "in words": ["better than chance" if one.better_than_chance else "not told from chance"
                             for one in reached.signals],
            },
            config={"AUC": THREE, "95 % from": THREE, "to": THREE},
        )  # fmt: skip
    shown = st.segmented_control("Behind the ceilings", list(PARTS), key="bench.ceilings", label_visibility="collapsed")
    if shown:
        PARTS[shown](reached)


def _questions(reached: Ceilings) -> None:
    """Each question with its ceilings, the most to gain first."""
    order = sorted(range(len(reached.rows)), key=lambda at: reached.now[at] - reached.rows[at].perfect_filter)
    rows = [reached.rows[at] for at in order]
    fixed = f"fixed k = {reached.fixed_k}"
    columns: dict[str, list[Any]] = {
        "question": [row.query_id for row in rows],
        "limited by": [reached.limited_by(at) for at in order],
        fixed: [reached.now[at] for at in order],
        "best cut": [row.best_cut for row in rows],
        "at length": [row.best_length for row in rows],
        "perfect filter": [row.perfect_filter for row in rows],
        "lost in search": [row.lost_in_retrieval for row in rows],
        "text": [reached.texts[row.query_id] for row in rows],
    }

    def figure() -> Any:
        import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

        drawn = go.Figure()
        for name, shade, symbol in ((fixed, GREY, "circle"), ("best cut", SKY, "diamond"),
                                    ("perfect filter", BLUE, "star")):  # fmt: skip
            drawn.add_scatter(
                x=list(range(1, len(rows) + 1)), y=columns[name], mode="markers", name=name,
                marker={"color": shade, "symbol": symbol, "size": 8}, text=[label(text) for text in columns["text"]],
                hovertemplate="%{text}<br>" + name + " F₁ %{y:.3f}<extra></extra>",
            )  # fmt: skip
        return _titled(drawn, "dev questions, most to gain first", "F₁")

    config = {name: THREE for name in (fixed, "best cut", "perfect filter")}
    config["lost in search"] = st.column_config.NumberColumn(format="percent")
    take_along("ceilings by question", columns, figure, "Per question F₁ of fixed k, best cut, perfect filter", config)


def _distances(reached: Ceilings) -> None:
    """How far chunks of each label are."""
    if not len(reached.distances):
        st.caption("These lists hold no distances.")
        return
    edges = np.linspace(reached.distances.min(), reached.distances.max() + 1e-9, 41)
    parts = {name: np.histogram(reached.distances[reached.labels == kind], edges)[0] for name, kind, _ in KINDS}
    columns = {"from": edges[:-1].tolist(), "to": edges[1:].tolist()}
    columns |= {name: counts.tolist() for name, counts in parts.items() if counts.sum()}

    def figure() -> Any:
        import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

        drawn = go.Figure()
        for name, _, shade in KINDS:
            if name in columns:
                total = int(parts[name].sum())
                drawn.add_bar(
                    x=(edges[:-1] + edges[1:]) / 2, y=100 * parts[name] / total, marker={"color": shade}, opacity=0.6,
                    name=f"{name} ({counted(total, 'chunk', 'chunks')})",
                    hovertemplate="%{x:.4f}: %{y:.1f} %<extra>" + name + "</extra>",
                )  # fmt: skip
        drawn.update_layout(barmode="overlay", bargap=0)
        return _titled(drawn, DISTANCES.get(reached.metric, "distance"), "share of its kind (%)")

    take_along("chunks by distance", columns, figure, "Number of relevant, irrelevant and unjudged chunks by distance",
               {name: st.column_config.NumberColumn(format="%.4f") for name in ("from", "to")})  # fmt: skip
    st.caption("The more the humps overlap, the less any threshold of distance can tell them apart.")


def _curves(reached: Ceilings) -> None:
    """Precision and recall of every threshold of distance, and the ROC curve."""
    unjudged_too = bool((reached.labels == UNJUDGED).any()) and st.toggle(
        "Count unjudged chunks as irrelevant", value=True, key="bench.ceilings.unjudged"
    )
    curve = reached.curve(unjudged_too)
    if curve is None:
        st.markdown("All chunks that take part are of one kind: label irrelevant ones too, or count the unjudged.")
        return
    columns = {
        "keep up to": curve.thresholds.tolist(),
        "precision": curve.precision.tolist(),
        "recall": curve.recall.tolist(),
        "false positive rate": curve.false_rate.tolist(),
        "chunks kept": curve.kept.tolist(),
    }

    def figure() -> Any:
        from plotly.subplots import make_subplots  # 0.4 s, and most visits draw no figure

        drawn = make_subplots(cols=2, subplot_titles=(f"AP {curve.ap:.3f}", f"ROC, AUC {curve.auc:.3f}"))
        for at, (across, up) in enumerate((("recall", "precision"), ("false positive rate", "recall")), 1):
            drawn.add_scatter(
                x=columns[across], y=columns[up], customdata=columns["keep up to"], mode="lines+markers", col=at, row=1,
                marker={"size": 4, "color": BLUE}, showlegend=False,
                hovertemplate="up to %{customdata:.4f}<br>%{x:.3f}, %{y:.3f}<extra></extra>",
            )  # fmt: skip
            drawn.update_xaxes(title_text=across, range=[0, 1.02], col=at)
            drawn.update_yaxes(title_text=up if at == 1 else "true positive rate", range=[0, 1.03], col=at)
        drawn.update_layout(height=400, margin={"l": 60, "r": 16, "t": 30, "b": 50})
        return drawn

    config = {name: THREE for name in ("precision", "recall", "false positive rate")}
    config["keep up to"] = st.column_config.NumberColumn(format="%.4f")
    st.caption(
        f"All {curve.chunks:,} chunks of {counted(len(reached.rows), 'question', 'questions')} pooled (micro), one "
        "threshold for all; for cosine distances a floor of similarity keeps the same at 1 − threshold."
    )
    take_along("curves of distance", columns, figure, "Precision and recall of keeping chunks up to a distance", config)


def _bands(reached: Ceilings) -> None:
    """Whether chunks of high confidence are relevant more often than those of low."""
    bands = [band for band in reached.bands if band.share is not None]
    if not bands:
        st.caption("Bands are of cosine distances, and need judged chunks.")
        return
    shares = [band.share or 0.0 for band in bands]
    if shares != sorted(shares, reverse=True):
        st.markdown("**The bands do not hold here:** a higher band is not more often relevant on these labels.")
    columns: dict[str, Sequence[Any]] = {
        "band": [band.band for band in bands],
        "judged": [band.judged for band in bands],
        "relevant": [band.relevant for band in bands],
        "share": shares,
        "95 % from": [band.low for band in bands],
        "to": [band.high for band in bands],
    }

    def figure() -> Any:
        import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

        above = [(band.high or 0.0) - share for band, share in zip(bands, shares, strict=True)]
        below = [share - (band.low or 0.0) for band, share in zip(bands, shares, strict=True)]
        drawn = go.Figure(
            go.Bar(x=columns["band"], y=shares, marker_color=BLUE, width=0.5,
                   error_y={"type": "data", "symmetric": False, "array": above, "arrayminus": below},
                   hovertemplate="%{y:.0%} relevant<extra></extra>")
        )  # fmt: skip
        drawn.update_yaxes(range=[0, 1], tickformat=".0%")
        return _titled(drawn, "band of confidence", "share relevant of the judged")

    percent = {name: st.column_config.NumberColumn(format="percent") for name in ("share", "95 % from", "to")}
    take_along("bands of confidence", columns, figure, "Share relevant of each band with its interval", percent)


def _titled(figure: Any, across: str, up: str) -> Any:
    figure.update_layout(
        height=400, margin={"l": 60, "r": 16, "t": 20, "b": 50}, legend={"orientation": "h", "y": -0.22},
        xaxis_title=across, yaxis_title=up,
    )  # fmt: skip
    return figure


PARTS: Mapping[str, Callable[[Ceilings], None]] = {
    "By question": _questions,
    "By distance": _distances,
    "Curves": _curves,
    "Bands": _bands,
}
