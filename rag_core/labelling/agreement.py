"""How far annotators agree beyond chance: Cohen's kappa for a pair, Fleiss' kappa and Krippendorff's alpha for many.

Works on grades by annotator and item; where they come from is the caller's. An item is whatever was labelled, usually
(query id, chunk id). Unsure and missing grades are simply not there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError

GRADES = (0, 1, 2, 3)
FEWEST_ITEMS, FEWEST_CLUSTERS, RESAMPLES = 20, 5, 2000
"""Of an interval: items judged twice, clusters they come from, and draws."""
Item: TypeAlias = Any
"""Anything hashable."""
Labels: TypeAlias = Mapping[str, Mapping[Item, int]]
"""{annotator: {item: grade}}."""
Level = Literal["nominal", "ordinal", "interval"]
Weights = Literal["linear", "quadratic"]
Matrix: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two annotators on the items both judged; `kappa` is None where chance alone explains everything or no item is."""

    first: str
    second: str
    items: int
    observed: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which the grades differ, and who said what."""

    item: Item
    grades: Mapping[str, int]

    @property
    def spread(self) -> int:
        """Highest minus lowest grade."""
        return max(self.grades.values()) - min(self.grades.values())


def cohen_kappa(first: Sequence[int], second: Sequence[int], weights: Weights | None = None) -> float | None:
    """Cohen's kappa of two equally long lists of grades, in [−1, 1]; None where it is undefined (0/0).

    Unweighted by default; `weights` counts a miss by its distance or its square. Cohen 1960, 1968; by scikit-learn.
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} grades, expected two lists of one length")
    if not first or (len(set(first)) == 1 and set(first) == set(second)):
        return None
    from sklearn.metrics import cohen_kappa_score  # late: it loads for a second

    return float(cohen_kappa_score(first, second, labels=list(GRADES), weights=weights))


def pair_agreements(labels: Labels, weights: Weights | None = None) -> list[PairAgreement]:
    """Cohen's kappa of every two annotators, by name, on the items both judged."""
    return [_pair(labels, first, second, weights) for first, second in combinations(sorted(labels), 2)]


def _pair(labels: Labels, first: str, second: str, weights: Weights | None) -> PairAgreement:
    shared = [item for item in labels[first] if item in labels[second]]
    ours, theirs = ([labels[name][item] for item in shared] for name in (first, second))
    equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
    observed = equal / len(shared) if shared else None
    return PairAgreement(first, second, len(shared), observed, cohen_kappa(ours, theirs, weights))


def fleiss_kappa(labels: Labels) -> float | None:
    """Fleiss' kappa on the items that every annotator judged; None with under two annotators or where it is 0/0.

    κ = (P̄ − P̄ₑ) / (1 − P̄ₑ), Fleiss 1971 (Psychological Bulletin 76:378).
    """
    counts = _counts(labels)
    raters = len(labels)
    complete = counts[counts.sum(axis=1) == raters]
    if raters < 2 or not len(complete):
        return None
    by_item = ((complete**2).sum(axis=1) - raters) / (raters * (raters - 1))
    by_chance = float(((complete.sum(axis=0) / complete.sum()) ** 2).sum())
    return None if by_chance == 1 else float((by_item.mean() - by_chance) / (1 - by_chance))


def krippendorff_alpha(labels: Labels, level: Level = "ordinal") -> float | None:
    """Krippendorff's alpha, which bears missing grades; None where nothing was judged twice or only one grade occurs.

    α = 1 − Dₒ/Dₑ over the coincidence matrix of items with two grades or more. Krippendorff 2011, "Computing
    Krippendorff's Alpha-Reliability". Grades are ordered, so `ordinal` is the default.
    """
    counts = _counts(labels)
    paired = counts[counts.sum(axis=1) >= 2]
    if not len(paired):
        return None
    width = paired.sum(axis=1, keepdims=True)
    coincidence: Matrix = (paired / (width - 1)).T @ paired - np.diag((paired / (width - 1)).sum(axis=0))
    return _alpha(coincidence, level)


@dataclass(frozen=True, slots=True)
class AlphaEstimate:
    """Krippendorff's alpha with its 95 % interval; the ends are None where too little was judged twice to say."""

    alpha: float | None
    low: float | None
    high: float | None
    items: int  # judged by two or more
    clusters: int  # that these items come from


def alpha_estimate(
    labels: Labels, cluster: Callable[[Item], Hashable] = lambda item: item, level: Level = "ordinal"
) -> AlphaEstimate:
    """Alpha and its percentile bootstrap interval (Hayes and Krippendorff 2007), over clusters drawn with replacement.

    Items of one cluster, as the chunks of one question, are judged alike, so they are drawn together. No interval under
    FEWEST_ITEMS items or FEWEST_CLUSTERS clusters: the bootstrap is too narrow there.
    """
    counts, items = _counts(labels), _items(labels)
    twice = counts.sum(axis=1) >= 2
    paired, of = counts[twice], [cluster(item) for item, both in zip(items, twice, strict=True) if both]
    place = {name: at for at, name in enumerate(dict.fromkeys(of))}
    point = AlphaEstimate(krippendorff_alpha(labels, level), None, None, len(paired), len(place))
    if len(paired) < FEWEST_ITEMS or len(place) < FEWEST_CLUSTERS:
        return point
    # The coincidence matrix is a sum over items, so a resample of clusters is a weighted sum of their matrices.
    each = paired[:, :, None] * paired[:, None, :] - paired[:, :, None] * np.eye(len(GRADES))
    each /= (paired.sum(axis=1) - 1)[:, None, None]
    matrices = np.zeros((len(place), len(GRADES), len(GRADES)))
    np.add.at(matrices, [place[name] for name in of], each)
    draws = np.random.default_rng(0).multinomial(len(place), np.full(len(place), 1 / len(place)), size=RESAMPLES)
    alphas = [_alpha(matrix, level) for matrix in np.tensordot(draws, matrices, axes=1)]
    defined = [alpha for alpha in alphas if alpha is not None]
    if len(defined) < RESAMPLES * 0.95:  # most draws hold one grade only
        return point
    low, high = np.quantile(defined, [0.025, 0.975])
    return replace(point, low=float(low), high=float(high))


def _alpha(coincidence: Matrix, level: Level) -> float | None:
    totals: Matrix = coincidence.sum(axis=0)
    distance = _distances(totals, level)
    expected = float((np.outer(totals, totals) * distance).sum() / (totals.sum() - 1))
    return None if expected == 0 else 1 - float((coincidence * distance).sum()) / expected


def _distances(totals: Matrix, level: Level) -> Matrix:
    """Squared distance between every two grades; ordinal distance counts the judgements that lie between."""
    if level == "nominal":
        return 1 - np.eye(len(totals))
    if level == "interval":
        places: Matrix = np.arange(len(totals), dtype=np.float64)
    elif level == "ordinal":
        places = np.cumsum(totals) - totals / 2
    else:
        raise InputError(f"level is {level!r}, expected nominal, ordinal or interval")
    return (places[:, None] - places[None, :]) ** 2


def _counts(labels: Labels) -> Matrix:
    """(items, grades): how many annotators gave the item that grade."""
    place = {item: at for at, item in enumerate(_items(labels))}
    rows = [(place[item], grade) for given in labels.values() for item, grade in given.items()]
    wrong = next((grade for _, grade in rows if grade not in GRADES), None)
    if wrong is not None:
        raise InputError(f"grade is {wrong!r}, expected 0, 1, 2 or 3")
    counts: Matrix = np.zeros((len(place), len(GRADES)))
    for row, grade in rows:
        counts[row, grade] += 1
    return counts


def _items(labels: Labels) -> list[Any]:
    """Every item once, in the order of the rows of `_counts`."""
    return list(dict.fromkeys(item for given in labels.values() for item in given))


def disagreements(labels: Labels) -> list[Disagreement]:
    """The items with differing grades, widest spread first, else in the order they were judged."""
    by_item: dict[Item, dict[str, int]] = {}
    for annotator, given in labels.items():
        for item, grade in given.items():
            by_item.setdefault(item, {})[annotator] = grade
    differing = [Disagreement(item, grades) for item, grades in by_item.items() if len(set(grades.values())) > 1]
    return sorted(differing, key=lambda found: -found.spread)


@dataclass(frozen=True)
class PeopleAgreement:
    """How far annotators agree beyond chance, by pair and all together, and the items on which they differ."""

    annotators: tuple[str, ...]
    pairs: tuple[PairAgreement, ...]
    fleiss: float | None
    krippendorff: float | None
    disagreements: tuple[Disagreement, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; an item is (query id, chunk)."""
        return {
            "annotators": list(self.annotators),
            "pairs": [asdict(pair) for pair in self.pairs],
            "fleiss_kappa": self.fleiss,
            "krippendorff_alpha": self.krippendorff,
            "disagreements": [
                {"query_id": found.item[0], "chunk_id": found.item[1], "grades": dict(found.grades)}
                for found in self.disagreements
            ],
        }

    def to_text(self) -> str:
        """A line a pair, and all together; an undefined figure is a dash."""
        fleiss, krippendorff = ("–" if value is None else f"{value:.3f}" for value in (self.fleiss, self.krippendorff))
        kappas = ["–" if pair.kappa is None else f"{pair.kappa:.3f}" for pair in self.pairs]
        lines = [
            f"{pair.first} and {pair.second}: {pair.items} in common, kappa {kappa}"
            for pair, kappa in zip(self.pairs, kappas, strict=True)
        ]
        different = f"{len(self.disagreements)} chunks labelled differently"
        return "\n".join([*lines, f"Fleiss {fleiss}, Krippendorff {krippendorff}", different])


def agreement(labels: Labels, names: Mapping[Item, Item] | None = None) -> PeopleAgreement:
    """Cohen's kappa by pair, Fleiss' kappa, Krippendorff's alpha (ordinal), and every disagreement.

    `names`: what an item is called where people read of it.
    """
    named = names or {}
    return PeopleAgreement(
        tuple(sorted(labels)),
        tuple(pair_agreements(labels)),
        fleiss_kappa(labels),
        krippendorff_alpha(labels),
        tuple(replace(found, item=named.get(found.item, found.item)) for found in disagreements(labels)),
    )
