"""`ingest`: documents into a collection. Reading, embedding and storing are the library's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.live import Engine
from rag_core.cli.options import Json, Workspace
from rag_core.cli.output import emit
from rag_core.cli.progress import ProgressBar
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

Model = typer.Option("", "--model", help="What embeds: the bundled model, or one that a configured endpoint serves.")
Dimension = typer.Option(None, "--dimension", min=1, max=65536, help="The width of that model's vectors.")
SplitLong = typer.Option(False, "--split-long", help="Take chunks apart that are longer than the model reads.")
DryRun = typer.Option(False, "--dry-run", help="Only say what the documents hold; embed and write nothing.")


def ingest(
    paths: list[Path] = typer.Argument(..., help="Files or folders: Markdown, JSONL, CSV, Parquet, BEIR, OpenAPI."),
    collection: str = typer.Option(..., "--collection", help="The collection's name."),
    format: str = typer.Option("auto", "--format", help="auto, markdown, jsonl, csv, parquet, beir or openapi."),
    column: list[str] = typer.Option(
        None, "--column", help="FIELD=COLUMN for tables and JSONL, such as text=body; may be repeated."
    ),
    header_level: int = typer.Option(3, "--header-level", min=2, max=4, help="Markdown: deepest header that splits."),
    split_long: bool = SplitLong,
    model: str = Model,
    dimension: int | None = Dimension,
    dry_run: bool = DryRun,
    force: bool = typer.Option(False, "--force", help="Embed everything anew and keep nothing else."),
    engine: str | None = Engine,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Build or update a collection. Unchanged chunks are not embedded again; an interrupted ingest resumes."""
    from rag_core.index.ingest import ingest as bring_in
    from rag_core.project import deeds

    reading: dict[str, Any] = {"format": format, "header_level": header_level, "columns": _columns(column or [])}
    if dry_run:
        _look(paths, json, reading)
        return
    place = resolve_workspace(workspace)
    with (
        deeds.command(deeds.INGEST, collection, place),
        _embedder(engine, place, collection, model, dimension) as embedder,
    ):
        report = bring_in(
            paths,
            collection,
            place,
            embedder,
            split_long=split_long,
            force=force,
            progress=ProgressBar("embedded"),
            **reading,
        )
    if json:
        facts = {name: getattr(report, name) for name in report.__slots__}
        emit({**facts, "too_long": [{"id": chunk, "tokens": tokens} for chunk, tokens in report.too_long]})
    else:
        typer.echo("\n".join(_lines(report)))


def _lines(report: Any) -> list[str]:
    """What an ingest did, what it could not embed whole, and what it did not read."""
    lines = [
        f"{report.collection}: {report.chunks} chunks ({report.added} added, {report.changed} changed, "
        f"{report.removed} removed), {report.embedded} embedded with {report.model}"
    ]
    if report.too_long:
        lines.append(
            f"{len(report.too_long)} chunks are longer than the {report.window} tokens the model reads; "
            "what stands behind is not embedded (--split-long takes them apart)"
        )
    return [*lines, *_remarks(report.passed_over_files, report.warnings)]


def _look(paths: list[Path], json: bool, reading: dict[str, Any]) -> None:
    """What an ingest would read."""
    from rag_core.corpus.load import load

    found = load(paths, **reading)
    documents = [{"name": one.name, "chunks": len(one.chunks)} for one in found.documents]
    others = [str(path) for path in found.others]
    if json:
        chunks = [
            {"id": one.id, "title": one.title, "type": one.type, "characters": len(one.text)} for one in found.chunks
        ]
        emit({"documents": documents, "chunks": chunks, "passed_over_files": others, "warnings": found.warnings})
        return
    lines = [f"{one['chunks']:>7} chunks  {one['name']}" for one in documents]
    total = f"{len(found.chunks)} chunks in {len(documents)} documents; nothing is written"
    typer.echo("\n".join([*lines, total, *_remarks(others, found.warnings)]))


def _remarks(others: Any, warnings: Any) -> list[str]:
    """Files that were not read, by one of their names, and every warning."""
    over = (
        [f"{len(others)} files are no documents and were passed over, such as {Path(others[0]).name}"] if others else []
    )
    return [*over, *(f"warning: {warning}" for warning in warnings)]


@contextmanager
def _embedder(engine: str | None, workspace: Path, collection: str, model: str, dimension: int | None) -> Iterator[Any]:
    """The model named, else that of the collection, here; or the bundled one on a cluster."""
    from rag_core.index.embed import BundledEmbedder
    from rag_core.index.handles import ingest_embedder

    found = ingest_embedder(workspace, collection, model, dimension)
    if engine is None:
        yield found
        return
    from rag_core.engine import cluster, jobs

    if found.name != BundledEmbedder.name:
        raise InputError(f"--engine is set for {found.name}, expected it with the bundled {BundledEmbedder.name}")
    with cluster.opened(engine) as opened:
        yield jobs.SpreadEmbedder(opened)


def _columns(pairs: list[str]) -> dict[str, str]:
    """FIELD=COLUMN options as a mapping."""
    found: dict[str, str] = {}
    for pair in pairs:
        field, sign, name = pair.partition("=")
        if not (field and sign and name) or field in found:
            raise InputError(f"--column is {pair[:80]!r}, expected FIELD=COLUMN, each field once")
        found[field] = name
    return found
