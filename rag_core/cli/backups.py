"""`backup` and `restore`: workspace and database in one file, and the way back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.backup import Report


def backup(
    path: Path = typer.Argument(..., help="The new file, as winnow-2026-01-31.zip."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Copy workspace and database, as they are at this moment, into one file with a checksum for every part."""
    from rag_core.backup import make
    from rag_core.project import deeds

    place = resolve_workspace(workspace)
    with deeds.command(deeds.BACK_UP, path.name, place):
        report = make(place, path)
    _say(report, json, "Backed up")


def restore(
    path: Path = typer.Argument(..., help="A file made by backup."),
    workspace: Path | None = Workspace,
    force: bool = typer.Option(False, "--force", help="Replace what is there; the old folder is set aside."),
    json: bool = Json,
) -> None:
    """Bring a back-up into a new workspace and an empty database."""
    from rag_core.backup import restore as bring_back
    from rag_core.project import deeds

    place = resolve_workspace(workspace)
    with deeds.command(deeds.RESTORE, path.name, place):
        report = bring_back(path, place, force=force)
    _say(report, json, "Restored")


def _say(report: Report, json: bool, deed: str) -> None:
    if json:
        emit({name: str(value) if name == "path" else value for name, value in asdict(report).items()})
        return
    rows = ", ".join(f"{name} {count:,}" for name, count in report.rows.items()) or "no database"
    aside = f"; what was there is now {report.aside}" if report.aside else ""
    typer.echo(f"{deed} {report.files:,} parts, {report.bytes / 1e6:,.1f} MB ({rows}): {report.path}{aside}")
