"""Is everything reachable and whole: one look after the other, each with what it found or the sentence why not.

What the command `doctor` prints and the page Status shows. Nothing is changed, no endpoint is asked anything.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import text

from rag_core.errors import SurroundingsError, WinnowError
from rag_core.eval_sets.reading import folders, read_set
from rag_core.index.handles import check_collections
from rag_core.llm.endpoint import endpoints
from rag_core.settings import model_settings
from rag_core.spec import read_pipeline, shipped_names
from rag_core.store.database import has_store, open_store
from rag_core.store.dump import count_rows
from rag_core.store.labels import LabelStore, check_rows
from rag_core.store.migrations import revision

LITTLE_ROOM = 500_000_000  # bytes
LISTED = 5  # positions of damaged rows
MEND = "`winnow doctor --salvage` gathers what is whole, or restore a back-up"


@dataclass(frozen=True)
class HealthCheck:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str

    def to_text(self) -> str:
        """One line."""
        return f"{'ok  ' if self.ok else 'FAIL'}  {self.name}: {self.detail}"


def checks_of(workspace: Path) -> Iterator[HealthCheck]:
    """Every check in turn; one that raises is a failed check with the error's sentence."""
    looks: dict[str, Callable[[], str]] = {
        "python": lambda: sys.version.split()[0],
        "packages": _packages,
        "eval sets": lambda: _eval_sets(workspace),
        "pipelines": _pipelines,
        "model": _model,
        "endpoint": lambda: _endpoint(workspace),
        "database": lambda: _database(workspace),
        "labels": lambda: _labels(workspace),
        "collections": lambda: _collections(workspace),
        "disk": lambda: _disk(workspace),
    }
    for name, look in looks.items():
        try:
            yield HealthCheck(name, True, look())
        except (WinnowError, OSError, ImportError) as error:
            yield HealthCheck(name, False, " ".join(str(error).split()))


def _packages() -> str:
    named = []
    for name in ("numpy", "sqlalchemy", "streamlit", "chromadb"):
        try:
            named.append(f"{name} {installed(name)}")
        except PackageNotFoundError:
            named.append(f"no {name}")
    return ", ".join(named)


def _eval_sets(workspace: Path) -> str:

    counts = {name: len(read_set(folder).cases) for name, folder in folders(workspace).items()}
    return ", ".join(f"{name} ({count} queries)" for name, count in counts.items())


def _pipelines() -> str:

    return ", ".join(read_pipeline(name).label for name in shipped_names())


def _model() -> str:
    """The bundled embedding model answers, and is the file it should be."""
    if find_spec("onnxruntime") is None:
        return "not installed (the extra `search` brings it): recorded lists and functions only"

    from rag_core.index.embed import BundledEmbedder  # late: the model's library may not be there

    embedder = BundledEmbedder()
    embedder.embed(["a question"])
    return f"{embedder.name}, {embedder.dimension} dimensions"


def _collections(workspace: Path) -> str:
    """Every collection read whole."""
    found = check_collections(workspace)
    broken = next(((name, problem) for name, problem in found.items() if problem), None)
    if broken is not None:
        raise SurroundingsError(f"{broken[0]}: {broken[1]}")
    return ", ".join(found) or f"none yet in {workspace}"


def _labels(workspace: Path) -> str:
    """SQLite's own check, indexes included, and every event held against its checksum; no labels are whole."""
    if not has_store(workspace):
        return f"none yet in {workspace}"
    with open_store(workspace) as store:
        if store.unwritable:
            raise SurroundingsError(store.unwritable)
        with store.reading() as connection:
            found = "ok" if store.server else connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
            if found != "ok":
                raise SurroundingsError(f"{store.name} is damaged ({str(found)[:200]}): {MEND}".replace("\n", " "))
            checked = check_rows(connection)
        if checked.broken:
            listed = ", ".join(f"{position}" for position in checked.broken[:LISTED])
            more = f" and {len(checked.broken) - LISTED} more" if len(checked.broken) > LISTED else ""
            raise SurroundingsError(
                f"{len(checked.broken)} label events are not what was stored (positions {listed}{more}), expected each "
                f"to match its checksum: {MEND}"
            )
        labels = LabelStore(store)
        counts = {name: labels.stats(name).labels for name in labels.eval_sets()}
    listed = ", ".join(f"{name} ({count})" for name, count in counts.items()) or f"none yet in {workspace}"
    without = f"; {checked.without:,} events from before there were checksums" if checked.without else ""
    return f"{listed}{without}"


def _endpoint(workspace: Path) -> str:
    """Where a judge would be asked; nothing is sent."""
    named = model_settings()
    first = f"{named.model} at {named.base_url}" if named else "none in the environment"
    others = ", ".join(endpoints(workspace))
    return f"{first}; by name: {others}" if others else first


def _database(workspace: Path) -> str:
    """Which database keeps labels, runs and history, its schema and how many rows; a server must keep its commits."""
    if not has_store(workspace):
        return f"none yet in {workspace}"
    with open_store(workspace) as store, store.reading() as connection:
        rows = ", ".join(f"{name} {count:,}" for name, count in count_rows(connection).items())
        found = f"{store.server or store.path.name}, schema {revision(connection)}: {rows}"
        if store.server and connection.execute(text("SHOW fsync")).scalar() != "on":
            raise SurroundingsError(f"{store.server} runs with fsync off, expected on: a power cut loses labels")
    return found


def _disk(workspace: Path) -> str:
    """Free space where the workspace is, and what it holds."""
    place = next(one for one in (workspace.absolute(), *workspace.absolute().parents) if one.is_dir())
    free = shutil.disk_usage(place).free
    held = sum(file.stat().st_size for file in workspace.rglob("*") if file.is_file()) if workspace.is_dir() else 0
    if free < LITTLE_ROOM:
        raise SurroundingsError(f"{free / 1e6:,.0f} MB are free for {workspace}, expected {LITTLE_ROOM / 1e6:,.0f} MB")
    return f"{free / 1e9:,.1f} GB free; the workspace holds {held / 1e6:,.1f} MB"
