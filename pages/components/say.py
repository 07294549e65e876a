"""Errors and remarks on a page: our words as markdown, everything that may hold foreign words inertly below."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st


def plain(text: str) -> str:
    """A name or an id as it may stand in a label or a heading: letters that could be markup are left out."""
    return "".join(letter for letter in text if letter.isalnum() or letter in "-#. ")


def problem(sentence: str, detail: str = "", next_step: str = "") -> None:
    """A problem in one sentence of ours, the message it came with as plain text, and what can be done, in our words."""
    with st.container(border=True):
        st.markdown(f":material/error: **{sentence}**")
        if detail:
            st.text(detail)
        if next_step:
            st.markdown(next_step)


def quiet(text: str) -> None:
    """A remark in our own words, smaller than the rest; a caption's grey is too faint to read in the light theme."""
    st.markdown(f":small[{text}]")


def remarks(title: str, lines: Sequence[str]) -> None:
    """Warnings of a run, counted in the title, folded away until asked for."""
    with st.expander(f":material/warning: {title}"):
        st.text("\n".join(lines))
