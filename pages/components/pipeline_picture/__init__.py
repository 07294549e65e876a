"""The pipeline as one picture: a query, the chunks that come back, a filter, what is left, with the measures below.

Drawn from a real run that is passed in; nothing in the picture is made up.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from pages.components.reading import figure, rows_of
from rag_core.evaluate.experiment import Outcome

FOLDER = Path(__file__).parent


@cache
def _component() -> Any:
    return st.components.v2.component(
        "winnow_pipeline_picture",
        html='<div class="picture" role="img"></div>',
        css=(FOLDER / "picture.css").read_text(encoding="utf-8"),
        js=(FOLDER / "picture.js").read_text(encoding="utf-8"),
    )


def show(outcome: Outcome, before: Outcome, filter_name: str, min_grade: int, key: str) -> None:
    """Draw one run of one filter beside the unfiltered list."""
    _component()(key=key, data=picture_of(outcome, before, filter_name, min_grade))


def picture_of(outcome: Outcome, before: Outcome, filter_name: str, min_grade: int) -> dict[str, Any]:
    """The four cards and the words between them."""
    rows = rows_of(outcome, min_grade)
    dots = [{"rank": row.hit.rank, "label": row.label, "kept": row.kept} for row in rows]
    kept = [dot for dot in dots if dot["kept"]]
    dropped = [row for row in rows if row.drop is not None]
    return {
        "alt": f"{len(dots)} chunks come back for the query, {filter_name} drops {len(dropped)}, {len(kept)} are kept; "
        f"SetF goes from {figure(before.scores.values, 'SetF')} to {figure(outcome.scores.values, 'SetF')}",
        "cards": [
            {"title": "A question", "text": outcome.case.query.text},
            {"title": f"{len(dots)} nearest chunks", "dots": [{**dot, "kept": True} for dot in dots],
             "text": _figures(before)},
            {"title": f"{filter_name} drops {len(dropped)}, each with a reason", "dots": dots,
             "text": f"rank {dropped[0].hit.rank}: {dropped[0].reason}" if dropped else "nothing dropped"},
            {"title": f"{len(kept)} kept", "dots": kept, "text": _figures(outcome)},
        ],
    }  # fmt: skip


def _figures(outcome: Outcome) -> str:
    values = outcome.scores.values
    named = (("precision", "SetP"), ("recall", "SetR"), ("F₁", "SetF"))
    return ", ".join(f"{word}\u00a0{figure(values, name)}" for word, name in named)  # word and number stay on one line
