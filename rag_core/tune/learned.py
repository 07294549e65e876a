"""Training of LearnedCut and LearnedFilter: logistic regressions from labels.

The models' parameters go into the stages as plain numbers, so a saved pipeline needs no scikit-learn and no pickle. How
a stage decides with them is in filters/learned.py and filters/learned_filter.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.filters.chances import SIGNALS
from rag_core.filters.learned import FEATURES, LearnedCut, features, query_length
from rag_core.filters.learned_filter import LearnedFilter, ordered_by, prior, signals_of
from rag_core.measure.experiment import start_of
from rag_core.stage import Pipeline
from rag_core.tune.arrays import Floats
from rag_core.tune.plane import fixed_k
from rag_core.tune.tune import Choice, mean_of, values_of
from rag_core.types import Case, Metric, falling

FEWEST_LABELS = 100
"""With fewer labelled chunks LearnedFilter is not trained: the shipped prior stands in."""
OF_A_LIST = 10
"""As how many labels a question counts whose labels are a list of what is relevant: of the others is known, too."""
AGAINST = ("score behind the first", "score", "rank", "BM25 rank", "both ranks", "letters rank")
FOR = (
    "BM25", "BM25 above the list", "words of the question", "rare words of the question", "words in the title",
    "title in the question", "numbers of the question", "words of the best", "letters of the question",
)  # fmt: skip
ENDS: dict[str, tuple[float | None, float | None]] = {
    **dict.fromkeys(AGAINST, (None, 0.0)),
    **dict.fromkeys(FOR, (0.0, None)),
}
"""The least and greatest weight of signals that speak for a chunk, or against it, the more of them there is."""
STRENGTH = 5.0
"""How strongly the prior holds against labels: the ridge penalty on a weight's way from it."""


def train(
    cases: Sequence[Case],
    front: Pipeline | None = None,
    max_results: int = 50,
    min_grade: int = 1,
    strength: float = 1.0,
) -> LearnedCut:
    """The stage trained on the labels of these cases, behind the stages in front.

    Every query weighs the same, however long its list; unjudged chunks count as irrelevant. `strength` is that of the
    ridge penalty. InputError where the labels are all of one kind.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows, flags, weights = _examples(cases, front or Pipeline(), max_results, min_grade)
    if len(set(flags)) < 2:
        raise InputError(f"training got {len(flags)} labelled places all of one kind, expected relevant and irrelevant")
    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(C=1 / strength, max_iter=2000).fit(scaler.transform(rows), flags, weights)
    parameters: dict[str, Any] = {
        "features": list(FEATURES),
        "metric": str(_metric(cases)),
        "mean": [float(one) for one in scaler.mean_],
        "scale": [float(one) for one in scaler.scale_],
        "weights": [float(one) for one in model.coef_[0]],
        "intercept": float(model.intercept_[0]),
    }
    return LearnedCut(parameters, max_results=max_results)


def _metric(cases: Sequence[Case]) -> Metric:
    """The one metric of all lists; unknown where they do not say. An InputError where they differ."""
    known = {start.metric for case in cases if (start := falling(start_of(case))).hits} - {Metric.UNKNOWN}
    if len(known) > 1:
        raise InputError(f"training got lists of {' and '.join(sorted(known))} distances, expected one metric")
    return next(iter(known), Metric.UNKNOWN)


def _examples(
    cases: Sequence[Case], front: Pipeline, max_results: int, min_grade: int
) -> tuple[Any, list[bool], list[float]]:
    """A row, a label and a weight for every place of every list."""
    rows: list[tuple[float, ...]] = []
    flags: list[bool] = []
    weights: list[float] = []
    for case in cases:
        reaching = falling(front(start_of(case)))
        hits = [hit for hit in LearnedCut().arrange(reaching.hits, reaching) if not hit.origin]
        looked = [hit for hit in hits if hit.distance is not None][:max_results]
        rows += features([hit.scores["distance"] for hit in looked], query_length(case.query.text))
        flags += [case.grades.get(hit.chunk.id, 0) >= min_grade for hit in looked]
        weights += [max_results / len(looked) for _ in looked]  # a list that a stage in front emptied has no place
    return np.array(rows), flags, weights


def train_filter(
    cases: Sequence[Case],
    front: Pipeline | None = None,
    stage: LearnedFilter | None = None,
    min_grade: int = 1,
    fewest: int = FEWEST_LABELS,
) -> LearnedFilter:
    """The stage with the shipped prior moved by the labels of these cases, behind the stages in front.

    The most probable weights under a normal prior around the shipped ones. InputError with fewer labelled chunks.
    """
    stage = stage or LearnedFilter()
    rows, flags = taught(cases, front or Pipeline(), stage.max_results, min_grade)
    labels = labels_that_teach(cases, min_grade)
    if labels < fewest or not len(flags):
        raise InputError(
            f"training got {labels} labelled chunks, expected at least {fewest}: until then the shipped prior stands in"
        )
    return replace(stage, parameters={**moved(prior(), rows, flags), "labels": labels})


def labels_that_teach(cases: Sequence[Case], min_grade: int = 1) -> int:
    """How many labels these questions teach with; unlabelled questions teach nothing."""
    return sum(max(len(case.grades), OF_A_LIST if _names_all(case, min_grade) else 0) for case in cases if case.grades)


def _names_all(case: Case, min_grade: int) -> bool:
    """Whether a question's labels are a list of what is relevant: hardly any is of an irrelevant chunk."""
    relevant = sum(grade >= min_grade for grade in case.grades.values())
    return 3 * relevant > 2 * len(case.grades)


def taught(cases: Sequence[Case], front: Pipeline, max_results: int, min_grade: int) -> tuple[Floats, Floats]:
    """Signals (n, s) and labels (n,) of the chunks that teach, list after list; unjudged ones count as irrelevant.

    Where a third or more of a question's labels are of irrelevant chunks, its list teaches down to the deepest labelled
    one; else its labels are a list of what is relevant, and all of it teaches.
    """
    rows: list[list[float]] = []
    flags: list[bool] = []
    for case in cases:
        looked = [hit for hit in ordered_by(front(start_of(case))).hits if not hit.origin][:max_results]
        relevant = {id_ for id_, grade in case.grades.items() if grade >= min_grade}
        labelled = [place for place, hit in enumerate(looked, 1) if hit.chunk.id in case.grades]
        deep = len(looked) if _names_all(case, min_grade) else max(labelled, default=0)
        rows += signals_of(case.query.text, looked)[:deep]
        flags += [hit.chunk.id in relevant for hit in looked[:deep]]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(SIGNALS)), np.array(flags, dtype=np.float64)


def moved(
    start: Mapping[str, Any], rows: Floats, flags: Floats, weights: Floats | None = None, strength: float = STRENGTH
) -> dict[str, Any]:
    """A model moved by labelled rows: the least logistic loss plus half `strength` times the squared way of a weight.

    The intercept, which says how many of the chunks are relevant, moves freely. A signal that can only speak for a
    chunk never gets a weight against it, nor the other way round: of two that go together one would else correct the
    other, and of texts that are alike the one that says more would be dropped. Numbers have six digits.
    """
    from scipy.optimize import minimize  # a fifth of a second that only training waits for

    model = np.array(list(start["signals"].values()))
    scaled = np.c_[(rows - model[:, 0]) / model[:, 1], np.ones(len(rows))]
    before, penalty = np.append(model[:, 2], start["intercept"]), np.append(np.full(len(model), strength), 1e-3)
    each = np.ones(len(rows)) if weights is None else weights

    def loss(values: Floats) -> tuple[float, Floats]:
        logits, away = scaled @ values, values - before
        chances = 1 / (1 + np.exp(-np.clip(logits, -700, 700)))
        value = each @ (np.logaddexp(0, logits) - flags * logits) + penalty @ away**2 / 2
        return float(value), scaled.T @ (each * (chances - flags)) + penalty * away

    ends = [ENDS.get(name, (None, None)) for name in start["signals"]]
    after = minimize(
        loss, before, jac=True, method="L-BFGS-B", bounds=[*ends, (None, None)], options={"maxiter": 500}
    ).x
    signals = {
        name: [float(f"{mean:.6g}"), float(f"{scale:.6g}"), float(f"{weight:.6g}")]
        for name, (mean, scale, _), weight in zip(start["signals"], model, after[:-1], strict=True)
    }
    return {"labels": start["labels"], "intercept": float(f"{after[-1]:.6g}"), "signals": signals}


def choose_trained(cases: Sequence[Case], pipeline: Pipeline, objective: str = "SetF", *, min_grade: int = 1) -> Choice:
    """The pipeline with its trained stage trained on these cases, beside the best fixed k, as `tune.choose` gives.

    The mean is that on the training queries: only held-out ones say what the model is worth.
    """
    at = next((at for at, stage in enumerate(pipeline.stages) if stage.trained), None)
    if at is None:
        raise InputError("the pipeline holds no stage that is trained, expected a LearnedCut or a LearnedFilter")
    held, front = pipeline.stages[at], pipeline.stages[:at]
    stage: LearnedCut | LearnedFilter
    if isinstance(held, LearnedFilter):
        stage = train_filter(cases, Pipeline(front), held, min_grade)
    else:
        kept = held.settings()
        stage = replace(train(cases, Pipeline(front), kept["max_results"], min_grade), min_results=kept["min_results"])
    whole = replace(pipeline, stages=(*front, stage, *pipeline.stages[at + 1 :]), label="trained")
    baseline, k, baseline_value = fixed_k(cases, front, objective, None, min_grade)
    value = mean_of(values_of(cases, whole, objective, min_grade))
    return Choice(whole, {"parameters": stage.parameters}, value, baseline, k, baseline_value)
