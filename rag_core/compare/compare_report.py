"""A comparison and an attribution as plain JSON values, for the command line. Computes nothing of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rag_core.compare.attribution import Attribution
from rag_core.compare.compare import Cell, contrasts, slices, table, to_decide
from rag_core.compare.compare_words import compared_words, unjudged_words
from rag_core.compare.overlap import differences, jaccard, moves, rank_biased_overlap, replays, venn
from rag_core.compare.units import query_units, unit_scores
from rag_core.measure.experiment import Outcome, kept_ids
from rag_core.measure.tally import PipelineTally


def compare_json(
    tallies: Sequence[PipelineTally],
    measure: str = "SetF",
    seed: int = 0,
    order: str = "regressions",
    most: int = 20,
) -> dict[str, Any]:
    """The table against the first pipeline, the queries that differ most, slices, and what to label next."""
    shown = list(dict.fromkeys(("SetP", "SetR", "SetF", measure)))
    base, *others = tallies
    rows = table(tallies, shown, seed=seed)
    compared = [row.cells[measure].against for row in rows]
    return {
        "baseline": base.name,
        "measure": measure,
        "seed": seed,
        "table": [row_json(row) for row in rows],
        "sentences": [sentence for one in compared if one is not None for sentence in compared_words(one)]
        + [words for row in rows if (words := unjudged_words(row.name, row.unjudged))],
        "contrasts": {
            other.name: [asdict(one) for one in contrasts(base, other, measure, order)[:most]] for other in others
        },
        "slices": [
            {
                "tag": one.tag,
                "queries": one.queries,
                "pipelines": {name: _cell(cell) for name, cell in one.cells.items()},
            }
            for one in slices(tallies, measure, seed=seed)
        ],
        "to_decide": {other.name: _open(base, other) for other in others},
    }


def row_json(row: Any) -> dict[str, Any]:
    """One row of the table in JSON's own types: cells with their difference, economy and counts."""
    counts = ("kept_mean", "unjudged", "queries_total", "queries_scored", "queries_empty", "queries_fallback")
    return {
        "name": row.name,
        "measures": {name: _cell(cell) for name, cell in row.cells.items()},
        "economy": row.economy.to_json(),
        **{name: getattr(row, name) for name in counts},
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell.estimate), "against": None if cell.against is None else cell.against.to_json()}


def _open(base: PipelineTally, other: PipelineTally) -> dict[str, Any]:
    """Whether the labels settle which is better, and the twelve labels that would do most to settle it."""
    found = to_decide(base, other)
    labels = [{"gain": gain, "query": query, "chunk": chunk} for gain, query, chunk in found.ranked()[:12]]
    return {"settled": found.settled, "bounds": list(found.bounds), "label_next": labels}


def side_by_side_json(outcomes: Sequence[Outcome], names: Sequence[str], min_grade: int) -> dict[str, Any]:
    """One query through every pipeline, each against the first: ranks, overlap, and the reason of every difference."""
    base, *others = outcomes
    units = query_units(outcomes)
    return {
        "id": base.case.query.id,
        "query": base.case.query.text,
        "venn": [
            {"kept_by": list(owners), "chunks": count}
            for owners, count in venn(
                {name: kept_ids(outcome.result) for name, outcome in zip(names, outcomes, strict=True)}
            ).items()
        ],
        "pipelines": [
            {
                "name": name,
                "values": dict(outcome.scores.values),
                "units": dict(unit_scores(outcome, units, min_grade).values),
            }
            for name, outcome in zip(names, outcomes, strict=True)
        ],
        "against": [_against(base, other, (names[0], name)) for other, name in zip(others, names[1:], strict=True)],
    }


def _against(base: Outcome, other: Outcome, names: tuple[str, str]) -> dict[str, Any]:
    kept = (kept_ids(base.result), kept_ids(other.result))
    found = differences(base, other, names)
    return {
        "name": names[1],
        "jaccard": jaccard(*kept),
        "rbo": rank_biased_overlap(*kept),
        "moves": [{**asdict(move), "shift": move.shift} for move in moves(base, other)],
        "differences": [
            {**asdict(one), "replays": replays(one, other if one.missing_from == names[1] else base)} for one in found
        ],
    }


def attribution_json(name: str, found: Attribution) -> dict[str, Any]:
    """Where one pipeline loses relevant chunks, and what each stage is good for."""
    return {
        "name": name,
        "waterfall": [{"step": step, "chunks": count} for step, count in found.waterfall.steps()],
        "stages": [asdict(stage) for stage in found.stages],
        "swaps": [asdict(swap) for swap in found.swaps],
        "SetF": found.set_f,
        "unfiltered": found.unfiltered,
        "perfect_filter": found.perfect_filter,
        "together": found.together,
        "shared": found.shared,
        "limited_by": found.limited_by,
        "verdict": found.verdict(),
        "queries": found.queries,
    }
