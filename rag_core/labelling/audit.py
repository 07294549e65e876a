"""Which labels to look at again: those that their neighbours or their distance speak against, and a blind sample.

A finding is a suspicion, not a correction: it says where to look first. The suspicion of a label is one minus how
likely that label is, by models that never saw the query: folds of queries are left out in turn, and a logistic curve
and boosted trees are fitted to the labels of the others over the features of audit_features.py. With too few labels for
that, it is a logistic curve over the distance within the query. A label that a near-duplicate contradicts comes before
all others. Looking again is the queue's work.

Sources: Northcutt, Jiang and Chuang 2021 (Confident Learning: out-of-fold probabilities find label errors); van
Rijsbergen 1979 (the cluster hypothesis: what is alike is relevant to the same requests).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from rag_core.labelling.audit_features import Evidence, features
from rag_core.labelling.pooling import NEAR, near_duplicates
from rag_core.types import Case

TWINS = "near-duplicates with different labels"
FAR = "relevant, far away"
CLOSE = "irrelevant, among the nearest"
UNLIKE = "relevant, its like is not"
LIKE = "irrelevant, its like is relevant"
SAME = "irrelevant, at distance about 0"
ABOUT_ZERO = 0.02  # cosine distance up to which the chunk says the same as the query
STEPS = 25  # of Newton's method; the curve has two parameters
RIDGE = 1e-3  # keeps the curve finite where distance separates the labels without fault
FOLDS = 5
ENOUGH_LABELS, ENOUGH_QUERIES, ENOUGH_OF_EACH = 400, 20, 60
"""From so many labels, queries, and labels of either side on, more than the distance is fitted."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labelled:
    """One label with what speaks for or against it. `distance` is None where no list holds the chunk."""

    query_id: str
    chunk_id: str
    grade: int
    text: str = ""
    distance: float | None = None
    query: str = ""  # the query's text


@dataclass(frozen=True, slots=True)
class Finding:
    """A label to look at again: why, and how suspect it is, from 0 to 1; from 1 to 2 where a near-duplicate differs."""

    label: Labelled
    kind: str
    suspicion: float
    against: str = ""  # the near-duplicate's chunk id


def audit(labels: Sequence[Labelled], min_grade: int = 1, near: float = NEAR) -> list[Finding]:
    """Every label with a distance or a text to go by, or whose near-duplicate disagrees, the most suspect first.

    The last answers are kept: the same labels are not fitted twice.
    """
    return list(_audited(tuple(labels), min_grade, near))


@lru_cache(maxsize=2)
def _audited(labels: tuple[Labelled, ...], min_grade: int, near: float) -> tuple[Finding, ...]:
    fitted = _learned(labels, min_grade) if _enough(labels, min_grade) else None
    chances = fitted[0] if fitted else _chances(labels, min_grade)
    twins = _contradicted(labels, min_grade, near)
    found = []
    for place, label in enumerate(labels):
        chance = chances[place]
        doubt = 0.0 if chance is None else 1 - chance
        if place in twins:
            found.append(Finding(label, TWINS, 1 + doubt, twins[place]))
        elif chance is not None:
            found.append(Finding(label, _kind(label, min_grade, fitted[1][place] if fitted else None), doubt))
    return tuple(sorted(found, key=lambda one: -one.suspicion))


def blind_sample(labels: Sequence[Labelled], count: int, seed: int = 0) -> list[Labelled]:
    """Labels drawn at random, to be given again without seeing the first: the flip rate is the labels' own noise."""
    return random.Random(f"audit {seed}").sample(list(labels), min(count, len(labels)))


def labelled(cases: Iterable[Case]) -> list[Labelled]:
    """Every label of a chunk in the cases' lists, with its distance and texts."""
    return [
        Labelled(case.query.id, hit.chunk.id, case.grades[hit.chunk.id], hit.chunk.text, hit.distance, case.query.text)
        for case in cases
        for hit in (case.candidates.hits if case.candidates else ())
        if hit.chunk.id in case.grades
    ]


def _kind(label: Labelled, min_grade: int, height: float | None) -> str:
    """What speaks against a label: its distance, or, where that agrees with it, its like."""
    if label.grade >= min_grade:
        return FAR if height is None or height > 0 else UNLIKE
    if label.distance is not None and label.distance <= ABOUT_ZERO:
        return SAME
    return CLOSE if height is None or height < 0 else LIKE


def _enough(labels: Sequence[Labelled], min_grade: int) -> bool:
    relevant = sum(label.grade >= min_grade for label in labels)
    queries = len({label.query_id for label in labels})
    return (
        len(labels) >= ENOUGH_LABELS
        and queries >= ENOUGH_QUERIES
        and min(relevant, len(labels) - relevant) >= ENOUGH_OF_EACH
    )


def _learned(labels: Sequence[Labelled], min_grade: int) -> tuple[list[float | None], Floats]:
    """How likely each label is by models fitted without its query, and its distance in its query's spread."""
    relevant = np.array([label.grade >= min_grade for label in labels], dtype=float)
    queries = [label.query_id for label in labels]
    distances = np.array([np.nan if label.distance is None else label.distance for label in labels])
    table = features(
        Evidence(
            queries,
            [label.chunk_id for label in labels],
            [label.query for label in labels],
            [label.text for label in labels],
            distances,
            relevant,
        )
    )
    fold = np.array([int(blake2b(query.encode(), digest_size=4).hexdigest(), 16) % FOLDS for query in queries])
    likely = np.full(len(labels), relevant.mean())
    for held in range(FOLDS):
        rest, here = fold != held, fold == held
        if here.any() and len(set(relevant[rest])) == 2:
            likely[here] = _fitted_on(table[rest], relevant[rest], table[here])
    chances = np.where(relevant > 0, likely, 1 - likely)
    known = ~np.isnan(distances)
    return [
        float(one) if there or label.text else None for one, there, label in zip(chances, known, labels, strict=True)
    ], table[:, 0]


def _fitted_on(table: Floats, relevant: Floats, wanted: Floats) -> Floats:
    """The mean chance of a logistic curve and of boosted trees, each good at what the other misses."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # late: it loads for a second
    from sklearn.linear_model import LogisticRegression

    trees = HistGradientBoostingClassifier(
        max_iter=80, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=40, l2_regularization=1.0, random_state=0,
        early_stopping=False,
    )  # fmt: skip
    curve = LogisticRegression(max_iter=500)
    threads = import_module("threadpoolctl").threadpool_limits  # untyped
    with threads(1):  # several threads wait for each other where the processors are busy
        chances = [model.fit(table, relevant).predict_proba(wanted)[:, 1] for model in (curve, trees)]
    return np.asarray(sum(chances) / len(chances), dtype=float)


def _contradicted(labels: Sequence[Labelled], min_grade: int, near: float) -> dict[int, str]:
    """Place of a label → the near-duplicate of the same query that is labelled the other way."""
    found: dict[int, str] = {}
    for places in _by_query(labels):
        for group in near_duplicates([labels[place].text for place in places], near):
            members = [places[one] for one in group]
            for place in members:
                other = [
                    one for one in members if (labels[one].grade >= min_grade) != (labels[place].grade >= min_grade)
                ]
                if other:
                    found[place] = labels[other[0]].chunk_id
    return found


def _by_query(labels: Iterable[Labelled]) -> list[list[int]]:
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label.query_id, []).append(place)
    return list(places.values())


def _chances(labels: Sequence[Labelled], min_grade: int) -> list[float | None]:
    """How likely each label is at its distance, None where the distance is not known."""
    chances: list[float | None] = [None] * len(labels)
    known, heights = [], []
    for places in _by_query(labels):
        here = [place for place in places if labels[place].distance is not None]
        known += here
        heights += list(_standardised(np.array([labels[place].distance for place in here], dtype=float)))
    if not known:
        return chances
    relevant = np.array([labels[place].grade >= min_grade for place in known], dtype=float)
    likely = _fitted(np.array(heights), relevant)
    for place, is_relevant, chance in zip(known, relevant, likely, strict=True):
        chances[place] = float(chance if is_relevant else 1 - chance)
    return chances


def _standardised(distances: Floats) -> Floats:
    """Distances of one query in units of their spread around their mean: queries differ in how near "near" is."""
    spread = distances.std() if len(distances) else 0.0
    return (distances - distances.mean()) / spread if spread > 0 else np.zeros(len(distances))


def _fitted(heights: Floats, relevant: Floats) -> Floats:
    """Chance of being relevant by a logistic curve over `heights`, fitted by Newton's method with a small ridge."""
    design = np.column_stack([np.ones(len(heights)), heights])
    weights = np.zeros(2)
    for _ in range(STEPS):
        chance = _logistic(design @ weights)
        gradient = design.T @ (relevant - chance) - RIDGE * weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + RIDGE * np.eye(2)
        weights = weights + np.linalg.solve(curvature, gradient)
    return _logistic(design @ weights)


def _logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))), dtype=float)
