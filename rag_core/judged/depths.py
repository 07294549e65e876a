"""What references bring: chunks and tokens of the nearest hits with all that lies up to 0, 1, 3 and 5 steps away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_core.filters.llm import estimate_tokens, reach
from rag_core.judged.bench import Bench
from rag_core.types import Case, Chunk

DEPTHS = (0, 1, 3, 5)


@dataclass(frozen=True, slots=True)
class Depth:
    """The context of a query at one depth of expansion; means over queries. Shares are of the chunks in it."""

    depth: int
    chunks: float
    tokens: float
    relevant: float  # share of the chunks that are labelled relevant
    found: float | None  # share of the query's relevant chunks that are in it, None where none is labelled


def depths(bench: Bench, wanted: int, cap: int, query_id: str = "") -> list[Depth]:
    """One row per depth for one query, or the means over all: the `wanted` nearest, and up to `cap` chunks of each."""
    cases = [case for case in bench.cases if case.candidates and query_id in ("", case.query.id)]
    return [_mean(depth, [_one(case, bench, depth, wanted, cap) for case in cases]) for depth in DEPTHS if cases]


def _one(case: Case, bench: Bench, depth: int, wanted: int, cap: int) -> Depth:
    hits = case.candidates.hits[:wanted] if case.candidates else ()
    together = gathered([hit.chunk for hit in hits], depth, cap, bench.chunks)
    relevant = {name for name, grade in case.grades.items() if grade >= bench.min_grade}
    inside = len(relevant & set(together))
    tokens = sum(estimate_tokens(chunk.text) for chunk in together.values())
    found = inside / len(relevant) if relevant else None
    return Depth(depth, len(together), tokens, inside / len(together) if together else 0.0, found)


def gathered(starts: Sequence[Chunk], depth: int, cap: int, chunks: Mapping[str, Chunk]) -> dict[str, Chunk]:
    """The start chunks and what their references reach, each once."""
    together = {chunk.id: chunk for chunk in starts}
    for start in starts:
        for one in reach(start, depth, cap, chunks)[0]:
            together.setdefault(one.chunk.id, one.chunk)
    return together


def _mean(depth: int, rows: Sequence[Depth]) -> Depth:
    known = [row.found for row in rows if row.found is not None]
    chunks, tokens, relevant = (fmean(getattr(row, name) for row in rows) for name in ("chunks", "tokens", "relevant"))
    return Depth(depth, chunks, tokens, relevant, fmean(known) if known else None)
