"""Who is being asked which pair now, over all sessions of the server, so that two people are not asked the same one."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from threading import Lock

import streamlit as st

AHEAD = 10  # pairs that are one's own: whoever labels faster than the server answers is still alone with them
SECONDS = 300.0  # without a word from a browser, until its pairs are asked of others


class Leases:
    """Pairs held by sessions, and what was labelled since the server began, in order, for queues made before."""

    def __init__(self) -> None:
        self.labelled: list[tuple[str, str]] = []  # (pair, annotator)
        self._held: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def claim(self, holder: str, pairs: Iterable[str]) -> set[str]:
        """The pairs that others hold; the first AHEAD of these pairs without them are the holder's, and no more."""
        now = time.monotonic()
        with self._lock:
            others = {pair: lease for pair, lease in self._held.items() if lease[0] != holder and lease[1] > now}
            mine = islice((pair for pair in pairs if pair not in others), AHEAD)
            self._held = others | dict.fromkeys(mine, (holder, now + SECONDS))
        return set(others)


@st.cache_resource(show_spinner=False)
def leases_of(workspace: str) -> Leases:
    """The one register of a workspace."""
    return Leases()
