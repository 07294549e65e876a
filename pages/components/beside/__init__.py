"""Kept lists of one query side by side: a column a pipeline, a line between equal chunks, a shade for what others lack.

Titles and reasons are set as text in the browser, never as markup. A click or Enter on a chunk selects it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from rag_core.evaluate.experiment import Outcome

FOLDER = Path(__file__).parent
LONGEST_TITLE = 160
MOST = 40  # chunks drawn of a column


@cache
def _component() -> Any:
    return st.components.v2.component(
        "winnow_beside",
        html='<div class="beside"></div>',
        css=(FOLDER / "beside.css").read_text(encoding="utf-8"),
        js=(FOLDER / "beside.js").read_text(encoding="utf-8"),
    )


def show(outcomes: Sequence[Outcome], names: Sequence[str], min_grade: int, selected: str, key: str) -> str:
    """Draw the columns; the id of the chunk a person selected now, or ''."""
    answer = _component()(key=key, data=columns(outcomes, names, min_grade, selected), on_chosen_change=lambda: None)
    known = {hit.chunk.id for outcome in outcomes for hit in outcome.result.hits}
    chosen = getattr(answer, "chosen", None)
    return chosen if isinstance(chosen, str) and chosen in known else ""


def columns(outcomes: Sequence[Outcome], names: Sequence[str], min_grade: int, selected: str) -> dict[str, Any]:
    """What is drawn: per pipeline its kept chunks in final order, each with its label and who else keeps it."""
    kept = [dict.fromkeys(hit.chunk.id for hit in outcome.result.hits) for outcome in outcomes]
    return {
        "selected": selected,
        "columns": [
            {
                "name": name,
                "total": len(mine),
                "figure": _figure(outcome),
                "chunks": [
                    _chunk(outcome, chunk, place, min_grade, sum(chunk in one for one in kept))
                    for place, chunk in enumerate(list(mine)[:MOST], 1)
                ],
            }
            for name, outcome, mine in zip(names, outcomes, kept, strict=True)
        ],
    }


def _figure(outcome: Outcome) -> str:
    value = outcome.scores.values.get("SetF")
    return "not scored" if value is None else f"SetF {value:.3f}"


def _chunk(outcome: Outcome, chunk_id: str, place: int, min_grade: int, keepers: int) -> dict[str, Any]:
    hit = next(hit for hit in outcome.result.hits if hit.chunk.id == chunk_id)
    grade = outcome.case.grades.get(chunk_id)
    label = "unjudged" if grade is None else "relevant" if grade >= min_grade else "irrelevant"
    return {
        "id": chunk_id,
        "place": place,
        "title": (hit.chunk.title or chunk_id)[:LONGEST_TITLE],
        "label": label,
        "grade": grade,
        "only": keepers == 1,
    }
