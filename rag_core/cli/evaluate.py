"""`evaluate`, `compare`, `attribute`: pipelines measured, side by side, and where each loses what is relevant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Engine, Lists, MinGrade, Split
from rag_core.cli.output import ProgressBar
from rag_core.cli.replay import (
    Keeping,
    Pipelines,
    Reports,
    Short,
    chosen,
    laid_over,
    lists_stand_on,
    measures_of,
)
from rag_core.cli.sessions import Approximate, WorksOn, narrowed, stands_on
from rag_core.compare.attribution import attribute as attributed
from rag_core.compare.compare import side_by_side, side_by_side_json
from rag_core.compare.snapshot import Recorder
from rag_core.engine import cluster, jobs
from rag_core.engine.jobs import WorkPlace
from rag_core.errors import InputError
from rag_core.eval_sets.reading import files_state
from rag_core.measure.experiment import run_all, unique_names
from rag_core.measure.significance import compare_reports
from rag_core.project.labels import estimated, with_judge_labels
from rag_core.project.project import CALLABLE
from rag_core.project.runs import about
from rag_core.records import load_lists
from rag_core.tune.steps import measure_kept
from rag_core.tune.variants import Captures

app = Commands()


def place_of(session: Any) -> Any:
    """What queries of a project a cluster asks, and of which collection."""
    project = session.project
    if project.source.kind == CALLABLE:
        raise InputError("--engine got a --source, which workers cannot be handed, expected a collection")
    place = WorkPlace(
        project.workspace,
        str(project.folder),
        project.labels,
        state=files_state(project.folder),
        places={case.query.id: place for place, case in enumerate(session.eval_set.cases)},
    )
    if not session.live:
        return place
    index = str(session.source.index.fingerprint)
    return replace(place, collection=project.source.name, approximate=session.approximate, index=index)


@dataclass(frozen=True)
class ComparePart:
    """Recorded lists in place of a project, and which of the questions."""

    lists: Path | None = Lists
    split: str | None = Split
    tag: str | None = typer.Option(None, "--tag", help="Only the queries with this tag.")
    min_grade: int | None = MinGrade

    def starts(
        self, works_on: WorksOn, specs: list[str], unseen: bool = False
    ) -> tuple[Any, list[Any], list[Any], int, dict[str, Any]]:
        """(session, cases, pipelines, the grade from which a chunk is relevant, what the figures stand on).

        The session is None for a file of lists. `unseen`: where no side is named, only questions that chose none.
        """
        if self.lists is not None:
            works_on.refuse_beside(self.lists)
            pipelines = [laid_over(spec) for spec in specs]
            cases = [case for case in load_lists(self.lists) if self.tag is None or self.tag in case.query.tags]
            if not cases:
                raise InputError(f"{self.lists} has no query with tag {self.tag!r}, expected one that it has")
            return None, cases, pipelines, self.min_grade or 1, lists_stand_on(cases, pipelines)
        session = works_on.session(self.min_grade)
        cases = narrowed(session, self.split, self.tag)
        pipelines = [session.ready(laid_over(spec, session=session)) for spec in specs]
        of_all = len(cases)
        if unseen and self.split is None:
            cases = session.unseen(pipelines, cases) or cases
        facts = stands_on(session, pipelines, cases, looked_at=True)
        if len(cases) < of_all:
            said = f"on the {len(cases)} of {of_all} questions that chose none of the pipelines; --split all takes all"
            facts["notices"] = [said, *facts.get("notices", ())]
        return session, cases, pipelines, session.min_grade, facts


JudgeLabels = typer.Option(
    None, "--judge-labels", help="A model's labels where people gave none; its agreement must pass the bar."
)


@app.command(journal=True)
def evaluate(
    short: Short,
    keeping: Keeping,
    works_on: WorksOn,
    pipeline: list[str] = typer.Option(None, "--pipeline", "-p", help="Spec file, inline JSON or a shipped name."),
    split: str | None = Split,
    tag: str | None = typer.Option(None, "--tag", help="Only the queries with this tag."),
    min_grade: int | None = MinGrade,
    measure: list[str] = typer.Option(None, "--measure", "-m", help="A measure, such as nDCG@10; may be repeated."),
    name: list[str] = typer.Option(None, "-t", help="Only the query with this id; may be repeated."),
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries."),
    approximate: bool = Approximate,
    judge_labels: str | None = JudgeLabels,
    debug: bool = typer.Option(False, "--debug", help="The trace of every query as text, on stderr."),
    engine: str | None = Engine,
) -> None:
    """Measure pipelines on a project's questions: per query and mean, with intervals and a test of every pair."""
    session = works_on.session(min_grade, approximate)
    cases, notices = narrowed(session, split, tag, name, first), []
    if judge_labels is not None:
        cases, notice = with_judge_labels(
            session.project.labels, cases, judge_labels, works_on.folder, session.min_grade
        )
        notices.append(notice)
    specs = [laid_over(spec, short, session) for spec in pipeline or ["fixed-15"]]
    reports, wanted = Reports(session.min_grade, works_on.json, debug), measures_of(measure)
    ready = [session.ready(spec) for spec in specs]
    if engine is not None:
        if debug or keeping.wanted:
            raise InputError("--engine got --debug, --save-run or --run-out, expected it without")
        facts = stands_on(session, ready, cases, looked_at=True)
        with cluster.opened(engine) as workers:
            opened = reports.opened(unique_names(ready), ready)
            jobs.evaluate(workers, place_of(session), cases, opened, works_on.json, wanted, ProgressBar("parts"))
    else:
        recorder = Recorder(ready, session.min_grade)
        watch = [recorder.add] if keeping.wanted else []
        rows = session.stream(specs, cases, wanted, ProgressBar("searched"))
        reports.read(unique_names(ready), ready, rows, *watch)
        facts = stands_on(session, ready, cases, looked_at=True)
        if keeping.wanted:
            recorder.about = about(session, keeping.run_name)  # a function's chunks are known once it was asked
        session.close()
        keeping.keep(recorder, works_on.folder)
    notices += facts.pop("notices", [])
    reports.show(compare_reports(reports.files, True, measure or ["SetF"]), notices, facts)


@app.command()
def estimate(
    works_on: WorksOn,
    pipeline: list[str] = Pipelines,
    depth: int = typer.Option(15, "--depth", min=1, max=1000, help="First chunks of each pipeline that are the pool."),
    min_grade: int | None = MinGrade,
    seed: int = typer.Option(0, "--seed", help="Of the order of asking: the shuffle on Labels."),
) -> None:
    """Measures from partial labels with intervals, and what they stand on: bounds are certain, estimates are likely.

    Example: winnow estimate --project demo -p demo-tuned -p fixed-15
    """
    session = works_on.session(min_grade)
    pipelines = [laid_over(spec, session=session) for spec in pipeline or ["fixed-15"]]
    said = estimated(session, pipelines, depth, seed, ProgressBar("pooled"))
    facts = stands_on(session, pipelines, session.cases, looked_at=True)
    works_on.say(said, "\n".join([said.to_text(), *facts.get("notices", ())]), **facts)


@app.command()
def compare(
    works_on: WorksOn,
    part: ComparePart,
    pipeline: list[str] = Pipelines,
    query: str | None = typer.Option(None, "-t", help="The query with this id side by side, with every reason."),
    measure: str = typer.Option("SetF", "--measure", "-m", help="The measure of differences, contrasts and slices."),
    order: str = typer.Option("regressions", "--order", help="Of contrasts: regressions, difference or improvements."),
    most: int = typer.Option(20, "-n", min=1, help="How many contrast queries."),
) -> None:
    """Pipelines side by side, the first as baseline: table, the queries that differ most, slices, reasons."""
    if len(pipeline or ()) < 2:
        raise InputError(f"compare got {len(pipeline or ())} pipelines, expected at least two --pipeline")
    session, cases, pipelines, least, facts = part.starts(works_on, pipeline, unseen=query is None)
    if session is None:
        tallies = measure_kept(Captures(cases, least), pipelines, measures_of([measure]))
    else:
        tallies = session.measure_kept(pipelines, cases, ProgressBar("measured"), measures_of([measure]))
    compared = side_by_side(tallies, measure, order, most)
    text = "\n".join([compared.to_text(), *facts.get("notices", ())])
    if query is not None:
        wanted = chosen(cases, [query], None)
        reports = run_all(wanted, pipelines, least) if session is None else session.reports(pipelines, wanted)
        names = [report.name for report in reports]
        facts["query"] = side_by_side_json([report.outcomes[0] for report in reports], names)
        for against in facts["query"]["against"]:
            text += f"\n{against['name']}: Jaccard {against['jaccard']:.3f}"
            for one in against["differences"]:
                lost = f"{one['missing_from']} {one['stage']}: {one['reason']}"
                text += f"\n  only {one['kept_by']}: {one['chunk_id']}  {lost}"
    works_on.say(compared, text, **facts)


@app.command()
def attribute(works_on: WorksOn, part: ComparePart, pipeline: list[str] = Pipelines) -> None:
    """Where relevant chunks are lost, stage by stage, what each stage is good for, and whether order matters."""
    session, cases, pipelines, least, facts = part.starts(works_on, pipeline or ["fixed-15"])
    found = [attributed(cases if session is None else session.starts(one, cases), one, least) for one in pipelines]
    named = list(zip(unique_names(pipelines), found, strict=True))
    rows = [{"name": name, **one.to_json()} for name, one in named]
    works_on.say({"pipelines": rows, **facts}, "\n".join(f"{name}: {one.to_text()}" for name, one in named))
