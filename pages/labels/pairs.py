"""The pairs a person is to label, on the server: their order, what is done, and the next few for the browser.

However long the queue, the browser gets a window of it. The pool comes from rag_core.labelling.pooling, the order that
settles a comparison soonest from label_next. Nothing here draws, and nothing here is the only copy of a label.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pages.labels.leases import Leases
from pages.labels.queue import QueueItem
from pages.labels.queue.intake import Entry
from rag_core.labelling.estimate import LEAST as FEWEST
from rag_core.labelling.estimate import SAMPLER, estimates, key_of, place_of, questions_of, weight_of
from rag_core.labelling.label_next import OpenComparison, compare
from rag_core.labelling.pooling import Pair, content
from rag_core.measure.experiment import PipelineReport
from rag_core.store.events import SEEING, UNDO
from rag_core.store.keys import chunk_key, text_hash
from rag_core.types import Chunk

WINDOW = 100  # pairs the browser holds at once
WINDOW_CHARACTERS = 300_000  # and of text, but at least LEAST pairs
LEAST = 5
BLIND = 5  # one pair in so many shows no proposal: what a model is worth is measured where it led nobody
RANK_AGAIN = 20  # labels after which the order is made anew


def pair_id(eval_set: str, pair: Pair) -> str:
    """A name of the pair that stays the same over restarts."""
    said = "\0".join((eval_set, pair.query.id, content(pair.chunk)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:20]


@dataclass(frozen=True, eq=False)
class PairPool:
    """The pairs of a project by name, in the order they are asked, made once for everybody who labels them.

    `keys` are, per pair, what the labels of its chunks are stored under: hashes of texts, too dear for each visit.
    """

    eval_set: str
    pairs: Mapping[str, Pair]
    keys: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, eval_set: str, pairs: Iterable[Pair]) -> PairPool:
        """The pool of these pairs, in their order."""
        hashes: dict[str, str] = {}

        def key(chunk: Chunk) -> str:
            if chunk.id not in hashes:
                hashes[chunk.id] = text_hash(chunk.text)
            return chunk_key(chunk.id, hashes[chunk.id])

        named = {pair_id(eval_set, pair): pair for pair in pairs}
        return cls(eval_set, named, {name: tuple(map(key, pair.chunks)) for name, pair in named.items()})

    def chunks_of(self) -> dict[str, list[str]]:
        """Query id → every chunk of the pool."""
        found: dict[str, list[str]] = {}
        for pair in self.pairs.values():
            found.setdefault(pair.query.id, []).extend(chunk.id for chunk in pair.chunks)
        return found


@dataclass
class PairQueue:
    """A queue of one person over one pool. `judged` are the pairs somebody labelled, `done` those not to be shown.

    `leases` and `holder` say which pairs others are being asked now; `once`: a label of anybody is enough.
    """

    eval_set: str
    annotator: str
    pairs: dict[str, Pair]
    order: list[str]
    judged: set[str]
    done: set[str]
    grades: dict[str, dict[str, int]]  # query id → chunk id → grade, what counts
    rivals: tuple[PipelineReport, PipelineReport] | None = None
    show_origin: bool = False
    base: int | None = None  # position of the newest label event that the queue knows
    comparison: OpenComparison | None = None
    asked_for: dict[str, str] = field(default_factory=dict)  # pair → why somebody wants it now
    seed: int = 0
    leases: Leases = field(default_factory=Leases)
    holder: str = ""
    once: bool = False
    proposals: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (query id, chunk key) → grade
    proposer: str = ""
    _estimated: str | None = None
    _since_estimated: int = 0
    _since_ranked: int = 0
    _start: int = 0

    def __post_init__(self) -> None:
        self._total = Counter(pipeline for pair in self.pairs.values() for pipeline in pair.places)
        self._pooled = PairPool(self.eval_set, self.pairs, {}).chunks_of() if self.rivals else {}
        self._heard = len(self.leases.labelled)
        self._covered = Counter(pipeline for name in self.judged for pipeline in self.pairs[name].places)
        self.rank()

    def rank(self) -> None:
        """Put first what can still change the comparison; without rivals the blind order stays."""
        self._since_ranked = 0
        if self.rivals is None:
            return
        # Whatever the pool holds may turn out relevant, kept by one of the two or not.
        self.comparison = compare(*self.rivals, lambda query: self._pooled.get(query, ()), self.grades)
        gain = {(query_id, chunk_id): value for value, query_id, chunk_id in self.comparison.ranked()}
        value = {
            name: max(gain.get((pair.query.id, chunk.id), 0.0) for chunk in pair.chunks)
            for name, pair in self.pairs.items()
        }
        # What somebody asked for stays first; equal gains keep the blind order.
        self.order.sort(key=lambda name: (name not in self.asked_for, -value[name]))
        self._start = 0

    def bring(self, pairs: Iterable[Pair], why: str) -> None:
        """Put these pairs first, to be labelled again if they were; one outside of the pool joins it."""
        names = []
        for pair in pairs:
            name = pair_id(self.eval_set, pair)
            if name not in self.pairs:  # what is open in it counts from now on
                self.pairs[name] = pair
                self._pooled.setdefault(pair.query.id, []).extend(chunk.id for chunk in pair.chunks)
            self.done.discard(name)
            self.asked_for[name] = why
            names.append(name)
        self.order = [*names, *(name for name in self.order if name not in set(names))]
        self._start = 0

    def take(self, entries: Iterable[Entry]) -> None:
        """Take over what was stored: a label is done, an undo comes back."""
        for entry in entries:
            pair = self.pairs.get(entry.pair)
            if pair is None or (entry.event.eval_set, entry.event.annotator) != (self.eval_set, self.annotator):
                continue
            self._mark(entry.pair, pair, undone=entry.event.kind == UNDO)
            if entry.event.kind != UNDO:
                self.leases.labelled.append((entry.pair, self.annotator))
            self._since_ranked += 1
            self._since_estimated += 1
            of_query = self.grades.setdefault(pair.query.id, {})
            for chunk in pair.chunks:
                of_query.pop(chunk.id, None)
                if entry.event.grade is not None:
                    of_query[chunk.id] = entry.event.grade
        if self._since_ranked >= RANK_AGAIN:
            self.rank()

    def drawn(self, entries: Iterable[Entry]) -> tuple[Entry, ...]:
        """The entries with how their pair was drawn; one that somebody asked for, or that may decide, was not."""
        return tuple(
            replace(entry, events=tuple(replace(one, **self._how_drawn(entry.pair)) for one in entry.events))
            for entry in entries
        )

    def _how_drawn(self, name: str) -> dict[str, Any]:
        if name in self.pairs and self.proposal(name) is not None:
            return {"sampler": f"{SEEING}{self.proposer}"}
        if name not in self.pairs or self.rivals or name in self.asked_for:
            return {}
        pair = self.pairs[name]
        place = place_of(pair)
        chance = min(1.0, weight_of(place) * key_of(self.seed, pair.query.id, pair.chunk.id, place))
        return {"inclusion_p": chance, "sampler": f"{SAMPLER}, seed {self.seed}"}

    def proposal(self, name: str) -> int | None:
        """The grade that a model proposes for a pair; None where it says nothing, or where the pair is asked blind."""
        if not self.proposals or int(name[:8], 16) % BLIND == 0:
            return None
        pair = self.pairs[name]
        return self.proposals.get((pair.query.id, chunk_key(pair.chunk.id, text_hash(pair.chunk.text))))

    def estimated(self, pipelines: Sequence[str], min_grade: int) -> str:
        """What the labels let one estimate of the first two pipelines, '' where it is too little.

        Made anew after 20 labels of this person: nobody waits for it with each label of everybody.
        """
        if self._estimated is None or self._since_estimated >= RANK_AGAIN:
            self._since_estimated, self._estimated = 0, ""
            if sum(map(len, self.grades.values())) >= FEWEST:
                pooled = [pair for pair in self.pairs.values() if pair.places]
                found = estimates(questions_of(pooled, self.grades, pipelines[:2], min_grade), self.seed)
                self._estimated = found.to_text(pipelines[:2]) if found else ""
        return self._estimated

    def _mark(self, name: str, pair: Pair, undone: bool) -> None:
        if undone:
            self._start = 0
        if (name in self.judged) == undone:
            self._covered.update({pipeline: -1 if undone else 1 for pipeline in pair.places})
        self.asked_for.pop(name, None)
        for known in (self.done, self.judged):
            known.discard(name) if undone else known.add(name)

    def window(self, later: Collection[str] = ()) -> tuple[QueueItem, ...]:
        """The next pairs, those put off last, and behind them those that others are being asked."""
        self._hear()
        items: list[QueueItem] = []
        characters = 0
        held = self.leases.claim(self.holder, self._next(set(later))) - self.asked_for.keys()
        for name in self._next(set(later), held):
            item = self.item(name)
            characters += len(item.text)
            if len(items) >= WINDOW or (characters > WINDOW_CHARACTERS and len(items) >= LEAST):
                break
            items.append(item)
        return tuple(items)

    def _hear(self) -> None:
        """Take over what other sessions labelled meanwhile, where that is enough or it was this person."""
        heard, self._heard = self.leases.labelled[self._heard :], len(self.leases.labelled)
        for name, annotator in heard:
            if name in self.pairs and name not in self.asked_for and (self.once or annotator == self.annotator):
                self._mark(name, self.pairs[name], undone=False)

    def _next(self, later: set[str], held: Collection[str] = ()) -> Iterator[str]:
        while self._start < len(self.order) and self.order[self._start] in self.done:
            self._start += 1
        open_ones = (name for name in self.order[self._start :] if name not in self.done)
        put_off, of_others = [], []
        for name in open_ones:
            if name in held:
                of_others.append(name)
            elif name in later:
                put_off.append(name)
            else:
                yield name
        yield from put_off
        yield from of_others

    def item(self, name: str) -> QueueItem:
        """A pair as the browser gets it."""
        pair = self.pairs[name]
        return QueueItem(
            id=name,
            eval_set=self.eval_set,
            annotator=self.annotator,
            query_id=pair.query.id,
            query_hash=text_hash(pair.query.text),
            chunk_id=pair.chunk.id,
            text_hash=text_hash(pair.chunk.text),
            query=pair.query.text,
            title=pair.chunk.title,
            text=pair.chunk.text,
            others=tuple({"chunk_id": one.id, "text_hash": text_hash(one.text)} for one in _to_label(pair)),
            why=self.why(pair),
            origin=_origin(pair) if self.show_origin else "",
            proposed=(proposed := self.proposal(name)),
            proposer="" if proposed is None else self.proposer,
        )

    def why(self, pair: Pair) -> str:
        """Why this pair comes now, without telling which pipeline brought it."""
        name = pair_id(self.eval_set, pair)
        if name in self.asked_for:
            return self.asked_for[name]
        if self.comparison is None:
            return "It is in the pool; the order is random, so that nothing tells what a pipeline thought of it."
        if self.comparison.settled:
            return "No open label can change which of the two pipelines is better; the rest of the pool follows."
        return f"Its label can change which of the two pipelines is better on query {pair.query.id}."

    def coverage(self, depth: int) -> tuple[str, ...]:
        """Judged@depth in words: the judged share of what each pipeline shows among its first `depth`."""
        shares = [f"{name} {self._covered[name] / self._total[name]:.0%}" for name in sorted(self._total)]
        return (f"labelled of the first {depth}: {', '.join(shares)}",) if shares else ()

    def settled(self) -> str:
        """What can be said of the comparison by now, '' without one."""
        if self.comparison is None or self.rivals is None:
            return ""
        first, second = (report.name for report in self.rivals)
        low, high = self.comparison.bounds
        if self.comparison.winner:
            better = (first, second)[self.comparison.winner - 1]
            return f"Settled: {better} has the higher mean F₁, whatever the labels still open in this pool say."
        if self.comparison.settled:
            return (
                f"Settled: {first} and {second} have the same mean F₁, whatever the labels still open in this pool say."
            )
        return f"Open: mean F₁ of {first} minus {second} lies between {low:+.3f} and {high:+.3f}."


def _to_label(pair: Pair) -> list[Chunk]:
    """The further chunks that need an event of their own: equal texts share one label already."""
    seen = {chunk_key(pair.chunk.id, text_hash(pair.chunk.text))}
    found = []
    for chunk in pair.others:
        key = chunk_key(chunk.id, text_hash(chunk.text))
        if key not in seen:
            found.append(chunk)
        seen.add(key)
    return found


def _origin(pair: Pair) -> str:
    places = ", ".join(f"{name} at {place}" for name, place in sorted(pair.places.items()))
    distance = "" if pair.distance is None else f"distance {pair.distance:.4f} · "
    return f"{distance}kept by {places}"


def make_queue(
    pool: PairPool,
    annotator: str,
    grades: Mapping[str, Mapping[str, int]],
    mine: Collection[tuple[str, str]],
    unjudged_only: bool,
    **more: Any,
) -> PairQueue:
    """A queue over a pool; `more` are further fields of it.

    `grades` is what counts (query id → chunk id → grade); `mine` are the (query id, chunk key) this person labelled,
    unsure included. With `unjudged_only` what anybody judged is left out, else only what this person did.
    """
    nothing: Mapping[str, int] = {}
    judged = {
        name
        for name, pair in pool.pairs.items()
        if any(chunk.id in grades.get(pair.query.id, nothing) for chunk in pair.chunks)
    }
    by_me = {name for name, keys in pool.keys.items() if any((pool.pairs[name].query.id, key) in mine for key in keys)}
    return PairQueue(
        pool.eval_set,
        annotator,
        dict(pool.pairs),
        list(pool.pairs),
        judged | by_me,
        (judged | by_me) if unjudged_only else set(by_me),
        {query_id: dict(given) for query_id, given in grades.items()},
        once=unjudged_only,
        **more,
    )
