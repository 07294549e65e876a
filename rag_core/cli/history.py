"""`history`: the questions that were asked of a collection: list, show, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from rag_core.cli.options import Commands, Json, Workspace
from rag_core.cli.output import say
from rag_core.errors import InputError
from rag_core.project import deeds
from rag_core.store.database import has_store, open_store
from rag_core.store.history import History
from rag_core.workspace import resolve_workspace

app, history = Commands(), Commands("Questions that were asked, with settings, results and hops.")
app.add_typer(history, name="history")


@contextmanager
def _opened(workspace: Path | None) -> Iterator[History | None]:
    """The history, None where the workspace has no store yet."""
    place = resolve_workspace(workspace)
    if not has_store(place):
        yield None
        return
    with open_store(place) as store:
        yield History(store)


@history.command("list")
def list_questions(
    collection: str = typer.Option("", "--collection", help="Only questions to this collection."),
    holds: str = typer.Option("", "--holds", help="Only questions with this text in them."),
    since: str = typer.Option("", "--since", help="Only from this day or time on (2026-11-22, UTC)."),
    until: str = typer.Option("", "--until", help="Only before this day or time."),
    first: int = typer.Option(50, "-n", min=1, max=10_000, help="At most N, newest first."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """What was asked, newest first."""
    with _opened(workspace) as kept:
        found = kept.find(collection, holds, since, until, limit=first) if kept else []
        total = kept.count(collection, holds, since, until) if kept else 0
    facts = {"total": total, "questions": [asked.to_json() for asked in found]}
    say(facts, json, "\n".join(asked.line for asked in found) or "no question is kept")


@history.command("show")
def show(number: int, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """One question with its settings, result and hops."""
    with _opened(workspace) as kept:
        if kept is None:
            raise InputError(f"the history has no question {number}, it is empty")
        say(kept.get(number), json)


@history.command("delete")
def delete(
    numbers: list[int] = typer.Argument(None, help="The numbers that `history list` shows."),
    everything: bool = typer.Option(False, "--all", help="Delete every question."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Delete questions for good: nothing of them stays in the store's file. Back-ups made before keep theirs."""
    if bool(numbers) == everything:
        raise InputError("nothing to delete is named, expected numbers or --all")
    what = "all" if everything else f"{len(numbers)} questions"
    with deeds.command(deeds.DELETE_HISTORY, what, resolve_workspace(workspace)), _opened(workspace) as kept:
        gone = kept.delete(None if everything else numbers) if kept else 0
    say({"deleted": gone}, json, f"{gone} questions are deleted")
