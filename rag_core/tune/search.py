"""Search beyond the plane: any mixture of stage settings, by Optuna, in a study that processes share and resume.

For what a sweep cannot list: many settings at once, or two objectives against each other. A study may be kept in a
storage of Optuna (store/studies.py opens a workspace's); a killed process loses the trial under way and nothing else.
Measures and chunks kept come out of arrays (plane.py); tokens, time and cost are read off a plain run, whose stages say
what their model calls took and cost, also where a stored answer stood in for the call. The best fixed k stands in every
table. One plane of thresholds needs none of this: its optimum is exact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from rag_core.errors import Cancelled, InputError, StoreError
from rag_core.eval_sets.reading import labels_fingerprint
from rag_core.measure.experiment import PipelineReport, run
from rag_core.measure.measures import SET_MEASURES
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.plane import QUANTITIES, Floor, fixed_k, means_of
from rag_core.tune.tune import Choice, stages_in_front
from rag_core.tune.variants import Captures
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
    trials: int = 200,
    storage: Any = None,
    name: str = "search",
    min_grade: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Search:
    """Seek settings until the study holds `trials` finished trials, those of other processes and earlier runs included.

    Numbers of a range are sought between its ends, choices among themselves, by TPE, which learns from the trials
    before. With `storage`, one of Optuna's, the study is kept there under its name; one of another task is refused.
    InputError for an unknown objective, StoreError where the storage fails. A `progress` that raises ends this process'
    part, finished trials stay; after Cancelled they are given.
    """
    unknown = [name for name in objectives if name not in OBJECTIVES]
    if unknown or not objectives:
        raise InputError(f"objectives are {list(objectives)}, expected some of {', '.join(OBJECTIVES)}")
    if trials < 1:
        raise InputError(f"trials is {trials}, expected at least 1")
    task = _Task(Captures(cases, min_grade), pipeline, tuple(axes), tuple(objectives), floor)
    with answering():
        study = _study(task, storage, name, seed)
        with suppress(Cancelled):
            _run(study, task, trials, progress)
        rows = tuple(_row(trial, task) for trial in finished(study))
    front = stages_in_front(pipeline, task.axes)
    fixed, k, _ = fixed_k(cases, front, measure_of(task.objectives), floor, min_grade)
    values, short = task.judge(fixed)
    baseline = SearchedSetting(fixed.label, {"k": k}, values, not short)
    return Search(task.objectives, baseline, rows, pareto_front(rows), fixed)


def _study(task: _Task, storage: Any, name: str, seed: int) -> Any:
    """The study, made or found; one of another task under this name is refused."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions: Any = [OBJECTIVES[one] for one in task.objectives]
    # shared studies get no seed, or every process would propose the same
    sampler = optuna.samplers.TPESampler(seed=None if storage is not None else seed)
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        directions=directions,
        sampler=sampler,
        load_if_exists=True,
    )
    held = study.user_attrs.get("task")
    if held not in (None, task.key()):
        raise InputError(
            f"study {name[:80]!r} is of another pipeline, grid or eval set, expected a new name for this one"
        )
    study.set_user_attr("task", task.key())
    return study


def _run(study: Any, task: _Task, trials: int, progress: Progress | None) -> None:
    """Trials until the study has enough; possible settings only, an impossible one counts as pruned."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    def objective(trial: Any) -> tuple[float, ...]:
        settings = {axis.name: suggested(trial, axis) for axis in task.axes}
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


def choice_of(
    search: Search,
    row: SearchedSetting,
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    min_grade: int = 1,
) -> Choice:
    """A row of a search over these cases as `tune.choose` gives one, beside the search's best fixed k."""
    chosen = replace(pipeline_at(pipeline, [(axis, row.settings[axis.name]) for axis in axes]), label="found")
    by, captures = QUANTITIES.index(measure_of(search.objectives)), Captures(cases, min_grade)
    value, fixed = (float(means_of(captures, one)[by]) for one in (chosen, search.baseline_pipeline))
    return Choice(chosen, row.settings, value, search.baseline_pipeline, int(search.baseline.settings["k"]), fixed)


# Studies of Optuna


def suggested(trial: Any, axis: Axis) -> Any:
    """A value of one axis: between the ends of a range of numbers, among the values of a choice."""
    values = axis.values
    if len(values) > 2 and all(isinstance(value, float) for value in values):
        return trial.suggest_float(axis.name, min(values), max(values))
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if whole and len(values) > 2 and list(values) == list(range(values[0], values[0] + len(values))):
        return trial.suggest_int(axis.name, values[0], values[-1])
    words = labels(axis)
    value = trial.suggest_categorical(axis.name, list(words or values))
    return words.get(value, value)


def labels(axis: Axis) -> dict[str, Any]:
    """Words for values that a study cannot store, such as two weights; empty where it can."""
    several = any(isinstance(value, tuple) for value in axis.values)
    return {"/".join(f"{one:g}" for one in value): value for value in axis.values} if several else {}


def finished(study: Any) -> list[Any]:
    """The finished trials of a study, in order."""
    from optuna.trial import TrialState

    return list(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))


def kept_trials(storage: Any, name: str) -> int:
    """How many finished trials the study of that name holds; 0 where there is no such study."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with answering():
        try:
            return len(finished(optuna.load_study(study_name=name, storage=storage)))
        except KeyError:
            return 0


@contextmanager
def answering() -> Iterator[None]:
    """What a database that fails makes Optuna raise, as one StoreError sentence without statement or values."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        kind = type(error.__cause__ or error).__name__
        raise StoreError(f"the database of the studies failed ({kind}); finished trials are kept, seek again") from None
