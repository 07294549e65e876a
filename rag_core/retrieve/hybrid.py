"""Hybrid: the source that asks dense and word search at once and fuses the two rankings by rank.

Each side reads `depth` chunks; the list is all of both. How ranks become one score is in fuse.py. Each hit keeps its
parts: distance, BM25 score, rank on each side (the note `ranks`) and fused score. Floors of similarity look at the
distance, which every hit has: one that only words found gets it from its stored vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar

from rag_core.errors import InputError, SpecError
from rag_core.retrieve.dense import DenseReader, SearchedIndex, WordReader
from rag_core.retrieve.fuse import RRF_K, Fused, check_weights, fuse, fused_anew
from rag_core.retrieve.lexical import WordSource
from rag_core.stage import setting
from rag_core.types import RANKS, Candidates, Hit, Order, Query, Step

SIDES = ("dense", "lexical")


@dataclass(frozen=True)
class Hybrid(WordSource):
    """Fuse the `depth` nearest chunks with the `depth` best by BM25: score = Σ weight / (rrf_k + rank)."""

    rrf_k: float = setting(
        RRF_K, "how little the first ranks stand out", low=0, high=10000, priority=4, step=1, usual=(0, 120), cheap=True
    )
    weights: tuple[float, ...] = setting(
        (1.0, 1.0), "of the dense and of the word ranking, at least 0, not both 0", priority=3, cheap=True
    )

    title: ClassVar[str] = "hybrid search"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", _weights(self.weights))

    @classmethod
    def said(cls, step: Step) -> str:
        """How many each side and both brought, and how long each took."""
        facts = step.facts
        if "found_both" not in facts:
            return super().said(step)
        sides = f"{facts['found_dense']} by vectors in {facts['dense_ms']:.1f} ms, {facts['found_lexical']} by words "
        return f"{sides}in {facts['lexical_ms']:.1f} ms, {facts['found_both']} by both, fused"

    @classmethod
    def details(cls, step: Step) -> tuple[str, ...]:
        """How the two rankings were fused."""
        facts = step.facts
        if "found_both" not in facts:
            return ()
        found = f"{facts['found_dense']} by vectors, {facts['found_lexical']} by words, {facts['found_both']} by both"
        return (f"{found}; weights {facts['weights']}, k {facts['rrf_k']:g}",)

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Fetch; a recorded list whose hits hold their ranks is fused anew from those, any other is left as it is."""
        if not candidates.recorded:
            return self.fetch(candidates)
        hits = fused_anew(candidates.hits, SIDES, self.weights, self.rrf_k)
        if hits is None:
            return super().apply(candidates)
        facts = {"skipped": "recorded list: fused anew from its ranks", **_how(self)}
        return replace(candidates, hits=hits, order=Order.FUSED), facts

    def fetch(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Both sides' first `depth` hits, fused, and the reader of the rest."""
        query, index = candidates.query, self.collection()
        with ThreadPoolExecutor(1, "vector-search") as pool:
            side = pool.submit(_timed, self.dense_reader, query, self.depth)
            lexical, lexical_ms = _timed(self.words_reader, query, self.depth)
            dense, dense_ms = side.result()
        reader = HybridReader(dense, lexical, index, query.dense_text or query.text, self)
        hits = reader.opening()
        after = replace(
            candidates,
            hits=hits,
            metric=index.metric,
            order=Order.FUSED,
            reader=reader,
            notices=candidates.notices + self.nothing_met(dense.matching),
        )
        facts = {**reader.facts(hits), "dense_ms": dense_ms, "lexical_ms": lexical_ms}
        return after, {**facts, "exact": index.exact, "index": index.fingerprint}


class HybridReader:
    """Reads the fused ranking on: when its hits are used up both sides read twice as deep, and what is new comes after.

    What was read once keeps its place, so the ranking is the same however it is read.
    """

    def __init__(
        self, dense: DenseReader, lexical: WordReader, index: SearchedIndex, text: str, settings: Hybrid
    ) -> None:
        marks = f"{settings.depth}-{settings.rrf_k}-{settings.weights}"
        self.fingerprint = f"{dense.fingerprint}-{lexical.fingerprint}-{marks}"
        self._sides = (dense, lexical)
        self._index, self._text, self._settings = index, text, settings
        self._depth = settings.depth
        self._hits: list[Hit] = []
        self._ended = False

    @property
    def matching(self) -> int:
        """How many chunks the conditions admit: the length of the full ranking."""
        return self._sides[0].matching

    @property
    def store_queries(self) -> int:
        """How often both sides asked their store."""
        return sum(side.store_queries for side in self._sides)

    def opening(self) -> tuple[Hit, ...]:
        """All hits of the first `depth` of both sides, fused."""
        if not self._hits and not self._ended:
            self._deepen()
        return tuple(self._hits)

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the full ranking; fewer where it ends."""
        while len(self._hits) < stop and not self._ended:
            self._deepen()
        return tuple(self._hits[start:stop])

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The first `count` hits whose chunk id is not among `ids`; ranks are the full ranking's."""
        without = set(ids)
        hits = self.read(0, count + len(without))
        return tuple(hit for hit in hits if hit.chunk.id not in without)[:count]

    def facts(self, hits: Sequence[Hit]) -> dict[str, Any]:
        """What the step says: how deep, how many each side and both found, and how they were fused."""
        ranks = [hit.notes[RANKS] for hit in hits]
        found = {f"found_{side}": sum(side in one for one in ranks) for side in SIDES}
        both = sum(len(one) == len(SIDES) for one in ranks)
        depth = {"depth": self._settings.depth, "matching": self.matching, "store_queries": self.store_queries}
        return {**depth, **found, "found_both": both, **_how(self._settings)}

    def _deepen(self) -> None:
        """Fuse the sides at the current depth, append what is new, and look twice as deep the next time."""
        sides = [side.read(0, self._depth) for side in self._sides]
        self._ended = all(len(hits) < self._depth for hits in sides)
        fused = fuse([[hit.chunk.id for hit in hits] for hits in sides], self._settings.weights, self._settings.rrf_k)
        known = {hit.chunk.id for hit in self._hits}
        self._hits += self._made([one for one in fused if one[0] not in known], sides)
        self._depth *= 2

    def _made(self, fused: Sequence[Fused], sides: Sequence[Sequence[Hit]]) -> list[Hit]:
        """The fused hits with all their parts, ranked behind those there are."""
        by_id = {hit.chunk.id: hit for hits in reversed(sides) for hit in hits}
        ids = [one for one, _, _ in fused]
        bare = [one for one in ids if by_id[one].distance is None]
        distances = self._index.distances_of(self._text, bare) if bare else {}
        bm25 = self._sides[1].scores_of(ids)
        made = []
        for rank, (one, score, places) in enumerate(fused, len(self._hits) + 1):
            hit = by_id[one]
            distance = hit.distance if hit.distance is not None else distances[one]
            scores = {"distance": distance, "bm25": bm25[one], "rrf": score}
            ranks = {side: place for side, place in zip(SIDES, places, strict=True) if place is not None}
            made.append(Hit(hit.chunk, rank, scores, notes={RANKS: ranks}))
        return made


def _how(settings: Hybrid) -> dict[str, Any]:
    """How the sides are fused, for the step."""
    return {"rrf_k": settings.rrf_k, "weights": " : ".join(f"{one:g}" for one in settings.weights)}


def _timed(open_reader: Callable[[Query], Any], query: Query, depth: int) -> tuple[Any, float]:
    """A side's reader with its first hits read, and the milliseconds that took."""
    started = perf_counter()
    reader = open_reader(query)
    reader.read(0, depth)
    return reader, (perf_counter() - started) * 1000


def _weights(value: Any) -> tuple[float, ...]:
    """The two weights as numbers, or a SpecError."""
    numbers = isinstance(value, list | tuple) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in value
    )
    try:
        if not numbers:
            raise InputError("no list of numbers")
        check_weights(tuple(value), len(SIDES), RRF_K)
    except InputError:
        raise SpecError(f"Hybrid.weights is {value!r:.80}, expected two numbers of at least 0, not both 0") from None
    return tuple(float(one) for one in value)
