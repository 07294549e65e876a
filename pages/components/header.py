"""The first line of every page: its name, the question it answers, and help on demand."""

from __future__ import annotations

import streamlit as st


def show(name: str, question: str, help_text: str) -> None:
    """Name and question on the left, `?` on the right."""
    if "app" not in st.session_state:
        # The first visit to a fresh server went straight to a page: Streamlit took the folder pages/ for the app and
        # never ran app.py. It has seen st.navigation by now, so the next run goes through app.py.
        st.rerun()
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="header"):
        st.markdown(f"### {name} :small[:gray[{question}]]")
        with st.popover("?", help="Keys, and what the numbers on this page mean"):
            st.markdown(help_text)
