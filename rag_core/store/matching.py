"""Which chunk a stored label is about today: the one with the same text, else the one with the same id; and which
chunks a text lies in that was cut otherwise.

Pure; works on label events that count now (oldest first), as labels.py reads them. Texts that are not the same are
compared as sets of runs of five words, folded: reflowed white space, other case and punctuation change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.text import words
from rag_core.types import Chunk

RUN = 5  # words in a row; three or fewer also meet by chance, more lose references of one short sentence
LEAST = 0.45  # of the shorter text: a reference that a chunk's end cuts in two is about the half with more of it
FEWEST = 5  # runs that both hold, unless the shorter text is held whole: lines of a list resemble each other
NEAR_BEST = 0.8  # of the best share: beside the very text, a text that resembles it is another one
SHARE_OF_WORDS = 0.8  # of a text's runs that must lie in chunks for it to be spread over them


class AtHand:
    """The chunks that labels are to meet, of one list or of a whole collection."""

    def __init__(self, chunks: Mapping[str, str]) -> None:
        """`chunks`: {chunk id: text hash, '' where its text is not known}."""
        self._chunks = chunks
        self._by_text: dict[str, list[str]] = {}
        for chunk_id, hashed in chunks.items():
            if hashed:
                self._by_text.setdefault(hashed, []).append(chunk_id)

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> AtHand:
        """Of chunks with their texts."""
        return cls({chunk.id: text_hash(chunk.text) for chunk in chunks})

    def has(self, chunk_id: str) -> bool:
        """Whether a chunk of that id is there, whatever its text."""
        return chunk_id in self._chunks

    def ids(self, label: Event) -> list[str]:
        """The chunks a label is about: by text where both texts are known, else by id."""
        same_text = self._by_text.get(label.text_hash, []) if label.text_hash else []
        either_unknown = label.chunk_id in self._chunks and not (label.text_hash and self._chunks[label.chunk_id])
        return [*same_text, label.chunk_id] if either_unknown else list(same_text)


class Anything(AtHand):
    """Whatever a label names: of a function that searches nobody knows the chunks."""

    def __init__(self) -> None:
        super().__init__({})

    def ids(self, label: Event) -> list[str]:
        """The chunk that the label names."""
        return [label.chunk_id]


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


def overlay(
    labels: Sequence[Event],
    at_hand: Callable[[str], AtHand | None],
    elsewhere: Callable[[], AtHand] | None = None,
) -> dict[str, dict[str, int | None]]:
    """{query id: {chunk id: grade}} to lay over an eval set's own labels; None where all who spoke are unsure.

    `at_hand` gives the chunks of a query's list, or of the collection; None for a query that is not asked. `elsewhere`,
    where those are lists, the chunks of all of them: what a label names and its list lacks was searched and not found.
    """

    def ids(label: Event) -> Iterable[str]:
        chunks = at_hand(label.query_id)
        if chunks is None:
            return ()
        met = chunks.ids(label)
        if met or elsewhere is None or chunks.has(label.chunk_id):  # under its id stands another text now
            return met
        return elsewhere().ids(label) or ([] if label.text_hash else [label.chunk_id])

    return _said(labels, ids)


def _said(labels: Sequence[Event], ids: Callable[[Event], Iterable[str]]) -> dict[str, dict[str, int | None]]:
    newest: dict[tuple[str, str, str], tuple[int, Event]] = {}
    for place, label in enumerate(labels):
        for chunk_id in ids(label):
            newest[label.annotator, label.query_id, chunk_id] = (place, label)
    grades: dict[str, dict[str, int | None]] = {}
    for (_, query_id, chunk_id), (_, label) in sorted(newest.items(), key=lambda item: item[1][0]):
        said = grades.setdefault(query_id, {})
        if label.grade is not None or chunk_id not in said:  # "unsure" hides one's own older grade, not another's
            said[chunk_id] = label.grade
    return grades


class FragmentIndex:
    """The chunks of a corpus by their runs of words."""

    def __init__(self, chunks: Mapping[str, str]) -> None:
        """`chunks`: {chunk id: text}."""
        self._runs = {name: _runs(text) for name, text in chunks.items()}

    @cached_property
    def _places(self) -> dict[tuple[str, ...], list[str]]:
        places: dict[tuple[str, ...], list[str]] = {}
        for name, runs in self._runs.items():
            for run in runs:
                places.setdefault(run, []).append(name)
        return places

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

    def spread(self, text: str) -> tuple[str, ...]:
        """The chunks that together hold most of a text, those with the most of it first; none where they do not."""
        runs = _runs(text)
        if not runs or sum(run in self._places for run in runs) < SHARE_OF_WORDS * len(runs):
            return ()
        held = Counter(name for run in runs for name in self._places.get(run, ()))
        return tuple(sorted(held, key=lambda name: (-held[name], name)))


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    listed = words(text)
    width = min(RUN, len(listed))
    return frozenset(tuple(listed[at : at + width]) for at in range(len(listed) - width + 1)) if listed else frozenset()
