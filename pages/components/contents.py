"""The table of contents: the five places and settings of the rail, and the pages that have not moved into them yet."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages import rail

OLDER = {
    "explore": ("Explore", ":material/filter_alt:"),
    "entities": ("Entities", ":material/group_work:"),
    "llm_filter": ("LLM filter", ":material/forum:"),
    "tune": ("Tune", ":material/tune:"),
    "evaluate": ("Evaluate", ":material/analytics:"),
    "compare": ("Compare", ":material/compare:"),
    "headroom": ("Headroom", ":material/vertical_align_top:"),
}
FIRST = "explore"
"""The page at the root address until the Bench takes its place."""


MOVED = {
    "label": "labels",
    "eval_sets": "questions",
    "corpus": "data",
    "rules": "data",
    "start": "bench",
    "history": "settings",
    "status": "settings",
}
"""Old addresses, which links of before may name, and the place that each became."""
PART = {"rules": {"section": "Families"}, "history": {"view": "history"}, "status": {"view": "status"}}
"""Old address → the part of the place that answers it."""


def _moved(place: rail.Place, part: dict[str, str]) -> Callable[[], None]:
    """What runs at an old address: on to the place, with the project that the link named as a set or collection."""

    def follow() -> None:
        named = st.query_params.get("set") or st.query_params.get("collection") or st.query_params.get("project")
        st.switch_page(place.script, query_params={**part, **({"project": named} if named else {})})

    return follow


def older() -> list[st.Page]:
    """The pages that have not moved into a place yet."""
    return [
        st.Page(f"pages/{name}.py", title=title, icon=icon, default=name == FIRST)
        for name, (title, icon) in OLDER.items()
    ]


def pages() -> list[st.Page]:
    """Every page: the places that are there, settings, and the older ones."""
    places = [place.page(default=place.name == FIRST) for place in (*rail.PLACES, rail.SETTINGS) if rail.there(place)]
    known = {place.name: place for place in (*rail.PLACES, rail.SETTINGS) if rail.there(place)}
    moved = [
        st.Page(_moved(known[new], PART.get(old, {})), title=new, url_path=old)
        for old, new in MOVED.items()
        if new in known
    ]
    return [*places, *older(), *moved]
