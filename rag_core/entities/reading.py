"""How the entity filter reads a query or a name: words, plural-blind keys, and which words are ordinary English.

A word's key is its singular by three plain suffix rules, applied to names and queries alike, so that "gunners" meets
"gunner" and "legionary" meets "Legionaries". Which words decide is left to the strategies.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from rag_core.text import words

_SIBILANTS = ("sses", "shes", "ches", "xes", "zzes")
_NO_PLURAL = ("ss", "us", "is")


@lru_cache(maxsize=65536)
def key(word: str) -> str:
    """The word without its plural ending; words under 4 letters and in -ss, -us, -is stay as they are."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(_SIBILANTS) else word[:-1]


class StructureReading(NamedTuple):
    """A text as words in order, their keys, and the keys as one line with a blank at either end of each."""

    words: tuple[str, ...]
    keys: tuple[str, ...]
    line: str

    def holds(self, keys: tuple[str, ...]) -> bool:
        """Whether the keys stand in this text side by side and in order."""
        return f" {' '.join(keys)} " in self.line


@lru_cache(maxsize=64)
def read(text: str) -> StructureReading:
    """The text as words and keys; remembered for the last texts, since every strategy reads the same query."""
    found = tuple(words(text))
    keys = tuple(map(key, found))
    return StructureReading(found, keys, f" {' '.join(keys)} ")


@cache
def ordinary_words() -> frozenset[str]:
    """Common English words of 3 to 14 letters, lower-case (SCOWL; the licence stands beside the list)."""
    path = Path(__file__).with_name("ordinary_words.txt")
    return frozenset(path.read_text(encoding="utf-8").split())
