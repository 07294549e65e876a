"""The first line of every page: its name, the question it answers, and help on demand."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.components import contents


def show(name: str, question: str, help_text: str) -> None:
    """Name and question on the left, `?` on the right."""
    if "app" not in st.session_state:
        # The first visit to a fresh server went straight to a page: Streamlit takes the folder pages/ for the app until
        # it has seen st.navigation once, and never ran app.py. Call it and start again; then app.py runs. The icon is
        # set here too: without one, the page's own would be fetched by name from a font server.
        st.set_page_config(page_icon=str(Path(__file__).parent / "icon.svg"))
        st.navigation(contents.pages(), position="top")
        st.rerun()
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="header"):
        st.markdown(f"### {name} :small[:gray[{question}]]")
        with st.popover("?", help="Keys, and what the numbers on this page mean"):
            st.markdown(help_text)
