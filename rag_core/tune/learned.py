"""Training of LearnedCut: a logistic regression from labels, and what it is worth on queries it was not trained on.

The model's parameters go into the stage as plain numbers, so a saved pipeline needs no scikit-learn and no pickle. How
the stage ends a list with them is in filters/learned.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.filters.learned import FEATURES, LearnedCut, features, query_length
from rag_core.measure.experiment import start_of
from rag_core.stage import Pipeline
from rag_core.tune.tune import Choice, fixed_k, mean_of, values_of
from rag_core.types import Case, Metric


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
    known = {start.metric for case in cases if (start := start_of(case)).hits} - {Metric.UNKNOWN}
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
        reaching = front(start_of(case))
        hits = [hit for hit in LearnedCut().arrange(reaching.hits, reaching) if not hit.origin]
        looked = [hit for hit in hits if hit.distance is not None][:max_results]
        rows += features([hit.scores["distance"] for hit in looked], query_length(case.query.text))
        flags += [case.grades.get(hit.chunk.id, 0) >= min_grade for hit in looked]
        weights += [max_results / len(looked) for _ in looked]  # a list that a stage in front emptied has no place
    return np.array(rows), flags, weights


def choose_trained(cases: Sequence[Case], pipeline: Pipeline, objective: str = "SetF", *, min_grade: int = 1) -> Choice:
    """The pipeline with its LearnedCut trained on these cases, beside the best fixed k on them, as `tune.choose` gives.

    The mean is that on the training queries: only held-out ones say what the model is worth.
    """
    at = next((at for at, stage in enumerate(pipeline.stages) if isinstance(stage, LearnedCut)), None)
    if at is None:
        raise InputError("the pipeline holds no LearnedCut, expected one to train")
    held, front = pipeline.stages[at].settings(), pipeline.stages[:at]
    trained = train(cases, Pipeline(front), held["max_results"], min_grade)
    stage = replace(trained, min_results=held["min_results"])
    whole = replace(pipeline, stages=(*front, stage, *pipeline.stages[at + 1 :]), label="trained")
    baseline, k, baseline_value = fixed_k(cases, front, objective, None, min_grade)
    value = mean_of(values_of(cases, whole, objective, min_grade))
    return Choice(whole, {"parameters": stage.parameters}, value, baseline, k, baseline_value)
