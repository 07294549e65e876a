"""What single pipelines give on the dev queries of a study: means, outcomes, every fixed k, the front of the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pages.components.tuning import MEASURES, UNIT, Study
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import Outcome, run
from rag_core.measure.measures import SET_MEASURES
from rag_core.stage import Pipeline
from rag_core.tune import chain
from rag_core.tune.grid import Axis
from rag_core.types import Case


@dataclass(frozen=True, slots=True)
class Point:
    """Mean precision, recall and F of one pipeline over the queries it names."""

    name: str
    SetP: float
    SetR: float
    SetF: float
    kept: float
    queries: int


def point(name: str, cases: Sequence[Case], pipeline: Pipeline, min_grade: int) -> Point:
    """One pipeline's means, from a plain run."""
    report = run(cases, pipeline, min_grade, SET_MEASURES)
    means = {name: report.summary.means[name] or 0.0 for name in MEASURES}
    kept = sum(outcome.scores.kept for outcome in report.outcomes) / len(report.outcomes)
    return Point(name, **means, kept=kept, queries=report.summary.queries_scored)


def outcomes(study: Study, pipeline: Pipeline) -> tuple[Outcome, ...]:
    """Every dev query through what a pipeline has behind the stages in front."""
    tail = Pipeline(pipeline.stages[len(study.front) :], label=pipeline.label)
    return run(study.fronted, tail, study.min_grade, SET_MEASURES).outcomes


def references(study: Study) -> dict[str, Pipeline]:
    """What a setting may be held against, by name: the best fixed k first."""
    k, pipeline = study.baseline
    found = {f"best fixed k ({k})": pipeline, "no cut": Pipeline(study.front)}
    return found | ({"chosen setting": study.choice.pipeline} if study.choice else {})


@lru_cache(maxsize=12)
def fixed_ks(study: Study) -> list[Point]:
    """Every fixed k from 1 to 50 (or the longest list) behind the same stages in front, over the dev queries."""
    longest = min(50, max(int(study.lists.lengths.max()), 1))
    axis = Axis("k", "TopK", "k", tuple(range(1, longest + 1)))
    table = chain.sweep(study.dev, Pipeline((*study.front, TopK())), (axis,), min_grade=study.min_grade)
    return [
        Point(f"fixed k {row['k']}", row["SetP"], row["SetR"], row["SetF"], row["kept_mean"], len(study.dev))
        for row in table.rows()
    ]


@lru_cache(maxsize=12)
def front_of(study: Study) -> list[dict[str, Any]]:
    """The settings of the plane that no other beats in both mean precision and mean recall, by rising recall."""
    best: list[dict[str, Any]] = []
    for row in sorted(study.table.rows(), key=lambda row: (-row["SetR"], -row["SetP"])):
        if not best or row["SetP"] > best[-1]["SetP"] + UNIT:
            best.append(row)
    return best[::-1]
