"""Studies of Optuna: samplers, how an axis becomes a suggestion, and the finished trials.

What is sought and how a trial is judged is in search.py; where a workspace's studies live, in store/studies.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rag_core.errors import StoreError
from rag_core.tune.grid import Axis

SAMPLERS = ("tpe", "random", "grid", "nsga2")


def sampler_of(axes: Sequence[Axis], sampler: str, seed: int | None) -> Any:
    """The sampler; shared studies get no seed, or every process would propose the same."""
    from optuna import samplers

    if sampler == "grid":
        return samplers.GridSampler({axis.name: list(labels(axis) or axis.values) for axis in axes}, seed=seed)
    if sampler == "random":
        return samplers.RandomSampler(seed=seed)
    if sampler == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=20)
    return samplers.TPESampler(seed=seed)


def suggested(trial: Any, axis: Axis, listed: bool) -> Any:
    """A value of one axis: between the ends of a range of numbers, among the values of a choice."""
    values = axis.values
    if not listed and len(values) > 2 and all(isinstance(value, float) for value in values):
        return trial.suggest_float(axis.name, min(values), max(values))
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if not listed and whole and len(values) > 2 and list(values) == list(range(values[0], values[0] + len(values))):
        return trial.suggest_int(axis.name, values[0], values[-1])
    words = labels(axis)
    told = trial.suggest_categorical(axis.name, list(words or values))
    return words.get(told, told)


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
