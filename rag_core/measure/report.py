"""Reports as plain JSON values: the contract that scripts and CI rely on (docs/cli.md). Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_core.filters.cutoff import is_weak
from rag_core.measure.experiment import Outcome, PipelineReport
from rag_core.spec import dump_stages, maker
from rag_core.stage import Stage
from rag_core.types import RANKS, Candidates, Drop, Hit

VERSION = 1
LISTED = ("hops", "brought")
"""Facts that are lists of plain records: what a model said between hops, and what each hop brought."""


def report_json(reports: Sequence[PipelineReport], comparison: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """All pipelines with means, per-query figures and traces; None stands for an unscored value."""
    return {
        "version": VERSION,
        "min_grade": reports[0].min_grade if reports else 1,
        "pipelines": [pipeline_json(report) for report in reports],
        "comparison": list(comparison),
    }


def pipeline_json(report: PipelineReport) -> dict[str, Any]:
    """One pipeline of a report."""
    return {
        "name": report.name,
        "spec": dump_stages(report.pipeline),
        "means": report.summary.to_json(),
        "queries": [outcome_json(outcome) for outcome in report.outcomes],
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """One query: its figures, every candidate once (kept or dropped), and what the stages said."""
    result, scores, grades = outcome.result, outcome.scores, outcome.case.grades
    kept = {hit.chunk.id for hit in result.hits}  # a chunk that was dropped and came in again counts as kept
    return {
        "id": outcome.case.query.id,
        "query": outcome.case.query.text,
        "metric": str(result.metric),
        **scores.values,
        **{f"{name}_low": value for name, value in scores.low.items()},
        **{f"{name}_high": value for name, value in scores.high.items()},
        "scored": scores.scored,
        "judged": scores.judged,
        "relevant_total": scores.relevant_total,
        "relevant_total_given": outcome.case.relevant_total is not None,
        "kept": [
            {**hit_json(hit, grades.get(hit.chunk.id)), **({"weak": True} if is_weak(hit, result.metric) else {})}
            for hit in result.hits
        ],
        "dropped": [drop_json(drop, outcome) for drop in result.drops if drop.hit.chunk.id not in kept],
        "warnings": [
            {"id": notice.chunk_id or None, "stage": notice.stage, "text": notice.text} for notice in result.notices
        ],
        "fallbacks": [{"stage": fallback.stage, "reason": fallback.reason} for fallback in result.fallbacks],
        "stages": [step_json(step) for step in result.steps],
    }


def comparison_json(
    reports: Sequence[PipelineReport], seed: int, every_pair: bool = False, measures: Sequence[str] = ("SetF",)
) -> list[dict[str, Any]]:
    """Each pipeline against the first, or every pair, in these measures: difference, interval, wins and losses.

    p is corrected over all of it, pairs and measures.
    """
    if len(reports) < 2:
        return []
    from rag_core.measure.significance import against_first, all_pairs, corrected

    compare = all_pairs if every_pair else against_first
    found = []
    for measure in dict.fromkeys(measures):
        values = {report.name: [one.scores.values[measure] for one in report.outcomes] for report in reports}
        found += compare(values, measure, seed=seed)
    return [{**one.to_json(), "seed": seed} for one in corrected(found)]


def hit_json(hit: Hit, grade: int | None) -> dict[str, Any]:
    """A hit: identity, rank in the list as it came, scores and label."""
    origin = {"origin": hit.origin} if hit.origin else {}
    notes = {stage: note for stage, note in hit.notes.items() if isinstance(note, str)}
    return {
        "id": hit.chunk.id,
        "title": hit.chunk.title,
        "rank": hit.rank,
        "distance": hit.distance,
        **{kind: value for kind, value in hit.scores.items() if kind != "distance"},
        **({RANKS: dict(hit.notes[RANKS])} if RANKS in hit.notes else {}),
        "relevant": grade,
        **origin,
        **({"notes": notes} if notes else {}),
    }


def drop_json(drop: Drop, outcome: Outcome) -> dict[str, Any]:
    """A dropped hit with the stage, the reason and what would have kept it."""
    return {
        **hit_json(drop.hit, outcome.case.grades.get(drop.hit.chunk.id)),
        "stage": drop.stage,
        "reason": drop.reason.text,
        "value": drop.reason.value,
        "threshold": drop.reason.threshold,
        "would_keep": [
            {"parameter": found.parameter, "value": found.value, "text": found.text}
            for found in outcome.counterfactuals.get(drop.hit.key, ())
        ],
    }


def step_json(step: Any) -> dict[str, Any]:
    """One stage's step: counts, time and the facts that are plain values."""
    facts: dict[str, Any] = {
        name: value for name, value in step.facts.items() if isinstance(value, str | int | float | bool | type(None))
    }
    facts |= {name: list(step.facts[name]) for name in LISTED if name in step.facts}
    return {"stage": step.stage, "in": step.entered, "out": step.left, "milliseconds": step.milliseconds, **facts}


def trace_text(result: Candidates) -> list[str]:
    """The trace as lines of text for people: stages, the cut with its distances and gaps, what stays and why not."""
    text = [f"query {result.query.id}: {result.query.text}"]
    for step in result.steps:
        cls = maker(step)
        text.append(f"  {step.stage}: {step.entered} in, {step.left} out")
        if (line := cls.said(step)) != Stage.said(step):
            text.append(f"    {line}")
        text.extend(f"    {line}" for line in cls.details(step))
    text.extend(f"  kept     rank {hit.rank:>3}  {hit.chunk.id}" for hit in result.hits)
    text.extend(
        f"  dropped  rank {drop.hit.rank:>3}  {drop.hit.chunk.id}  {drop.stage}: {drop.reason.text}"
        for drop in result.drops
    )
    text.extend(f"  warning  {notice.stage} {notice.chunk_id}: {notice.text}" for notice in result.notices)
    return text
