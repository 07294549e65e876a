"""After a corpus was cut anew: which labels still meet their chunk, and where the text of the others went.

Labels are kept by text, so one whose text is unchanged follows it by itself, under whatever id it has now. What changed
is reported, never dropped: a lost label stays in the store as an orphan and counts again when its text comes back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_core.store.events import Event
from rag_core.store.keys import text_hash

SAME = "same"  # the same text under the same id
MOVED = "moved"  # the same text under another id
SPLIT = "split"  # the text is spread over several chunks, or lies within a larger one
LOST = "lost"  # nowhere any more: an orphan
OUTCOMES = (SAME, MOVED, SPLIT, LOST)
SHARE_OF_WORDS = 0.8  # of the old text's words that must lie in the new chunks for it to count as split
RUN = 5  # words in a row that place a piece of text


@dataclass(frozen=True, slots=True)
class Remapped:
    """What became of one label, and the ids of the chunks that hold its text now."""

    label: Event
    outcome: str
    chunk_ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        names = ("query_id", "chunk_id", "annotator", "grade")
        label = {name: getattr(self.label, name) for name in names}
        return {**label, "outcome": self.outcome, "chunk_ids": list(self.chunk_ids)}

    def to_text(self) -> str:
        """One line, with at most five of the chunks."""
        now = f" → {', '.join(self.chunk_ids[:5])}" if self.chunk_ids else ""
        return f"{self.outcome}: {self.label.query_id} {self.label.chunk_id}{now}"


def remap(
    labels: Iterable[Event], chunks: Mapping[str, str], old_texts: Mapping[str, str] | None = None
) -> list[Remapped]:
    """One entry per label, in order.

    Args:
        labels: the labels that count now.
        chunks: {chunk id: text} of the corpus as it is now.
        old_texts: {text hash: text} of the corpus as it was, where it is known; the store holds no texts, and without
            them a text that was cut differently cannot be told from one that is gone.
    """
    by_hash: dict[str, list[str]] = {}
    for chunk_id, text in chunks.items():
        by_hash.setdefault(text_hash(text), []).append(chunk_id)
    runs = _Runs(chunks) if old_texts else None
    return [_one(label, chunks, by_hash, runs, (old_texts or {}).get(label.text_hash, "")) for label in labels]


def counts(found: Sequence[Remapped]) -> dict[str, int]:
    """How many labels met each outcome."""
    return {outcome: sum(one.outcome == outcome for one in found) for outcome in OUTCOMES}


def _one(
    label: Event, chunks: Mapping[str, str], by_hash: Mapping[str, list[str]], runs: _Runs | None, old_text: str
) -> Remapped:
    if not label.text_hash:  # labelled without its text: the id is all there is
        here = label.chunk_id in chunks
        return Remapped(label, SAME if here else LOST, (label.chunk_id,) if here else ())
    ids = by_hash.get(label.text_hash, [])
    if ids:
        return Remapped(label, SAME if label.chunk_id in ids else MOVED, tuple(ids))
    pieces = runs.holding(old_text) if runs is not None and old_text else ()
    return Remapped(label, SPLIT, pieces) if pieces else Remapped(label, LOST)


class _Runs:
    """Where every run of words stands, to find the pieces of a text that was cut differently."""

    def __init__(self, chunks: Mapping[str, str]) -> None:
        self.places: dict[tuple[str, ...], set[str]] = {}
        for chunk_id, text in chunks.items():
            for run in _runs(text):
                self.places.setdefault(run, set()).add(chunk_id)

    def holding(self, text: str) -> tuple[str, ...]:
        """The chunks that together hold most of a text's runs, those with the most first; none where they do not."""
        runs = _runs(text)
        found: dict[str, int] = {}
        for run in runs:
            for chunk_id in self.places.get(run, ()):
                found[chunk_id] = found.get(chunk_id, 0) + 1
        held = sum(run in self.places for run in runs)
        if not runs or held < SHARE_OF_WORDS * len(runs):
            return ()
        return tuple(sorted(found, key=lambda chunk_id: (-found[chunk_id], chunk_id)))


def _runs(text: str) -> list[tuple[str, ...]]:
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return [tuple(words[at : at + RUN]) for at in range(max(1, len(words) - RUN + 1))] if words else []
