"""Measures as values: `parse_measure("nDCG@10")`, with the name as identity and as repr.

Scoring a kept list against labels, bounds and means in scores.py; comparing two
pipelines in significance.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

from rag_core.errors import InputError


@dataclass(frozen=True, slots=True)
class JudgedList:
    """One kept list against its labels, as the formulas need it. Unjudged chunks have grade 0, as in trec_eval."""

    relevant: tuple[bool, ...]  # per kept chunk, in kept order: grade ≥ min_grade
    grades: tuple[int, ...]  # per kept chunk, in kept order
    relevant_total: int  # relevant chunks in all, at least 1
    ideal: tuple[int, ...]  # every grade known for the query, best first, retrieved or not
    judged: tuple[bool, ...]  # per kept chunk, in kept order: it has a label
    irrelevant_total: int  # chunks with a grade from 0 to below min_grade, kept or not

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


def success_at(judged: JudgedList, k: int) -> float:
    """1 where a relevant chunk stands among the first k, else 0 (trec_eval success_k; hit rate)."""
    return float(any(judged.relevant[:k]))


def r_precision(judged: JudgedList, _: None = None) -> float:
    """Precision at as many places as there are relevant chunks (trec_eval Rprec)."""
    return precision_at(judged, judged.relevant_total)


def bpref(judged: JudgedList, _: None = None) -> float:
    """Share of the relevant chunks, each less the share of judged irrelevant ones that stand before it.

    Chunks without a label play no part (Buckley and Voorhees 2004, as trec_eval bpref).
    """
    total, before = 0.0, 0
    most = min(judged.relevant_total, judged.irrelevant_total)
    for relevant, known, grade in zip(judged.relevant, judged.judged, judged.grades, strict=True):
        if relevant:
            total += 1 - share(min(before, judged.relevant_total), most)
        elif known and grade >= 0:  # trec_eval takes a negative grade for no judgement here
            before += 1
    return total / judged.relevant_total


def judged_at(judged: JudgedList, k: int) -> float:
    """Share of the first k chunks that have a label; of those kept, where fewer are."""
    return share(sum(judged.judged[:k]), len(judged.judged[:k]))


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """A measure as a value. Its name is its identity and its repr; make one with `parse_measure`."""

    name: str
    family: str  # of FAMILIES
    cutoff: int | None = None
    beta: float = 1.0

    def __repr__(self) -> str:
        return self.name

    @property
    def meaning(self) -> str:
        """What is counted over what, in a few words."""
        return FAMILIES[self.family].meaning.partition(";")[0]

    def __call__(self, judged: JudgedList) -> float:
        """The value of one judged list, 0 to 1."""
        family = FAMILIES[self.family]
        if family.counts is not None:
            return family.counts(judged.found, len(judged.relevant), judged.relevant_total, self.beta)
        assert family.formula is not None
        return family.formula(judged, self.cutoff)

    def denominator(self, kept: int, relevant_total: int) -> int | None:
        """What the value is a share of, for the measures that are one count over another; None for the others."""
        wholes = {"kept": kept, "relevant": relevant_total, "cutoff": self.cutoff}
        return wholes.get(FAMILIES[self.family].share_of)

    def from_counts(self, found: int, kept: int, relevant_total: int) -> float | None:
        """The value from three counts, for the set measures; None for measures that look at ranks."""
        counts = FAMILIES[self.family].counts
        return counts and counts(found, kept, relevant_total, self.beta)


@dataclass(frozen=True, slots=True)
class Family:
    """Everything about a measure but its k and its β: adding one is an entry here and a row in docs/measures.md."""

    meaning: str  # for help texts and docs
    formula: Callable[[JudgedList, Any], float] | None = None  # of the list and k, where ranks matter
    counts: Callable[[int, int, int, float], float] | None = None  # of found, kept, relevant and β, where they do not
    share_of: str = ""  # kept, relevant or cutoff, where it is one count over another
    cut: bool = False  # @k may stand behind the name; where it must, the family's name says so


FAMILIES: dict[str, Family] = {
    "SetP": Family(
        "share of the kept chunks that are relevant",
        counts=lambda found, kept, total, _: share(found, kept),
        share_of="kept",
    ),
    "SetR": Family(
        "share of the relevant chunks that are kept",
        counts=lambda found, kept, total, _: share(found, total),
        share_of="relevant",
    ),
    "SetF": Family("F₁ of SetP and SetR, per query; SetF2 weighs recall, SetF0.5 precision", counts=f_measure),
    "P@k": Family("relevant among the first k, divided by k", precision_at, share_of="cutoff"),
    "R@k": Family("share of the relevant chunks among the first k", recall_at, share_of="relevant"),
    "Success@k": Family("whether a relevant chunk stands among the first k (hit rate)", success_at),
    "RR": Family("1 / rank of the first relevant chunk; also RR@k", reciprocal_rank, cut=True),
    "AP": Family("precision at each relevant chunk, mean over all relevant; also AP@k", average_precision, cut=True),
    "nDCG": Family("graded gain, discounted by rank, over the ideal; also nDCG@k", ndcg, cut=True),
    "Rprec": Family("precision at as many places as there are relevant chunks", r_precision),
    "bpref": Family("relevant chunks above judged irrelevant ones; what has no label plays no part", bpref),
    "Judged@k": Family("share of the first k that have a label", judged_at),
}
"""What exists, by name; `@k` in a name says that a k must be given."""


def parse_measure(name: str) -> Measure:
    """The measure of that name, as FAMILIES has it: SetP, SetF2 (any β > 0), P@5, RR, RR@10, …

    Raises InputError that lists what exists.
    """
    head, at, tail = name.partition("@")
    cutoff = int(tail) if tail.isascii() and tail.isdigit() else None
    if cutoff and f"{head}@k" in FAMILIES:
        return Measure(name, f"{head}@k", cutoff)
    if cutoff and head in FAMILIES and FAMILIES[head].cut:
        return Measure(name, head, cutoff)
    if not at and name in FAMILIES:
        return Measure(name, name)
    if not at and name.startswith("SetF"):
        return Measure(name, "SetF", beta=_beta(name))
    raise _unknown(name)


def _beta(name: str) -> float:
    """The β at the end of a SetF name."""
    text = name.removeprefix("SetF")
    plain = text.isascii() and text.replace(".", "", 1).isdigit()
    if not plain or not 0 < float(text) <= 1000:
        raise _unknown(name)
    return float(text)


def _unknown(name: str) -> InputError:
    exists = ", ".join(FAMILIES)
    return InputError(f"unknown measure {name!r:.80}, expected one of {exists} (k a whole number from 1, as in P@5)")


SET_MEASURES = tuple(parse_measure(name) for name in ("SetP", "SetR", "SetF"))
DEFAULT_MEASURES = (*SET_MEASURES, *(parse_measure(name) for name in ("P@15", "R@15", "RR", "AP", "nDCG@15")))
