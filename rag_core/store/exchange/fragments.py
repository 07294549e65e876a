"""Texts met by containment: a reference that is a piece of a chunk, or holds one, is about that chunk.

Texts are compared as sets of runs of five words, folded: reflowed white space, other case and punctuation change
nothing. What share of the shorter text stands in the longer one is what a person sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from rag_core.text import words

RUN = 5  # words in a row; three or fewer also meet by chance, more lose references of one short sentence
LEAST = 0.45  # of the shorter text: a reference that a chunk's end cuts in two is about the half with more of it
FEWEST = 5  # runs that both hold, unless the shorter text is held whole: lines of a list resemble each other
NEAR_BEST = 0.8  # of the best share: beside the very text, a text that resembles it is another one


class FragmentIndex:
    """The chunks of a corpus by their runs of words."""

    def __init__(self, chunks: Mapping[str, str]) -> None:
        """`chunks`: {chunk id: text}."""
        self._runs = {name: _runs(text) for name, text in chunks.items()}

    @cached_property
    def _places(self) -> dict[tuple[str, ...], list[str]]:
        found: dict[tuple[str, ...], list[str]] = {}
        for name, runs in self._runs.items():
            for run in runs:
                found.setdefault(run, []).append(name)
        return found

    def meet(self, fragment: str, least: float = LEAST) -> dict[str, float]:
        """{chunk id: share of the shorter text that both hold} of the chunks with at least that share, best first."""
        runs = _runs(fragment)
        shared = Counter(name for run in runs for name in self._places.get(run, ()))
        met: dict[str, float] = {}
        for name, count in shared.items():
            share = count / min(len(runs), len(self._runs[name]))
            if share == 1 or (share >= least and count >= FEWEST):
                met[name] = share
        enough = NEAR_BEST * max(met.values(), default=0.0)
        near = ((name, share) for name, share in met.items() if share >= enough)
        return dict(sorted(near, key=lambda row: (-row[1], row[0])))


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    found = words(text)
    width = min(RUN, len(found))
    return frozenset(tuple(found[at : at + width]) for at in range(len(found) - width + 1)) if found else frozenset()
