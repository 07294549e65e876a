"""A promised recall: one knob set so that at most a share α of what is relevant is missed, on average over draws of
queries or, when asked for, with a chance named beforehand; as a pipeline, and what it misses on other queries.

Conformal risk control for the knobs whose settings are nested (a looser one keeps all that a tighter one keeps): k of
TopK, the floor of MinSimilarity, the distance offset. The assumption, which a page must state: the queries to come are
exchangeable with the calibration queries. What the captured list itself lacks was lost in retrieval; no cut of it can
promise that, so shares are of the relevant chunks in the list. A promise is for a knob and an α that were named before
the labels were seen.

Sources: Angelopoulos, Bates, Fisch, Lei and Schuster 2024 (conformal risk control, ICLR); Bates, Angelopoulos, Lei,
Malik and Jordan 2021 (risk-controlling prediction sets, JACM 68: the Hoeffding-Bentkus bound).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from statistics import fmean
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK, cosine_similarity
from rag_core.measure.experiment import kept_ids
from rag_core.measure.significance import mean_interval
from rag_core.stage import Pipeline, Stage
from rag_core.tune.arrays import Floats, whole_units
from rag_core.tune.variants import Captures
from rag_core.types import Candidates, Case, falling

NO_GAP = 1_000_000.0
"""A gap threshold that no list reaches: the offset alone decides."""
ASSUMPTION = "holds {} draws, where queries to come are of the same kind as the calibration queries"
KNOBS = {
    "k": "TopK.k",
    "min_relevance": "MinSimilarity.min_relevance",
    "distance_offset": "AdaptiveGap.distance_offset",
}


@dataclass(frozen=True, slots=True)
class Promise:
    """A knob's setting with its promise, as a pipeline; no setting where so few queries or labels can promise nothing.

    Without a setting only keeping whole lists is safe.
    """

    knob: str
    value: float | None
    alpha: float
    queries: int  # calibration queries with something relevant in their list
    miss_share: float  # what the setting misses on the calibration queries themselves
    judged: float  # share of the chunks of their lists that has a label
    pipeline: Pipeline | None
    kept_mean: float  # over the calibration queries; whole lists without a pipeline
    list_mean: float  # mean length of the lists that come to the knob
    sure: float = 0.0  # the chance over calibrations with which it holds; 0: on average over them

    @property
    def is_judged_enough(self) -> bool:
        """Whether what nobody judged is too little to hold more of the relevant than may be missed.

        That is so where at most alpha of the list has no label, as far as unjudged chunks are no oftener relevant.
        """
        return self.judged >= 1 - self.alpha

    @property
    def assumption(self) -> str:
        """Of what the promise holds."""
        return ASSUMPTION.format(f"in {self.sure:.0%} of" if self.sure else "on average over")

    @property
    def queries_needed(self) -> int:
        """The fewest calibration queries with which this α can be promised at all."""
        if self.sure:
            return ceil(log(1 - self.sure) / log(1 - self.alpha) - 1e-9)
        return max(1, ceil(1 / self.alpha - 1 - 1e-9))


@dataclass(frozen=True, slots=True)
class Realised:
    """What a promised pipeline did on queries that took no part in its calibration."""

    queries: int  # those with something relevant in the list that came to the knob
    miss_share: float
    interval: tuple[float, float] | None  # 95 % over queries
    kept_mean: float
    list_mean: float


def promise(
    cases: Sequence[Case], front: Sequence[Stage], knob: str, alpha: float, min_grade: int = 1, sure: float = 0.0
) -> Promise:
    """The tightest setting of the knob behind the stages in front that misses at most alpha on average over draws.

    With `sure` it does so with that chance over calibrations; of those that hold on average 24 to 42 in 100 miss more.
    Cases without a relevant chunk in their list take no part. InputError for another knob, an alpha outside 0 to 1,
    lists without what the knob reads, or no labelled query.
    """
    if knob not in KNOBS:
        raise InputError(f"knob is {knob[:80]!r}, expected one of {', '.join(KNOBS)}")
    starts = Captures(cases, min_grade).after(tuple(front)).starts
    needed = [needs(start, case, knob, min_grade) for start, case in zip(starts, cases, strict=True)]
    value, miss = least_loose([row for row in needed if len(row)], alpha, sure)
    shares = [
        fmean(hit.chunk.id in case.grades for hit in start.hits)
        for start, case, row in zip(starts, cases, needed, strict=True)
        if len(row)
    ]
    whole = fmean(len(start.hits) for start in starts)
    made = Promise(knob, None, alpha, len(shares), miss, fmean(shares), None, whole, whole, sure)
    if value is None or not made.is_judged_enough:
        return made
    stage: Stage
    if knob == "k":
        stage = TopK(k=int(value))
    elif knob == "min_relevance":
        value = -value
        stage = MinSimilarity(min_relevance=value)
    else:
        stage = AdaptiveGap(NO_GAP, value, min_results=0, max_results=1000)
    pipeline = Pipeline((*front, stage), label=f"promised recall {1 - alpha:.0%}")
    return replace(made, value=value, pipeline=pipeline, kept_mean=fmean(len(kept_ids(stage(one))) for one in starts))


def needs(start: Candidates, case: Case, knob: str, min_grade: int = 1) -> Floats:
    """How loose the knob must be to keep each relevant chunk of a list; similarities come negated."""
    relevant = [
        (place, hit) for place, hit in enumerate(start.hits, 1) if case.grades.get(hit.chunk.id, 0) >= min_grade
    ]
    if knob == "k":
        return np.array([place for place, _ in relevant], dtype=np.float64)
    if knob == "min_relevance":
        similarities = [cosine_similarity(hit, start.metric) for _, hit in relevant]
        if None in similarities:
            raise InputError(f"query {start.query.id} has a chunk without a cosine similarity, expected one on each")
        return -np.array(similarities, dtype=np.float64)
    distances = [hit.distance for hit in falling(start).hits]
    reaching = [distances[place - 1] for place, _ in relevant]
    if None in reaching:
        raise InputError(f"query {start.query.id} has a chunk without a distance, expected one on each")
    nearest = min((distance for distance in distances if distance is not None), default=0.0)
    reached = whole_units(np.array(reaching, dtype=np.float64)) - whole_units([nearest])
    return np.asarray(reached / 1e9, dtype=np.float64)


def least_loose(needed: Sequence[Floats], alpha: float, sure: float = 0.0) -> tuple[float | None, float]:
    """The least value λ with (n · miss share(λ) + 1) / (n + 1) ≤ alpha, and the miss share there; None and 0: no value.

    `needed` has per query what each relevant chunk needs. A loss is at most 1, which is what the added 1 stands for.
    With `sure`, the least at which a true share over alpha is refused with that confidence, and at all looser ones.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}, expected more than 0 and less than 1")
    if not 0 <= sure < 1:
        raise InputError(f"sure is {sure}, expected 0 for an average, or a chance below 1")
    if not needed:
        raise InputError("conformal calibration got no query with a relevant chunk in its list, expected at least one")
    count, together = len(needed), np.concatenate(needed)
    weight = np.concatenate([np.full(len(row), 1 / len(row)) for row in needed])
    upward = np.argsort(together, kind="stable")
    values, last = np.unique(together[upward], return_index=True)
    ends = np.append(last[1:], len(together)) - 1
    missed = np.maximum(1 - np.cumsum(weight[upward])[ends] / count, 0.0)
    if sure:
        good = np.flatnonzero(_chance_of_so_few(missed, count, alpha) <= 1 - sure + 1e-12)
    else:
        good = np.flatnonzero((count * missed + 1) / (count + 1) <= alpha + 1e-12)
    return (float(values[good[0]]), float(missed[good[0]])) if len(good) else (None, 0.0)


def _chance_of_so_few(missed: Floats, count: int, alpha: float) -> Floats:
    """The chance of so small a mean miss share where the true one is alpha: the smaller of Hoeffding's and Bentkus'."""
    from scipy.special import bdtr, rel_entr

    share = np.minimum(missed, alpha)
    hoeffding = np.exp(-count * (rel_entr(share, alpha) + rel_entr(1 - share, 1 - alpha)))
    bentkus = np.e * bdtr(np.ceil(count * missed - 1e-9), count, alpha)
    return np.asarray(np.minimum(hoeffding, bentkus), dtype=np.float64)


def promises(
    cases: Sequence[Case], front: Sequence[Stage], alpha: float, min_grade: int = 1
) -> dict[str, Promise | str]:
    """Every knob at the same alpha, by name; where its lists cannot be used, the sentence that says why."""
    found: dict[str, Promise | str] = {}
    for knob in KNOBS:
        try:
            found[knob] = promise(cases, front, knob, alpha, min_grade)
        except InputError as error:
            found[knob] = str(error)
    return found


def realised(cases: Sequence[Case], front: Sequence[Stage], made: Promise, min_grade: int = 1) -> Realised:
    """The share of the relevant chunks in the list that the knob drops, mean over queries that hold any.

    InputError without a pipeline, or where no query's list holds a relevant chunk.
    """
    if made.pipeline is None:
        raise InputError(f"there is no setting to judge, {too_few(made)}")
    starts = Captures(cases, min_grade).after(tuple(front)).starts
    ends = [made.pipeline.stages[-1](start) for start in starts]
    shares = []
    for start, end, case in zip(starts, ends, cases, strict=True):
        relevant = {hit.chunk.id for hit in start.hits if case.grades.get(hit.chunk.id, 0) >= min_grade}
        if relevant:
            shares.append(len(relevant - set(kept_ids(end))) / len(relevant))
    if not shares:
        raise InputError(f"none of {len(cases)} held-out lists holds a relevant chunk, expected at least one")
    low, high, _ = mean_interval(shares)
    interval = None if low is None or high is None else (low, high)
    kept, whole = fmean(len(kept_ids(end)) for end in ends), fmean(len(start.hits) for start in starts)
    return Realised(len(shares), fmean(shares), interval, kept, whole)


def too_few(made: Promise) -> str:
    """Why there is no setting, in words."""
    if not made.is_judged_enough:
        return (
            f"{made.judged:.0%} of the lists' chunks have a label, expected {1 - made.alpha:.0%} or more: what "
            "nobody judged may be relevant and is missed unseen"
        )
    return (
        f"{made.queries} calibration queries cannot promise a missed share of {made.alpha:g}, "
        f"expected at least {made.queries_needed} and lists that hold what they miss"
    )


def sentence(made: Promise, held_out: Realised | None = None, looks: int = 0) -> str:
    """The promise in plain words, with its assumption; what became of it where it was looked at."""
    if made.pipeline is None:
        return f"No setting of {KNOBS[made.knob]} can be promised: {too_few(made)}. Only keeping whole lists is safe."
    value = f"{made.value:.0f}" if made.knob == "k" else f"{made.value:.4f}"
    often = f"with a chance of {made.sure:.0%}" if made.sure else "on average"
    text = (
        f"{KNOBS[made.knob]} at {value} misses {often} at most {made.alpha:.1%} of the labelled relevant "
        f"chunks in the list, {made.judged:.0%} of which is judged. This {made.assumption}. "
        f"Calibrated on {made.queries} queries, where it misses {made.miss_share:.1%} "
        f"and keeps {made.kept_mean:.1f} of {made.list_mean:.1f} chunks."
    )
    if held_out is None:
        return text
    interval = "" if held_out.interval is None else f" [{held_out.interval[0]:.1%}, {held_out.interval[1]:.1%}]"
    return (
        f"{text} On {held_out.queries} held-out queries it missed {held_out.miss_share:.1%}{interval} and kept "
        f"{held_out.kept_mean:.1f} of {held_out.list_mean:.1f}. "
        f"Looked at the held-out set {looks} time{'s' if looks != 1 else ''}."
    )


def promise_json(made: Promise) -> dict[str, Any]:
    """The calibrated side as plain JSON values."""
    return {
        "knob": made.knob,
        "setting": KNOBS[made.knob],
        "alpha": made.alpha,
        "value": made.value,
        "queries_needed": made.queries_needed,
        "sure": made.sure,
        "assumption": made.assumption,
        "calibration": {
            "queries": made.queries,
            "judged": made.judged,
            "miss_share": made.miss_share,
            "kept_mean": made.kept_mean,
            "list_mean": made.list_mean,
        },
    }
