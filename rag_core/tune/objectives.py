"""What a search can seek: measures, how much is kept, time and cost; and which settings no other beats.

Measures and chunks kept come out of arrays (chain.py); tokens, time and cost are read off a plain run, whose stages say
what their model calls took and cost, also where a stored answer stood in for the call. How settings are sought is in
search.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rag_core.errors import InputError
from rag_core.measure.experiment import PipelineReport, run
from rag_core.measure.measures import SET_MEASURES
from rag_core.stage import Pipeline
from rag_core.types import Case, Step

OBJECTIVES: Mapping[str, str] = {
    "SetF": "maximize", "SetP": "maximize", "SetR": "maximize", "kept_mean": "minimize", "kept_tokens": "minimize",
    "latency_ms": "minimize", "cost": "minimize",
}  # fmt: skip
"""What can be sought and in which direction, means over queries. kept_tokens: at 4 characters each. latency_ms: of the
stages here, with the recorded time of answers that were stored, calls one after the other; the search that made the
list is not in it. cost: of the model calls, as if none was stored."""

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class SearchedSetting:
    """One line of a search's table: settings by axis name, the objectives' values, whether the floor is reached."""

    name: str
    settings: Mapping[str, Any]
    values: Mapping[str, float]
    feasible: bool


def measured(cases: Sequence[Case], pipeline: Pipeline, names: Sequence[str]) -> dict[str, float]:
    """Those of the objectives that only a plain run tells. InputError where a model call has no known price."""
    wanted = [name for name in names if name in _OF_A_RUN]
    if not wanted:
        return {}
    report = run(cases, pipeline, measures=SET_MEASURES)
    return {name: _OF_A_RUN[name](report) for name in wanted}


def kept_tokens(report: PipelineReport) -> float:
    """Mean number of tokens kept per query, estimated at 4 characters each."""
    characters = [sum(len(hit.chunk.text) for hit in outcome.result.hits) for outcome in report.outcomes]
    return fmean(characters) / CHARACTERS_PER_TOKEN


def latency_ms(report: PipelineReport) -> float:
    """Mean milliseconds per query that the stages take, each at least as long as its model calls took."""
    return fmean(sum(map(_milliseconds, outcome.result.steps)) for outcome in report.outcomes)


def _milliseconds(step: Step) -> float:
    return max(step.milliseconds, float(sum(step.facts.get("call_milliseconds", ()))))


def cost(report: PipelineReport) -> float:
    """Mean cost of the model calls per query, as if no answer had been stored; 0 without any call."""
    total = 0.0
    for outcome in report.outcomes:
        for step in outcome.result.steps:
            own = step.facts.get("cost_without_cache", 0.0)
            if own is None:
                raise InputError(f"query {outcome.case.query.id}: {step.stage} has calls of unknown cost, set a price")
            total += float(own)
    return total / len(report.outcomes)


_OF_A_RUN: Mapping[str, Callable[[PipelineReport], float]] = {
    "kept_tokens": kept_tokens,
    "latency_ms": latency_ms,
    "cost": cost,
}


def pareto_front(rows: Sequence[SearchedSetting]) -> tuple[SearchedSetting, ...]:
    """The feasible rows that no feasible row beats: at least as good in all objectives and better in one."""
    able = [row for row in rows if row.feasible]
    return tuple(row for row in able if not any(beats(other, row) for other in able))


def beats(one: SearchedSetting, other: SearchedSetting) -> bool:
    """Whether a row is at least as good as another in all objectives and better in one."""
    signed = [
        (one.values[name] - other.values[name]) * (1 if OBJECTIVES[name] == "maximize" else -1) for name in one.values
    ]
    return min(signed) >= -1e-12 and max(signed) > 1e-12


def best_row(rows: Sequence[SearchedSetting], objective: str) -> SearchedSetting | None:
    """The feasible row with the best value of one objective, the first of equals; None where none is feasible."""
    sign = 1 if OBJECTIVES[objective] == "maximize" else -1
    able = [row for row in rows if row.feasible]
    return max(able, key=lambda row: sign * row.values[objective], default=None)
