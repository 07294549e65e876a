"""The table of contents: the five places and settings of the rail, and the pages that have not moved into them yet."""

from __future__ import annotations

import streamlit as st

from pages import rail

OLDER = {
    "explore": ("Explore", ":material/filter_alt:"),
    "history": ("History", ":material/history:"),
    "start": ("Start", ":material/flag:"),
    "entities": ("Entities", ":material/group_work:"),
    "llm_filter": ("LLM filter", ":material/forum:"),
    "tune": ("Tune", ":material/tune:"),
    "evaluate": ("Evaluate", ":material/analytics:"),
    "compare": ("Compare", ":material/compare:"),
    "headroom": ("Headroom", ":material/vertical_align_top:"),
    "status": ("Status", ":material/monitor_heart:"),
}
FIRST = "explore"
"""The page at the root address until the Bench takes its place."""


def older() -> list[st.Page]:
    """The pages that have not moved into a place yet."""
    return [
        st.Page(f"pages/{name}.py", title=title, icon=icon, default=name == FIRST)
        for name, (title, icon) in OLDER.items()
    ]


def pages() -> list[st.Page]:
    """Every page: the places that are there, settings, and the older ones."""
    places = [place.page(default=place.name == FIRST) for place in (*rail.PLACES, rail.SETTINGS) if rail.there(place)]
    return [*places, *older()]
