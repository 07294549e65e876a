"""The LLM filter as a classifier: decisions against labels, harm and misses, what it costs and what it gains.

Reads what runs left in their traces; asks no model. A candidate without a label counts as irrelevant, and how many of
the decided ones have a label stands beside every figure.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import fmean
from typing import Any

from rag_core.filters.llm import LLMFilter
from rag_core.filters.llm.deciding import CAUSES, FLOOR, MODEL
from rag_core.labelling.agreement import cohen_kappa
from rag_core.measure.experiment import Outcome, PipelineReport, kept_ids
from rag_core.types import Step

STAGE = LLMFilter.__name__
DROPPED = ("DISCARD", "not mentioned")
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of the model beside the label."""

    query_id: str
    chunk_id: str
    action: str
    relevant: bool
    labelled: bool

    @property
    def kept(self) -> bool:
        """Whether the model wanted the chunk."""
        return self.action not in DROPPED

    @property
    def right(self) -> bool:
        """Whether it was right."""
        return self.kept == self.relevant


def step_of(outcome: Outcome) -> Step | None:
    """The LLM filter's step in a trace, None where it has none."""
    return next((step for step in outcome.result.steps if step.stage == STAGE), None)


def decisions_of(report: PipelineReport) -> list[Decided]:
    """Every decision the model made in a report; candidates left undecided are not among them."""
    return list(_decisions(report))


def _decisions(report: PipelineReport) -> Iterator[Decided]:
    for outcome in report.outcomes:
        step, grades = step_of(outcome), outcome.case.grades
        for chunk, action in (step.facts.get("decisions", {}) if step else {}).items():
            if action != UNDECIDED:
                relevant = grades.get(chunk, 0) >= report.min_grade
                yield Decided(outcome.case.query.id, chunk, action, relevant, chunk in grades)


def classifier(report: PipelineReport) -> dict[str, Any]:
    """How well the decisions agree with the labels: share right, kappa, and per action its share of relevant chunks.

    `false_drops` are relevant chunks the model threw away, `false_keeps` irrelevant ones it kept.
    """
    made = decisions_of(report)
    labelled = [one for one in made if one.labelled]
    return {
        "decided": len(made),
        "decided_labelled": len(labelled),
        "agreement": _share([one.right for one in made]),
        "agreement_labelled": _share([one.right for one in labelled]),
        "kappa": cohen_kappa([int(one.kept) for one in made], [int(one.relevant) for one in made]) if made else None,
        "actions": {action: _action(made, action) for action in sorted({one.action for one in made})},
        "false_drops": sum(one.relevant and not one.kept for one in made),
        "false_keeps": sum(one.kept and not one.relevant for one in made),
    }


def _action(made: Sequence[Decided], action: str) -> dict[str, Any]:
    """How often an action was given, which share of it is relevant, which share of the relevant chunks it holds."""
    given = [one.relevant for one in made if one.action == action]
    relevant = sum(one.relevant for one in made)
    recall = sum(given) / relevant if relevant else None
    return {"count": len(given), "relevant": _share(given), "of_relevant": recall}


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def false_drops(report: PipelineReport) -> list[dict[str, Any]]:
    """The relevant chunks the model threw away, with title, text and its reason."""
    rows = []
    for outcome in report.outcomes:
        for drop in outcome.result.drops:
            grade = outcome.case.grades.get(drop.hit.chunk.id, 0)
            if drop.stage == STAGE and grade >= report.min_grade and drop.reason.text.startswith(DROPPED):
                chunk = drop.hit.chunk
                row = {"query": outcome.case.query.id, "id": chunk.id, "title": chunk.title, "text": chunk.text}
                rows.append({**row, "grade": grade, "reason": drop.reason.text})
    return rows


def irrelevant_removed(report: PipelineReport, baseline: PipelineReport) -> float | None:
    """The share of the baseline's irrelevant chunks that a report has fewer, net of what expansion brings."""
    before, after = sum(irrelevant_kept(baseline)), sum(irrelevant_kept(report))
    return 1 - after / before if before else None


def irrelevant_kept(report: PipelineReport) -> list[int]:
    """How many chunks that are not labelled relevant each question's list has."""
    return [
        sum(outcome.case.grades.get(name, 0) < report.min_grade for name in kept_ids(outcome.result))
        for outcome in report.outcomes
    ]


def losses(report: PipelineReport) -> dict[str, Any]:
    """What became of the relevant chunks that search put into the lists: kept, or lost to which step of the filter.

    `listed` is `kept` and all `lost` together; `brought` are relevant chunks that only references brought. A judge that
    never errs loses all that `floor` and `oversample` lose, and no figure of its decisions says so.
    """
    lost = dict.fromkeys(CAUSES, 0)
    kept = brought = 0
    for outcome in report.outcomes:
        step, grades = step_of(outcome), outcome.case.grades
        causes = step.facts.get("causes", {}) if step else {}
        staying, entered = kept_ids(outcome.result), {hit.chunk.id for hit in outcome.result.hits if not hit.origin}
        for chunk in {name for name, grade in grades.items() if grade >= report.min_grade}:
            if chunk in staying:
                listed = chunk in entered or chunk in causes
                kept, brought = kept + listed, brought + (not listed)
            elif chunk in causes:
                lost[causes[chunk]] += 1
    return {"listed": kept + sum(lost.values()), "kept": kept, "lost": lost, "brought": brought}


def floor_warning(row: Mapping[str, Any], floor: float) -> str:
    """'' or the sentence that the floor costs more relevant chunks than the model."""
    lost = row["relevant"]["lost"]
    if lost[FLOOR] <= lost[MODEL]:
        return ""
    return (
        f"{row['name']}: the floor of {floor:g} loses {lost[FLOOR]} of {row['relevant']['listed']} relevant chunks "
        f"unread, the model {lost[MODEL]}"
    )


def spent(report: PipelineReport, concurrency: int) -> dict[str, Any]:
    """Calls, tokens, cost, fallbacks and the time the filter adds to a query where its calls run side by side."""
    facts = [step.facts for outcome in report.outcomes if (step := step_of(outcome)) is not None]
    added = sorted(makespan(one.get("call_milliseconds", ()), concurrency) for one in facts)
    costs = [one.get("cost_without_cache") for one in facts]
    known = [cost for cost in costs if cost is not None]
    prompts, failed = _total(facts, "prompts"), _total(facts, "prompts_failed")
    priced = len(known) == len(costs) and (failed < prompts or not prompts)  # without an answer no price is known
    return {
        "prompts": prompts,
        "prompts_failed": failed,
        "cache_hits": _total(facts, "cache_hits"),
        "prompt_tokens": _total(facts, "prompt_tokens"),
        "completion_tokens": _total(facts, "completion_tokens"),
        "cost": sum(known) if priced else None,
        "retries": _total(facts, "retries"),
        "fallback_rate": _share([bool(one.get("fallback_used")) for one in facts]),
        "order_flips": _total(facts, "order_flips"),
        "kept_mean": fmean([len(kept_ids(outcome.result)) for outcome in report.outcomes]) if report.outcomes else None,
        "added_ms_p50": percentile(added, 0.5),
        "added_ms_p95": percentile(added, 0.95),
    }


def is_silent(row: Mapping[str, Any]) -> bool:
    """Whether no call of a variant was answered: its lists are those of no model, and no figures of one."""
    return bool(row["prompts"]) and row["prompts_failed"] == row["prompts"]


def _total(facts: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(one.get(name, 0) for one in facts)


def makespan(durations: Sequence[float], workers: int) -> float:
    """When the last call ends if `workers` take them in order, each as soon as it is free."""
    free = [0.0] * max(1, workers)
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def percentile(ascending: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of sorted values; None of none."""
    return ascending[max(0, ceil(share * len(ascending)) - 1)] if ascending else None


def figures(report: PipelineReport, baseline: PipelineReport, concurrency: int) -> dict[str, Any]:
    """All figures of one variant beside the baseline without the model."""
    means, usual = report.summary.means, baseline.summary.means
    used = spent(report, concurrency)
    gain = None if means["SetF"] is None or usual["SetF"] is None else 100 * (means["SetF"] - usual["SetF"])
    per_point = used["cost"] / gain if used["cost"] is not None and gain is not None and gain > 0 else None
    return {
        "name": report.name,
        **{name: means[name] for name in ("SetP", "SetR", "SetF")},
        "irrelevant_removed": irrelevant_removed(report, baseline),
        **classifier(report),
        "relevant": losses(report),
        **used,
        "cost_per_point": per_point,
    }


def repeatability(reports: Sequence[PipelineReport]) -> float | None:
    """The share of (query, chunk) pairs, decided in every one of several runs, on which all agree; None under two."""
    runs = [{(one.query_id, one.chunk_id): one.action for one in _decisions(report)} for report in reports]
    if len(runs) < 2:
        return None
    common = set.intersection(*(set(run) for run in runs))
    return _share([len({run[pair] for run in runs}) == 1 for pair in common])


@dataclass(frozen=True, slots=True)
class SimulatedRow:
    """A simulated judge of one error rate and seed: what it reaches and what it costs."""

    error_rate: float
    seed: int
    precision: float | None
    recall: float | None
    f1: float | None
    cost: float | None
    prompts: int
    prompt_tokens: int


def simulated_rows(
    run: Callable[[float, int], PipelineReport], error_rates: Sequence[float], seeds: Sequence[int]
) -> list[SimulatedRow]:
    """`run(error rate, seed)` for every pair, as rows."""
    rows = []
    for rate in error_rates:
        for seed in seeds:
            report = run(rate, seed)
            means, used = report.summary.means, spent(report, 1)
            scores = (means["SetP"], means["SetR"], means["SetF"])
            rows.append(SimulatedRow(rate, seed, *scores, used["cost"], used["prompts"], used["prompt_tokens"]))
    return rows


def break_even(rows: Sequence[SimulatedRow], free_f1: float) -> float | None:
    """The error rate at which a judge's mean F1 falls to that of a free filter, by straight lines between rates.

    None where no tried rate is better, or where all are.
    """
    points = [
        (rate, fmean([row.f1 or 0.0 for row in rows if row.error_rate == rate]))
        for rate in sorted({row.error_rate for row in rows})
    ]
    for (rate, above), (further, below) in pairwise(points):
        if above >= free_f1 > below:
            return rate + (further - rate) * (above - free_f1) / (above - below)
    return None
