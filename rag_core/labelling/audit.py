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

from collections.abc import Collection, Hashable, Iterable, Sequence
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
Places = list[list[int]]
"""Of labels, those of one query or of one chunk together."""
TWINS = "near-duplicates with different labels"
FAR = "relevant, far away"
CLOSE = "irrelevant, among the nearest"
UNLIKE = "relevant, its like is not"
LIKE = "irrelevant, its like is relevant"
SAME = "irrelevant, at distance about 0"
ABOUT_ZERO = 0.02  # cosine distance up to which the chunk says the same as the query
WEAK_RIDGE = 1000.0  # keeps the curve finite where distance separates the labels without fault
FOLDS = 5
ENOUGH_LABELS, ENOUGH_QUERIES, ENOUGH_OF_EACH = 400, 20, 60
"""From so many labels, queries, and labels of either side on, more than the distance is fitted."""
SHARPNESS = 8.0  # of the vote of similar chunks: e⁸ between those that say the same and those that share nothing
NEIGHBOURS = 5
MOST_TOGETHER = 3000  # chunks of a query, or queries of a chunk, that are compared with each other
SMALL = 1e-9


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
    relevant = np.array([label.grade >= min_grade for label in labels], dtype=np.float64)
    distances = np.array([np.nan if label.distance is None else label.distance for label in labels])
    by_query = _places([label.query_id for label in labels])
    heights = np.zeros(len(labels))  # distances in units of their query's own spread: queries differ in what is near
    for places in by_query:
        heights[places] = _in_own_spread(distances[places])
    known = ~np.isnan(distances)
    enough = len(labels) >= ENOUGH_LABELS and len(by_query) >= ENOUGH_QUERIES
    learned = enough and min(relevant.sum(), (1 - relevant).sum()) >= ENOUGH_OF_EACH
    if learned:
        likely = _out_of_fold(labels, _features(labels, relevant, distances, heights, by_query), relevant)
        known |= np.array([bool(label.text) for label in labels])
    else:
        likely = np.full(len(labels), relevant[known].mean() if known.any() else 0.0)
        if len(set(relevant[known])) == 2:
            likely[known] = _chances(heights[known, None], relevant[known], heights[known, None], trees=False)
    doubts = np.where(relevant > 0, 1 - likely, likely)
    twins = _contradicted(labels, relevant, by_query, near)
    findings = []
    for place, label in enumerate(labels):
        doubt = float(doubts[place]) if known[place] else 0.0
        if place in twins:
            findings.append(LabelFinding(label, TWINS, 1 + doubt, twins[place]))
        elif known[place]:
            findings.append(LabelFinding(label, _kind(label, min_grade, heights[place] if learned else None), doubt))
    return tuple(sorted(findings, key=lambda finding: -finding.suspicion))


def blind_sample(labels: Sequence[LabelledPair], count: int, seed: int = 0) -> list[LabelledPair]:
    """Labels drawn at random, to be given again without seeing the first: the flip rate is the labels' own noise.

    By hash: a label that is added changes at most one of them, so that what was given again still counts.
    """

    def place(label: LabelledPair) -> bytes:
        return blake2b(f"audit {seed}\0{label.query_id}\0{label.chunk_id}".encode("utf-8", "surrogatepass")).digest()

    return sorted(labels, key=place)[:count]


@dataclass(frozen=True)
class LabelErrors:
    """How often labels drawn blind were given again with the other side of relevant or not."""

    again: int  # labels of the sample that were given again
    changed: int
    low: float  # 95 % interval of the share changed (Clopper and Pearson 1934)
    high: float

    @property
    def error_rate(self) -> tuple[float, float, float]:
        """How often a label is wrong, and its interval: if both are alike wrong by chance, 2e(1 − e) differ."""
        shares = (self.changed / max(1, self.again), self.low, self.high)
        rate, low, high = ((1 - (max(0.0, 1 - 2 * share)) ** 0.5) / 2 for share in shares)
        return rate, low, high

    def to_text(self) -> str:
        """The two shares with their intervals."""
        if not self.again:
            return "none of the sample was given again: label it blind in the queue"
        rate, low, high = self.error_rate
        return (
            f"{self.changed} of {self.again} labels given again changed sides "
            f"[{self.low:.1%}, {self.high:.1%}]: about {rate:.1%} of labels are wrong [{low:.1%}, {high:.1%}], "
            "if first and second are wrong alike"
        )


def label_errors(pairs: Iterable[tuple[int, int]], min_grade: int = 1) -> LabelErrors:
    """The errors that (first grade, grade given again) of a blind sample show."""
    from scipy.special import betaincinv

    sides = [(one >= min_grade) != (other >= min_grade) for one, other in pairs]
    count, changed = len(sides), sum(sides)
    low = float(betaincinv(changed, count - changed + 1, 0.025)) if changed else 0.0
    high = float(betaincinv(changed + 1, count - changed, 0.975)) if changed < count else 1.0
    return LabelErrors(count, changed, low, high)


FEWEST_AGAIN = 20
"""Labels given again from which on an error rate is taken further."""


def f_under_errors(
    cases: Sequence[Case], kept: Sequence[Collection[str]], rate: float, min_grade: int = 1, draws: int = 400
) -> tuple[float, float]:
    """The middle 95 % of what mean SetF would read if every label of the cases were wrong with that chance.

    `kept` are the chunks that a pipeline keeps, by case. The labels are not changed: each draw turns copies round.
    A question counts where something is relevant in the draw.
    """
    dice = np.random.default_rng(0)
    sums, counted = np.zeros(draws), np.zeros(draws)
    for case, chunks in zip(cases, kept, strict=True):
        relevant = np.array([grade >= min_grade for grade in case.grades.values()], dtype=bool)
        inside = np.array([chunk in chunks for chunk in case.grades], dtype=bool)
        turned = relevant ^ (dice.random((draws, len(relevant))) < rate)
        total = turned.sum(axis=1)
        sums += np.where(total > 0, 2 * turned[:, inside].sum(axis=1) / np.maximum(1, len(chunks) + total), 0.0)
        counted += total > 0
    low, high = np.quantile(sums / np.maximum(1, counted), [0.025, 0.975])
    return float(low), float(high)


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


def _places(names: Sequence[Hashable]) -> Places:
    groups: dict[Hashable, list[int]] = {}
    for at, name in enumerate(names):
        groups.setdefault(name, []).append(at)
    return list(groups.values())


def _in_own_spread(distances: Floats) -> Floats:
    """Distances of one query around their mean in units of their spread; 0 where not known."""
    known = ~np.isnan(distances)
    here = distances[known]
    spread = here.std() if len(here) else 0.0
    units: Floats = np.zeros(len(distances))
    if spread > 0:
        units[known] = (here - here.mean()) / spread
    return units


def _contradicted(labels: Sequence[LabelledPair], relevant: Floats, by_query: Places, near: float) -> dict[int, str]:
    """Place of a label → the near-duplicate of the same query that is labelled the other way."""
    against: dict[int, str] = {}
    for places in by_query:
        for group in near_duplicates([labels[place].text for place in places], near):
            members = [places[one] for one in group]
            for place in members:
                other = next((one for one in members if relevant[one] != relevant[place]), None)
                if other is not None:
                    against[place] = labels[other].chunk_id
    return against


def _out_of_fold(labels: Sequence[LabelledPair], table: Floats, relevant: Floats) -> Floats:
    """How likely each label's chunk is relevant, by models fitted without its query."""
    queries = [label.query_id for label in labels]
    fold = np.array([int(blake2b(query.encode(), digest_size=4).hexdigest(), 16) % FOLDS for query in queries])
    likely = np.full(len(labels), relevant.mean())
    for held in range(FOLDS):
        rest, here = fold != held, fold == held
        if here.any() and len(set(relevant[rest])) == 2:
            likely[here] = _chances(table[rest], relevant[rest], table[here], trees=True)
    return likely


def _chances(table: Floats, relevant: Floats, wanted: Floats, *, trees: bool) -> Floats:
    """The chance by a logistic curve, or its mean with that of boosted trees, each good at what the other misses."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # late: it loads for a second
    from sklearn.linear_model import LogisticRegression

    models: list[Any] = [LogisticRegression(C=1.0 if trees else WEAK_RIDGE, max_iter=500)]
    if trees:
        models.append(
            HistGradientBoostingClassifier(
                max_iter=80, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=40, l2_regularization=1.0,
                random_state=0, early_stopping=False,
            )
        )  # fmt: skip
    threads = import_module("threadpoolctl").threadpool_limits  # untyped
    with threads(1):  # several threads wait for each other where the processors are busy
        chances = [model.fit(table, relevant).predict_proba(wanted)[:, 1] for model in models]
    return np.asarray(sum(chances) / len(chances), dtype=float)


def _features(
    labels: Sequence[LabelledPair], relevant: Floats, distances: Floats, heights: Floats, by_query: Places
) -> Floats:
    """(labels, features), each column in units of its spread; what is not known is 0."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    distinct = sorted({text for label in labels for text in (label.text, label.query)})
    if not any(words(text) for text in distinct):
        distinct.append("nothing")
    rows = TfidfVectorizer(sublinear_tf=True, analyzer=words).fit_transform(distinct).tocsr()
    place_of = {text: at for at, text in enumerate(distinct)}
    of_texts, of_queries = (rows[[place_of[getattr(label, part)] for label in labels]] for part in ("text", "query"))
    table: Floats = np.zeros((len(labels), 13))
    table[:, 0] = heights
    for places in by_query:
        known = [place for place in places if not np.isnan(distances[place])]
        table[known, 1] = np.argsort(np.argsort(distances[known])) / max(1, len(known))  # the share that is nearer
        table[places, 2:5] = _shared(of_texts[places], of_queries[places[0]])
        table[places, 5:10] = _of_neighbours(_similarities(of_texts[places]), relevant[places])
    for places in _places([label.chunk_id for label in labels]):
        table[places, 10:] = _of_other_queries(_similarities(of_queries[places]), relevant[places])
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(spread > SMALL, spread, 1.0))


def _similarities(rows: Any) -> Floats:
    """Cosines of every two rows; nothing is like anything where there are too many."""
    count = rows.shape[0]
    return np.asarray((rows @ rows.T).toarray()) if count <= MOST_TOGETHER else np.zeros((count, count), dtype=float)


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
