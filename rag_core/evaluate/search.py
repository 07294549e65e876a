"""Search beyond the plane: any mixture of stage settings, by Optuna, in a study that processes share and resume.

For what a sweep cannot list: many settings at once, or two objectives against each other. The studies live in a SQLite
file of their own; a killed process loses the trial under way and nothing else. Trials are judged on the captured lists,
and the best fixed k stands in every table. One plane of thresholds needs none of this: its optimum is exact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.evaluate.chain import QUANTITIES, means_of
from rag_core.evaluate.experiment import run
from rag_core.evaluate.grid import Axis, pipeline_at
from rag_core.evaluate.measures import SET_MEASURES
from rag_core.evaluate.sets import labels_fingerprint
from rag_core.evaluate.tune import Floor, fixed_k, stages_in_front
from rag_core.evaluate.variants import Captures
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.types import Case

SAMPLERS = ("tpe", "random", "grid", "nsga2")
OBJECTIVES: Mapping[str, str] = {
    "SetF": "maximize", "SetP": "maximize", "SetR": "maximize", "kept_mean": "minimize", "kept_tokens": "minimize",
}  # fmt: skip
"""What can be sought and in which direction. kept_tokens is the mean number of tokens kept, at 4 characters each."""

CHARACTERS_PER_TOKEN = 4
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a search's table: settings by axis name, the objectives' values, whether the floor is reached."""

    name: str
    settings: Mapping[str, Any]
    values: Mapping[str, float]
    feasible: bool


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found. `front`: the rows that no other beats; for one objective the best one and its equals."""

    objectives: tuple[str, ...]
    baseline: Row
    rows: tuple[Row, ...]  # every finished trial, in order
    front: tuple[Row, ...]  # trials only, feasible ones

    @property
    def table(self) -> tuple[Row, ...]:
        """The baseline, then the front."""
        return (self.baseline, *self.front)


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
        if "kept_tokens" in self.objectives:
            means["kept_tokens"] = kept_tokens(self.captures.cases, pipeline)
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
    storage: Path | None = None,
    name: str = "search",
    min_grade: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Search:
    """Seek settings until the study holds `trials` finished trials, those of other processes and earlier runs included.

    Numbers of a range are sought between its ends, choices among themselves; sampler `grid` takes the grid's own
    values. With `storage` the study is kept there under its name; one of another task is refused. InputError for an
    unknown objective or sampler. A `progress` that raises ends this process' part; finished trials stay.
    """
    _check(objectives, sampler, trials)
    task = _Task(Captures(cases, min_grade), pipeline, tuple(axes), tuple(objectives), floor)
    study = _study(task, sampler, storage, name, seed)
    _run(study, task, sampler, trials, progress)
    rows = tuple(_row(trial, task.objectives) for trial in _finished(study))
    return Search(task.objectives, _baseline(task, cases, min_grade), rows, pareto_front(rows))


def _check(objectives: Sequence[str], sampler: str, trials: int) -> None:
    unknown = [one for one in objectives if one not in OBJECTIVES]
    if unknown or not objectives:
        raise InputError(f"objectives are {list(objectives)}, expected some of {', '.join(OBJECTIVES)}")
    if sampler not in SAMPLERS:
        raise InputError(f"sampler is {sampler[:80]!r}, expected one of {', '.join(SAMPLERS)}")
    if trials < 1:
        raise InputError(f"trials is {trials}, expected at least 1")


def _study(task: _Task, sampler: str, storage: Path | None, name: str, seed: int) -> Any:
    """The study, made or found; one of another task under this name is refused."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    kept = None
    if storage is not None:
        storage.parent.mkdir(parents=True, exist_ok=True)
        kept = optuna.storages.RDBStorage(f"sqlite:///{storage}", engine_kwargs={"connect_args": {"timeout": 60}})
    directions: Any = [OBJECTIVES[one] for one in task.objectives]
    study = optuna.create_study(
        storage=kept,
        study_name=name,
        directions=directions,
        sampler=_sampler(task, sampler, None if storage is not None else seed),
        load_if_exists=True,
    )
    held = study.user_attrs.get("task")
    if held not in (None, task.key()):
        raise InputError(
            f"study {name[:80]!r} is of another pipeline, grid or eval set, expected a new name for this one"
        )
    study.set_user_attr("task", task.key())
    return study


def _sampler(task: _Task, sampler: str, seed: int | None) -> Any:
    """The sampler; shared studies get no seed, or every process would propose the same."""
    from optuna import samplers

    if sampler == "grid":
        return samplers.GridSampler({axis.name: list(axis.values) for axis in task.axes}, seed=seed)
    if sampler == "random":
        return samplers.RandomSampler(seed=seed)
    if sampler == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=20)
    return samplers.TPESampler(seed=seed)


def _run(study: Any, task: _Task, sampler: str, trials: int, progress: Progress | None) -> None:
    """Trials until the study has enough; possible settings only, an impossible one counts as pruned."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    def objective(trial: Any) -> tuple[float, ...]:
        settings = {axis.name: _suggested(trial, axis, sampler == "grid") for axis in task.axes}
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

    missing = trials - len(_finished(study))
    if missing > 0:
        study.optimize(objective, n_trials=20 * missing, callbacks=[after])


def _suggested(trial: Any, axis: Axis, listed: bool) -> Any:
    """A value of one axis: between the ends of a range of numbers, among the values of a choice."""
    values = axis.values
    if not listed and len(values) > 2 and all(isinstance(value, float) for value in values):
        return trial.suggest_float(axis.name, min(values), max(values))
    if not listed and len(values) > 2 and list(values) == list(range(values[0], values[0] + len(values))):
        return trial.suggest_int(axis.name, values[0], values[-1])
    return trial.suggest_categorical(axis.name, list(values))


def _finished(study: Any) -> list[Any]:
    from optuna.trial import TrialState

    return list(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def _row(trial: Any, objectives: Sequence[str]) -> Row:
    values = dict(zip(objectives, trial.values, strict=True))
    return Row(f"trial {trial.number}", dict(trial.params), values, bool(trial.user_attrs.get("feasible", True)))


def _baseline(task: _Task, cases: Sequence[Case], min_grade: int) -> Row:
    """The best fixed k by the first of the objectives that is a measure, else by SetF."""
    by = next((name for name in task.objectives if name.startswith("Set")), "SetF")
    front = stages_in_front(task.pipeline, task.axes)
    baseline, k, _ = fixed_k(cases, front, by, task.floor, min_grade)
    values, short = task.judge(baseline)
    return Row(baseline.label, {"k": k}, values, not short)


def pareto_front(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The feasible rows that no feasible row beats: at least as good in all objectives and better in one."""
    able = [row for row in rows if row.feasible]
    return tuple(row for row in able if not any(_beats(other, row) for other in able))


def _beats(one: Row, other: Row) -> bool:
    signed = [
        (one.values[name] - other.values[name]) * (1 if OBJECTIVES[name] == "maximize" else -1) for name in one.values
    ]
    return min(signed) >= -1e-12 and max(signed) > 1e-12


def kept_tokens(cases: Sequence[Case], pipeline: Pipeline) -> float:
    """Mean number of tokens kept per query, estimated at 4 characters each."""
    report = run(cases, pipeline, measures=SET_MEASURES)
    characters = [sum(len(hit.chunk.text) for hit in outcome.result.hits) for outcome in report.outcomes]
    return sum(characters) / len(characters) / CHARACTERS_PER_TOKEN


def shared_storage(workspace: Path) -> Path:
    """Where the studies of a workspace live."""
    return workspace / "studies.db"
