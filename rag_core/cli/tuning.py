"""`sweep`: the measures of every setting of a grid. `tune` (tune.py) reads queries, grid and pipeline as it does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.live import Engine, opened_set
from rag_core.cli.options import Collection, EvalSetName, Json, MinGrade, Workspace
from rag_core.cli.output import emit
from rag_core.cli.progress import Bar
from rag_core.cli.spread import sweep_spread
from rag_core.cli.tuning_output import sweep_text, write_csv, write_parquet
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

FILE_HELP = "Recorded lists, JSONL, one query a line (docs/formats.md)."
FRONT_HELP = "The stages in front; a spec that holds the stage is swept in place, with its own settings."

File = typer.Argument(None, help=FILE_HELP)
StageName = typer.Option("", "--stage", help="The stage whose settings the grid names; default: AdaptiveGap.")
Grid = typer.Option(None, "--grid", help="'name=low:high:count,name=a|b|c'; also Stage.setting and Stage=on|off.")
Front = typer.Option("unfiltered", "--pipeline", "-p", help=FRONT_HELP)
Depth = typer.Option(200, "--depth", min=1, max=10000, help="How many candidates per query, for a set without lists.")


def sweep(
    file: Path | None = File,
    eval_set: str | None = EvalSetName,
    stage: str = StageName,
    grid: str | None = Grid,
    pipeline: str = Front,
    collection: str | None = Collection,
    depth: int = Depth,
    min_grade: int | None = MinGrade,
    csv: Path | None = typer.Option(None, "--csv", help="Write the rows to this CSV file."),
    parquet: Path | None = typer.Option(None, "--parquet", help="Write the rows to this Parquet file."),
    engine: str | None = Engine,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Every setting of a grid at once: mean SetP, SetR, SetF and how much is kept; the best row, the optimum."""
    from rag_core.evaluate import chain

    stage = swept_stage(stage)
    cases, grade = read_cases(file, eval_set, collection, depth, min_grade, workspace, pipeline)
    swept, axes = swept_pipeline(pipeline, stage, grid)
    if engine is None:
        table = chain.sweep(cases, swept, axes, min_grade=grade, progress=Bar("swept"))
    else:
        table = sweep_spread(engine, cases, swept, axes, resolve_workspace(workspace), grade)
    rows = list(table.rows())
    if csv is not None:
        write_csv(csv, rows)
    if parquet is not None:
        write_parquet(parquet, rows)
    values = table.best_at()
    document = {
        "grid": {axis.name: axis.values for axis in axes},
        "rows": rows,
        "best": None if values is None else table.row_at(values),
        "optimum": optimum_json(cases, swept, axes, grade),
        "stage": stage,
        "min_grade": grade,
        "queries_total": len(cases),
        "left_out": table.means[0].size - len(rows),
        "settings_run_plainly": table.plainly,
    }
    if json:
        emit(document)
    else:
        typer.echo("\n".join(sweep_text(document)))


def read_cases(
    file: Path | None,
    eval_set: str | None,
    collection: str | None,
    depth: int,
    min_grade: int | None,
    workspace: Path | None,
    pipeline: str = "unfiltered",
) -> tuple[list[Any], int]:
    """The lists of a file or an eval set with their labels, and the grade from which a chunk counts as relevant."""
    if (file is None) == (eval_set is None):
        raise InputError("sweep and tune got a FILE and an --eval-set, or neither, expected one of the two")
    if file is not None:
        from rag_core.records import load_lists

        return load_lists(file), min_grade or 1
    return _of_set(str(eval_set), collection, depth, min_grade, resolve_workspace(workspace), pipeline)


def _of_set(
    eval_set: str, collection: str | None, depth: int, min_grade: int | None, workspace: Path, pipeline: str
) -> tuple[list[Any], int]:
    """The recorded lists of a set, or one deep run per query of its collection by the pipeline's own source."""
    from rag_core.evaluate.sets import load_set
    from rag_core.given import with_given

    found = load_set(eval_set, workspace)
    if found.recorded and collection is None:
        return list(with_given(found, workspace).cases), min_grade or found.min_grade
    from rag_core import workbench
    from rag_core.evaluate.capture import captures
    from rag_core.spec import read_pipeline

    found, index = opened_set(eval_set, collection, workspace)
    try:
        return list(
            captures(found.cases, workbench.source_of(index, depth, read_pipeline(pipeline)))
        ), min_grade or found.min_grade
    finally:
        getattr(index, "close", lambda: None)()


def swept_pipeline(
    source: str, stage: str, grid: str | None, most: int | None = 2_000_000
) -> tuple[Any, tuple[Any, ...]]:
    """The pipeline with the stage in it, behind what the spec holds unless it holds it already, and the grid's axes."""
    from rag_core.evaluate.grid import parse_grid
    from rag_core.spec import stage_class

    rows = stage_class(stage).declared()
    text = grid or ",".join(f"{row.name}={row.grid[0]}:{row.grid[1]}:{row.grid[2]}" for row in rows if row.grid)
    if not text:
        raise InputError(f"there is no default grid for {stage}, expected --grid 'name=a|b|c'")
    return with_stage(source, stage), parse_grid(text, stage, most)


def swept_stage(name: str) -> str:
    """The stage that a sweep names, the adaptive cut where it names none."""
    from rag_core.filters.adaptive import AdaptiveGap

    return name or AdaptiveGap.__name__


def with_stage(source: str, stage: str) -> Any:
    """The pipeline of a spec, with the stage behind it unless it holds it already."""
    from dataclasses import replace

    from rag_core.spec import make_stage, read_pipeline

    pipeline = read_pipeline(source)
    if stage in [held.name for held in pipeline.stages]:
        return pipeline
    return replace(pipeline, stages=(*pipeline.stages, make_stage(stage)))


def optimum_json(cases: list[Any], pipeline: Any, axes: tuple[Any, ...], min_grade: int) -> dict[str, Any] | None:
    """The best point of the continuous plane with the edges of its cell; None where nothing continuous varies."""
    from rag_core.evaluate.chain import best_of_plane

    best = best_of_plane(cases, pipeline, axes, min_grade=min_grade)
    if best is None:
        return None
    others, found = best
    fields = asdict(found)
    fields["gap_policy"] = fields.pop("policy")
    if found.relative_offset:
        fields["relative_offset"] = fields.pop("distance_offset")
        fields["relative_offset_below"] = fields.pop("distance_offset_below")
    else:
        del fields["relative_offset"]
    return {**others, **fields}
