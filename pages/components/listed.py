"""Rows of a table: as columns, and in pages where there are many, so that what is drawn does not grow with a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

PAGE = 200  # rows drawn at once
NUMBERS, BUTTON = 7, 40  # page numbers in sight, and pixels of each: left to itself the chooser hides some that fit


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows of one shape, at least one, as the columns that a table is drawn from."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def paged(count: int, key: str, first: int = 0, size: int = PAGE) -> range:
    """The places of the page a person chose, with the chooser above it where one page does not hold them all.

    `first` is the place whose page is shown until a page is chosen; another `key` starts anew.
    """
    if count <= size:
        return range(count)
    pages = -(-count // size)
    st.session_state.setdefault(key, first // size + 1)
    st.session_state[key] = min(st.session_state[key], pages)
    with st.container(horizontal=True, vertical_alignment="center"):
        page = st.pagination(pages, max_visible_pages=NUMBERS, key=key, width=BUTTON * (min(pages, NUMBERS) + 2))
        start = (page - 1) * size
        shown = range(start, min(start + size, count))
        st.markdown(f":small[{shown.start + 1:,} to {shown.stop:,} of {count:,}]")
    return shown
