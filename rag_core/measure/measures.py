"""Measures as values: `parse_measure("nDCG@10")`, with the name as identity and as repr.

Scoring a kept list against labels, bounds and means in scores.py; comparing two
pipelines in significance.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from rag_core.errors import InputError


@dataclass(frozen=True, slots=True)
class JudgedList:
    """One kept list against its labels, as the formulas need it. Unjudged chunks have grade 0, as in trec_eval."""

    relevant: tuple[bool, ...]  # per kept chunk, in kept order: grade ≥ min_grade
    grades: tuple[int, ...]  # per kept chunk, in kept order
    relevant_total: int  # relevant chunks in all, at least 1
    ideal: tuple[int, ...]  # every grade known for the query, best first, retrieved or not

    @property
    def found(self) -> int:
        """How many kept chunks are relevant."""
        return sum(self.relevant)


def share(part: float, whole: float) -> float:
    """`part` of `whole`; 0 where there is no whole (the convention for the precision of an empty list)."""
    return part / whole if whole else 0.0


def f_measure(found: float, kept: float, total: float, beta: float) -> float:
    """(1 + β²)·P·R / (β²·P + R) as counts: (1 + β²)·found / (β²·total + kept). van Rijsbergen 1979, chapter 7."""
    return share((1 + beta * beta) * found, beta * beta * total + kept)


def set_precision(judged: JudgedList) -> float:
    """Share of the kept chunks that are relevant; 0 for an empty list."""
    return share(judged.found, len(judged.relevant))


def set_recall(judged: JudgedList) -> float:
    """Share of the relevant chunks that are kept."""
    return judged.found / judged.relevant_total


def set_f(judged: JudgedList, beta: float) -> float:
    """F of set precision and set recall."""
    return f_measure(judged.found, len(judged.relevant), judged.relevant_total, beta)


def precision_at(judged: JudgedList, k: int) -> float:
    """Relevant chunks among the first k, divided by k even where fewer are kept (trec_eval P_k)."""
    return sum(judged.relevant[:k]) / k


def recall_at(judged: JudgedList, k: int) -> float:
    """Share of the relevant chunks that stand among the first k (trec_eval recall_k)."""
    return sum(judged.relevant[:k]) / judged.relevant_total


def reciprocal_rank(judged: JudgedList, k: int | None) -> float:
    """1 / rank of the first relevant chunk, 0 where none stands among the first k (Kantor and Voorhees 2000)."""
    for rank, relevant in enumerate(judged.relevant[:k], 1):
        if relevant:
            return 1 / rank
    return 0.0


def average_precision(judged: JudgedList, k: int | None) -> float:
    """Mean over all relevant chunks of the precision at their rank, 0 for those not kept (trec_eval map, map_cut)."""
    total, found = 0.0, 0
    for rank, relevant in enumerate(judged.relevant[:k], 1):
        if relevant:
            found += 1
            total += found / rank
    return total / judged.relevant_total


def ndcg(judged: JudgedList, k: int | None) -> float:
    """DCG / ideal DCG with the grade as gain and 1 / log2(rank + 1) as discount (Järvelin and Kekäläinen 2002).

    The ideal order is that of every known label, kept or not; min_grade plays no part in gains, and a negative grade
    gains nothing (both as in trec_eval ndcg).
    """
    return share(_dcg(judged.grades[:k]), _dcg(judged.ideal[:k]))


def _dcg(grades: Sequence[int]) -> float:
    return sum(grade / log2(rank + 1) for rank, grade in enumerate(grades, 1) if grade > 0)


FAMILIES = {
    "SetP": "share of the kept chunks that are relevant",
    "SetR": "share of the relevant chunks that are kept",
    "SetF": "F of the two; SetF2 weighs recall, SetF0.5 precision",
    "P@k": "relevant among the first k, divided by k",
    "R@k": "share of the relevant chunks among the first k",
    "RR": "1 / rank of the first relevant chunk; also RR@k",
    "AP": "average precision; also AP@k",
    "nDCG": "discounted gain against the ideal order; also nDCG@k",
}
"""What exists, with its meaning: for help texts and for the message about an unknown name."""

_CUTOFF_NEEDED = {"P", "R"}
_CUTOFF_ALLOWED = {"P", "R", "RR", "AP", "nDCG"}


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """A measure as a value. Its name is its identity and its repr; make one with `parse_measure`."""

    name: str
    family: str
    cutoff: int | None = None
    beta: float = 1.0

    def __repr__(self) -> str:
        return self.name

    def __call__(self, judged: JudgedList) -> float:
        """The value of one judged list, 0 to 1."""
        match self.family:
            case "SetP":
                return set_precision(judged)
            case "SetR":
                return set_recall(judged)
            case "SetF":
                return set_f(judged, self.beta)
            case "RR":
                return reciprocal_rank(judged, self.cutoff)
            case "AP":
                return average_precision(judged, self.cutoff)
            case "nDCG":
                return ndcg(judged, self.cutoff)
        at_k = precision_at if self.family == "P" else recall_at
        return at_k(judged, self.cutoff or 0)

    def denominator(self, kept: int, relevant_total: int) -> int | None:
        """What the value is a share of, for the measures that are one count over another; None for the others."""
        return {"SetP": kept, "P": self.cutoff, "SetR": relevant_total, "R": relevant_total}.get(self.family)

    def from_counts(self, found: int, kept: int, relevant_total: int) -> float | None:
        """The value from three counts, for the set measures; None for measures that look at ranks."""
        match self.family:
            case "SetP":
                return share(found, kept)
            case "SetR":
                return share(found, relevant_total)
            case "SetF":
                return f_measure(found, kept, relevant_total, self.beta)
        return None


def parse_measure(name: str) -> Measure:
    """The measure of that name: SetP, SetR, SetF, SetF2 (any β > 0), P@5, R@5, RR, AP, nDCG, and those three with @k.

    Raises InputError that lists what exists.
    """
    head, at, tail = name.partition("@")
    cutoff = int(tail) if tail.isascii() and tail.isdigit() else None
    if at and (not cutoff or head not in _CUTOFF_ALLOWED):
        raise _unknown(name)
    if head in _CUTOFF_ALLOWED and (at or head not in _CUTOFF_NEEDED):
        return Measure(name, head, cutoff)
    if head in ("SetP", "SetR"):
        return Measure(name, head)
    if head.startswith("SetF"):
        return Measure(name, "SetF", beta=_beta(name))
    raise _unknown(name)


def _beta(name: str) -> float:
    """The β at the end of a SetF name, 1 where there is none."""
    text = name.removeprefix("SetF")
    plain = text.isascii() and text.replace(".", "", 1).isdigit()
    if text and (not plain or not 0 < float(text) <= 1000):
        raise _unknown(name)
    return float(text) if text else 1.0


def _unknown(name: str) -> InputError:
    exists = ", ".join(FAMILIES)
    return InputError(f"unknown measure {name!r:.80}, expected one of {exists} (k a whole number from 1, as in P@5)")


SET_MEASURES = tuple(parse_measure(name) for name in ("SetP", "SetR", "SetF"))
DEFAULT_MEASURES = (*SET_MEASURES, *(parse_measure(name) for name in ("P@15", "R@15", "RR", "AP", "nDCG@15")))
