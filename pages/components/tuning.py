"""What the pages Tune and Headroom compute on: the queries to choose on, a stage in front, every setting at once.

Everything comes from rag_core.evaluate by the path of the command `tune`, so that page and command say the same. What
single pipelines give is in tuning_points.py, looking at the held-out queries in tuning_held_out.py. Nothing here draws.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, floor, log10
from typing import Any

import numpy as np

from rag_core.cli.tuning import swept_pipeline
from rag_core.errors import InputError
from rag_core.eval_sets.split import near_duplicates
from rag_core.measure.scores import score
from rag_core.spec import read_pipeline
from rag_core.stage import Pipeline
from rag_core.tune import chain
from rag_core.tune import tune as tuning
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.lists import Lists
from rag_core.tune.variants import Captures
from rag_core.types import Case

FRONTS: Mapping[str, tuple[str, str]] = {
    "none": ("none", "unfiltered"),
    "rules": ("query_must", '[{"QueryMust": {}}]'),
    "refill": ("refill", '[{"Requery": {}}]'),
}
"""What may stand in front of the cut: words for people, and the spec."""

MEASURES = ("SetF", "SetP", "SetR")
STEPS = 60  # of each axis of the plane
FOLDS = 5
UNIT = 1e-9
Marker = tuple[float, float]
"""Gap threshold and offset."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a person chose on the page."""

    front: str = "none"
    objective: str = "SetF"
    recall: float = 0.0  # least mean SetR; 0: none is asked for
    policy: str = "largest"
    min_results: int = 2
    max_results: int = 15

    @property
    def floor(self) -> tuple[str, float] | None:
        """The constraint as the library takes it."""
        return ("SetR", self.recall) if self.recall > 0 else None

    @property
    def spec(self) -> str:
        """The pipeline to sweep, as `--pipeline` takes it."""
        adaptive = {"min_results": self.min_results, "max_results": self.max_results, "gap_policy": self.policy}
        return json.dumps([*_stages(FRONTS[self.front][1]), {"AdaptiveGap": adaptive}])


def _stages(spec: str) -> list[Any]:
    return [] if not spec.startswith("[") else list(json.loads(spec))


@dataclass(frozen=True, eq=False)
class Study:
    """One eval set under one question: its queries, its plane, its choice. Test queries are held, never scored."""

    ask: Ask
    cases: tuple[Case, ...]  # every query, labelled or not
    dev: tuple[Case, ...]  # those the plane and the choice are made on
    test: tuple[Case, ...]
    min_grade: int
    grid: str
    pipeline: Pipeline
    table: chain.Table
    lists: Lists  # of the dev queries, as the cut gets them
    choice: tuning.Choice | None  # None: too few queries, or no setting reaches what is asked
    crossed: tuning.CrossValidated | None
    problem: str = ""  # why there is no choice

    @property
    def gaps(self) -> Sequence[float]:
        """The thresholds of the plane, ascending."""
        return self.table.axes[0].values

    @property
    def offsets(self) -> Sequence[float]:
        """The offsets of the plane, ascending."""
        return self.table.axes[1].values

    @property
    def best(self) -> tuple[float, float]:
        """Threshold and offset to start from: the chosen setting, else the plane's best."""
        if self.choice is not None:
            return float(self.choice.settings["gap_threshold"]), float(self.choice.settings["distance_offset"])
        found = self.table.best_at(self.ask.objective)
        return (float(found[0]), float(found[1])) if found else (self.gaps[0], self.offsets[0])

    @property
    def front(self) -> tuple[Any, ...]:
        """The stages in front of the cut."""
        return tuning.stages_in_front(self.pipeline, self.table.axes)

    @cached_property
    def fronted(self) -> tuple[Case, ...]:
        """The dev queries with the lists that come to the cut."""
        starts = Captures(self.dev, self.min_grade).after(self.front).starts
        return tuple(replace(case, candidates=start) for case, start in zip(self.dev, starts, strict=True))

    @cached_property
    def baseline(self) -> tuple[int, Pipeline]:
        """The best fixed k of the dev queries, and its pipeline."""
        if self.choice is not None:
            return self.choice.baseline_k, self.choice.baseline
        ask = self.ask
        pipeline, k, _ = tuning.fixed_k(self.dev, self.front, ask.objective, ask.floor, self.min_grade)
        return k, pipeline

    def at(self, gap: float, offset: float) -> Pipeline:
        """The whole pipeline at a setting."""
        values = {"gap_threshold": gap, "distance_offset": offset}
        return replace(
            pipeline_at(self.pipeline, [(axis, values[axis.setting]) for axis in self.table.axes]), label="tuned"
        )


def study(cases: Sequence[Case], ask: Ask, min_grade: int) -> Study:
    """Split, plane, choice and folds. InputError where no query is labelled or the lists cannot be cut by distance."""
    labelled = [case for case in cases if score([], case.grades, case.relevant_total, min_grade, ()).scored]
    if not labelled:
        raise InputError(f"none of {len(cases)} queries has a relevant label, expected at least one")
    dev, test = tuning.dev_and_test(cases, None, 0, min_grade) if len(labelled) > 1 else (labelled, [])
    front = read_pipeline(FRONTS[ask.front][1])
    lists = Captures(dev, min_grade).after(front.stages).lists
    grid = grid_of(lists, ask)
    pipeline, axes = swept_pipeline(ask.spec, "AdaptiveGap", grid)
    table = chain.sweep(dev, pipeline, axes, min_grade=min_grade)
    choice, crossed, problem = None, None, ""
    try:
        choice, crossed = _choose(dev, pipeline, axes, ask, min_grade) if test else (None, None)
    except InputError as error:
        problem = str(error)
    if not test:
        problem = "one labelled query is none to choose on and none to judge on: two are the least, dozens are better"
    return Study(
        ask, tuple(cases), tuple(dev), tuple(test), min_grade, grid, pipeline, table, lists, choice, crossed, problem
    )


def _choose(
    dev: list[Case], pipeline: Pipeline, axes: tuple[Axis, ...], ask: Ask, min_grade: int
) -> tuple[tuning.Choice, tuning.CrossValidated | None]:
    """The choice as the command makes it, and its folds; no folds where a fold cannot reach what is asked."""
    choice = tuning.choose(dev, pipeline, axes, ask.objective, floor=ask.floor, min_grade=min_grade)
    folds = min(FOLDS, len(near_duplicates([case.query for case in dev])))
    if folds < 2:
        return choice, None
    chooser = partial(
        tuning.choose, pipeline=pipeline, axes=axes, objective=ask.objective, floor=ask.floor, min_grade=min_grade
    )
    try:
        return choice, tuning.cross_validate(dev, chooser, ask.objective, folds=folds, min_grade=min_grade)
    except InputError:
        return choice, None


def grid_of(lists: Lists, ask: Ask) -> str:
    """A grid that reaches just past the largest gap and the widest list: beyond it nothing changes."""
    looked = np.minimum(lists.lengths, ask.max_results)
    rows = [row[:length] for row, length in zip(lists.distances, looked, strict=True) if length > 1]
    widest = max((int(row[-1] - row[0]) for row in rows), default=0) * UNIT
    largest = max((int(np.diff(row)[1:].max()) for row in rows if len(row) > 2), default=0) * UNIT
    gap = 1.0 if ask.policy == "relative" else rounded_up(largest)
    return f"gap_threshold=0:{gap:g}:{STEPS + 1},distance_offset=0:{rounded_up(widest):g}:{STEPS + 1}"


def rounded_up(value: float) -> float:
    """The next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten; 0.1 for nothing at all."""
    if value <= 0:
        return 0.1
    power = 10.0 ** floor(log10(value))
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return round(next((step for step in steps if step * power >= value * 1.0001), ceil(value / power)) * power, 12)
