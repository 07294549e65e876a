"""`evaluate`: measure pipelines on the questions of a project."""

from __future__ import annotations

from typing import Any

import typer

from rag_core.cli.grouping import grouped
from rag_core.cli.live import Engine
from rag_core.cli.options import Json, MinGrade, Split
from rag_core.cli.progress import ProgressBar
from rag_core.cli.replay import Short, laid_over, measures_of, show, show_traces
from rag_core.cli.run_saving import Keeping
from rag_core.cli.sessions import Approximate, WorksOn, look_at, narrowed, stands_on
from rag_core.cli.spread import evaluate_spread, place_of
from rag_core.errors import InputError

JudgeLabels = typer.Option(
    None, "--judge-labels", help="A model's labels where people gave none; its agreement must pass the bar."
)


@grouped
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
    seed: int = typer.Option(0, help="Seed of intervals and permutation tests."),
    approximate: bool = Approximate,
    simulated_hops: bool = typer.Option(
        False, "--simulated-hops", help="MultiHop asks a simulated judge that knows the labelled titles, no model."
    ),
    judge_labels: str | None = JudgeLabels,
    debug: bool = typer.Option(False, "--debug", help="The trace of every query as text, on stderr."),
    engine: str | None = Engine,
    json: bool = Json,
) -> None:
    """Measure pipelines on a project's questions: per query and mean, with intervals and a test of every pair."""
    from rag_core.measure.report import comparison_json
    from rag_core.project.runs import about

    session = works_on.session(min_grade, approximate)
    cases, notices = narrowed(session, split, tag, name, first), []
    if judge_labels is not None:
        from rag_core.cli.label_judge import with_judge_labels

        cases, notice = with_judge_labels(
            session.project.labels, cases, judge_labels, works_on.folder, session.min_grade
        )
        notices.append(notice)
    if simulated_hops:
        session.hop_judge = _hop_judge(session, cases)
    specs = [laid_over(spec, short, session) for spec in pipeline or ["fixed-15"]]
    if engine is not None:
        if debug or keeping.wanted or simulated_hops:
            raise InputError("--engine got --debug, --save-run, --run-out or --simulated-hops, expected it without")
        ready = [session.ready(spec) for spec in specs]
        facts = stands_on(session, ready, cases) | {"looks": look_at(session, ready, cases)}
        evaluate_spread(
            engine,
            place_of(session),
            cases,
            ready,
            session.min_grade,
            measures_of(measure),
            seed,
            json,
            facts,
            compared=measure or ["SetF"],
        )
        return
    reports = session.reports(specs, cases, measures_of(measure), ProgressBar("searched"))
    facts = stands_on(session, [report.pipeline for report in reports], cases)
    facts["looks"] = look_at(session, [report.pipeline for report in reports], cases)
    told = about(session, keeping.run_name, seed)
    session.close()
    if debug:
        show_traces(reports)
    keeping.keep(reports, told, works_on.workspace)
    show(reports, comparison_json(reports, seed, True, measure or ["SetF"]), json, notices, facts)


def _hop_judge(session: Any, cases: list[Any]) -> Any:
    """The simulated judge of hops, which knows the labelled titles."""
    from rag_core.llm.simulated import SimulatedHopJudge, labelled_titles

    return SimulatedHopJudge(labelled_titles(cases, session.source.chunks, session.min_grade))
