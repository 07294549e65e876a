"""`history`: the questions that were asked of a collection: list, show, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from rag_core.cli.options import Commands, Common
from rag_core.errors import InputError
from rag_core.project import deeds
from rag_core.store.database import has_store, open_store
from rag_core.store.history import History

app, history = Commands(), Commands("Questions that were asked, with settings, results and hops.")
app.add_typer(history, name="history")


@contextmanager
def _opened(folder: Path) -> Iterator[History | None]:
    """The history, None where the workspace has no store yet."""
    if not has_store(folder):
        yield None
        return
    with open_store(folder) as store:
        yield History(store)


@history.command("list")
def list_questions(
    common: Common,
    holds: str = typer.Option("", "--holds", help="Only questions with this text in them."),
    first: int = typer.Option(50, "-n", min=1, max=10_000, help="At most N, newest first."),
) -> None:
    """What was asked, newest first."""
    with _opened(common.folder) as kept:
        found = kept.find(holds, first) if kept else []
        total = kept.count(holds) if kept else 0
    facts = {"total": total, "questions": [asked.to_json() for asked in found]}
    common.say(facts, "\n".join(asked.line for asked in found) or "no question is kept")


@history.command("show")
def show(common: Common, number: int) -> None:
    """One question with its settings, result and hops."""
    with _opened(common.folder) as kept:
        if kept is None:
            raise InputError(f"the history has no question {number}, it is empty")
        common.say(kept.get(number))


@history.command("delete")
def delete(
    common: Common,
    numbers: list[int] = typer.Argument(None, help="The numbers that `history list` shows."),
    everything: bool = typer.Option(False, "--all", help="Delete every question."),
) -> None:
    """Delete questions for good: nothing of them stays in the store's file. Back-ups made before keep theirs."""
    if bool(numbers) == everything:
        raise InputError("nothing to delete is named, expected numbers or --all")
    what = "all" if everything else f"{len(numbers)} questions"
    with deeds.command(deeds.DELETE_HISTORY, what, common.folder), _opened(common.folder) as kept:
        gone = kept.delete(None if everything else numbers) if kept else 0
    common.say({"deleted": gone}, f"{gone} questions are deleted")
