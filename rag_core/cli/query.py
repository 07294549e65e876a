"""Commands on a source: `query`, `capture`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from rag_core import workbench
from rag_core.cli.evaluate import place_of
from rag_core.cli.options import Commands, Engine
from rag_core.cli.output import ProgressBar, echo
from rag_core.cli.replay import Reports, Short, laid_over
from rag_core.cli.sessions import (
    Approximate,
    Calling,
    ProjectName,
    SourceName,
    WorksOn,
    open_session,
    stands_on,
)
from rag_core.engine import cluster, jobs
from rag_core.errors import InputError
from rag_core.filters.cutoff import is_weak
from rag_core.measure.experiment import Outcome, stream, unique_names
from rag_core.retrieve.capture import capture_to_file
from rag_core.retrieve.question import check_question
from rag_core.spec import dump_stages, read_pipeline
from rag_core.store import history
from rag_core.types import Case, Query

app = Commands()


@app.command()
def query(
    short: Short,
    text: str = typer.Argument(..., help="The question."),
    project: str | None = ProjectName,
    collection: str | None = typer.Option(None, "--collection", help="The collection's name."),
    source: str | None = SourceName,
    *,
    calling: Calling,
    pipeline: list[str] = typer.Option(None, "--pipeline", "-p", help="Spec file, inline JSON or a shipped name."),
    rag_only: bool = typer.Option(
        False, "--rag-only", help="Retrieval without any answer (there is none otherwise yet)."
    ),
    approximate: bool = Approximate,
    debug: bool = typer.Option(False, "--debug", help="The trace as text, on stderr."),
) -> None:
    """Ask one question of a source: what is found, what the filters drop and why."""
    case = Case(Query("query", check_question(text)))
    folder = calling.folder
    session = open_session(folder, project, None, collection, source, None, approximate, calling.options)
    searchable(session)
    specs = [session.ready(laid_over(spec, short, session)) for spec in pipeline or ["fixed-15"]]
    (outcomes,) = stream([case], specs)
    remember(outcomes, session.project.source.name, folder)
    names, reports = list(unique_names(specs)), Reports(session.min_grade, calling.json, debug)
    reports.read(names, specs, [outcomes])
    if calling.json:
        reports.show(facts=stands_on(session, specs, [case]))
    else:
        for name, outcome in zip(names, outcomes, strict=True):
            echo("\n".join(_listing(name, outcome)))
    session.close()
    expire(folder)


def searchable(session: Any) -> None:
    """Refuse a project of recorded lists where a new question is asked or lists are captured."""
    if not session.live:
        raise InputError(
            f"project {session.project.name} holds recorded lists, which cannot be searched, expected --collection "
            "NAME or --source module:function"
        )


def _listing(name: str, outcome: Outcome) -> list[str]:
    """The kept chunks of one query as lines, how many went where, and what the stages have to say about it."""
    result = outcome.result
    fused = any("rrf" in hit.scores for hit in result.hits)
    lines = [f"{name} · " + ("fused score (rrf) with " if fused else "") + f"{result.metric} distance"]
    for hit in result.hits:
        weak = "  (weak match)" if is_weak(hit, result.metric) else ""
        how = f"  ({hit.origin})" if hit.origin else ""
        lines.append(f"  {hit.rank:>4}  {_score(hit)}  {hit.chunk.title or hit.chunk.id}{weak}{how}")
    steps = " → ".join(f"{step.stage} {step.left}" for step in result.steps)
    lines.append(f"  kept {len(result.hits)}, dropped {len(result.drops)} ({steps})")
    lines += [f"  {one.stage} fell back: {one.reason}" for one in result.fallbacks]
    return [*lines, *(f"  {one.stage}: {one.text}" for one in result.notices if not one.chunk_id)]


def _score(hit: Any) -> str:
    """What the list is ordered by: the fused score with the distance, the distance, else every score by its name."""
    fused = hit.scores.get("rrf")
    if hit.distance is not None:
        return f"{hit.distance:.4f}" if fused is None else f"rrf {fused:.5f}  {hit.distance:.4f}"
    return "  ".join(f"{name} {value:.4f}" for name, value in hit.scores.items())


@app.command(journal=True)
def capture(
    works_on: WorksOn,
    out: Path = typer.Option(..., "--out", help="The JSONL file of recorded lists to write."),
    depth: int = typer.Option(200, "--depth", min=1, max=10000, help="How many candidates per query."),
    pipeline: str | None = typer.Option(
        None, "--pipeline", "-p", help="Whose source and query rewriting to ask; default: vector search."
    ),
    approximate: bool = Approximate,
    engine: str | None = Engine,
) -> None:
    """Ask every question once, deep, and write the lists with texts, rules and labels: a file to keep. Resumes."""
    session = works_on.session(approximate=approximate)
    searchable(session)
    index, cases, name = session.source.index, list(session.cases), session.project.labels
    with ExitStack() as stack:
        stack.callback(session.close)
        spec = read_pipeline(pipeline) if pipeline else None
        stage = workbench.source_of(index, depth, spec, name)
        mark = workbench.capture_fingerprint(index, depth, cases, spec, name)
        ask = None
        if engine is not None:
            ask = jobs.asker(stack.enter_context(cluster.opened(engine)), place_of(session), depth, spec)
        asked = capture_to_file(cases, stage, out, mark, ProgressBar("captured"), ask=ask)
        facts = {"out": str(out), "queries": len(cases), "asked": asked, "depth": depth, "fingerprint": mark}
        facts |= stands_on(session, [spec] if spec else [], cases) if works_on.json else {}
        works_on.say(facts, f"{len(cases)} queries, {depth} candidates each → {out}")


def remember(outcomes: Iterable[Outcome], asked: str, workspace: Path) -> None:
    """Keep the question in the workspace's history, once per pipeline; a word on stderr where that cannot be done."""
    for outcome in outcomes:
        entry = history.asked_of(outcome.result, dump_stages(outcome.pipeline), asked, "command line")
        problem = history.remember(workspace, entry)
        if problem:
            sys.stderr.write(f"warning: the question is not kept in the history: {problem}\n")


def expire(workspace: Path) -> None:
    """Delete what the history has kept long enough, now that the answer stands there; a word on stderr if it fails."""
    problem = history.expire(workspace)
    if problem:
        sys.stderr.write(f"warning: old questions are still in the history: {problem}\n")
