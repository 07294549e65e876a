"""The loop over settings that a user would write, with measures of its own or of a package; one setting at a time.

The lists it works on are made here too, in the form each of them wants.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from rag_core.tune.arrays import Lists, make_lists


class Data:
    """Lists with labels, in the forms the peers want."""

    def __init__(self, queries: int, length: int, seed: int = 0) -> None:
        """Clusters of relevant chunks near the query, at random."""
        dice = np.random.default_rng(seed)
        self.rows = np.sort(dice.gamma(8, 0.08, (queries, length)), axis=1).tolist()
        flags = dice.random((queries, length)) < 0.8 * np.exp(-np.arange(length) / 8)
        flags[:, 0] |= ~flags.any(axis=1)
        self.flags = flags.tolist()
        self.relevant = [{at for at, flag in enumerate(one) if flag} for one in self.flags]
        self.names = [f"d{at}" for at in range(length)]
        self.qrels = {f"q{at}": {self.names[place]: 1 for place in one} for at, one in enumerate(self.relevant)}
        self.matrix = flags.astype(int)

    def lists(self) -> Lists:
        """The arrays of a sweep."""
        return make_lists(self.rows, self.flags, [len(one) for one in self.relevant])

    def cuts(self, setting: tuple[float, float, int, int]) -> list[int]:
        """How many of each list one setting keeps, by a lean loop without the checks of the product's own rule."""
        return [lean_cut(row, *setting) for row in self.rows]


def lean_cut(row: list[float], threshold: float, offset: float, least: int, most: int) -> int:
    looked = row[:most]
    largest, at = 0.0, 0
    for place in range(1, len(looked) - 1):
        gap = looked[place + 1] - looked[place]
        if gap >= threshold and gap > largest:
            largest, at = gap, place + 1
    keep = at or sum(distance <= looked[0] + offset for distance in looked)
    return min(max(keep, least), len(looked))


def plain_loop(data: Data, setting: Any) -> float:
    total = 0.0
    for keep, relevant in zip(data.cuts(setting), data.relevant, strict=True):
        found = len(relevant & set(range(keep)))
        precision, recall = found / keep, found / len(relevant)
        total += 2 * precision * recall / (precision + recall) if found else 0.0
    return total / len(data.rows)


def with_pytrec_eval(data: Data, setting: Any) -> float:
    import pytrec_eval

    run = {
        f"q{at}": {data.names[place]: -float(place) for place in range(keep)}
        for at, keep in enumerate(data.cuts(setting))
    }
    found = pytrec_eval.RelevanceEvaluator(data.qrels, {"set_F"}).evaluate(run)
    return statistics.fmean(one["set_F"] for one in found.values())


def with_ir_measures(data: Data, setting: Any) -> float:
    import ir_measures

    run = {
        f"q{at}": {data.names[place]: -float(place) for place in range(keep)}
        for at, keep in enumerate(data.cuts(setting))
    }
    return float(ir_measures.calc_aggregate([ir_measures.SetF], data.qrels, run)[ir_measures.SetF])


def with_sklearn(data: Data, setting: Any) -> float:
    from sklearn.metrics import f1_score

    kept = np.zeros_like(data.matrix)
    for at, keep in enumerate(data.cuts(setting)):
        kept[at, :keep] = 1
    return float(f1_score(data.matrix, kept, average="samples", zero_division=0))


PEERS: dict[str, Callable[[Data, Any], float]] = {
    "plain loop": plain_loop,
    "plain loop + pytrec_eval": with_pytrec_eval,
    "plain loop + ir_measures": with_ir_measures,
    "plain loop + scikit-learn": with_sklearn,
}
