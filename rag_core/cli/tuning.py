"""`sweep`: the measures of every setting of a grid. `tune` (tune.py) reads queries, grid and pipeline as it does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.live import Engine
from rag_core.cli.options import Json, MinGrade
from rag_core.cli.output import emit
from rag_core.cli.progress import ProgressBar
from rag_core.cli.sessions import WorksOn, lists_stand_on, project_named, stands_on
from rag_core.cli.spread import sweep_spread
from rag_core.cli.tuning_output import sweep_text, write_csv, write_parquet
from rag_core.errors import InputError

FILE_HELP = "Recorded lists, JSONL, one query a line (docs/formats.md)."
FRONT_HELP = "The stages in front; a spec that holds the stage is swept in place, with its own settings."

File = typer.Argument(None, help=FILE_HELP)
StageName = typer.Option("", "--stage", help="The stage whose settings the grid names; default: AdaptiveGap.")
Grid = typer.Option(None, "--grid", help="'name=low:high:count,name=a|b|c'; also Stage.setting and Stage=on|off.")
Front = typer.Option("unfiltered", "--pipeline", "-p", help=FRONT_HELP)
Depth = typer.Option(200, "--depth", min=1, max=10000, help="How many candidates per query, for a set without lists.")


@grouped
def sweep(
    works_on: WorksOn,
    file: Path | None = File,
    stage: str = StageName,
    grid: str | None = Grid,
    pipeline: str = Front,
    depth: int = Depth,
    min_grade: int | None = MinGrade,
    csv: Path | None = typer.Option(None, "--csv", help="Write the rows to this CSV file."),
    parquet: Path | None = typer.Option(None, "--parquet", help="Write the rows to this Parquet file."),
    engine: str | None = Engine,
    json: bool = Json,
) -> None:
    """Every setting of a grid at once: mean SetP, SetR, SetF and how much is kept; the best row, the optimum."""
    from rag_core.tune import chain

    stage = swept_stage(stage)
    session, cases, grade = read_cases(works_on, file, depth, min_grade, pipeline)
    swept, axes = swept_pipeline(pipeline, stage, grid, session=session)
    if engine is None:
        table = chain.sweep(cases, swept, axes, min_grade=grade, progress=ProgressBar("swept"))
    else:
        table = sweep_spread(engine, cases, swept, axes, works_on.folder, grade)
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
        **figures_stand_on(session, cases, [swept]),
    }
    if json:
        emit(document)
    else:
        typer.echo("\n".join(sweep_text(document)))


def read_cases(
    works_on: WorksOn, file: Path | None, depth: int, min_grade: int | None, pipeline: str = "unfiltered"
) -> tuple[Any, list[Any], int]:
    """The session (None for a file), the lists with their labels, and the grade from which a chunk is relevant.

    Of a project that searches, one deep list a question by the pipeline's own source.
    """
    if file is not None:
        from rag_core.records import load_lists

        works_on.refuse_beside(file)
        return None, load_lists(file), min_grade or 1
    if works_on == WorksOn(None, None, None, None, works_on.workspace) and project_named(None) is None:
        raise InputError("sweep and tune got neither a FILE nor an --eval-set nor a --project, expected one of them")
    from rag_core.project.session import front_of
    from rag_core.spec import make_stage
    from rag_core.stage import Pipeline

    session = works_on.session(min_grade)
    *rewrites, source = front_of(session.pipeline(pipeline)).stages
    deep = make_stage(source.name, {**source.settings(), "depth": depth})
    cases = session.capture(Pipeline((*rewrites, deep)), progress=ProgressBar("captured"))
    return session, cases, session.min_grade


def figures_stand_on(session: Any, cases: list[Any], pipelines: list[Any]) -> dict[str, Any]:
    """Fingerprints and split, of a project or of a file."""
    return lists_stand_on(cases, pipelines) if session is None else stands_on(session, pipelines, cases)


def swept_pipeline(
    source: str, stage: str, grid: str | None, most: int | None = 2_000_000, session: Any = None
) -> tuple[Any, tuple[Any, ...]]:
    """The pipeline with the stage in it, behind what the spec holds unless it holds it already, and the grid's axes."""
    from rag_core.spec import stage_class
    from rag_core.tune.grid import parse_grid

    rows = stage_class(stage).declared()
    text = grid or ",".join(f"{row.name}={row.grid[0]}:{row.grid[1]}:{row.grid[2]}" for row in rows if row.grid)
    if not text:
        raise InputError(f"there is no default grid for {stage}, expected --grid 'name=a|b|c'")
    return with_stage(source, stage, session), parse_grid(text, stage, most)


def swept_stage(name: str) -> str:
    """The stage that a sweep names, the adaptive cut where it names none."""
    from rag_core.filters.adaptive import AdaptiveGap

    return name or AdaptiveGap.__name__


def with_stage(source: str, stage: str, session: Any = None) -> Any:
    """The pipeline of a spec, with the stage behind it unless it holds it already."""
    from dataclasses import replace

    from rag_core.spec import make_stage, read_pipeline

    pipeline = read_pipeline(source) if session is None else session.pipeline(source)
    if stage in [held.name for held in pipeline.stages]:
        return pipeline
    return replace(pipeline, stages=(*pipeline.stages, make_stage(stage)))


def optimum_json(cases: list[Any], pipeline: Any, axes: tuple[Any, ...], min_grade: int) -> dict[str, Any] | None:
    """The best point of the continuous plane with the edges of its cell; None where nothing continuous varies."""
    from rag_core.tune.chain import best_of_plane

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
