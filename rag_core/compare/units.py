"""Overlapping or nearly repeated chunks count once: the unit view that stands beside the chunk view.

A unit is a chunk with those that repeat it or overlap it by half: three windows over one paragraph are one find, and
keeping all three is no threefold success. Texts with different numbers are never repetitions (tables and prices differ
in one figure). Which chunk a filter should drop is for Deduplicate; here nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_core.labelling.pooling import NEAR, near_duplicates
from rag_core.measure.experiment import Outcome, kept_ids
from rag_core.measure.measures import DEFAULT_MEASURES, Measure
from rag_core.measure.scores import QueryScores, score
from rag_core.text import words
from rag_core.types import Chunk, Grades

OVERLAP = 0.5  # of the shorter text's words that two windows must share, end to start
LEAST_WORDS = 8  # in a row: shorter runs (headings, list marks) make no unit

Units = Mapping[str, str]
"""Chunk id → id of the first chunk of its unit; a chunk that is not in it is a unit of its own."""


def units_of(chunks: Iterable[Chunk], near: float = NEAR, overlap: float = OVERLAP) -> dict[str, str]:
    """The units among these chunks, the best first; each later chunk joins the first unit whose first chunk it repeats
    or overlaps. A chain of windows is therefore not one unit from end to end. Chunks without text stay alone.
    """
    distinct = list({chunk.id: chunk for chunk in chunks if chunk.text.strip()}.values())
    texts = [chunk.text for chunk in distinct]
    read = [words(text) for text in texts]
    first = {place: group[0] for group in near_duplicates(texts, near) for place in group}
    found: dict[str, str] = {}
    heads: list[int] = []
    for place, chunk in enumerate(distinct):
        head = found.get(distinct[first[place]].id) if first[place] != place else None
        if head is None:
            twin = next((one for one in heads if shared_run(read[one], read[place]) >= overlap), None)
            head = distinct[twin].id if twin is not None else chunk.id
            if twin is None:
                heads.append(place)
        found[chunk.id] = head
    return found


def shared_run(one: Sequence[str], other: Sequence[str]) -> float:
    """Share of the shorter text that is the end of one and the start of the other, or stands whole in it; 0 to 1."""
    short, long = sorted((list(one), list(other)), key=len)
    if len(short) < LEAST_WORDS:
        return 0.0
    if _inside(short, long):
        return 1.0
    run = max(_tail(short, long), _tail(long, short))
    return run / len(short) if run >= LEAST_WORDS else 0.0


def _inside(short: list[str], long: list[str]) -> bool:
    """Whether all words of the short text stand in a row in the long one."""
    return f" {' '.join(short)} " in f" {' '.join(long)} "


def _tail(front: list[str], back: list[str]) -> int:
    """The longest end of `front` that `back` starts with, in words."""
    starts = (at for at in range(max(0, len(front) - len(back)), len(front)) if front[at] == back[0])
    return next((len(front) - at for at in starts if front[at:] == back[: len(front) - at]), 0)


def query_units(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The units among what any of these pipelines kept of one query and what is labelled, in the order of ranks."""
    hits = [hit for outcome in outcomes for hit in outcome.result.hits]
    grades = outcomes[0].case.grades
    hits += [drop.hit for outcome in outcomes for drop in outcome.result.drops if drop.hit.chunk.id in grades]
    return units_of(hit.chunk for hit in sorted(hits, key=lambda hit: hit.rank))


def unit_scores(
    outcome: Outcome, units: Units, min_grade: int = 1, measures: Sequence[Measure] = DEFAULT_MEASURES
) -> QueryScores:
    """The outcome scored by units: a unit is kept where one of its chunks is, and has the best grade among them."""
    kept = list(dict.fromkeys(units.get(chunk, chunk) for chunk in kept_ids(outcome.result)))
    grades = unit_grades(outcome.case.grades, units)
    given = outcome.case.relevant_total
    if given is not None:
        known = sum(grade >= min_grade for grade in outcome.case.grades.values())
        given = max(0, given - known) + sum(grade >= min_grade for grade in grades.values())
    return score(kept, grades, given, min_grade, measures, fallback=outcome.scores.fallback)


def unit_grades(grades: Grades, units: Units) -> dict[str, int]:
    """The best grade of each unit's chunks."""
    found: dict[str, int] = {}
    for chunk, grade in grades.items():
        unit = units.get(chunk, chunk)
        found[unit] = max(grade, found.get(unit, grade))
    return found
