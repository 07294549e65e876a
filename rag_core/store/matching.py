"""Which chunk a stored label is about today: the one with the same text, else the one with the same id.

Pure; works on label events that count now (oldest first), as labels.py reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.types import Chunk


class AtHand:
    """The chunks that labels are to meet, of one list or of a whole collection."""

    def __init__(self, chunks: Mapping[str, str]) -> None:
        """`chunks`: {chunk id: text hash, '' where its text is not known}."""
        self._chunks = chunks
        self._by_text = _ids_by_text(chunks)

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> AtHand:
        """Of chunks with their texts."""
        return cls({chunk.id: text_hash(chunk.text) for chunk in chunks})

    def ids(self, label: Event) -> list[str]:
        """The chunks a label is about: by text where both texts are known, else by id."""
        same_text = self._by_text.get(label.text_hash, []) if label.text_hash else []
        either_unknown = label.chunk_id in self._chunks and not (label.text_hash and self._chunks[label.chunk_id])
        return [*same_text, label.chunk_id] if either_unknown else list(same_text)


def grades_by_chunk(
    labels: Sequence[Event],
    recorded: Mapping[tuple[str, str], set[str]],
    chunks: Mapping[str, str] | None = None,
) -> dict[str, dict[str, int]]:
    """{query id: {chunk id: grade}}; of several labels that meet one chunk the last counts, unsure is left out.

    Args:
        labels: what counts now, oldest first and adjudicated last, of one or several annotators.
        recorded: {(query id, chunk key): the ids it was labelled under}; used where `chunks` is None.
        chunks: {chunk id: text hash or ''} of the corpus at hand, where there is one.
    """
    at_hand = None if chunks is None else AtHand(chunks)

    def ids(label: Event) -> Iterable[str]:
        return (
            recorded.get((label.query_id, label.chunk_key), {label.chunk_id}) if at_hand is None else at_hand.ids(label)
        )

    return {
        query_id: sure
        for query_id, said in _said(labels, ids).items()
        if (sure := {chunk_id: grade for chunk_id, grade in said.items() if grade is not None})
    }


def overlay(labels: Sequence[Event], at_hand: Callable[[str], AtHand | None]) -> dict[str, dict[str, int | None]]:
    """{query id: {chunk id: grade}} to lay over an eval set's own labels; None where all who spoke are unsure.

    `at_hand` gives the chunks of a query's list, or of the collection; None for a query that is not asked.
    """

    def ids(label: Event) -> Iterable[str]:
        chunks = at_hand(label.query_id)
        return () if chunks is None else chunks.ids(label)

    return _said(labels, ids)


def _said(labels: Sequence[Event], ids: Callable[[Event], Iterable[str]]) -> dict[str, dict[str, int | None]]:
    newest: dict[tuple[str, str, str], tuple[int, Event]] = {}
    for place, label in enumerate(labels):
        for chunk_id in ids(label):
            newest[label.annotator, label.query_id, chunk_id] = (place, label)
    found: dict[str, dict[str, int | None]] = {}
    for (_, query_id, chunk_id), (_, label) in sorted(newest.items(), key=lambda item: item[1][0]):
        said = found.setdefault(query_id, {})
        if label.grade is not None or chunk_id not in said:  # "unsure" hides one's own older grade, not another's
            said[chunk_id] = label.grade
    return found


def _ids_by_text(chunks: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for chunk_id, hashed in chunks.items():
        if hashed:
            found.setdefault(hashed, []).append(chunk_id)
    return found
