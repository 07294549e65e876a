"""Which labels to look at again: those that their neighbours or their distance speak against, and a blind sample.

A finding is a suspicion, not a correction: it says where to look first. The suspicion of a label is one minus how
likely that label is at that distance, by a logistic curve fitted to all labels over the distance within the query; a
label that a near-duplicate contradicts comes before all others. Looking again is the queue's work.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_core.evaluate.pooling import NEAR, near_duplicates

TWINS = "near-duplicates with different labels"
FAR = "relevant, far away"
CLOSE = "irrelevant, among the nearest"
SAME = "irrelevant, at distance about 0"
ABOUT_ZERO = 0.02  # cosine distance up to which the chunk says the same as the query
STEPS = 25  # of Newton's method; the curve has two parameters
RIDGE = 1e-3  # keeps the curve finite where distance separates the labels without fault
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labelled:
    """One label with what speaks for or against it. `distance` is None where no list holds the chunk."""

    query_id: str
    chunk_id: str
    grade: int
    text: str = ""
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A label to look at again: why, and how suspect it is, from 0 to 1; from 1 to 2 where a near-duplicate differs."""

    label: Labelled
    kind: str
    suspicion: float
    against: str = ""  # the near-duplicate's chunk id


def audit(labels: Sequence[Labelled], min_grade: int = 1, near: float = NEAR) -> list[Finding]:
    """Every label whose distance is known or whose near-duplicate disagrees, the most suspect first."""
    chances = _chances(labels, min_grade)
    twins = _contradicted(labels, min_grade, near)
    found = []
    for place, label in enumerate(labels):
        chance = chances[place]
        doubt = 0.0 if chance is None else 1 - chance
        if place in twins:
            found.append(Finding(label, TWINS, 1 + doubt, twins[place]))
        elif chance is not None:
            found.append(Finding(label, _kind(label, min_grade), doubt))
    return sorted(found, key=lambda one: -one.suspicion)


def blind_sample(labels: Sequence[Labelled], count: int, seed: int = 0) -> list[Labelled]:
    """Labels drawn at random, to be given again without seeing the first: the flip rate is the labels' own noise."""
    return random.Random(f"audit {seed}").sample(list(labels), min(count, len(labels)))


def _kind(label: Labelled, min_grade: int) -> str:
    if label.grade >= min_grade:
        return FAR
    return SAME if label.distance is not None and label.distance <= ABOUT_ZERO else CLOSE


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
