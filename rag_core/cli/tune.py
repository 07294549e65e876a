"""`tune`: choose a setting on dev queries, report it on held-out ones. By default the plane; other methods by name.

The frame of the command: its options, and what every method is asked. What a method does is in tune_methods.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.options import Json, MinGrade
from rag_core.cli.output import emit
from rag_core.cli.sessions import WorksOn
from rag_core.cli.tune_methods import METHODS, TuneOptions
from rag_core.cli.tuning import Depth, File, Front, Grid, StageName, figures_stand_on, read_cases, swept_stage
from rag_core.errors import InputError

OWN = {
    "alpha": "conformal", "knob": "conformal", "sampler": "search", "trials": "search", "study": "search",
}  # fmt: skip
"""Options that only one method reads."""

METHOD_HELP = (
    "plane: the best point of a grid or plane. best: all settings of the pipeline's last cut, or the best fixed k. "
    "conformal: a recall that is promised (--alpha, --knob). "
    "learned: a cut trained from the labels. search: Optuna over any settings (--sampler, --trials, --study)."
)
OBJECTIVE_HELP = (
    "SetF, SetP or SetR: the mean to make greatest; with --method search one to three of these, kept_mean, "
    "kept_tokens, latency_ms and cost, separated by commas."
)


@grouped
def tune(
    works_on: WorksOn,
    file: Path | None = File,
    method: str = typer.Option("plane", "--method", help=METHOD_HELP),
    stage: str = StageName,
    grid: str | None = Grid,
    objective: str = typer.Option("SetF", "--objective", help=OBJECTIVE_HELP),
    constraint: str | None = typer.Option(None, "--constraint", help="A mean to keep, such as 'SetR>=0.95'."),
    folds: int = typer.Option(5, "--folds", help="Folds over the dev queries; 0 for none."),
    holdout: float | None = typer.Option(
        None,
        "--holdout",
        help="Share of the queries held out; default: the project's split; of a FILE its own, or 0.3.",
    ),
    alpha: float | None = typer.Option(None, "--alpha", help="conformal: the share that may be missed, 0.1."),
    knob: str | None = typer.Option(None, "--knob", help="conformal: k, min_relevance or distance_offset."),
    sampler: str | None = typer.Option(None, "--sampler", help="search: tpe, random, grid or nsga2."),
    trials: int | None = typer.Option(None, "--trials", help="search: finished trials the study shall hold, 200."),
    study: str | None = typer.Option(None, "--study", help="search: a study of the workspace to share or resume."),
    out: Path | None = typer.Option(None, "--out", help="Write the chosen pipeline to this file (YAML or JSON)."),
    pipeline: str = Front,
    depth: int = Depth,
    min_grade: int | None = MinGrade,
    seed: int = typer.Option(0, help="Seed of the split, intervals and tests."),
    json: bool = Json,
) -> None:
    """Choose a setting on the dev queries and judge it on the held-out ones against the best fixed k."""
    own = {"alpha": alpha, "knob": knob, "sampler": sampler, "trials": trials, "study": study}
    given = {name: value for name, value in own.items() if value is not None}
    run = METHODS[checked(method, given)]
    session, cases, grade = read_cases(works_on, file, depth, min_grade, pipeline)
    plan = (pipeline, swept_stage(stage), grid, objective, constraint, folds, holdout, given, out, seed)
    document, lines = run(TuneOptions(session, cases, grade, works_on.folder, *plan))
    if json:
        from rag_core.spec import parse_pipeline

        made = [parse_pipeline(document["pipeline"])] if document["pipeline"] else []
        emit({"method": method, **document, **figures_stand_on(session, cases, made)})
    else:
        typer.echo("\n".join(lines))


def checked(method: str, given: Mapping[str, object]) -> str:
    """The method's name; InputError for an unknown one or an option of another."""
    if method not in METHODS:
        raise InputError(f"method is {method[:80]!r}, expected one of {', '.join(METHODS)}")
    stray = next((name for name in given if OWN[name] != method), None)
    if stray is not None:
        raise InputError(f"--{stray} belongs to --method {OWN[stray]}, but the method is {method}")
    return method
