"""Search beyond the plane: any mixture of stage settings, by Optuna, in a study that processes share and resume.

For what a sweep cannot list: many settings at once, or two objectives against each other. A study may be kept in a
storage of Optuna (store/studies.py opens a workspace's); a killed process loses the trial under way and nothing else.
Trials are judged on the captured lists, and the best fixed k stands in every table. One plane of thresholds needs none
of this: its optimum is exact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from rag_core.errors import Cancelled, InputError
from rag_core.eval_sets.reading import labels_fingerprint
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.tune.chain import QUANTITIES, means_of
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.objectives import OBJECTIVES, SearchedSetting, best_row, measured, pareto_front
from rag_core.tune.studies import SAMPLERS, answering, finished, labels, sampler_of, suggested
from rag_core.tune.tune import Choice, Floor, fixed_k, stages_in_front
from rag_core.tune.variants import Captures
from rag_core.types import Case

MOST_CELLS = 100_000  # sampler grid lists them all
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found. `front`: the rows that no other beats; for one objective the best one and its equals."""

    objectives: tuple[str, ...]
    baseline: SearchedSetting
    rows: tuple[SearchedSetting, ...]  # every finished trial, in order
    front: tuple[SearchedSetting, ...]  # trials only, feasible ones
    baseline_pipeline: Pipeline

    @property
    def table(self) -> tuple[SearchedSetting, ...]:
        """The baseline, then the front."""
        return (self.baseline, *self.front)

    @property
    def best(self) -> SearchedSetting | None:
        """The feasible trial that is best by the first objective, the first of equals."""
        return best_row(self.rows, self.objectives[0])


@dataclass(frozen=True)
class _Task:
    """What every trial is judged on."""

    captures: Captures
    pipeline: Pipeline
    axes: tuple[Axis, ...]
    objectives: tuple[str, ...]
    floor: Floor | None

    def judge(self, pipeline: Pipeline) -> tuple[dict[str, float], float]:
        """The objectives of one pipeline, and by how much it misses the floor (0: it reaches it)."""
        means = dict(zip(QUANTITIES, map(float, means_of(self.captures, pipeline)), strict=True))
        means |= measured(self.captures.cases, pipeline, self.objectives)
        short = 0.0 if self.floor is None else self.floor[1] - means[self.floor[0]]
        return {name: means[name] for name in self.objectives}, short if short > 1e-12 else 0.0

    def key(self) -> str:
        """What makes two searches the same study: queries and labels, pipeline, axes, objectives and floor."""
        axes = [[axis.name, axis.stage, axis.setting, list(axis.values)] for axis in self.axes]
        cases = self.captures.cases
        parts = [labels_fingerprint(cases), fingerprint(self.pipeline), axes, self.objectives, self.floor]
        return hashlib.sha256(json.dumps([*parts, self.captures.min_grade]).encode()).hexdigest()[:16]


def search(
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    *,
    objectives: Sequence[str] = ("SetF",),
    floor: Floor | None = None,
    sampler: str = "tpe",
    trials: int = 200,
    storage: Any = None,
    name: str = "search",
    min_grade: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Search:
    """Seek settings until the study holds `trials` finished trials, those of other processes and earlier runs included.

    Numbers of a range are sought between its ends, choices among themselves; sampler `grid` takes the grid's own
    values. With `storage`, one of Optuna's, the study is kept there under its name; one of another task is
    refused. InputError for an unknown objective or sampler, StoreError where the storage fails. A `progress` that
    raises ends this process' part, finished trials stay; after Cancelled they are given.
    """
    _check(objectives, sampler, trials, axes)
    task = _Task(Captures(cases, min_grade), pipeline, tuple(axes), tuple(objectives), floor)
    with answering():
        study = _study(task, sampler, storage, name, seed)
        with suppress(Cancelled):
            _run(study, task, sampler, trials, progress)
        rows = tuple(_row(trial, task) for trial in finished(study))
    baseline, fixed = _baseline(task, cases, min_grade)
    return Search(task.objectives, baseline, rows, pareto_front(rows), fixed)


def _check(objectives: Sequence[str], sampler: str, trials: int, axes: Sequence[Axis]) -> None:
    unknown = [one for one in objectives if one not in OBJECTIVES]
    if unknown or not objectives:
        raise InputError(f"objectives are {list(objectives)}, expected some of {', '.join(OBJECTIVES)}")
    if sampler not in SAMPLERS:
        raise InputError(f"sampler is {sampler[:80]!r}, expected one of {', '.join(SAMPLERS)}")
    if trials < 1:
        raise InputError(f"trials is {trials}, expected at least 1")
    cells = prod(len(axis.values) for axis in axes)
    if sampler == "grid" and cells > MOST_CELLS:
        raise InputError(f"the grid has {cells:,} settings, expected at most {MOST_CELLS:,} for sampler grid")


def _study(task: _Task, sampler: str, storage: Any, name: str, seed: int) -> Any:
    """The study, made or found; one of another task under this name is refused."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions: Any = [OBJECTIVES[one] for one in task.objectives]
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        directions=directions,
        sampler=sampler_of(task.axes, sampler, None if storage is not None else seed),
        load_if_exists=True,
    )
    held = study.user_attrs.get("task")
    if held not in (None, task.key()):
        raise InputError(
            f"study {name[:80]!r} is of another pipeline, grid or eval set, expected a new name for this one"
        )
    study.set_user_attr("task", task.key())
    return study


def _run(study: Any, task: _Task, sampler: str, trials: int, progress: Progress | None) -> None:
    """Trials until the study has enough; possible settings only, an impossible one counts as pruned."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    def objective(trial: Any) -> tuple[float, ...]:
        settings = {axis.name: suggested(trial, axis, sampler == "grid") for axis in task.axes}
        try:
            pipeline = pipeline_at(task.pipeline, [(axis, settings[axis.name]) for axis in task.axes])
        except InputError as error:
            raise TrialPruned from error
        values, short = task.judge(pipeline)
        trial.set_user_attr("feasible", not short)
        if task.floor is not None:
            trial.set_constraint("floor", short)
        return tuple(values[name] for name in task.objectives)

    def after(study: Any, _: Any) -> None:
        done = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
        if progress is not None:
            progress(min(done, trials), trials)
        if done >= trials:
            study.stop()

    missing = trials - len(finished(study))
    if missing > 0:
        study.optimize(objective, n_trials=20 * missing, callbacks=[after])


def _row(trial: Any, task: _Task) -> SearchedSetting:
    values = dict(zip(task.objectives, trial.values, strict=True))
    settings = {axis.name: labels(axis).get(held := trial.params[axis.name], held) for axis in task.axes}
    return SearchedSetting(f"trial {trial.number}", settings, values, bool(trial.user_attrs.get("feasible", True)))


def measure_of(objectives: Sequence[str]) -> str:
    """The first of the objectives that is a measure of quality, else SetF: what a choice is judged by."""
    return next((name for name in objectives if name.startswith("Set")), "SetF")


def _baseline(task: _Task, cases: Sequence[Case], min_grade: int) -> tuple[SearchedSetting, Pipeline]:
    """The best fixed k by the first of the objectives that is a measure, else by SetF."""
    front = stages_in_front(task.pipeline, task.axes)
    baseline, k, _ = fixed_k(cases, front, measure_of(task.objectives), task.floor, min_grade)
    values, short = task.judge(baseline)
    return SearchedSetting(baseline.label, {"k": k}, values, not short), baseline


def choice_of(
    found: Search,
    row: SearchedSetting,
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    min_grade: int = 1,
) -> Choice:
    """A row of a search over these cases as `tune.choose` gives one, beside the search's best fixed k."""
    chosen = replace(pipeline_at(pipeline, [(axis, row.settings[axis.name]) for axis in axes]), label="found")
    by, captures = QUANTITIES.index(measure_of(found.objectives)), Captures(cases, min_grade)
    value, fixed = (float(means_of(captures, one)[by]) for one in (chosen, found.baseline_pipeline))
    return Choice(chosen, row.settings, value, found.baseline_pipeline, int(found.baseline.settings["k"]), fixed)
