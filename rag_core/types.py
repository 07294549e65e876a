"""The nouns of the field as frozen values: chunk, query, hit, drop, candidates, case.

Imports nothing of ours. What decides (filters) and what measures (evaluate) lives elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

EMPTY: Mapping[str, Any] = MappingProxyType({})


def _nothing() -> Any:
    """A field whose default is the shared empty mapping."""
    return field(default_factory=lambda: EMPTY)


class Metric(StrEnum):
    """What a distance is; it fixes direction, range and which thresholds make sense."""

    COSINE = "cosine"  # 1 − cos, in [0, 2]
    L2 = "l2"  # squared Euclidean, in [0, ∞)
    IP = "ip"  # 1 − inner product
    UNKNOWN = "unknown"  # a recorded list that does not say
    BM25 = "bm25"  # these three: the score of that name times −1, where a list has no distances (see `falling`)
    RRF = "rrf"
    SCORE = "score"
    RERANK = "rerank"  # a reranker's score times −1, whatever distances there are: it made the order


class Order(StrEnum):
    """What the order of a list means."""

    DISTANCE = "distance"  # ascending distance (or the list's one score, best first)
    FUSED = "fused"  # by a fused score; distances need not ascend


SCORES = ("distance", "similarity", "bm25", "rrf", "score", "rerank")
"""The score kinds a hit may carry. `distance` is better when lower, all others when higher, own names too."""

SCORED = (Metric.BM25, Metric.RRF, Metric.SCORE, Metric.RERANK)
"""The metrics that are a score times −1: more of it is better, and its range is the searcher's own."""

RANKS = "ranks"
"""Note of a hit that was fused from several rankings: ranking's name (`dense`, `lexical`) → its 1-based rank there."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document. Its id is its identity: two chunks may share a title."""

    id: str
    title: str = ""
    text: str = ""
    type: str = ""
    query_must: Any = None  # the rule as it was stored (mapping, JSON string or None); rag_core.rules reads it
    ref_ids: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = _nothing()


@dataclass(frozen=True, slots=True)
class Query:
    """A question. Rules read `text`; sources read `dense_text` / `lexical_text` where a rewrite set them."""

    id: str
    text: str
    dense_text: str | None = None
    lexical_text: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = _nothing()

    @property
    def family(self) -> str:
        """The family that the question names as its own (paraphrases, parameters of a template), else its id."""
        return str(self.metadata.get("family") or self.id)

    @property
    def made_from(self) -> str:
        """What a question was made from ("slots", "model") or taken from ("log"); empty: somebody asked it."""
        return str(self.metadata.get("made_from") or "")


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk in a ranked list: its 1-based rank in the list as it came, its scores and what stages noted."""

    chunk: Chunk
    rank: int
    scores: Mapping[str, float] = _nothing()  # kind (see SCORES) → value
    origin: str = ""  # "" from the source; else how it came ("expanded from c7, 1 step", "hop 2")
    notes: Mapping[str, Any] = _nothing()  # what stages annotated (signals, decisions), by stage name

    @property
    def distance(self) -> float | None:
        """Distance to the query, lower is nearer, or None where the list has none."""
        return self.scores.get("distance")

    @property
    def key(self) -> tuple[str, str]:
        """What conservation counts: (chunk id, origin)."""
        return (self.chunk.id, self.origin)

    def noted(self, stage: str, value: Any) -> Hit:
        """A copy that carries `value` under the stage's name."""
        return replace(self, notes={**self.notes, stage: value})


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a hit was dropped: a sentence, and the value and threshold it compares where there are any."""

    text: str
    value: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """A hit that a stage took out, with the one reason."""

    hit: Hit
    stage: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The nearest value of one parameter that would have kept a dropped hit, or that none would."""

    parameter: str
    value: Any  # None where no value would have kept it
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning of a stage: about one chunk, or about the list where `chunk_id` is empty."""

    stage: str
    text: str
    chunk_id: str = ""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A stage could not do its work and says what it did instead."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """What one stage did to the list: counts, and facts of its own (cut, rounds, tokens …)."""

    stage: str
    entered: int
    left: int
    facts: Mapping[str, Any] = _nothing()
    milliseconds: float = field(default=0.0, compare=False)


class Reader(Protocol):
    """Reads further down one deep ranking; a handle on a source and a query."""

    fingerprint: str

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the full ranking; fewer where it ends."""

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest `count` hits whose chunk id is not among `ids`, asked of the source anew."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What travels through a pipeline: the query, the hits so far and the whole trace of what left and why."""

    query: Query
    hits: tuple[Hit, ...] = ()
    drops: tuple[Drop, ...] = ()
    notices: tuple[Notice, ...] = ()
    fallbacks: tuple[Fallback, ...] = ()
    steps: tuple[Step, ...] = ()
    metric: Metric = Metric.UNKNOWN
    order: Order = Order.DISTANCE
    recorded: bool = False  # a recorded list: sources are skipped with a note
    reader: Reader | None = field(default=None, compare=False, repr=False)
    searched: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: EMPTY, compare=False, repr=False)
    """What stages did when a kept list was searched: facts of their steps by stage name, where they are known."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """What makes two lists the same to a stage that has seen one."""
        return (self.query.id, self.query.text, tuple(hit.key for hit in self.hits))


def falling(candidates: Candidates) -> Candidates:
    """The list with a distance on its hits, so that what cuts by distance cuts by any score: smaller is better.

    As it is where a hit from the source has a distance; else by the first of similarity (1 − it), score, rrf, bm25 and
    rerank (each times −1, the metric then says so) that hits from the source carry. A list that a reranker ordered
    falls by its score alone: a hit that it did not score has no distance then.
    """
    sourced = [hit for hit in candidates.hits if not hit.origin]
    kinds = ("distance", "similarity", "score", "rrf", "bm25", "rerank")
    kind = next((kind for kind in kinds if any(kind in hit.scores for hit in sourced)), "distance")
    if candidates.metric is Metric.RERANK:
        kind = "rerank"
    if kind == "distance":
        return candidates
    top = 1.0 if kind == "similarity" else 0.0
    hits = []
    for hit in candidates.hits:
        scores = {name: value for name, value in hit.scores.items() if name != "distance"}
        if kind in scores:
            scores["distance"] = top - scores[kind]
        hits.append(replace(hit, scores=scores))
    metric = candidates.metric if kind == "similarity" else Metric(kind)
    return replace(candidates, hits=tuple(hits), metric=metric)


Grades = Mapping[str, int]
"""Judged chunks of one query: chunk id → grade (0 irrelevant, 1 related, 2 relevant, 3 answers it)."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query with what is known about it: its labels and, where there is one, its recorded list."""

    query: Query
    grades: Mapping[str, int] = _nothing()
    candidates: Candidates | None = None
    relevant_total: int | None = None  # how many relevant chunks exist in all, where the file says so

    def has_relevant(self, min_grade: int = 1) -> bool:
        """Whether it is labelled and something relevant is known to exist, so that the question is scored."""
        return bool(self.grades and self.relevant_total) or any(grade >= min_grade for grade in self.grades.values())


def chunks_in(cases: Iterable[Case]) -> dict[str, Chunk]:
    """Every chunk of recorded lists by its id, as the last list has it that has its text."""
    found: dict[str, Chunk] = {}
    for case in cases:
        for hit in case.candidates.hits if case.candidates else ():
            if hit.chunk.text or hit.chunk.id not in found:
                found[hit.chunk.id] = hit.chunk
    return found
