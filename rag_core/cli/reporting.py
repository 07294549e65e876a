"""`report`: a run as one HTML file to send."""

from __future__ import annotations

from pathlib import Path

import typer

from rag_core.cli.label_store import say
from rag_core.cli.options import Json, Workspace
from rag_core.cli.run_saving import find_run, notes_on


def report(
    run: str = typer.Argument(..., help="A run file, or a stored run's id."),
    out: Path = typer.Option(..., "--out", help="The HTML file to write."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Write a run as one self-contained HTML file: means, differences, reasons, settings. It opens offline."""
    from rag_core.files import write_whole
    from rag_core.report import report_html

    found = find_run(run, workspace)
    text = report_html(found, notes_on(run, found.id, workspace))
    write_whole(out, text)
    facts = {"out": str(out), "run": found.id, "bytes": len(text.encode())}
    say(facts, json, f"run {found.id} → {out}")
