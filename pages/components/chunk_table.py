"""The table of chunks: the chart's twin in words. One row per chunk in the order of the list; a click selects."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components import session
from pages.components.reading import Row
from rag_core.filters.cutoff import WEAK

SIGNS = {"relevant": "✓", "irrelevant": "✕", "unjudged": "?"}
KEY = "explore.table"
WEAK_HELP = f"Weak: the cosine similarity is below {WEAK:g}. Nothing is dropped for it."


def show(rows: Sequence[Row], kind: str, name: str) -> None:
    """Draw the table; the selected chunk's row is marked. Chunk text stays in cells, which never read markup."""
    ids = [row.hit.chunk.id for row in rows]
    chosen = session.selected()
    st.session_state[KEY] = {"selection": {"rows": [ids.index(chosen)] if chosen in ids else [], "columns": []}}
    st.dataframe(
        _columns(rows, kind, name),
        hide_index=True,
        key=KEY,
        on_select=lambda: _selected(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(rows), 388),
        column_config={
            "rank": st.column_config.NumberColumn("rank", width=52),
            name: st.column_config.NumberColumn(name, format="%.4f", width=max(84, 9 * len(name))),
            "title": st.column_config.TextColumn("title", width="large"),
            "label": st.column_config.TextColumn("label", width=112),
            "verdict": st.column_config.TextColumn("verdict", width=162, help=WEAK_HELP),
            "reason": st.column_config.TextColumn("reason", width=290),
        },
        alt=f"{len(rows)} chunks with rank, {name}, title, label, verdict and reason",
    )


def _columns(rows: Sequence[Row], kind: str, name: str) -> dict[str, list[object]]:
    return {
        "rank": [row.hit.rank for row in rows],
        name: [row.hit.scores.get(kind) for row in rows],
        "verdict": [f"{verdict_word(row)}{', weak' if row.weak and row.kept else ''}" for row in rows],
        "label": [label_word(row) for row in rows],
        "reason": [row.reason for row in rows],
        "title": [row.hit.chunk.title or row.hit.chunk.id for row in rows],
    }


def verdict_word(row: Row) -> str:
    """What became of it as shape and word: "● kept"."""
    return f"{'●' if row.kept else '○'} {row.verdict}"


def label_word(row: Row) -> str:
    """The label as shape, word and grade: "✓ relevant 1"."""
    grade = "" if row.grade is None else f" {row.grade}"
    return f"{SIGNS[row.label]} {row.label}{grade}"


def _selected(ids: Sequence[str]) -> None:
    rows = st.session_state[KEY]["selection"]["rows"]
    session.select(ids[rows[0]] if rows and rows[0] < len(ids) else "")
