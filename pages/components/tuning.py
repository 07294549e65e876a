"""What the pages Tune and Headroom compute on: the queries to choose on, a stage in front, every setting at once.

Everything comes from rag_core.evaluate by the path of the command `tune`, so that page and command say the same. Here
is also what keeps the held-out queries unseen: nothing but `judged` scores them. Nothing here draws.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.cli.tuning import swept_pipeline
from rag_core.errors import InputError
from rag_core.evaluate import chain, judgement
from rag_core.evaluate import tune as tuning
from rag_core.evaluate.experiment import Outcome, run
from rag_core.evaluate.grid import Axis, pipeline_at
from rag_core.evaluate.lists import Lists
from rag_core.evaluate.looks import held_out_key, look, looks
from rag_core.evaluate.measures import SET_MEASURES
from rag_core.evaluate.scores import score
from rag_core.evaluate.split import near_duplicates
from rag_core.evaluate.variants import Captures
from rag_core.filters.cutoff import TopK
from rag_core.spec import fingerprint, read_pipeline
from rag_core.stage import Pipeline
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


def fixed_ks(study: Study) -> list[Point]:
    """Every fixed k from 1 to 50 (or the longest list) behind the same stages in front, over the dev queries."""
    longest = min(50, max(int(study.lists.lengths.max()), 1))
    axis = Axis("k", "TopK", "k", tuple(range(1, longest + 1)))
    table = chain.sweep(study.dev, Pipeline((*study.front, TopK())), (axis,), min_grade=study.min_grade)
    return [
        Point(f"fixed k {row['k']}", row["SetP"], row["SetR"], row["SetF"], row["kept_mean"], len(study.dev))
        for row in table.rows()
    ]


def front_of(study: Study) -> list[dict[str, Any]]:
    """The settings of the plane that no other beats in both mean precision and mean recall, by rising recall."""
    best: list[dict[str, Any]] = []
    for row in sorted(study.table.rows(), key=lambda row: (-row["SetR"], -row["SetP"])):
        if not best or row["SetP"] > best[-1]["SetP"] + UNIT:
            best.append(row)
    return best[::-1]


def seen(study: Study, workspace: Path) -> int:
    """How often the held-out queries were looked at so far."""
    return looks(workspace, held_out_key(study.test)) if study.test else 0


def judged(study: Study, workspace: Path) -> judgement.Judgement:
    """Look at the held-out queries once more, write the look down, and judge the choice on them.

    InputError where there is no choice.
    """
    if study.choice is None:
        raise InputError(f"there is no choice to judge, {study.problem}")
    times = look(workspace, held_out_key(study.test), fingerprint(study.choice.pipeline))
    return judgement.judge(
        study.test,
        study.choice,
        study.ask.objective,
        given=study.pipeline,
        looks=times,
        min_grade=study.min_grade,
    )


def before_judging(study: Study, times: int) -> str:
    """What the dev queries say, in words, while the held-out ones are not looked at."""
    choice, name = study.choice, study.ask.objective
    if choice is None:
        return f"There is no setting to recommend: {study.problem}."
    text = (
        f"On {len(study.dev)} dev queries {name} {choice.value:.3f} vs {choice.baseline_value:.3f} for "
        f"{choice.baseline.label}; dev figures promise too much, because the setting was chosen on them."
    )
    if study.crossed is not None:
        crossed = study.crossed
        text += (
            f" Chosen on the other folds and judged on each of {crossed.folds}: {crossed.value:.3f}, "
            f"{crossed.gain:+.3f} over the best fixed k."
        )
    done = f"looked at {times} time{'s' if times != 1 else ''} before" if times else "never looked at yet"
    return f"{text} The {len(study.test)} held-out queries: {done}."


def setting_words(study: Study) -> str:
    """The chosen setting as a person reads it."""
    gap, offset = study.best
    kind = "share of the span" if study.ask.policy == "relative" else "distance"
    return f"gap threshold {gap:.4f} ({kind}), offset {offset:.4f} (distance)"
