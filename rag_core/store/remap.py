"""After a corpus was cut anew: which labels still meet their chunk, and where the text of the others went.

Labels are kept by text, so one whose text is unchanged follows it by itself, under whatever id it has now. What changed
is reported, never dropped: a lost label stays in the store as an orphan and counts again when its text comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.matching import FragmentIndex

SAME = "same"  # the same text under the same id
MOVED = "moved"  # the same text under another id
SPLIT = "split"  # the text is spread over several chunks, or lies within a larger one
LOST = "lost"  # nowhere any more: an orphan
OUTCOMES = (SAME, MOVED, SPLIT, LOST)


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
    pieces = FragmentIndex(chunks) if old_texts else None
    remapped = []
    for label in labels:
        ids = tuple(by_hash.get(label.text_hash, ())) if label.text_hash else ()
        if not label.text_hash and label.chunk_id in chunks:  # labelled without its text: the id is all there is
            ids = (label.chunk_id,)
        if ids:
            remapped.append(Remapped(label, SAME if label.chunk_id in ids else MOVED, ids))
            continue
        old_text = (old_texts or {}).get(label.text_hash, "") if label.text_hash else ""
        ids = pieces.spread(old_text) if pieces is not None and old_text else ()
        remapped.append(Remapped(label, SPLIT if ids else LOST, ids))
    return remapped


def counts(remapped: Sequence[Remapped]) -> dict[str, int]:
    """How many labels met each outcome."""
    return {outcome: sum(label.outcome == outcome for label in remapped) for outcome in OUTCOMES}
