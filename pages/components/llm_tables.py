"""The tables under the figures of the page *LLM filter*: judges by accuracy, and what references bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.components.llm_cost import COST
from pages.components.llm_results import NOTHING, whole
from rag_core.judged.depths import Depth


def accuracy(document: Mapping[str, Any]) -> None:
    """Simulated judges by accuracy and seed, with what a point over the best free filter costs."""
    free = max(row["SetF"] or 0.0 for row in document["free"])
    rows = document["rows"]
    gains = [100 * ((row["f1"] or 0.0) - free) for row in rows]
    st.dataframe(
        {
            "accuracy": [1 - row["error_rate"] for row in rows],
            "seed": [row["seed"] for row in rows],
            "SetP": [row["precision"] for row in rows],
            "SetR": [row["recall"] for row in rows],
            "SetF": [row["f1"] for row in rows],
            "calls": [row["prompts"] for row in rows],
            COST: [row["cost"] for row in rows],
            "cost per point over the best free": [
                row["cost"] / gain if gain > 0 and row["cost"] is not None else None
                for row, gain in zip(rows, gains, strict=True)
            ],
        },
        hide_index=True,
        key="llm.accuracy.table",
        column_config={
            "accuracy": st.column_config.NumberColumn(format="percent"),
            **{name: st.column_config.NumberColumn(format="%.3f") for name in ("SetP", "SetR", "SetF")},
            COST: st.column_config.NumberColumn(format="%.5f"),
            "cost per point over the best free": st.column_config.NumberColumn(format="%.5f"),
        },
        placeholder=NOTHING,
        height=300,
        alt="Simulated judges by accuracy and seed: precision, recall, F1, calls and cost",
    )


def by_depth(rows: Sequence[Depth]) -> None:
    """Chunks, tokens and shares per depth of expansion."""
    st.dataframe(
        {
            "depth": [row.depth for row in rows],
            "chunks": [row.chunks for row in rows],
            "tokens": [row.tokens for row in rows],
            "share relevant": whole([row.relevant for row in rows]),
            "share of the relevant": whole([row.found for row in rows]),
        },
        hide_index=True,
        key="llm.depth.table",
        placeholder=NOTHING,
        column_config={
            "chunks": st.column_config.NumberColumn(format="%.1f"),
            "tokens": st.column_config.NumberColumn(format="%.0f"),
            "share relevant": st.column_config.NumberColumn(format="percent"),
            "share of the relevant": st.column_config.NumberColumn(format="percent"),
        },
        alt="Per depth: chunks, tokens, share of relevant chunks",
    )
