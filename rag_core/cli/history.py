"""`history`: every question that was asked live: list, show, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.errors import InputError
from rag_core.types import SCORES
from rag_core.workspace import resolve_workspace

history_app = typer.Typer(help="Questions that were asked, with settings, results and hops.", rich_markup_mode=None)


@history_app.command("list")
def list_(
    collection: str = typer.Option("", "--collection", help="Only questions to this collection."),
    holds: str = typer.Option("", "--holds", help="Only questions with this text in them."),
    since: str = typer.Option("", "--since", help="Only from this day or time on (2026-11-22, UTC)."),
    until: str = typer.Option("", "--until", help="Only before this day or time."),
    first: int = typer.Option(50, "-n", min=1, max=10_000, help="At most N, newest first."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """What was asked, newest first."""
    with _opened(workspace) as history:
        found = history.find(collection, holds, since, until, limit=first) if history else []
        total = history.count(collection, holds, since, until) if history else 0
    if json:
        emit({"total": total, "questions": [_plain(one) for one in found]})
        return
    for one in found:
        kept = len(one.result.get("kept", []))
        typer.echo(
            f"{one.number:>5}  {one.at[:19]}  {one.collection}  kept {kept}  {one.milliseconds:.0f} ms  {one.query}"
        )
    if not found:
        typer.echo("no question is kept")


@history_app.command("show")
def show(number: int, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """One question with its settings, result and hops."""
    with _opened(workspace) as history:
        if history is None:
            raise InputError(f"the history has no question {number}, it is empty")
        one = history.get(number)
    if json:
        emit(_plain(one))
        return
    typer.echo("\n".join(_told(one)))


def _told(one: Any) -> list[str]:
    """A question as lines: settings, what was kept with its score and how it came, what went where, and each hop."""
    lines = [one.query, f"{one.at}, {one.collection}, asked by {one.asked_by}, {one.milliseconds:.0f} ms"]
    lines.append(f"settings: {dumps(one.pipeline, ensure_ascii=False)}")
    kept = one.result.get("kept", [])
    kind = next((kind for kind in SCORES if any(kind in hit for hit in kept)), "")
    lines += [f"kept {len(kept)}, {one.result.get('metric', 'unknown')} metric" + (f"; {kind}:" if kind else "")]
    for hit in kept:
        score = f"{hit[kind]:.4f}" if kind in hit else "-"
        lines.append(
            f"  {score:<8} {hit.get('title') or hit['id']}" + (f"  ({hit['origin']})" if "origin" in hit else "")
        )
    lines += [f"dropped by {stage}: {count}" for stage, count in one.result.get("dropped", {}).items()]
    lines += [f"fell back: {each.get('stage')}: {each.get('reason')}" for each in one.result.get("fallbacks", [])]
    for hop in one.hops:
        found = "can answer" if hop.get("can_answer") else f"misses {hop.get('missing_query', '')}"
        lines.append(f"hop {hop.get('hop', '')}: {found} ({hop.get('reasoning', '')})")
    return lines


@history_app.command("delete")
def delete(
    numbers: list[int] = typer.Argument(None, help="The numbers that `history list` shows."),
    everything: bool = typer.Option(False, "--all", help="Delete every question."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Delete questions for good: nothing of them stays in the store's file. Back-ups made before keep theirs."""
    if bool(numbers) == everything:
        raise InputError("nothing to delete is named, expected numbers or --all")
    from rag_core.project import deeds

    what = "all" if everything else f"{len(numbers)} questions"
    with deeds.command(deeds.DELETE_HISTORY, what, resolve_workspace(workspace)), _opened(workspace) as history:
        gone = history.delete(None if everything else numbers) if history else 0
    if json:
        emit({"deleted": gone})
    else:
        typer.echo(f"{gone} questions are deleted")


def _plain(one: Any) -> dict[str, Any]:
    return asdict(one)


@contextmanager
def _opened(workspace: Path | None) -> Iterator[Any]:
    """The history, None where the workspace has no store yet."""
    from rag_core.store.database import has_store, open_store
    from rag_core.store.history import History

    place = resolve_workspace(workspace)
    if not has_store(place):
        yield None
        return
    with open_store(place) as store:
        yield History(store)
