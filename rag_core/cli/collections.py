"""`collections`: what exists; `found`, `connect`: Chroma collections made elsewhere; `recut`; `delete`.

`collections words` is in words.py.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.cli.words import words_app
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

ChromaPath = typer.Option(None, "--chroma-path", help="A folder that Chroma wrote; a copy of it is read.")
ChromaUrl = typer.Option("", "--chroma-url", help="The address of a Chroma server, such as http://127.0.0.1:8000.")
ChromaCloud = typer.Option(False, "--chroma-cloud", help="Chroma Cloud, by CHROMA_API_KEY, _TENANT and _DATABASE.")
InPlace = typer.Option(False, "--in-place", help="Serve the folder itself; Chroma will change files in it.")

collections_app = typer.Typer(
    help="What collections exist; connect one that Chroma holds.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
collections_app.add_typer(words_app, name="words")


@collections_app.callback()
def collections(context: typer.Context, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """What collections exist, with their chunks, rules and model."""
    from rag_core.index.collection import list_collections

    if context.invoked_subcommand is not None:
        return
    found = list_collections(resolve_workspace(workspace))
    if json:
        emit({"collections": [{name: getattr(one, name) for name in one.__slots__} for one in found]})
        return
    for one in found:
        origin = f", {one.metric} distances, mirrors {one.origin}" if one.origin else ""
        typer.echo(
            (one.problem and f"{one.name}: {one.problem}")
            or f"{one.name}: {one.chunks} chunks, {rules_said(one)}, {one.model}{origin}"
        )
    if not found:
        typer.echo("no collection yet; build one with: python -m rag_core ingest FOLDER --collection NAME")


def rules_said(counts: Any) -> str:
    """The rules of a collection: those that can be read, and beside them those that cannot, with the first reason."""
    said = f"{counts.with_rule} with rules"
    if counts.unreadable:
        said += f" and {counts.unreadable} with rules that cannot be read and drop nothing ({counts.rule_problem})"
    return said


@collections_app.command("found")
def found(
    chroma_path: Path | None = ChromaPath,
    chroma_url: str = ChromaUrl,
    chroma_cloud: bool = ChromaCloud,
    in_place: bool = InPlace,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """The collections that a Chroma store holds: size, space, dimensions and the model it says it was built with."""
    from rag_core.index.foreign import list_foreign

    listed = list_foreign(place_of(chroma_path, chroma_url, chroma_cloud, in_place), resolve_workspace(workspace))
    if json:
        emit({"collections": [{name: getattr(one, name) for name in one.__slots__} for one in listed]})
        return
    for one in listed:
        model = one.model or "a model it does not say"
        typer.echo(f"{one.name}: {one.count} records, {one.metric}, {one.dimension or '?'} dimensions, {model}")


@collections_app.command("connect")
def connect(
    collection: str = typer.Option(..., "--collection", help="The collection's name in the Chroma store."),
    name: str = typer.Option("", "--as", help="Its name here; default: the same."),
    chroma_path: Path | None = ChromaPath,
    chroma_url: str = ChromaUrl,
    chroma_cloud: bool = ChromaCloud,
    in_place: bool = InPlace,
    model: str = typer.Option("", "--model", help="What embeds the queries; needed where the store does not say."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Use a Chroma collection as it is: every command works on its mirror. Again: bring the mirror up to date."""
    from rag_core.cli.progress import ProgressBar
    from rag_core.index.foreign import connect as mirror
    from rag_core.project import deeds

    place, folder = place_of(chroma_path, chroma_url, chroma_cloud, in_place), resolve_workspace(workspace)
    with deeds.command(deeds.CONNECT, name or collection, folder):
        done = mirror(place, collection, name or collection, folder, model, ProgressBar("read"))
    if json:
        emit({one: getattr(done, one) for one in done.__slots__})
        return
    typer.echo(
        f"{done.collection}: {done.chunks} chunks, {done.with_text} with text, {done.metric} distances, "
        f"{done.dimension} dimensions, {done.model}"
    )
    if done.with_rule or done.unreadable:
        typer.echo(rules_said(done))
    if done.notice:
        typer.echo(done.notice)


@collections_app.command("delete")
def delete(
    collection: str = typer.Option(..., "--collection", help="The collection's name here."),
    yes: bool = typer.Option(False, "--yes", help="Really delete it."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Delete a collection of the workspace for good; documents and foreign stores stay as they are."""
    from rag_core.index.collection import delete_collection
    from rag_core.project import deeds

    if not yes:
        raise InputError(f"collection {collection[:80]} would be deleted for good, expected --yes")
    place = resolve_workspace(workspace)
    with deeds.command(deeds.DELETE_COLLECTION, collection, place):
        delete_collection(place, collection)
    if json:
        emit({"deleted": collection})
    else:
        typer.echo(f"{collection} is deleted")


@collections_app.command("recut")
def recut(
    collection: str = typer.Option(..., "--collection", help="The collection's name."),
    header_level: int = typer.Option(..., "--header-level", min=2, max=4, help="The deepest header that splits."),
    look: bool = typer.Option(False, "--look", help="Only say what would happen."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Cut a collection's Markdown at another header level, and say of every label where its text went."""
    from rag_core import rechunk
    from rag_core.cli.progress import ProgressBar
    from rag_core.index.handles import ingest_embedder
    from rag_core.project import deeds

    place = resolve_workspace(workspace)
    labels = _labels(place)
    if look:
        done = rechunk.look(place, collection, header_level, labels)
    else:
        with deeds.command(deeds.INGEST, collection, place):
            embedder = ingest_embedder(place, collection)
            done = rechunk.recut(place, collection, header_level, embedder, labels, ProgressBar("embedded"))
    if json:
        moves = [
            {
                "eval_set": one.label.eval_set,
                "query": one.label.query_id,
                "chunk": one.label.chunk_id,
                "outcome": one.outcome,
                "now": list(one.chunk_ids),
            }
            for one in done.labels
        ]
        emit(
            {"before": done.before, "after": done.after, "unchanged": done.unchanged, **done.outcomes, "labels": moves}
        )
        return
    would = "would be" if look else "are"
    typer.echo(f"{done.before} chunks {would} {done.after}, {done.unchanged} of them with a text as before")
    typer.echo("labels: " + ", ".join(f"{count} {outcome}" for outcome, count in done.outcomes.items()))


def _labels(workspace: Path) -> list[Any]:
    """The labels that count now, of every eval set."""
    from rag_core.store.database import has_store, open_store
    from rag_core.store.labels import LabelStore

    if not has_store(workspace):
        return []
    with open_store(workspace) as store:
        kept = LabelStore(store)
        return [label for name in kept.eval_sets() for label in kept.labels(name)]


def place_of(path: Path | None, url: str, cloud: bool, in_place: bool) -> Any:
    """The place the options name; --in-place says on stderr what it does to the folder."""
    from rag_core.index.foreign_place import IN_PLACE_WARNING, named_place
    from rag_core.settings import chroma_settings

    place = named_place(path, url, cloud, in_place, **asdict(chroma_settings()))
    if in_place:
        sys.stderr.write(f"warning: {IN_PLACE_WARNING}\n")
    return place
