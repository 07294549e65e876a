"""The first line of every page: its name, the question it answers, what is looked at, and help on demand."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.components import contents

PLACES = ("Eval set", "Collection", "Pipeline")
"""The selectors of the header in their order, the same on every page; a page draws those it uses."""
WIDTH = 200  # pixels of one selector
KEY, PAGE = "header.places", "header.page"


def show(name: str, question: str, help_text: str) -> None:
    """Name and question on the left, on the right the places of the selectors and `?`."""
    if "app" not in st.session_state:
        # The first visit to a fresh server went straight to a page: Streamlit takes the folder pages/ for the app until
        # it has seen st.navigation once, and never ran app.py. Call it and start again; then app.py runs. The icon is
        # set here too: without one, the page's own would be fetched by name from a font server.
        st.set_page_config(page_icon=str(Path(__file__).parent / "icon.svg"))
        st.navigation(contents.pages(), position="hidden")
        st.rerun()
    st.session_state[PAGE] = name
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom", key="header"):
        st.markdown(f"### {name}\n:small[:gray[{question}]]")
        with st.container(horizontal=True, width="content", vertical_alignment="bottom"):
            st.session_state[KEY] = {one: st.container(width="content") for one in PLACES}
            with st.popover("?", help="Keys, and what the numbers on this page mean"):
                st.markdown(help_text)


def page() -> str:
    """The name of the page that is drawn."""
    return str(st.session_state.get(PAGE, ""))


def place(label: str) -> DeltaGenerator:
    """Where the header of this run keeps the selector of one kind."""
    places: dict[str, DeltaGenerator] = st.session_state[KEY]
    return places[label]
