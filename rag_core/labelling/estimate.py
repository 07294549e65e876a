"""What the figures of a pipeline would be if every pair of the pool were judged, from the pairs that are.

*The order is the design.* Each pair has a random number that its ids alone decide, divided by the weight of its place
(6 for the first three places, 2 for the next twelve, 1 beyond); pairs are asked in the order of that key. At any time
the sample is what stands before the first pair without a label, and a pair was in it with probability weight × that
pair's key, or 1 (priority sampling). So labels given in another order, or with a verdict in sight, never count as a
sample, and nothing has to be written down to know the probabilities.

*The estimate.* What is labelled is known. The set measures of a question are multilinear in the other labels, so their
expectation under a model of each chunk's relevance is one integral; where the sampled labels differ from the model,
that is laid on those that are missing, each sampled one standing for 1/probability − 1 of them. (A second order, with
pairs of labels, scattered 1.3 to 2 times as much at 10 and 20 % of the labels, and once left 0 to 1 by far.) The model,
a logistic regression on place, distance and shared words, is fitted on other questions than it is asked about. The
interval is for *these questions*: what the missing labels leave open, by what the sample and the model say of the
variance together (the larger of the two covered .88 in some cells, the sum .94 and more). The mean is over questions
that hold something relevant, whose number is itself estimated. Measured in benchmarks/honesty.py; recall needs more
labels than the others and is left to its bounds, which hold for every way the open labels of the pool may fall.

Sources: Duffield, Lund and Thorup 2007 (priority sampling); Hájek 1971; Pavlu and Aslam 2007 (statAP); Angelopoulos et
al. 2023 (prediction-powered inference).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_core.labelling.pooling import Pair
from rag_core.types import Grades

Row = NDArray[np.float64]
Flags = NDArray[np.bool_]
WEIGHTS = ((3, 6.0), (15, 2.0))
"""Up to which place, how often beside a place further down."""
SAMPLER = "first 3, 4 to 15, beyond as 6 : 2 : 1"
FOLDS = 5
LEAST = 30  # sampled labels, with at least `LEAST_RELEVANT` relevant ones: fewer say nothing
LEAST_RELEVANT = 5
NODES, SHARES = np.polynomial.legendre.leggauss(24)
TIMES, SHARES = (NODES + 1) / 2, SHARES / 2
Z = 1.96


def weight_of(place: int) -> float:
    """How much likelier a pair at this place (from 1) is asked than one far down."""
    return next((weight for up_to, weight in WEIGHTS if place <= up_to), 1.0)


def key_of(seed: int, query_id: str, chunk_id: str, place: int) -> float:
    """Where a pair stands in the order of asking: smaller comes first."""
    digest = hashlib.sha256(f"{seed}\0{query_id}\0{chunk_id}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:7], "big") + 0.5) / 2.0**56 / weight_of(place)


@dataclass(frozen=True, eq=False)
class Question:
    """The pool of one question: its chunks, what each pipeline keeps of them, signals of relevance, and labels."""

    id: str
    chunks: tuple[str, ...]
    kept: Flags  # pipelines × chunks
    signals: Row  # chunks × signals that a model of relevance may read; the first is the place, from 1
    labels: Row  # 1 relevant, 0 not, NaN unjudged
    beyond: int = 0  # relevant labels outside of the pool: nobody keeps them, all count as relevant

    @property
    def places(self) -> list[int]:
        """The place of every chunk, from 1."""
        return [int(place) for place in self.signals[:, 0]]


class LabelEstimate(NamedTuple):
    """A mean over these questions, and half of its 95 % interval."""

    value: float
    half: float


@dataclass(frozen=True)
class Sample:
    """What of the labels is a fair sample: per question which pairs are in it, and with which probability each was."""

    taken: tuple[Flags, ...]
    chances: tuple[Row, ...]

    @property
    def size(self) -> int:
        """How many pairs."""
        return int(sum(taken.sum() for taken in self.taken))


def sample_of(questions: Sequence[Question], seed: int = 0) -> Sample:
    """The sample that the labels hold: all before the first pair, in the order of asking, that has none."""
    keys = [np.array([key_of(seed, one.id, chunk, at) for at, chunk in enumerate(one.chunks, 1)]) for one in questions]
    open_keys = [float(key[np.isnan(one.labels)].min(initial=np.inf)) for key, one in zip(keys, questions, strict=True)]
    edge = min(open_keys, default=np.inf)
    weights = [np.array([weight_of(at) for at in one.places]) for one in questions]
    return Sample(
        tuple(key < edge for key in keys),
        tuple(np.minimum(1.0, weight * edge) if np.isfinite(edge) else np.ones(len(weight)) for weight in weights),
    )


def chances_of_relevance(questions: Sequence[Question], sample: Sample) -> list[Row] | None:
    """How likely each chunk is relevant by a model of the other questions' sampled labels; None where they are too few.

    Every fold needs labels of both kinds in the others.
    """
    from sklearn.linear_model import LogisticRegression  # a second to import: only where an estimate is asked for

    taken = [np.flatnonzero(one) for one in sample.taken]
    relevant = sum(float(np.nansum(one.labels[at])) for one, at in zip(questions, taken, strict=True))
    if sample.size < LEAST or relevant < LEAST_RELEVANT or sample.size - relevant < LEAST_RELEVANT:
        return None
    signals = [np.nan_to_num(np.column_stack([np.log(one.signals[:, 0]), one.signals[:, 1:]])) for one in questions]
    whole = np.concatenate(signals)
    middle, spread = whole.mean(axis=0), np.maximum(whole.std(axis=0), 1e-9)
    fold = np.array([int(hashlib.sha256(one.id.encode()).hexdigest()[:8], 16) % FOLDS for one in questions])
    chances: list[Row] = [np.empty(0)] * len(questions)
    for part in range(FOLDS):
        others = [at for at in range(len(questions)) if fold[at] != part and len(taken[at])]
        x = np.concatenate([(signals[at][taken[at]] - middle) / spread for at in others]) if others else np.empty(0)
        y = np.concatenate([questions[at].labels[taken[at]] for at in others]) if others else np.empty(0)
        if len(np.unique(y)) < 2:
            return None
        w = np.concatenate([1 / sample.chances[at][taken[at]] for at in others])
        model = LogisticRegression(C=1.0).fit(x, y, sample_weight=w / w.mean())
        for at in np.flatnonzero(fold == part):
            chances[at] = np.clip(model.predict_proba((signals[at] - middle) / spread)[:, 1], 1e-4, 1 - 1e-4)
    return chances


class Expansion(NamedTuple):
    """A multilinear figure of one question at some chances: its value, and its slope by the chance of each chunk."""

    value: float
    slopes: Row


def share_of_kept(kept: Flags, chances: Row, size: float) -> Expansion:
    """Of relevant kept / (`size` + relevant): half of SetF where `size` is what is kept.

    1 / (size + n) is the integral of t^(size + n − 1) from 0 to 1, under which independent labels multiply.
    """
    grows = 1 - chances[:, None] + chances[:, None] * TIMES  # chunks × nodes
    product = np.prod(grows, axis=0) * SHARES * TIMES ** (size - 1)
    ours = kept[:, None] * chances[:, None] * TIMES / grows
    found = ours.sum(axis=0)
    slopes = ((kept[:, None] * TIMES + (TIMES - 1) * (found - ours)) / grows * product).sum(axis=1)
    return Expansion(float((found * product).sum()), slopes)


def f_of(kept: Flags, chances: Row, beyond: int = 0) -> Expansion:
    """SetF: twice the relevant kept over what is kept and what is relevant; 0 where nothing is kept."""
    if not kept.any():
        return Expansion(0.0, np.zeros(len(chances)))
    half = share_of_kept(kept, chances, float(kept.sum() + beyond))
    return Expansion(2 * half.value, 2 * half.slopes)


def precision_of(kept: Flags, chances: Row, _beyond: int = 0) -> Expansion:
    """SetP: the share of the kept chunks that is relevant, 0 where nothing is kept."""
    size = max(1, int(kept.sum()))
    return Expansion(float(chances[kept].sum()) / size, kept / size)


def any_relevant(chances: Row, beyond: int = 0) -> Expansion:
    """Whether anything is relevant."""
    if beyond:
        return Expansion(1.0, np.zeros(len(chances)))
    less = 1 - chances
    before, after = np.cumprod([1.0, *less]), np.cumprod([1.0, *less[::-1]])[::-1]
    return Expansion(1 - float(before[-1]), before[:-1] * after[1:])


MEASURES = {"SetP": precision_of, "SetF": f_of}


@dataclass(frozen=True)
class Estimates:
    """What a sample of so many labels says, by measure: of each pipeline, and of the first minus each other."""

    labels: int
    single: Mapping[str, tuple[LabelEstimate, ...]]
    against: Mapping[str, tuple[LabelEstimate, ...]]

    def to_json(self) -> dict[str, Any]:
        """Plain values: [value, low, high] of every pipeline, and of the first minus each other."""

        def plain(row: Sequence[LabelEstimate]) -> list[list[float]]:
            return [[one.value, one.value - one.half, one.value + one.half] for one in row]

        sides = {"single": self.single, "against": self.against}
        rows = {side: {name: plain(row) for name, row in of.items()} for side, of in sides.items()}
        return {"labels": self.labels, **rows}

    def to_text(self, names: Sequence[str]) -> str:
        """F₁ of every pipeline and their difference, and what twenty more labels would make of its interval."""
        rows = [
            f"{name} {one.value:.2f} ± {one.half:.2f}" for name, one in zip(names, self.single["SetF"], strict=True)
        ]
        said = f"Estimated from a sample of {self.labels:,} labels, for these questions: F₁ of {', of '.join(rows)}"
        for name, one in zip(names[1:], self.against["SetF"], strict=True):
            more = one.half * sqrt(self.labels / (self.labels + NEXT))
            said += f"; {names[0]} minus {name} {one.value:+.2f} ± {one.half:.2f}, {NEXT} more labels: ± {more:.2f}"
        return f"{said}."


class Counts(NamedTuple):
    """Of one question and what a pipeline keeps: what is known, and what is open among what is kept and dropped."""

    kept: int
    found: int  # relevant, kept
    relevant: int
    open_kept: int
    open_dropped: int

    @classmethod
    def of(cls, question: Question, at: int) -> Counts:
        """Of the pipeline in that row."""
        kept, known, unjudged = question.kept[at], question.labels == 1, np.isnan(question.labels)
        sums = (kept, kept & known, known, kept & unjudged, ~kept & unjudged)
        length, found, relevant, *opened = (int(one.sum()) for one in sums)
        return cls(length, found, relevant + question.beyond, *opened)


def _set_measures(kept: int, found: int, relevant: int) -> dict[str, float]:
    precision, recall = found / max(1, kept), found / relevant
    return {"SetP": precision, "SetR": recall, "SetF": 2 * found / (kept + relevant)}


def pool_bounds(questions: Sequence[Question], at: int) -> dict[str, tuple[float, float] | None]:
    """Least and greatest mean of a pipeline over every way the open labels of the pool may fall; None if none is left.

    The mean is over questions that hold something relevant: one of which that is open counts where it makes it so.
    """
    known: list[tuple[dict[str, float], dict[str, float]]] = []
    perhaps: list[tuple[dict[str, float], dict[str, float]]] = []
    for kept, found, relevant, open_kept, open_dropped in (Counts.of(one, at) for one in questions):
        if not relevant + open_kept + open_dropped:
            continue
        # without anything relevant yet, one relevant chunk must be: dropped where one may be, else kept
        one = int(not relevant and not open_dropped)
        least = _set_measures(kept, found + one, relevant + max(one, open_dropped))
        other = int(not relevant and not open_kept)
        most = _set_measures(kept, found + open_kept, relevant + max(other, open_kept))
        (known if relevant else perhaps).append((least, most))
    if not known + perhaps:
        return dict.fromkeys(("SetP", "SetR", "SetF"))

    def extreme(name: str, side: int) -> float:
        """Questions that may count do where they move the mean that way; one counts at least."""
        sign = 1 if side else -1
        values = [pair[side][name] for pair in known]
        more = sorted((pair[side][name] for pair in perhaps), reverse=bool(side))
        for value in more:
            if values and sign * (value - sum(values) / len(values)) <= 0:
                break
            values.append(value)
        return sum(values) / len(values)

    return {name: (extreme(name, 0), extreme(name, 1)) for name in ("SetP", "SetR", "SetF")}


NEXT = 20
"""Labels whose worth is told."""


def estimates(questions: Sequence[Question], seed: int = 0) -> Estimates | None:
    """What the sampled labels of these questions say of each pipeline (rows of `Question.kept`); None if too few."""
    sample = sample_of(questions, seed)
    chances = chances_of_relevance(questions, sample) if questions else None
    return None if chances is None else estimates_of(questions, sample, chances)


def estimates_of(questions: Sequence[Question], sample: Sample, chances: Sequence[Row]) -> Estimates:
    """The same, of any sample whose probabilities are known and any model of relevance: `chances` by question."""
    known = [
        np.where(np.isnan(question.labels), chance, question.labels)
        for question, chance in zip(questions, chances, strict=True)
    ]
    anything = [any_relevant(told, one.beyond) for told, one in zip(known, questions, strict=True)]
    single: dict[str, tuple[LabelEstimate, ...]] = {}
    against: dict[str, tuple[LabelEstimate, ...]] = {}
    for name, measure in MEASURES.items():
        rows = [
            [measure(kept, told, question.beyond) for kept in question.kept]
            for question, told in zip(questions, known, strict=True)
        ]
        count = range(len(questions[0].kept))
        single[name] = tuple(_mean([row[at] for row in rows], anything, questions, chances, sample) for at in count)
        minus = [[Expansion(row[0].value - one.value, row[0].slopes - one.slopes) for one in row] for row in rows]
        against[name] = tuple(
            _mean([row[at] for row in minus], anything, questions, chances, sample) for at in count[1:]
        )
    return Estimates(sample.size, single, against)


def _mean(
    figures: Sequence[Expansion],
    anything: Sequence[Expansion],
    questions: Sequence[Question],
    chances: Sequence[Row],
    sample: Sample,
) -> LabelEstimate:
    """The sum of a figure over the questions by how many of them hold something relevant, with its interval."""
    totals, seen, expected = [0.0, 0.0], 0.0, 0.0
    stands_for = [1 / chance - 1 for chance in sample.chances]
    offs = []
    for at, question in enumerate(questions):
        taken = sample.taken[at]
        off = np.where(taken, (np.where(taken, question.labels, 0) - chances[at]) * stands_for[at], 0.0)
        offs.append(off)
        for side, part in enumerate((figures[at], anything[at])):
            totals[side] += part.value + float(part.slopes @ off)
    whole = max(totals[1], 1.0)
    value = totals[0] / whole
    for at, off in enumerate(offs):
        slopes = (figures[at].slopes - value * anything[at].slopes) / whole
        left = np.maximum(1 - sample.chances[at], 1e-12)
        seen += float((np.where(off != 0, (off * slopes) ** 2 / left, 0.0)).sum())
        expected += float((stands_for[at] * slopes**2 * chances[at] * (1 - chances[at])).sum())
    return LabelEstimate(value, Z * sqrt(seen + expected))


def place_of(pair: Pair) -> int:
    """The best place at which any pipeline shows the pair, from 1."""
    return min(pair.places.values(), default=1)


def in_order_of_asking(pairs: Sequence[Pair], seed: int = 0) -> list[Pair]:
    """The pairs by their keys, in blocks of 60 within which those of a question stay together, blind as they came."""
    blind = {id(pair): at for at, pair in enumerate(pairs)}
    keyed = sorted(pairs, key=lambda pair: key_of(seed, pair.query.id, pair.chunk.id, place_of(pair)))
    blocks = (keyed[start : start + BLOCK] for start in range(0, len(keyed), BLOCK))
    return [pair for block in blocks for pair in sorted(block, key=lambda pair: blind[id(pair)])]


BLOCK = 60
"""Pairs that are asked together: few enough to know a little of every question soon, enough to read each seldom."""


def questions_of(
    pairs: Iterable[Pair], grades: Mapping[str, Grades], pipelines: Sequence[str], min_grade: int = 1
) -> list[Question]:
    """The pool by question, with what each pipeline shows of it and today's labels."""
    grouped: dict[str, list[Pair]] = {}
    for pair in pairs:
        grouped.setdefault(pair.query.id, []).append(pair)
    questions = []
    for query_id, group in grouped.items():
        given = grades.get(query_id, {})
        known = [[given[chunk.id] for chunk in pair.chunks if chunk.id in given] for pair in group]
        nearest = min((pair.distance for pair in group if pair.distance is not None), default=0.0)
        distances = [0.0 if pair.distance is None else pair.distance for pair in group]
        pooled = {chunk.id for pair in group for chunk in pair.chunks}
        signals = np.column_stack(
            [
                [place_of(pair) for pair in group],
                distances,
                np.array(distances) - nearest,
                [pair.shared for pair in group],
            ]
        )
        questions.append(
            Question(
                query_id,
                tuple(pair.chunk.id for pair in group),
                np.array([[name in pair.places for pair in group] for name in pipelines], dtype=bool),
                signals.astype(np.float64),
                np.array([float(max(row) >= min_grade) if row else np.nan for row in known]),
                sum(grade >= min_grade for chunk, grade in given.items() if chunk not in pooled),
            )
        )
    return questions
