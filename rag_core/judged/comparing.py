"""Entrants beside the list without a model and beside cheap filters: figures, paired tests, and one front of all.

Reads stored answers and asks nobody, so it may be done again at any time: what was not answered is a fallback, counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_core.filters.cutoff import TopK
from rag_core.judged.bench import Bench
from rag_core.judged.entrants import Entrant
from rag_core.judged.figures import false_drops, figures, is_silent
from rag_core.measure.experiment import PipelineReport, run_all
from rag_core.measure.significance import compare_reports
from rag_core.spec import read_pipeline
from rag_core.stage import Pipeline

RERANK_OFF = "rerank off"
SCORES = ("SetP", "SetR", "SetF")


def compare(bench: Bench, entrants: Sequence[Entrant], seed: int = 0, free: Sequence[str] = ()) -> dict[str, Any]:
    """Every entrant beside the baseline without a model and the `free` filters (pipeline specs), on stored answers.

    `variants` has the filter's figures as a classifier, `comparison` the paired tests of all pairs, `front` precision,
    recall and cost of all together with whether any other is at least as good in all three. An entrant of which nothing
    is answered is in neither: its lists are those of no model.
    """
    judged = [Pipeline((one.replay(bench),), label=one.label) for one in entrants]
    reports = run_all(bench.cases, [*free_pipelines(entrants, free), *judged], bench.min_grade)
    cheap, asked = reports[: len(free) + 1], reports[len(free) + 1 :]
    baseline = cheap[0]
    rows: list[dict[str, Any]] = [
        {**figures(one, baseline, entrant.stage.concurrency), "false_drops_listed": false_drops(one)}
        for one, entrant in zip(asked, entrants, strict=True)
    ]
    summary = baseline.summary
    heard = [report for report, row in zip(asked, rows, strict=True) if not is_silent(row)]
    return {
        "queries_scored": summary.queries_scored,
        "queries_total": summary.queries_total,
        "baseline": scores_of(baseline),
        "free": [scores_of(one) for one in cheap[1:]],
        "variants": rows,
        "comparison": [
            {**row.to_json(), "seed": seed} for row in compare_reports([baseline, *heard], seed, every_pair=True)
        ],
        "front": front([*map(scores_of, cheap)], [row for row in rows if not is_silent(row)]),
    }


def free_pipelines(entrants: Sequence[Entrant], free: Sequence[str]) -> list[Pipeline]:
    """The baseline and the filters that cost nothing."""
    plain = Pipeline((TopK(k=entrants[0].stage.max_chunks),), label=RERANK_OFF)
    return [plain, *(read_pipeline(one) for one in free)]


def scores_of(report: PipelineReport) -> dict[str, Any]:
    """Name and means of a report."""
    return {"name": report.name, **{name: report.summary.means[name] for name in SCORES}}


def front(cheap: Sequence[Mapping[str, Any]], judged: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All filters with precision, recall and cost (0 for cheap ones), and which of them no other one dominates.

    One dominates another where it is at least as good in all three and better in one. An unknown cost is compared as
    larger than any known one.
    """
    rows = [{**{key: one[key] for key in ("name", *SCORES)}, "cost": 0.0, "model": False} for one in cheap]
    rows += [{**{key: one[key] for key in ("name", *SCORES, "cost")}, "model": True} for one in judged]
    return [{**row, "on_front": not any(_dominates(other, row) for other in rows)} for row in rows]


def _dominates(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    first, second = _point(one), _point(other)
    return first != second and all(x >= y for x, y in zip(first, second, strict=True))


def _point(row: Mapping[str, Any]) -> tuple[float, float, float]:
    cost = row["cost"]
    return row["SetP"] or 0.0, row["SetR"] or 0.0, float("-inf") if cost is None else -cost
