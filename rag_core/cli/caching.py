"""`cache`: how often results were there, and clearing them."""

from __future__ import annotations

from pathlib import Path

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.workspace import resolve_workspace

cache_app = typer.Typer(
    help="The cache of live results, and the stored answers of models.", rich_markup_mode=None, no_args_is_help=False
)


@cache_app.command("clear")
def clear(
    answers: bool = typer.Option(False, "--answers", help="Forget what models answered, too: it is paid for again."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Let go of every remembered result, in a running app too; the answers of models stay unless --answers."""
    from rag_core.cache import clear_everywhere
    from rag_core.project import deeds

    folder = resolve_workspace(workspace)
    with deeds.command(deeds.CLEAR_CACHE, "results and answers" if answers else "results", folder):
        clear_everywhere(folder)
        forgotten = _forget_answers(folder) if answers else 0
    if json:
        emit({"cleared": True, "answers": forgotten})
    else:
        typer.echo("results are asked anew" + (f", {forgotten:,} answers of models too" if answers else ""))


def _forget_answers(workspace: Path) -> int:
    """Delete the stored answers; how many there were."""
    from rag_core.llm.recorded import FILE, AnswerStore

    if not (workspace / FILE).is_file():
        return 0
    store = AnswerStore(workspace / FILE)
    try:
        return store.clear()
    finally:
        store.close()


@cache_app.command("show")
def show(workspace: Path | None = Workspace, json: bool = Json) -> None:
    """Hits, misses and entries of the app that runs over the workspace."""
    from rag_core.cache import noted_counts

    counts = noted_counts(resolve_workspace(workspace))
    if json:
        emit({"hits": counts.hits, "misses": counts.misses, "entries": counts.entries, "hit_rate": counts.hit_rate})
        return
    rate = "nothing was asked yet" if counts.hit_rate is None else f"hit rate {counts.hit_rate:.0%}"
    typer.echo(f"{counts.hits:,} hits, {counts.misses:,} misses, {counts.entries:,} entries; {rate}")
