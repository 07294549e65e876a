"""Which (query, chunk) pairs to judge: the union of what several pipelines kept, each content once, in a blind order.

Pooling as at TREC (Sparck Jones and van Rijsbergen 1975): whatever any pipeline shows among its first k is judged, so
that no pipeline is measured by labels another one chose. A pair knows which pipelines brought it and where; showing
that is left to whoever asks. What to judge first: label_next.py. Storing what was said: the label store.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

from rag_core.errors import InputError
from rag_core.measure.experiment import PipelineReport
from rag_core.text import words
from rag_core.types import Chunk, Hit, Query

NEAR = 0.9  # share of word triples in common from which two texts are near-duplicates
WORD = re.compile(r"\w+")
NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class Pair:
    """A chunk to judge for a query. `others` are further chunks that get the same label: equal, or grouped, content."""

    query: Query
    chunk: Chunk
    others: tuple[Chunk, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)  # pipeline name → best place in its kept list, from 1
    distance: float | None = None  # the least any pipeline saw

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Every chunk the label is for."""
        return (self.chunk, *self.others)

    @cached_property
    def shared(self) -> float:
        """The share of the question's words that stand in the chunk too; nothing that a label changes."""
        asked = set(words(self.query.text))
        return len(asked & set(words(f"{self.chunk.title} {self.chunk.text}"))) / max(1, len(asked))


def content(chunk: Chunk) -> str:
    """What makes two chunks one: the text folded (NFKC, case, white space), or the id where there is no text."""
    folded = " ".join(unicodedata.normalize("NFKC", chunk.text).casefold().split())
    return f"text:{folded}" if folded else f"id:{chunk.id}"


def pool(
    reports: Sequence[PipelineReport], depth: int = 15, seed: int = 0, near: float | None = None
) -> tuple[Pair, ...]:
    """The pairs of the first `depth` kept chunks of every pipeline, each content once per query, in blind order.

    Queries come in shuffled order and stay together, so that a person reads each query once; inside a query the chunks
    are shuffled. The order depends on the seed and the contents, not on the pipelines' order or on ranks. With `near`,
    near-duplicates (see `near_duplicates`) become one pair. InputError for no report or a depth below 1.
    """
    if not reports or depth < 1:
        raise InputError(f"a pool got {len(reports)} pipelines and depth {depth}, expected at least one and 1 or more")
    by_query: dict[str, list[Pair]] = {}
    for group in zip(*(report.outcomes for report in reports), strict=True):
        kept = [(report.name, outcome.result.hits) for report, outcome in zip(reports, group, strict=True)]
        pairs = _union(group[0].case.query, kept, depth)
        by_query[group[0].case.query.id] = grouped(pairs, near) if near is not None else pairs
    order = sorted(by_query)
    random.Random(f"{seed}").shuffle(order)
    return tuple(pair for query_id in order for pair in shuffled(by_query[query_id], f"{seed} {query_id}"))


def _union(query: Query, kept: Iterable[tuple[str, Sequence[Hit]]], depth: int) -> list[Pair]:
    """One query's pairs, each content once."""
    found: dict[str, Pair] = {}
    for name, hits in kept:
        once = list({hit.chunk.id: hit for hit in reversed(hits)}.values())[::-1]
        for place, hit in enumerate(once[:depth], 1):
            key = content(hit.chunk)
            found[key] = _with(found.get(key) or Pair(query, hit.chunk), hit, name, place)
    return list(found.values())


def _with(pair: Pair, hit: Hit, name: str, place: int) -> Pair:
    """The pair with one more hit of a pipeline taken in."""
    new = all(hit.chunk.id != chunk.id for chunk in pair.chunks)
    distances = [value for value in (pair.distance, hit.distance) if value is not None]
    return replace(
        pair,
        others=(*pair.others, hit.chunk) if new else pair.others,
        places={**pair.places, name: min(place, pair.places.get(name, place))},
        distance=min(distances, default=None),
    )


def shuffled(pairs: Iterable[Pair], seed: str) -> list[Pair]:
    """The pairs in an order that tells nothing of where they came from."""
    listed = sorted(pairs, key=lambda pair: content(pair.chunk))
    random.Random(seed).shuffle(listed)
    return listed


def grouped(pairs: Sequence[Pair], near: float = NEAR) -> list[Pair]:
    """The pairs of one query with near-duplicates made one; the first of a group is the one that is shown."""
    texts = [pair.chunk.text for pair in pairs]
    groups = near_duplicates(texts, near)
    return [_merged([pairs[place] for place in group]) for group in groups]


def _merged(group: Sequence[Pair]) -> Pair:
    first, *rest = group
    places = dict(first.places)
    for pair in rest:
        for name, place in pair.places.items():
            places[name] = min(place, places.get(name, place))
    distances = [pair.distance for pair in group if pair.distance is not None]
    others = (*first.others, *(chunk for pair in rest for chunk in pair.chunks))
    return replace(first, others=others, places=places, distance=min(distances, default=None))


def near_duplicates(texts: Sequence[str], near: float = NEAR) -> list[list[int]]:
    """Places of the texts in groups; every text is in one group, most alone.

    Two texts belong together where the Jaccard similarity of their word triples is at least `near` and their numbers
    are the same: tables and prices that differ in one figure are not duplicates. Groups are closed (single linkage).
    """
    shingles = [_shingles(text) for text in texts]
    numbers = [tuple(NUMBER.findall(text)) for text in texts]
    group = list(range(len(texts)))
    for earlier, later in combinations(range(len(texts)), 2):
        if numbers[later] == numbers[earlier] and jaccard(shingles[later], shingles[earlier]) >= near:
            old, new = max(group[later], group[earlier]), min(group[later], group[earlier])
            group = [new if one == old else one for one in group]
    return [[place for place, one in enumerate(group) if one == first] for first in sorted(set(group))]


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = WORD.findall(text.casefold())
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset((word,) for word in words)


def jaccard(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> float:
    """Common over all, 0 where both are empty."""
    return len(first & second) / len(first | second) if first or second else 0.0
