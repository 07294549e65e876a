"""`cache`: how often results were there, and clearing them."""

from __future__ import annotations

from pathlib import Path

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.workspace import resolve_workspace

cache_app = typer.Typer(help="The cache of live results.", rich_markup_mode=None, no_args_is_help=False)


@cache_app.command("clear")
def clear(workspace: Path | None = Workspace, json: bool = Json) -> None:
    """Let go of every remembered result, in a running app too; the answers of models stay."""
    from rag_core.cache import clear_everywhere

    clear_everywhere(resolve_workspace(workspace))
    if json:
        emit({"cleared": True})
    else:
        typer.echo("results are asked anew")


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
