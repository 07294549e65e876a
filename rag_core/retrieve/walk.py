"""Walking down a ranking: the hits in hand, then what the reader of the candidates brings, by one of three strategies.

Which hits stay is for Requery; this only says what comes next and counts what was asked of the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from rag_core.types import Candidates, Hit


@dataclass
class Walk:
    """The candidates of one run, one round after the other: those in hand first, then what the reader brings."""

    candidates: Candidates
    strategy: str
    at: int = 0
    store_queries: int = 0
    milliseconds: float = 0.0
    seen: set[str] = field(default_factory=set)  # ids a round took from the hits in hand
    repeated: list[Hit] = field(default_factory=list)
    known: set[str] = field(init=False)  # ids the reader need not bring again, earlier drops included
    position: int = field(init=False)  # how far the ranking was read, 0-based

    def __post_init__(self) -> None:
        had = [*(drop.hit for drop in self.candidates.drops), *self.candidates.hits]
        self.known = {hit.chunk.id for hit in had}
        self.position = sum(not hit.origin for hit in had)

    def next_round(self, k: int) -> tuple[Hit, ...]:
        """The next k hits that were not seen before; fewer only where the ranking ends."""
        batch = list(self._in_hand(k))
        if len(batch) < k and self.live:
            started = perf_counter()
            batch += self._anew(k - len(batch)) if self.strategy == "exclude" else self._deeper(k - len(batch))
            self.milliseconds += (perf_counter() - started) * 1000
        return tuple(batch)

    @property
    def live(self) -> bool:
        """Whether there is a ranking to read on in."""
        return self.candidates.reader is not None and not self.candidates.recorded

    def in_hand(self, k: int) -> tuple[Hit, ...]:
        """The next k of the hits in hand that were not seen before."""
        return tuple(self._in_hand(k))

    def admitted(self, mode: str, count: int) -> tuple[Hit, ...]:
        """The nearest hits that were not seen before and whose rules admit the query, asked of the store at once.

        A reader that cannot say which chunks are admitted is walked instead: then this is merely the next round.
        """
        reader = self.candidates.reader
        if reader is None or self.candidates.recorded:
            return ()
        read = getattr(reader, "read_admitted", None)
        started = perf_counter()
        if read is None:
            batch = self._deeper(count)
        else:
            self.store_queries += 1
            batch = self._unknown(read(self.candidates.query.text, mode, sorted(self.known), count))
        self.milliseconds += (perf_counter() - started) * 1000
        return tuple(batch)

    def _in_hand(self, k: int) -> Iterator[Hit]:
        taken = 0
        while taken < k and self.at < len(self.candidates.hits):
            hit = self.candidates.hits[self.at]
            self.at += 1
            if hit.chunk.id in self.seen:
                self.repeated.append(hit)
                continue
            self.seen.add(hit.chunk.id)
            taken += 1
            yield hit

    def _deeper(self, count: int) -> list[Hit]:
        """Walk further down the same ranking."""
        reader = self.candidates.reader
        found: list[Hit] = []
        while reader is not None and len(found) < count:
            wanted = count - len(found)
            more = reader.read(self.position, self.position + wanted)
            self.store_queries += 1
            self.position += wanted
            found += self._unknown(more)
            if len(more) < wanted:
                break
        return found

    def _anew(self, count: int) -> list[Hit]:
        """Query again without any chunk that was seen, kept or dropped."""
        reader = self.candidates.reader
        if reader is None:
            return []
        self.store_queries += 1
        more = self._unknown(reader.read_excluding(sorted(self.known), count))
        ranked = [replace(hit, rank=self.position + place) for place, hit in enumerate(more, 1)]
        self.position += len(ranked)
        return ranked

    def _unknown(self, hits: Sequence[Hit]) -> list[Hit]:
        fresh = []
        for hit in hits:
            if hit.chunk.id not in self.known:
                self.known.add(hit.chunk.id)
                fresh.append(hit)
        return fresh

    @property
    def unread(self) -> tuple[Hit, ...]:
        """The hits in hand that no round came to."""
        return self.candidates.hits[self.at :]
