"""`sweep`: the measures of every setting of a grid; `tune`: choose one on dev queries, report it on held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.live import Bar, Collection, Json, Workspace, opened_set
from rag_core.cli.output import emit
from rag_core.cli.tuning_output import sweep_text, tune_json, tune_text, write_csv, write_parquet, write_pipeline
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

DEFAULT_GRIDS = {
    "AdaptiveGap": "gap_threshold=0.01:0.3:60,distance_offset=0.05:0.6:40",
    "TopK": "k=1:50:50",
    "MinSimilarity": "min_relevance=0:1:101",
}
FILE_HELP = "Recorded lists, JSONL, one query a line (docs/formats.md)."
FRONT_HELP = "The stages in front; a spec that holds the stage is swept in place, with its own settings."

File = typer.Argument(None, help=FILE_HELP)
EvalSetName = typer.Option(
    None, "--eval-set", help="An eval set by name, or a folder with meta.yaml, instead of a file."
)
StageName = typer.Option("AdaptiveGap", "--stage", help="The stage whose settings the grid names.")
Grid = typer.Option(None, "--grid", help="'name=low:high:count,name=a|b|c'; also Stage.setting and Stage=on|off.")
Front = typer.Option("unfiltered", "--pipeline", "-p", help=FRONT_HELP)
Depth = typer.Option(200, "--depth", min=1, max=10000, help="How many candidates per query, for a set without lists.")
MinGrade = typer.Option(None, "--min-grade", help="Relevant means this grade or more.")


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
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Every setting of a grid at once: mean SetP, SetR, SetF and how much is kept; the best row, the optimum."""
    from rag_core.evaluate import chain

    cases, grade = read_cases(file, eval_set, collection, depth, min_grade, workspace)
    swept, axes = swept_pipeline(pipeline, stage, grid)
    table = chain.sweep(cases, swept, axes, min_grade=grade, progress=Bar("swept"))
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
) -> tuple[list[Any], int]:
    """The lists of a file or an eval set with their labels, and the grade from which a chunk counts as relevant."""
    if (file is None) == (eval_set is None):
        raise InputError("sweep and tune got a FILE and an --eval-set, or neither, expected one of the two")
    if file is not None:
        from rag_core.records import load_lists

        return load_lists(file), min_grade or 1
    return _of_set(str(eval_set), collection, depth, min_grade, resolve_workspace(workspace))


def _of_set(
    eval_set: str, collection: str | None, depth: int, min_grade: int | None, workspace: Path
) -> tuple[list[Any], int]:
    """The recorded lists of a set, or one deep run per query of its collection."""
    from rag_core.evaluate.sets import load_set

    found = load_set(eval_set, workspace)
    if found.recorded and collection is None:
        return list(found.cases), min_grade or found.min_grade
    from rag_core import workbench
    from rag_core.evaluate.capture import captures

    found, index = opened_set(eval_set, collection, workspace)
    try:
        return list(captures(found.cases, workbench.source_of(index, depth))), min_grade or found.min_grade
    finally:
        getattr(index, "close", lambda: None)()


def swept_pipeline(source: str, stage: str, grid: str | None) -> tuple[Any, tuple[Any, ...]]:
    """The pipeline with the stage in it, behind what the spec holds unless it holds it already, and the grid's axes."""
    from rag_core.evaluate.grid import parse_grid

    text = grid or DEFAULT_GRIDS.get(stage)
    if text is None:
        raise InputError(f"there is no default grid for {stage}, expected --grid 'name=a|b|c'")
    return with_stage(source, stage), parse_grid(text, stage)


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


def tune(
    file: Path | None = File,
    eval_set: str | None = EvalSetName,
    stage: str = StageName,
    grid: str | None = Grid,
    objective: str = typer.Option("SetF", "--objective", help="SetF, SetP or SetR: the mean to make greatest."),
    constraint: str | None = typer.Option(None, "--constraint", help="A mean to keep, such as 'SetR>=0.95'."),
    folds: int = typer.Option(5, "--folds", help="Folds over the dev queries; 0 for none."),
    holdout: float | None = typer.Option(
        None, "--holdout", help="Share of the queries held out; default: the set's own dev and test, else 0.3."
    ),
    out: Path | None = typer.Option(None, "--out", help="Write the chosen pipeline to this file (YAML or JSON)."),
    pipeline: str = Front,
    collection: str | None = Collection,
    depth: int = Depth,
    min_grade: int | None = MinGrade,
    seed: int = typer.Option(0, help="Seed of the split, intervals and tests."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Choose a setting on the dev queries and judge it on the held-out ones against the best fixed k."""
    from rag_core.evaluate import judgement
    from rag_core.evaluate import tune as tuning
    from rag_core.evaluate.looks import held_out_key, look
    from rag_core.spec import fingerprint

    cases, grade = read_cases(file, eval_set, collection, depth, min_grade, workspace)
    check_objective(objective)
    floor = tuning.parse_floor(constraint) if constraint else None
    given, chooser = _chooser(pipeline, stage, grid, objective, floor, grade)
    dev, test = tuning.dev_and_test(cases, holdout, seed, grade)
    choice = chooser(dev)
    crossed = _crossed(dev, chooser, objective, folds, grade, seed)
    seen = look(resolve_workspace(workspace), held_out_key(test), fingerprint(choice.pipeline))
    found = judgement.judge(test, choice, objective, given=given, looks=seen, min_grade=grade, seed=seed)
    if out is not None:
        write_pipeline(out, choice.pipeline)
    document = tune_json(choice, found, crossed, dev, test, seed) | {"constraint": constraint, "min_grade": grade}
    if json:
        emit(document)
    else:
        typer.echo("\n".join(tune_text(document)))


def _chooser(
    pipeline: str, stage: str, grid: str | None, objective: str, floor: tuple[str, float] | None, grade: int
) -> tuple[Any, Callable[[Sequence[Any]], Any]]:
    """The pipeline as it was given (None where it cannot run untrained), and how to choose one on some queries."""
    from rag_core.evaluate.tune import choose

    if stage == "LearnedCut":
        return None, _trainer(pipeline, grid, objective, floor, grade)
    swept, axes = swept_pipeline(pipeline, stage, grid)
    return swept, partial(choose, pipeline=swept, axes=axes, objective=objective, floor=floor, min_grade=grade)


def _trainer(
    pipeline: str, grid: str | None, objective: str, floor: tuple[str, float] | None, grade: int
) -> Callable[[Sequence[Any]], Any]:
    from rag_core.evaluate.learned import choose_trained

    if grid is not None or floor is not None:
        raise InputError("LearnedCut is trained, not swept: it got a --grid or a --constraint, expected neither")
    return partial(choose_trained, pipeline=with_stage(pipeline, "LearnedCut"), objective=objective, min_grade=grade)


def _crossed(
    dev: list[Any], chooser: Callable[[Sequence[Any]], Any], objective: str, folds: int, grade: int, seed: int
) -> Any:
    """Folds over the dev queries, as many as asked or as there are; None for fewer than two."""
    from rag_core.evaluate.split import near_duplicates
    from rag_core.evaluate.tune import cross_validate

    folds = min(folds, len(near_duplicates([case.query for case in dev])))
    return cross_validate(dev, chooser, objective, folds=folds, min_grade=grade, seed=seed) if folds > 1 else None


def check_objective(name: str) -> None:
    """Refuse an objective the sweep does not hold."""
    known = ("SetF", "SetP", "SetR")
    if name not in known:
        raise InputError(f"objective is {name[:80]!r}, expected one of {', '.join(known)}")
