"""A Dask cluster as a place where parts are done: in any order, again where a worker dies, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import rag_core
from rag_core.errors import InputError, SurroundingsError, WinnowError

Result = TypeVar("Result")
Work = Callable[[str], Result]
"""A function of a module, so that a worker finds it by its name; takes a part as JSON."""
SECONDS = 20  # to reach the scheduler
RETRIES = 5  # times a part may lose its worker
AHEAD = 3  # parts in the cluster per thread of it, so that none waits and little is lost


class Engine(Protocol):
    """Does parts. `threads` is how many at once."""

    @property
    def threads(self) -> int:
        """How many parts are done at once."""

    def each(self, work: Work[Result], parts: Sequence[str]) -> Iterator[tuple[int, Result]]:
        """(number of the part, its result), as they are ready."""


@dataclass(frozen=True)
class DaskEngine:
    """A client of a Dask scheduler."""

    address: str
    client: Any

    @property
    def threads(self) -> int:
        """The threads of all workers that are there now; 1 while there is none."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(int(worker["nthreads"]) for worker in workers))

    def each(self, work: Work[Result], parts: Sequence[str]) -> Iterator[tuple[int, Result]]:
        """(number of the part, its result), as they are ready; a part whose worker died is done again elsewhere.

        A WinnowError of a worker is raised here as it is. SurroundingsError: the cluster is gone, or a part killed
        every worker that tried it.
        """
        with _plainly(self.address):
            waiting = iter(enumerate(parts))
            submitted = (
                (self.client.submit(work, part, pure=False, retries=RETRIES), number) for number, part in waiting
            )
            numbers = dict(islice(submitted, AHEAD * self.threads))
            ready: Any = _distributed().as_completed(list(numbers), loop=self.client.loop)
            for future in ready:
                yield numbers.pop(future), future.result()
                future.release()
                for more, number in islice(submitted, 1):
                    numbers[more] = number
                    ready.add(more)


@contextmanager
def opened(address: str) -> Iterator[Engine]:
    """The cluster at `dask://host:port`; an InputError for another address, a SurroundingsError where none answers."""
    place = scheduler_address(address)
    with _plainly(address):
        client = _distributed().Client(place, timeout=SECONDS, set_as_default=False)
    try:
        with _plainly(address):
            _check_versions(client, address)
        yield DaskEngine(address, client)
    finally:
        client.close(timeout=5)


def _distributed() -> Any:
    """Dask's client library, which has no types; a SurroundingsError where it is not installed."""
    try:
        return import_module("distributed")
    except ImportError:
        raise SurroundingsError(
            "--engine needs the package distributed, expected `pip install -r requirements-server.txt`"
        ) from None


def scheduler_address(address: str) -> str:
    """dask://host:port as Dask writes it."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme != "dask" or not parts.hostname or not port or parts.path.strip("/") or parts.username:
        raise InputError(f"--engine is {address[:80]!r}, expected dask://host:port")
    return f"tcp://{f'[{parts.hostname}]' if ':' in parts.hostname else parts.hostname}:{port}"


def worker_version() -> str:
    """What a worker says when it is asked which version it is."""
    return rag_core.__version__


def _check_versions(client: Any, address: str) -> None:
    try:
        found = {str(version) for version in client.run(worker_version).values()}
    except (OSError, TimeoutError, CancelledError):
        raise
    except Exception as error:  # Dask tells what a worker could not import as no kind of its own
        raise SurroundingsError(
            f"{address} has workers that cannot run this program ({str(error)[:200]}), expected version "
            f"{rag_core.__version__} installed there"
        ) from None
    if found - {rag_core.__version__}:
        raise SurroundingsError(
            f"{address} has workers of version {', '.join(sorted(found))}, expected {rag_core.__version__}"
        )


@contextmanager
def _plainly(address: str) -> Iterator[None]:
    """Errors of the cluster as one sentence; those of this program as they are."""
    killed: type[Exception] = _distributed().KilledWorker
    try:
        yield
    except WinnowError:
        raise
    except killed:
        raise SurroundingsError(f"a part took down {RETRIES} workers of {address}; what is done is kept") from None
    except (OSError, TimeoutError, CancelledError) as error:
        said = f"{address} cannot be reached ({type(error).__name__})"
        raise SurroundingsError(f"{said}, expected a Dask scheduler; what is done is kept, do it again") from None
