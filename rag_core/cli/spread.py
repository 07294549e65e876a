"""What commands with `--engine` do: hand the work to a cluster and print what one machine would have printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.output import emit
from rag_core.cli.progress import ProgressBar
from rag_core.cli.replay import comparison_line, shown
from rag_core.errors import InputError


def place_of(session: Any) -> Any:
    """What queries of a project a cluster asks, and of which collection."""
    from rag_core.engine.jobs import WorkPlace
    from rag_core.project.project import CALLABLE

    project = session.project
    if project.source.kind == CALLABLE:
        raise InputError("--engine got a --source, which workers cannot be handed, expected a collection")
    if not session.live:
        return WorkPlace(project.workspace, str(project.folder), project.labels)
    index = session.source.index
    return WorkPlace(
        project.workspace,
        str(project.folder),
        project.labels,
        project.source.name,
        session.approximate,
        str(index.fingerprint),
    )


def evaluate_spread(
    address: str,
    place: Any,
    cases: Sequence[Any],
    pipelines: Sequence[Any],
    min_grade: int,
    measures: Sequence[Any],
    seed: int,
    json: bool,
    facts: Mapping[str, Any],
    compared: Sequence[str] = ("SetF",),
) -> None:
    """Measure the pipelines on a cluster, print the report."""
    from rag_core.engine import cluster, jobs
    from rag_core.measure.report import VERSION
    from rag_core.measure.significance import all_pairs, corrected

    with cluster.opened(address) as engine:
        found = jobs.evaluate(engine, place, cases, pipelines, min_grade, measures, ProgressBar("parts"))
    pairs = []
    for name in dict.fromkeys(compared) if len(found) > 1 else ():
        values = {one.name: [scores.values[name] for scores in one.scores] for one in found}
        pairs += all_pairs(values, name, seed=seed)
    rows = [{**row.to_json(), "seed": seed} for row in corrected(pairs)]
    if json:
        reports = [one.report for one in found]
        emit({"version": VERSION, "min_grade": min_grade, "pipelines": reports, "comparison": rows, **facts})
        return
    for one in found:
        means = "  ".join(f"{name} {shown(value)}" for name, value in one.means.items())
        typer.echo(f"{one.name}: {means}")
    for row in rows:
        typer.echo(comparison_line(row))


def sweep_spread(
    address: str, cases: Sequence[Any], pipeline: Any, axes: Sequence[Any], workspace: Path, min_grade: int
) -> Any:
    """The table of a sweep from a cluster."""
    from rag_core.engine import cluster, jobs

    with cluster.opened(address) as engine:
        return jobs.sweep(engine, cases, pipeline, axes, workspace, min_grade, ProgressBar("parts"))
