"""Which dev queries win and which lose at the marker, as a table with what changed of their lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import tuning_set
from rag_core.measure.experiment import Outcome, kept_ids

SHOWN = ("That change", "Win", "Lose", "All")
SAME = 1e-12


def show(now: Sequence[Outcome], before: Sequence[Outcome], measure: str, reference: str, min_grade: int) -> None:
    """The table; the queries that change are shown first, losses on top."""
    rows = sorted((_row(a, b, measure, min_grade) for a, b in zip(now, before, strict=True)), key=lambda r: r["change"])
    picked = st.segmented_control(
        "Queries", SHOWN, default=SHOWN[0], required=True, key="tune.shown", label_visibility="collapsed"
    )
    shown = [row for row in rows if _wanted(row["change"], picked or SHOWN[0])]
    wins, losses = sum(r["change"] > SAME for r in rows), sum(r["change"] < -SAME for r in rows)
    st.markdown(
        f"**{wins} win, {losses} lose, {len(rows) - wins - losses} stay** of {len(rows)} dev queries "
        f"({measure}, marker against {reference})."
    )
    if not shown:
        tuning_set.quiet("No such query at this marker.")
        return
    st.dataframe(
        {name: [row[name] for row in shown] for name in shown[0]},
        hide_index=True,
        key="tune.queries",
        height=min(38 + 35 * len(shown), 420),
        column_config={name: st.column_config.NumberColumn(name, format="%.3f") for name in ("reference", "marker")}
        | {"change": st.column_config.NumberColumn("change", format="%+.3f")},
        alt=f"Per query: {measure} at the reference and at the marker, change, kept chunks, what changed",
    )


def _wanted(change: float, picked: str) -> bool:
    return {"Win": change > SAME, "Lose": change < -SAME, "All": True}.get(picked, abs(change) > SAME)


def _row(now: Outcome, before: Outcome, measure: str, min_grade: int) -> dict[str, Any]:
    """One query; relevant and other chunks that came and went."""
    after, first = set(kept_ids(now.result)), set(kept_ids(before.result))
    value, was = now.scores.values[measure] or 0.0, before.scores.values[measure] or 0.0
    grades = now.case.grades
    relevant = {chunk for chunk, grade in grades.items() if grade >= min_grade}
    came, went = after - first, first - after
    return {
        "query": now.case.query.id,
        "reference": was,
        "marker": value,
        "change": 0.0 if abs(value - was) <= SAME else value - was,
        "kept": f"{len(first)} → {len(after)}",
        "relevant": f"+{len(came & relevant)} −{len(went & relevant)}",
        "others": f"+{len(came - relevant)} −{len(went - relevant)}",
        "text": now.case.query.text,
    }
