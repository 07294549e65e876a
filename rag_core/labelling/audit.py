"""Which labels to look at again: those that their neighbours or their distance speak against, and a blind sample.

A finding is a suspicion, not a correction: it says where to look first. The suspicion of a label is one minus how
likely that label is, by models that never saw the query: folds of queries are left out in turn, and a logistic curve
and boosted trees are fitted to the labels of the others over the features below. With too few labels for
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_core.labelling.pooling import NEAR, near_duplicates
from rag_core.text import words
from rag_core.types import Case

Floats = NDArray[np.float64]
SHARPNESS = 8.0  # of the vote of similar chunks: e⁸ between those that say the same and those that share nothing
NEIGHBOURS = 5
MOST_TOGETHER = 3000  # chunks of a query, or queries of a chunk, that are compared with each other
SMALL = 1e-9


@dataclass(frozen=True)
class LabelEvidence:
    """The labels of several queries in parallel: texts, distances (NaN: unknown), and whether each says relevant."""

    queries: Sequence[str]  # the query's id, per label
    chunks: Sequence[str]
    asked: Sequence[str]  # the query's text, '' if not known
    texts: Sequence[str]
    distances: Floats
    relevant: Floats


def features(given: LabelEvidence) -> Floats:
    """(labels, features), each column in units of its spread; what is not known is 0."""
    of_texts, of_queries = _weights(given)
    by_query = _places(given.queries)
    found: Floats = np.zeros((len(given.queries), 13))
    for places in by_query:
        alike = _similarities(of_texts[places])
        found[places, :2] = _position(given.distances[places])
        found[places, 2:5] = _shared(of_texts[places], of_queries[places[0]])
        found[places, 5:10] = _of_neighbours(alike, given.relevant[places])
    for places in _places(given.chunks):
        found[places, 10:] = _of_other_queries(_similarities(of_queries[places]), given.relevant[places])
    spread = found.std(axis=0)
    return np.asarray((found - found.mean(axis=0)) / np.where(spread > SMALL, spread, 1.0))


def _weights(given: LabelEvidence) -> tuple[Any, Any]:
    """tf-idf rows of the chunks' texts and of their queries' texts, one per label."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer(sublinear_tf=True, analyzer=words)
    distinct = sorted({*given.texts, *given.asked})
    if not any(words(text) for text in distinct):
        distinct = [*distinct, "nothing"]
    place = {text: at for at, text in enumerate(distinct)}
    rows = made.fit_transform(distinct).tocsr()
    return rows[[place[text] for text in given.texts]], rows[[place[text] for text in given.asked]]


def _places(names: Sequence[str]) -> list[list[int]]:
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        found.setdefault(name, []).append(at)
    return list(found.values())


def _similarities(rows: Any) -> Floats:
    """Cosines of every two rows; nothing is like anything where there are too many."""
    count = rows.shape[0]
    return np.asarray((rows @ rows.T).toarray()) if count <= MOST_TOGETHER else np.zeros((count, count), dtype=float)


def _position(distances: Floats) -> Floats:
    """Distance in units of the query's own spread, and the share of its labelled chunks that are nearer."""
    known = ~np.isnan(distances)
    found: Floats = np.zeros((len(distances), 2))
    if known.any():
        here = distances[known]
        spread = here.std()
        found[known, 0] = (here - here.mean()) / spread if spread > 0 else 0.0
        found[known, 1] = np.argsort(np.argsort(here)) / len(here)
    return found


def _shared(texts: Any, query: Any) -> Floats:
    """How much the chunk's words are the query's: in the query's units, of the best, and as it is."""
    cosine = np.asarray((texts @ query.T).todense()).ravel()
    units = (cosine - cosine.mean()) / (cosine.std() + SMALL)
    return np.column_stack([units, cosine / (cosine.max() + SMALL), cosine])


def _of_neighbours(alike: Floats, relevant: Floats) -> Floats:
    """How the query's other chunks that are like this one are labelled, this one's own label left out."""
    count = len(relevant)
    if count < 2:
        return np.zeros((count, 5))
    off = ~np.eye(count, dtype=bool)
    votes = np.exp(SHARPNESS * alike) * off
    nearest = np.argsort(np.where(off, -alike, 9.0), axis=1, kind="stable")[:, : min(NEIGHBOURS, count - 1)]
    weight = np.take_along_axis(alike, nearest, axis=1)
    best_for = (alike * off * relevant).max(axis=1)
    best_against = (alike * off * (1 - relevant)).max(axis=1)
    # The share of the others alone would give a label away where queries have equally many relevant chunks.
    others = (relevant.sum() - relevant) / (count - 1)
    return np.column_stack(
        [
            (votes @ relevant) / votes.sum(axis=1) - others,
            (weight * relevant[nearest]).sum(axis=1) / (weight.sum(axis=1) + SMALL),
            best_for,
            best_against,
            best_for - best_against,
        ]
    )


def _of_other_queries(alike: Floats, relevant: Floats) -> Floats:
    """How the same chunk is labelled for other queries, the more alike the query the heavier."""
    weight = alike**2 * ~np.eye(len(relevant), dtype=bool)
    said, total = weight @ relevant, weight.sum(axis=1)
    return np.column_stack([said / (total + 0.02), said, np.full(len(relevant), np.log(len(relevant)))])


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


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """One label with what speaks for or against it. `distance` is None where no list holds the chunk."""

    query_id: str
    chunk_id: str
    grade: int
    text: str = ""
    distance: float | None = None
    query: str = ""  # the query's text


@dataclass(frozen=True, slots=True)
class LabelFinding:
    """A label to look at again: why, and how suspect it is, from 0 to 1; from 1 to 2 where a near-duplicate differs."""

    label: LabelledPair
    kind: str
    suspicion: float
    against: str = ""  # the near-duplicate's chunk id

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        label = {name: getattr(self.label, name) for name in ("query_id", "chunk_id", "grade")}
        return {**label, "kind": self.kind, "suspicion": self.suspicion, "against": self.against}

    def to_text(self) -> str:
        """One line."""
        label = f"{self.label.query_id}  {self.label.chunk_id}  {self.label.grade}"
        return f"{label}  {self.kind}  {self.suspicion:.3f}  {self.against}"


def audit(labels: Sequence[LabelledPair], min_grade: int = 1, near: float = NEAR) -> list[LabelFinding]:
    """Every label with a distance or a text to go by, or whose near-duplicate disagrees, the most suspect first.

    The last answers are kept: the same labels are not fitted twice.
    """
    return list(_audited(tuple(labels), min_grade, near))


@lru_cache(maxsize=2)
def _audited(labels: tuple[LabelledPair, ...], min_grade: int, near: float) -> tuple[LabelFinding, ...]:
    fitted = _learned(labels, min_grade) if _enough(labels, min_grade) else None
    chances = fitted[0] if fitted else _chances(labels, min_grade)
    twins = _contradicted(labels, min_grade, near)
    found = []
    for place, label in enumerate(labels):
        chance = chances[place]
        doubt = 0.0 if chance is None else 1 - chance
        if place in twins:
            found.append(LabelFinding(label, TWINS, 1 + doubt, twins[place]))
        elif chance is not None:
            found.append(LabelFinding(label, _kind(label, min_grade, fitted[1][place] if fitted else None), doubt))
    return tuple(sorted(found, key=lambda one: -one.suspicion))


def blind_sample(labels: Sequence[LabelledPair], count: int, seed: int = 0) -> list[LabelledPair]:
    """Labels drawn at random, to be given again without seeing the first: the flip rate is the labels' own noise."""
    return random.Random(f"audit {seed}").sample(list(labels), min(count, len(labels)))


def labelled(cases: Iterable[Case]) -> list[LabelledPair]:
    """Every label of a chunk in the cases' lists, with its distance and texts."""
    return [
        LabelledPair(
            case.query.id, hit.chunk.id, case.grades[hit.chunk.id], hit.chunk.text, hit.distance, case.query.text
        )
        for case in cases
        for hit in (case.candidates.hits if case.candidates else ())
        if hit.chunk.id in case.grades
    ]


def _kind(label: LabelledPair, min_grade: int, height: float | None) -> str:
    """What speaks against a label: its distance, or, where that agrees with it, its like."""
    if label.grade >= min_grade:
        return FAR if height is None or height > 0 else UNLIKE
    if label.distance is not None and label.distance <= ABOUT_ZERO:
        return SAME
    return CLOSE if height is None or height < 0 else LIKE


def _enough(labels: Sequence[LabelledPair], min_grade: int) -> bool:
    relevant = sum(label.grade >= min_grade for label in labels)
    queries = len({label.query_id for label in labels})
    return (
        len(labels) >= ENOUGH_LABELS
        and queries >= ENOUGH_QUERIES
        and min(relevant, len(labels) - relevant) >= ENOUGH_OF_EACH
    )


def _learned(labels: Sequence[LabelledPair], min_grade: int) -> tuple[list[float | None], Floats]:
    """How likely each label is by models fitted without its query, and its distance in its query's spread."""
    relevant = np.array([label.grade >= min_grade for label in labels], dtype=float)
    queries = [label.query_id for label in labels]
    distances = np.array([np.nan if label.distance is None else label.distance for label in labels])
    table = features(
        LabelEvidence(
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


def _contradicted(labels: Sequence[LabelledPair], min_grade: int, near: float) -> dict[int, str]:
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


def _by_query(labels: Iterable[LabelledPair]) -> list[list[int]]:
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label.query_id, []).append(place)
    return list(places.values())


def _chances(labels: Sequence[LabelledPair], min_grade: int) -> list[float | None]:
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
