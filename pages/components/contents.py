"""The table of contents: the places and settings of the rail, and where the addresses lead that had a page once."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages import rail, state

FIRST = "bench"
"""The place at the root address."""
MOVED = {
    "bench": "bench",
    "explore": "bench",
    "start": "bench",
    "tune": "bench",
    "compare": "bench",
    "evaluate": "bench",
    "headroom": "bench",
    "llm_filter": "bench",
    "entities": "bench",
    "label": "labels",
    "eval_sets": "questions",
    "corpus": "data",
    "rules": "data",
    "history": "settings",
    "status": "settings",
}
"""Addresses without a page of their own, which links of before may name, and the place that each became."""
PART = {"rules": {"section": "Families"}, "history": {"view": "history"}, "status": {"view": "status"}}
"""Old address → the part of the place that answers it."""
SEEN = {
    "tune": {"zoom": state.ALL},
    "compare": {"zoom": state.ALL, "lens": state.DIFFERENCES},
    "evaluate": {"zoom": state.ALL, "lens": state.DIFFERENCES},
    "headroom": {"zoom": state.ALL, "lens": state.LOSSES},
}
"""Old address → how the Bench is looked at there."""


def pages() -> list[st.Page]:
    """Every page: the places that are there, settings, and the addresses that only lead on."""
    places = {place.name: place for place in (*rail.PLACES, rail.SETTINGS) if rail.there(place)}
    moved = [
        st.Page(_moved(places[new], old), title=places[new].title, url_path=old)
        for old, new in MOVED.items()
        if new in places
    ]
    return [*(place.page(default=place.name == FIRST) for place in places.values()), *moved]


def _moved(place: rail.Place, old: str) -> Callable[[], None]:
    """What runs at an old address: on to the place, with the project, question and pipelines that the link named."""

    def follow() -> None:
        state.follow_older_link()
        problem = state.problem()
        state.change(**SEEN.get(old, {}))
        st.session_state[state.PROBLEM] = problem
        st.switch_page(place.script, query_params={**PART.get(old, {}), **state.link()})

    return follow
