"""`gate`: fail where a pipeline is worse than a baseline run by more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from rag_core.cli.evaluating import narrowed, opened
from rag_core.cli.live import SourceName
from rag_core.cli.options import Collection, Json, Split, Workspace
from rag_core.cli.output import emit
from rag_core.cli.replay import Pipelines, eval_set_of, laid_over, measures_of
from rag_core.cli.run_saving import RunOut, find_run
from rag_core.errors import GateFailed, Inconclusive
from rag_core.workspace import resolve_workspace


def gate(
    baseline: str = typer.Option(..., "--baseline", help="The baseline: a run file, or a stored run's id."),
    pipeline: list[str] = Pipelines,
    baseline_pipeline: str | None = typer.Option(
        None, "--baseline-pipeline", help="Which pipeline of the baseline run; default: its first."
    ),
    lists: Path | None = typer.Option(None, "--lists", help="Recorded lists to run over, in place of an eval set."),
    eval_set: str | None = typer.Option(None, "--eval-set", help="Default: the one the baseline was measured on."),
    collection: str | None = Collection,
    source: str | None = SourceName,
    split: str | None = Split,
    measure: str = typer.Option("SetF", "--measure", "-m", help="The measure that decides."),
    margin: float = typer.Option(0.0, "--margin", help="How much worse is still accepted."),
    alpha: float = typer.Option(0.05, "--alpha", help="How often a gate may fail by chance."),
    min_queries: int = typer.Option(10, "--min-queries", help="Fewer scored queries than this tell nothing."),
    seed: int = typer.Option(0, help="Seed of intervals and permutation tests."),
    markdown: Path | None = typer.Option(None, "--markdown", help="Write a summary for a pull request."),
    junit: Path | None = typer.Option(None, "--junit", help="Write JUnit XML."),
    run_out: Path | None = RunOut,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Exit 0 where nothing got worse, 1 on a regression, 4 where that cannot be told (docs/gate.md)."""
    from rag_core.evaluate.gate import GateRules, judge
    from rag_core.evaluate.gate_report import gate_json, gate_junit, gate_markdown
    from rag_core.evaluate.run_file import dump_run
    from rag_core.files import write_whole

    rules = GateRules(measure, margin, alpha, min_queries, seed)
    before = find_run(baseline, workspace)
    specs = [laid_over(spec) for spec in pipeline or ["fixed-15"]]
    after = _measured(before, specs, lists, eval_set, collection, source, split, rules, workspace)
    results = judge(before, after, rules, baseline_pipeline)
    for path, text in (
        (markdown, gate_markdown(results, rules)),
        (junit, gate_junit(results, rules)),
        (run_out, dump_run(after)),
    ):
        if path is not None:
            write_whole(path, text)
    if json:
        emit(gate_json(results, rules, after.id, before.id))
    _end(results, quiet=json)


def _measured(
    before: Any,
    specs: list[Any],
    lists: Path | None,
    eval_set: str | None,
    collection: str | None,
    source: str | None,
    split: str | None,
    rules: Any,
    workspace: Path | None,
) -> Any:
    """The run of the candidates, over the lists or the eval set, with the baseline's idea of relevant."""
    from rag_core.evaluate.snapshot import About, Recorder
    from rag_core.evaluate.tally import measure_all

    least, measures = before.document["min_grade"], measures_of([rules.measure])
    if lists is not None:
        from rag_core.records import load_lists

        recorder = Recorder(specs, least, About("gate", eval_set_of(lists), rules.seed))
        measure_all(load_lists(lists), specs, least, measures, watch=recorder.add)
        return recorder.run()
    name = eval_set or before.document["eval_set"]
    with opened(name, collection, source, resolve_workspace(workspace)) as whole:
        one = narrowed(whole, split, None, None, None)
        runnable = one.runnable(specs)
        recorder = Recorder(runnable, least, one.about("gate", rules.seed))
        measure_all(one.cases, runnable, least, measures, watch=recorder.add)
        return recorder.run()


def _end(results: list[Any], quiet: bool) -> None:
    """Say the verdicts and end with the exit code they mean."""
    from rag_core.evaluate.gate import FAIL, INCONCLUSIVE, overall

    outcome = overall(results)
    if not quiet:
        for one in results:
            typer.echo(f"{one.outcome}: {one.sentence}")
            for bad in one.regressions if one.outcome == FAIL else ():
                why = "; ".join((*bad.reasons[:2], *bad.more))
                typer.echo(f"  {bad.query_id}: {bad.baseline:.3f} → {bad.candidate:.3f}  {why}")
    if outcome == FAIL:
        raise GateFailed(next(one.sentence for one in results if one.outcome == FAIL))
    if outcome == INCONCLUSIVE:
        raise Inconclusive(next(one.sentence for one in results if one.outcome == INCONCLUSIVE))
