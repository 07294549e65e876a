"""Measures as values: `parse_measure("nDCG@10")`, with the name as identity and as repr.

The formulas are in formulas.py; scoring a kept list against labels, bounds and means in scores.py; comparing two
pipelines in significance.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from rag_core.errors import InputError
from rag_core.measure import formulas
from rag_core.measure.formulas import JudgedList, f_measure, share

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
                return formulas.set_precision(judged)
            case "SetR":
                return formulas.set_recall(judged)
            case "SetF":
                return formulas.set_f(judged, self.beta)
            case "RR":
                return formulas.reciprocal_rank(judged, self.cutoff)
            case "AP":
                return formulas.average_precision(judged, self.cutoff)
            case "nDCG":
                return formulas.ndcg(judged, self.cutoff)
        at_k = formulas.precision_at if self.family == "P" else formulas.recall_at
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
