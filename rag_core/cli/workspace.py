"""A workspace: `app`, `backup`, `restore`, `cache`, `doctor`, `deeds`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from rag_core.backup import make
from rag_core.backup import restore as bring_back
from rag_core.cli.options import Commands, Common
from rag_core.errors import SurroundingsError
from rag_core.health import checks_of
from rag_core.llm.store import forget_answers
from rag_core.project import deeds
from rag_core.project.captures import ListCache
from rag_core.store.salvage import salvage
from rag_core.workspace import SHIPPED_IN, VARIABLE

app, cache = Commands(), Commands("Captured lists, and the stored answers of models.")
app.add_typer(cache, name="cache")


@app.command("app")
def open_app(
    common: Common,
    port: int = typer.Option(8501, "--port", min=1, max=65535, help="Where it listens, on this machine alone."),
    browser: bool = typer.Option(True, "--browser/--no-browser", help="Open a browser on it."),
) -> None:
    """Open the workbench in a browser, from any folder; it runs until it is stopped."""
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError("the app needs Streamlit", name="streamlit")
    options = ["--server.port", str(port), "--server.headless", str(not browser).lower()]
    command = [sys.executable, "-m", "streamlit", "run", str(SHIPPED_IN / "asgi.py"), *options]
    # In place of this process, so that whoever stops it stops the app.
    os.execve(sys.executable, command, {**os.environ, VARIABLE: str(common.folder)})  # noqa: S606


@app.command("backup")
def back_up(
    common: Common,
    path: Path = typer.Argument(..., help="The new file, as winnow-2026-01-31.zip."),
) -> None:
    """Copy workspace and database, as they are at this moment, into one file with a checksum for every part."""
    place = common.folder
    with deeds.command(deeds.BACK_UP, path.name, place):
        report = make(place, path)
    common.say(report, f"Backed up {report.to_text()}")


@app.command("restore")
def restore(
    common: Common,
    path: Path = typer.Argument(..., help="A file made by backup."),
    force: bool = typer.Option(False, "--force", help="Replace what is there; the old folder is set aside."),
) -> None:
    """Bring a back-up into a new workspace and an empty database."""
    place = common.folder
    with deeds.command(deeds.RESTORE, path.name, place):
        report = bring_back(path, place, force=force)
    common.say(report, f"Restored {report.to_text()}")


@cache.command("clear")
def clear(
    common: Common,
    answers: bool = typer.Option(False, "--answers", help="Forget what models answered, too: it is paid for again."),
) -> None:
    """Let go of every captured list, so that its question is searched anew; models' answers stay unless --answers."""
    folder = common.folder
    with deeds.command(deeds.CLEAR_CACHE, "results and answers" if answers else "results", folder):
        ListCache(folder).clear()
        forgotten = forget_answers(folder) if answers else 0
    text = "every list is searched anew" + (f", {forgotten:,} answers of models too" if answers else "")
    common.say({"cleared": True, "answers": forgotten}, text)


@app.command("doctor")
def doctor(
    common: Common,
    mend: bool = typer.Option(
        False, "--salvage", help="Gather what is whole of a damaged label file and its copies into a new one."
    ),
) -> None:
    """Look whether everything is reachable and whole; exit code 3 if something is not."""
    if mend:
        with deeds.command(deeds.SALVAGE, "labels", common.folder) as performed:
            found = salvage(common.folder)
            performed.result = f"{found.events} events"
        common.say(found, found.to_text())
        return
    checks = list(checks_of(common.folder))
    broken = [check.name for check in checks if not check.ok]
    facts = {"ok": not broken, "checks": [vars(check) for check in checks]}
    common.say(facts, "\n".join(check.to_text() for check in checks))
    if broken and common.json:
        raise typer.Exit(3)
    if broken:
        raise SurroundingsError(
            f"{len(broken)} of {len(checks)} checks failed ({', '.join(broken)}), expected all to pass"
        )


@app.command("deeds")
def list_deeds(
    common: Common,
    last: int = typer.Option(20, "--last", min=1, help="How many, the newest last; --json gives all."),
) -> None:
    """Who changed, imported, deleted, spent or cancelled what in this workspace, and what was refused."""
    rows, lines = deeds.log(common.folder), []
    for row in rows[-last:]:
        about = ", ".join(str(row[name]) for name in ("about", "whose", "result") if row.get(name))
        line = f"{row['at'][:19]}  {row['who']}  {row['deed']}: {row['outcome']}"
        lines.append(f"{line} ({about})" if about else line)
    common.say({"deeds": rows}, "\n".join(lines))
