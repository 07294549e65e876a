"""In whose name this session labels."""

from __future__ import annotations

import streamlit as st

from pages.components import who
from rag_core.store.events import GRADES, is_reserved

NAME_KEY = "label.annotator"
LONGEST_NAME = 80

CHOICES: tuple[tuple[str, int | None], ...] = (
    *((f"{grade} {word}", grade) for grade, word in GRADES.items()),
    ("unsure", None),
)
"""What a person can say of a chunk; unsure counts as unjudged."""


def annotator() -> str:
    """In whose name this session labels: who logged in, else the name typed on Label, else `me`.

    The names under which decisions between people and models' labels are kept are nobody's.
    """
    if who.shared():
        return who.person().name
    typed = str(st.session_state.get(NAME_KEY) or "").strip()[:LONGEST_NAME]
    return who.ME if not typed or is_reserved(typed) else typed
