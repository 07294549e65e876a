"""Commands on collections and other sources: `query`, `capture`. `ingest` is in ingesting.py."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.live_index import expire, remember, searched
from rag_core.cli.live_index import opened_set as opened_set
from rag_core.cli.options import Collection, Json, Workspace
from rag_core.cli.output import emit
from rag_core.cli.progress import Bar
from rag_core.cli.replay import Short, laid_over, show, show_traces
from rag_core.workspace import resolve_workspace

EvalSetName = typer.Option(..., "--eval-set", help="An eval set by name, or a folder with meta.yaml.")
SourceName = typer.Option(None, "--source", help="module:function that searches, in place of a collection.")
Approximate = typer.Option(False, "--approximate", help="Search with Chroma in a child process instead of exactly.")
Engine = typer.Option(None, "--engine", help="dask://host:port: do it in parts on a Dask cluster; default: here.")


@grouped
def query(
    short: Short,
    text: str = typer.Argument(..., help="The question."),
    collection: str | None = typer.Option(None, "--collection", help="The collection's name."),
    source: str | None = SourceName,
    pipeline: list[str] = typer.Option(None, "--pipeline", "-p", help="Spec file, inline JSON or a shipped name."),
    rag_only: bool = typer.Option(
        False, "--rag-only", help="Retrieval without any answer (there is none otherwise yet)."
    ),
    approximate: bool = Approximate,
    debug: bool = typer.Option(False, "--debug", help="The trace as text, on stderr."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Ask one question of a collection: what is found, what the filters drop and why."""
    from rag_core import workbench
    from rag_core.evaluate.experiment import run_all
    from rag_core.retrieve.question import check_question
    from rag_core.types import Case, Query

    case = Case(Query("query", check_question(text)))
    specs = [laid_over(spec, short) for spec in pipeline or ["fixed-15"]]
    index = searched(resolve_workspace(workspace), collection, source, approximate)
    try:
        reports = run_all([case], [workbench.live(spec, index) for spec in specs])
    finally:
        getattr(index, "close", lambda: None)()
    remember(reports, collection or str(source), resolve_workspace(workspace))
    if debug:
        show_traces(reports)
    if json:
        show(reports, [], True)
    else:
        for report in reports:
            typer.echo("\n".join(_listing(report)))
    expire(resolve_workspace(workspace))


def _listing(report: Any) -> list[str]:
    """The kept chunks of one query as lines, how many went where, and what the stages have to say about it."""
    from rag_core.filters.cutoff import is_weak

    (outcome,) = report.outcomes
    result = outcome.result
    lines = [f"{report.name} · {result.metric} distance"]
    for hit in result.hits:
        weak = "  (weak match)" if is_weak(hit, result.metric) else ""
        lines.append(f"  {hit.rank:>4}  {_distance(hit)}  {hit.chunk.title or hit.chunk.id}{weak}")
    steps = " → ".join(f"{step.stage} {step.left}" for step in result.steps)
    lines.append(f"  kept {len(result.hits)}, dropped {len(result.drops)} ({steps})")
    lines += [f"  {one.stage} fell back: {one.reason}" for one in result.fallbacks]
    return [*lines, *(f"  {one.stage}: {one.text}" for one in result.notices if not one.chunk_id)]


def _distance(hit: Any) -> str:
    """The distance, else the score that the list has, with its name."""
    if hit.distance is not None:
        return f"{hit.distance:.4f}"
    return "  ".join(f"{name} {value:.4f}" for name, value in hit.scores.items())


def capture(
    eval_set: str = EvalSetName,
    out: Path = typer.Option(..., "--out", help="The JSONL file of recorded lists to write."),
    collection: str | None = Collection,
    source: str | None = SourceName,
    depth: int = typer.Option(200, "--depth", min=1, max=10000, help="How many candidates per query."),
    pipeline: str | None = typer.Option(
        None, "--pipeline", "-p", help="Whose source and query rewriting to ask; default: vector search."
    ),
    approximate: bool = Approximate,
    engine: str | None = Engine,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Ask every query of an eval set once, deep, and keep the lists: tune on them for ever. Resumes."""
    from rag_core import workbench
    from rag_core.evaluate.capture import capture_to_file
    from rag_core.spec import read_pipeline

    folder = resolve_workspace(workspace)
    found, index = opened_set(eval_set, collection, folder, approximate, source)
    with ExitStack() as stack:
        stack.callback(getattr(index, "close", lambda: None))
        spec = read_pipeline(pipeline) if pipeline else None
        stage = workbench.source_of(index, depth, spec, found.name)
        mark = workbench.capture_fingerprint(index, depth, found.cases, spec, found.name)
        ask = None
        if engine is not None:
            from rag_core.cli.spread import place_of
            from rag_core.engine import cluster, jobs

            place = place_of(folder, eval_set, found, index, source, approximate)
            ask = jobs.asker(stack.enter_context(cluster.opened(engine)), place, depth, spec)
        asked = capture_to_file(found.cases, stage, out, mark, Bar("captured"), ask=ask)
    facts = {"out": str(out), "queries": len(found.cases), "asked": asked, "depth": depth, "fingerprint": mark}
    if json:
        emit(facts)
    else:
        typer.echo(f"{len(found.cases)} queries, {depth} candidates each → {out}")
