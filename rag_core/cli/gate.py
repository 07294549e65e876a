"""`gate`: pass where a pipeline is no worse than a baseline run by more than a margin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Split
from rag_core.cli.output import ProgressBar, echo, emit
from rag_core.cli.replay import Pipelines, RunOut, eval_set_of, laid_over, lists_stand_on, measures_of
from rag_core.cli.runs import find_run
from rag_core.cli.sessions import WorksOn, narrowed, open_session, project_named, stands_on
from rag_core.compare.gate import FAIL, INCONCLUSIVE, GateRules, gate_json, gate_junit, gate_markdown, judge, overall
from rag_core.compare.run_file import dump_run
from rag_core.compare.snapshot import About, Recorder
from rag_core.errors import GateFailed, Inconclusive, exit_code
from rag_core.files import write_whole
from rag_core.measure.experiment import start_of, stream
from rag_core.measure.significance import MARGIN
from rag_core.project import runs
from rag_core.records import load_lists

app = Commands()


@app.command()
def gate(
    works_on: WorksOn,
    baseline: str = typer.Option(..., "--baseline", help="The baseline: a run file, or a stored run's id."),
    pipeline: list[str] = Pipelines,
    baseline_pipeline: str | None = typer.Option(
        None, "--baseline-pipeline", help="Which pipeline of the baseline run; default: its first."
    ),
    lists: Path | None = typer.Option(None, "--lists", help="Recorded lists to run over, in place of a project."),
    split: str | None = Split,
    measure: str = typer.Option("SetF", "--measure", "-m", help="The measure that decides."),
    margin: float = typer.Option(MARGIN, "--margin", help="How much worse is still accepted."),
    alpha: float = typer.Option(0.05, "--alpha", help="How often a gate may pass or fail by chance."),
    min_queries: int = typer.Option(10, "--min-queries", help="Fewer scored queries than this tell nothing."),
    markdown: Path | None = typer.Option(None, "--markdown", help="Write a summary for a pull request."),
    junit: Path | None = typer.Option(None, "--junit", help="Write JUnit XML."),
    run_out: Path | None = RunOut,
) -> None:
    """Exit 0 where nothing got worse by the margin, 1 where something did, 4 where that is not known (docs/gate.md).

    The questions are those of the project or eval set that is named, else of the one the baseline was measured on.
    """
    rules = GateRules(measure, margin, alpha, min_queries)
    before = find_run(baseline, works_on.folder)
    wanted = pipeline or ["fixed-15"]
    if lists is not None:
        results, after, facts = _over_lists(works_on, lists, wanted, before, rules, baseline_pipeline)
    else:
        results, after, facts = _over_project(works_on, wanted, split, before, rules, baseline_pipeline)
    for path, text in (
        (markdown, gate_markdown(results, rules)),
        (junit, gate_junit(results, rules)),
        (run_out, dump_run(after)),
    ):
        if path is not None:
            write_whole(path, text)
    if works_on.json:
        emit(gate_json(results, rules, after.id, before.id) | facts)
    _end(results, quiet=works_on.json)


def _over_lists(
    works_on: WorksOn, lists: Path, specs: list[str], before: Any, rules: Any, baseline_pipeline: str | None
) -> tuple[list[Any], Any, dict[str, Any]]:
    """The verdicts over recorded lists, the run they stand on, and what that stands on."""
    works_on.refuse_beside(lists)
    cases, pipelines, least = load_lists(lists), [laid_over(spec) for spec in specs], before.document["min_grade"]
    recorder = Recorder(pipelines, least, About("gate", eval_set_of(lists)))
    for outcomes in stream(cases, pipelines, least, measures_of([rules.measure])):
        recorder.add(outcomes)
    known = {hit.chunk.id for case in cases for hit in start_of(case).hits}
    after = recorder.run()
    return judge(before, after, rules, baseline_pipeline, known), after, lists_stand_on(cases, pipelines)


def _over_project(
    works_on: WorksOn, specs: list[str], split: str | None, before: Any, rules: Any, baseline_pipeline: str | None
) -> tuple[list[Any], Any, dict[str, Any]]:
    """The same over a project: its source is asked wherever no list of today answers."""
    named = works_on.eval_set
    if named is None and project_named(works_on.project) is None:
        named = before.document["eval_set"]
    least = before.document["min_grade"]
    session = open_session(
        works_on.folder, works_on.project, named, works_on.collection, works_on.source, min_grade=least
    )
    asked = {query["id"] for query in before.document["queries"]}
    cases = [case for case in narrowed(session, split) if case.query.id in asked]  # a look at no other question
    pipelines = [session.ready(laid_over(spec, session=session)) for spec in specs]
    measures = measures_of([rules.measure])
    results, after = runs.gate(
        session, before, pipelines, rules, baseline_pipeline, cases, measures, ProgressBar("searched")
    )
    facts = stands_on(session, pipelines, cases, looked_at=True)
    for notice in facts.get("notices", ()):
        echo(f"note: {notice}", err=True)
    return results, after, facts


def _end(results: list[Any], quiet: bool) -> None:
    """Say the verdicts, once, and end with the exit code they mean."""
    outcome = overall(results)
    ends = {FAIL: GateFailed, INCONCLUSIVE: Inconclusive}.get(outcome)
    if quiet and ends is not None:
        raise ends(next(one.sentence for one in results if one.outcome == outcome))
    for one in [] if quiet else results:
        echo(f"{one.outcome}: {one.sentence}")
        for bad in one.regressions if one.outcome == FAIL else ():
            why = "; ".join((*bad.reasons[:2], *bad.more))
            echo(f"  {bad.query_id}: {bad.baseline:.3f} → {bad.candidate:.3f}  {why}")
    if ends is not None:
        raise typer.Exit(exit_code(ends()))
