"""Keeping what `replay` and `evaluate` found: the options for it, and the writing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

RunOut = typer.Option(None, "--run-out", help="Write the run to this file (docs/formats.md); gates read it.")


@dataclass(frozen=True)
class Keeping:
    """Whether a run is kept, where, and under which name."""

    save_run: bool = typer.Option(False, "--save-run", help="Keep the run in the workspace (see `runs`).")
    run_out: Path | None = RunOut
    run_name: str = typer.Option("", "--run-name", help="What to call the run; default: its pipelines.")

    @property
    def wanted(self) -> bool:
        """Whether the run goes anywhere."""
        return self.save_run or self.run_out is not None

    def keep(self, reports: list[Any], about: Any, workspace: Path | None) -> None:
        """Store the run of these reports, write its file, or neither; where it went is said on stderr."""
        if not self.wanted:
            return
        from rag_core.compare.run_file import dump_run
        from rag_core.compare.snapshot import run_of
        from rag_core.files import write_whole

        run = run_of(reports, about)
        if self.run_out is not None:
            write_whole(self.run_out, dump_run(run))
            sys.stderr.write(f"run {run.id} → {self.run_out}\n")
        if self.save_run:
            store_run(run, workspace)
            sys.stderr.write(f"run {run.id} kept in the workspace\n")


def store_run(run: Any, workspace: Path | None) -> str:
    """Keep a run in the workspace's store; its id."""
    from rag_core.compare.run_file import summary_of
    from rag_core.project import deeds
    from rag_core.store.database import open_store
    from rag_core.store.runs import RunStore
    from rag_core.workspace import resolve_workspace

    place = resolve_workspace(workspace)
    with deeds.command(deeds.KEEP_RUN, run.id, place), open_store(place) as store:
        return RunStore(store).save(run.document, summary_of(run))


def find_run(wanted: str, workspace: Path | None) -> Any:
    """The run of a file, else the stored run of that id or beginning of an id."""
    from rag_core.compare.run_file import load_run, read_run
    from rag_core.store.database import open_store
    from rag_core.store.runs import RunStore
    from rag_core.workspace import resolve_workspace

    if Path(wanted).is_file() or wanted.endswith(".json"):
        return load_run(Path(wanted))
    with open_store(resolve_workspace(workspace), create=False) as store:
        return read_run(RunStore(store).document(wanted), f"run {wanted[:80]}")


def notes_on(wanted: str, run_id: str, workspace: Path | None) -> list[tuple[str, str, str]]:
    """(at, author, note) of each note on a stored run; a run file carries none."""
    from rag_core.store.database import open_store
    from rag_core.store.runs import RunStore
    from rag_core.workspace import resolve_workspace

    if Path(wanted).is_file():
        return []
    with open_store(resolve_workspace(workspace), create=False) as store:
        return [(note.at, note.author, note.note) for note in RunStore(store).notes(run_id)]
