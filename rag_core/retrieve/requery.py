"""Requery: check the rules round by round and read further down the ranking for what was dropped.

It stands where QueryMust would and contains it. On a recorded list the list is all there is; live, the reader of the
candidates is asked for more (Walk). What was never read ends as a drop "not read", so that every hit is accounted
for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from time import perf_counter
from typing import Any, ClassVar

from rag_core.errors import SpecError
from rag_core.filters.query_must import QueryMust
from rag_core.stage import Stage, setting
from rag_core.text import counted
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Notice, Order, Reason, Step


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

    def next_round(self, k: int) -> list[Hit]:
        """The next k hits that were not seen before; fewer only where the ranking ends."""
        batch = self.in_hand(k)
        if len(batch) < k and self.live:
            started = perf_counter()
            batch += self._anew(k - len(batch)) if self.strategy == "exclude" else self._deeper(k - len(batch))
            self.milliseconds += (perf_counter() - started) * 1000
        return batch

    @property
    def live(self) -> bool:
        """Whether there is a ranking to read on in."""
        return self.candidates.reader is not None and not self.candidates.recorded

    def in_hand(self, k: int) -> list[Hit]:
        """The next k of the hits in hand that were not seen before."""
        taken: list[Hit] = []
        while len(taken) < k and self.at < len(self.candidates.hits):
            hit = self.candidates.hits[self.at]
            self.at += 1
            (self.repeated if hit.chunk.id in self.seen else taken).append(hit)
            self.seen.add(hit.chunk.id)
        return taken

    def admitted(self, rules: QueryMust, count: int) -> list[Hit]:
        """The nearest hits that were not seen before and whose rules admit the query, asked of the store at once.

        A reader that cannot say which chunks are admitted is walked instead: then this is merely the next round.
        """
        reader = self.candidates.reader
        if reader is None or self.candidates.recorded:
            return []
        read = getattr(reader, "read_admitted", None)
        started = perf_counter()
        if read is None:
            batch = self._deeper(count)
        else:
            self.store_queries += 1
            batch = self._unknown(
                read(self.candidates.query.text, rules.mode, sorted(self.known), count, rules.plurals)
            )
        self.milliseconds += (perf_counter() - started) * 1000
        return batch

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


MOST_WANTED, MOST_ROUNDS = 1000, 100
STRATEGIES = ("deepen", "exclude", "prefilter")
NOT_READ = Reason("not read")


@dataclass
class _Outcome:
    """What the rounds gave."""

    kept: list[Hit] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    rounds: int = 0
    read: int = 0
    stop: str = ""


@dataclass(frozen=True)
class Requery(Stage):
    """Keep up to k chunks whose rules the query satisfies, reading on for those that were dropped."""

    k: int = setting(
        15,
        "how many are wanted, and how many a round reads",
        low=1,
        high=MOST_WANTED,
        priority=1,
        unit="chunks",
        step=1,
        usual=(1, 30),
    )
    max_iterations: int = setting(
        3, "most rounds", low=1, high=MOST_ROUNDS, priority=2, unit="rounds", step=1, usual=(1, 10)
    )
    strategy: str = setting(
        "deepen",
        "deepen: walk down a longer list; exclude: query again without what was seen; prefilter: search only chunks "
        "whose rules admit the query, as many as it takes (max_iterations does not count)",
        choices=STRATEGIES,
        priority=3,
        cheap=False,  # live, the store is asked another question
    )
    rules: QueryMust = setting(factory=QueryMust, help="how a rule is matched", nested=QueryMust)

    kind: ClassVar[str] = "filter"
    title: ClassVar[str] = "refill"
    cheap: ClassVar[bool] = True
    drawer: ClassVar[str] = "rules"

    def __post_init__(self) -> None:
        if isinstance(self.rules, Mapping):
            known = tuple(QueryMust().settings())
            unknown = next((str(key) for key in self.rules if key not in known), None)
            if unknown is not None:
                raise SpecError(f"unknown setting {unknown[:80]!r} of Requery.rules, expected {', '.join(known)}")
            object.__setattr__(self, "rules", QueryMust(**self.rules))
        if not isinstance(self.rules, QueryMust):
            raise SpecError(f"Requery.rules is {self.rules!r:.80}, expected a mapping of QueryMust's settings")
        super().__post_init__()

    @property
    def reach(self) -> int:
        """As many chunks as all rounds read."""
        return self.k * self.max_iterations

    @classmethod
    def said(cls, step: Step) -> str:
        """Rounds, chunks read, store queries, and why it stopped."""
        facts = step.facts
        if "rounds" not in facts:
            return super().said(step)
        queries = counted(facts["store_queries"], "store query", "store queries")
        rounds = counted(facts["rounds"], "round", "rounds")
        return f"{rounds}, {facts['read']} read, {queries}, stopped: {facts['stop']}"

    @classmethod
    def change(cls, step: Step) -> str:
        """How many it read and left: it also brings what it drops, so a difference would say little."""
        return f"read {step.facts.get('read', step.entered)}, left {step.left}"

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Run the rounds; the facts are rounds, read, store_queries, stop and the milliseconds the refill added."""
        walk = Walk(candidates, self.strategy)
        outcome = self._prefiltered(walk) if self.strategy == "prefilter" else self._rounds(walk)
        kept = _in_order(outcome.kept, candidates.order)
        beyond = [Drop(hit, self.name, self._beyond(place)) for place, hit in enumerate(kept, 1) if place > self.k]
        repeated = [Drop(hit, self.name, Reason("the chunk came before in this list")) for hit in walk.repeated]
        unread = [Drop(hit, self.name, NOT_READ) for hit in walk.unread]
        after = replace(
            candidates,
            hits=tuple(kept[: self.k]),
            drops=(*candidates.drops, *outcome.drops, *repeated, *beyond, *unread),
            notices=(*candidates.notices, *outcome.notices),
        )
        facts = {"rounds": outcome.rounds, "read": outcome.read, "store_queries": walk.store_queries}
        return after, {**facts, "stop": outcome.stop, "milliseconds": walk.milliseconds}

    def _beyond(self, place: int) -> Reason:
        return Reason(f"position {place} of those that pass > k {self.k}", place, self.k)

    def _rounds(self, walk: Walk) -> _Outcome:
        """Rounds go on while fewer than k survive, results remain and rounds are left.

        That the last round dropped something needs no check: a full round that drops nothing brings k survivors.
        """
        outcome = _Outcome()
        while not outcome.stop:
            batch = walk.next_round(self.k)
            if batch:
                self._check(batch, walk.candidates, outcome)
            outcome.stop = self._stop(len(outcome.kept), len(batch), outcome.rounds)
        return outcome

    def _prefiltered(self, walk: Walk) -> _Outcome:
        """The hits in hand as far as k needs them, then the nearest admitted of the rest: k, or all there are."""
        outcome = _Outcome()
        while len(outcome.kept) < self.k and (batch := walk.in_hand(self.k)):
            self._check(batch, walk.candidates, outcome)
        while len(outcome.kept) < self.k and (batch := walk.admitted(self.rules, self.k - len(outcome.kept))):
            self._check(batch, walk.candidates, outcome)
        ended = "no more chunks are admitted" if walk.live else "the list ended"
        outcome.stop = f"k {self.k} found" if len(outcome.kept) >= self.k else ended
        return outcome

    def _check(self, batch: Sequence[Hit], candidates: Candidates, outcome: _Outcome) -> None:
        """Judge one round and add it to the outcome."""
        judged, _ = self.rules.apply(replace(candidates, hits=tuple(batch), drops=(), notices=()))
        outcome.kept += judged.hits
        outcome.drops += [replace(drop, stage=self.name) for drop in judged.drops]
        outcome.notices += judged.notices
        outcome.read += len(batch)
        outcome.rounds += 1

    def _stop(self, kept: int, read: int, rounds: int) -> str:
        """Why the rounds end here, or nothing where they go on."""
        if kept >= self.k:
            return f"k {self.k} found"
        if read < self.k:
            return "the list ended"
        return f"max_iterations {self.max_iterations} reached" if rounds == self.max_iterations else ""

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """What would keep it: words, where its rule drops it; else the nearest k and max_iterations."""
        return self.would_keep_each(before, (drop,))[0]

    def would_keep_each(self, before: Candidates, drops: Sequence[Drop]) -> list[tuple[Counterfactual, ...]]:
        """The same for many drops of one list, whose rules are read once."""
        verdicts = (self.rules.verdict(hit, before.query.text) for hit in before.hits)
        passes = [verdict is None or verdict.satisfied for verdict in verdicts]
        passed = list(accumulate(passes, initial=0))  # of the hits before each place
        places = {hit.key: place for place, hit in reversed(list(enumerate(before.hits)))}
        return [
            self.rules.would_keep(before, drop) or self._nearest(places.get(drop.hit.key), passes, passed)
            for drop in drops
        ]

    def _nearest(self, place: int | None, passes: Sequence[bool], passed: Sequence[int]) -> tuple[Counterfactual, ...]:
        """The rounds keep a hit that passes where they come to its place with fewer than k kept before it."""
        if place is None:
            return ()
        last = 0 if self.strategy == "prefilter" else place // self.max_iterations  # k is more than this to get there
        k = max(self.k, passed[place], last) + 1
        by_k = _counterfactual("k", k if passes[place] and k <= min(len(passes), MOST_WANTED) else None)
        if self.strategy == "prefilter":
            return (by_k,)
        rounds = max(self.max_iterations, place // self.k) + 1
        reached = passes[place] and passed[place] < self.k and rounds <= MOST_ROUNDS
        return by_k, _counterfactual("max_iterations", rounds if reached else None)


def _in_order(hits: Sequence[Hit], order: Order) -> list[Hit]:
    """Survivors by distance where the list is in that order: an approximate index may find a nearer one late."""
    if order is Order.DISTANCE and all(hit.distance is not None for hit in hits):
        return sorted(hits, key=lambda hit: hit.distance if hit.distance is not None else 0.0)
    return list(hits)


def _counterfactual(parameter: str, value: int | None) -> Counterfactual:
    text = f"no {parameter} would have kept it" if value is None else f"{parameter} {value} would have kept it"
    return Counterfactual(parameter, value, text)
