"""Long work in the run of a page: n of N and a Cancel in sight while it goes on, and a way to go on once stopped.

Pressing Cancel starts the page anew, which ends the work at its next sign of progress; what the work has kept by then
is its own promise. Work that outlives the page is in jobs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import streamlit as st

from pages.components import say
from rag_core.errors import WinnowError

Told = Callable[[int, int], None]
EVERY = 0.2  # seconds between two signs of progress
CANCEL = "under_way.cancel"
KEPT = "What is done is kept; the next run goes on from there."


def done(words: str, work: Callable[[Told], Any]) -> bool:
    """Do the work, which is told how to say how far it is; False with the reason shown where it did not end.

    `words` says what is counted, "4 of 7 tags compared", and is used once in a run of a page.
    """
    place = st.empty()
    with place.container(border=True):
        bar = st.progress(0.0, f"{words} …")
        stopped = st.button("Cancel", key=f"{CANCEL}.{words}", help=KEPT)
    if not stopped:
        try:
            work(_shown(bar, words))
        except (WinnowError, OSError) as error:
            place.empty()
            say.problem("This did not come to its end; what is done is kept.", str(error))
            return False
    place.empty()
    if stopped:
        with st.container(border=True):
            st.markdown("**Stopped.** What is done is kept.")
            st.button("Go on", icon=":material/play_arrow:")
    return not stopped


def _shown(bar: Any, words: str) -> Told:
    """Progress as n of N, a few times a second."""
    said = 0.0

    def told(count: int, total: int) -> None:
        nonlocal said
        now = perf_counter()
        if now - said >= EVERY or count == total:
            said = now
            bar.progress(min(count / max(total, 1), 1.0), f"{count:,} of {total:,} {words}")

    return told
