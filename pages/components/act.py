"""A press that changes something: done as a deed by whoever pressed, and told once where the page next draws it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from pages.components import say, who
from rag_core.errors import WinnowError
from rag_core.project.deeds import Kind, Performed

Done = str | Callable[[Any], str]
"""What is said of it, or what makes that of the result."""


def act(
    place: str, kind: Kind, about: str, work: Callable[[Performed], Any], done: Done = "", *, whose: str = ""
) -> bool:
    """Do the work as a deed of that kind; how it went is kept in one sentence under `place`. Whether it was done."""
    st.session_state[place] = ("", "")
    try:
        with who.doing(kind, about, whose) as performed:
            result = work(performed)
    except (WinnowError, OSError) as error:
        st.session_state[place] = ("", str(error))
        return False
    st.session_state[place] = (done if isinstance(done, str) else done(result), "")
    return True


@contextmanager
def refusing(key: str) -> Iterator[None]:
    """What goes wrong in the block stands in the session under `key`, in its one sentence; '' where nothing does."""
    st.session_state[key] = ""
    try:
        yield
    except (WinnowError, OSError) as error:
        st.session_state[key] = str(error)


def refuse(place: str, problem: str) -> None:
    """Why a press did nothing, said where deeds of that place are."""
    st.session_state[place] = ("", problem)


def tell(place: str, refused: str = "Nothing was changed.") -> None:
    """How the last press went, once."""
    done, problem = st.session_state.pop(place, ("", ""))
    if problem:
        say.problem(refused, problem)
    elif done:
        st.text(f"✓ {done}")


def meant(question: str, label: str, icon: str, key: str, do: Callable[[], bool], can: bool = True) -> None:
    """A button that takes something away for good: it can be pressed once its box says that it is meant.

    `do` says whether it was done; then the box is empty again.
    """

    def press() -> None:
        if do():
            st.session_state[f"{key}.meant"] = False

    with st.container(horizontal=True, vertical_alignment="center"):
        sure = st.checkbox(question, key=f"{key}.meant", disabled=not can)
        st.button(label, icon=icon, key=key, disabled=not sure, on_click=press)
