"""Errors and remarks on a page: our words as markdown, everything that may hold foreign words inertly below."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st


def problem(sentence: str, detail: str = "") -> None:
    """A problem in one sentence of ours, and the message it came with as plain text."""
    with st.container(border=True):
        st.markdown(f":material/error: **{sentence}**")
        if detail:
            st.text(detail)


def remarks(title: str, lines: Sequence[str]) -> None:
    """Warnings of a run, counted in the title, folded away until asked for."""
    with st.expander(f":material/warning: {title}"):
        st.text("\n".join(lines))
