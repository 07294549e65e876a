"""Studies of Optuna: the storage that processes share, samplers, and how an axis becomes a suggestion.

What is sought and how a trial is judged is in search.py; where a workspace's studies live, in store/studies.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rag_core.errors import StoreError
from rag_core.evaluate.grid import Axis

WAIT_SECONDS = 60
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


def kept_trials(storage: Path | Any, name: str) -> int:
    """How many finished trials the study of that name holds; 0 where there is no such study."""
    import optuna

    if isinstance(storage, Path) and not storage.is_file():
        return 0
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with answering():
        try:
            return len(finished(optuna.load_study(study_name=name, storage=storage_at(storage))))
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


def storage_at(place: Path | Any) -> Any:
    """Optuna's storage: a file's, waited for while another process writes to it; one that is a storage stays itself."""
    import optuna

    if not isinstance(place, Path):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place):
        arguments = {"connect_args": {"timeout": WAIT_SECONDS}}
        return optuna.storages.RDBStorage(f"sqlite:///{place}", engine_kwargs=arguments)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """While one process makes the tables the others wait: Optuna makes them one by one, each only if it is missing."""
    lock = place.with_name(f"{place.name}.lock")
    try:
        with closing(sqlite3.connect(lock, timeout=WAIT_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")  # until the connection is closed
            yield
    except sqlite3.OperationalError as error:
        raise StoreError(f"the database of the studies is not free ({error}); seek again") from None
