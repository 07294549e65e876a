"""What is there to gain, in the losses lens: a perfect cut, a perfect filter, what search lost, what the scores know.

Computed by rag_core/project/ceilings.py over the dev questions, as the command `headroom` prints it.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.widgets.take_along import BLUE, GREY, label, laid_out, take_along
from rag_core.errors import InputError
from rag_core.project.ceilings import Ceilings, ceilings
from rag_core.project.session import Session
from rag_core.stage import Pipeline

SKY = "#56B4E9"
THREE = st.column_config.NumberColumn(format="%.3f")


def show(session: Session, pipeline: Pipeline) -> None:
    """Verdict, ceilings, signals, and every question with its own ceilings."""
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
    _questions(reached)


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
        return laid_out(drawn, "dev questions, most to gain first", "F₁")

    config = {name: THREE for name in (fixed, "best cut", "perfect filter")}
    config["lost in search"] = st.column_config.NumberColumn(format="percent")
    take_along("ceilings by question", columns, figure, "Per question F₁ of fixed k, best cut, perfect filter", config)
