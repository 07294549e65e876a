"""`llm-filter repeat | depths | answer`: does a model say the same twice, what do references bring, and answers."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import typer

from rag_core.cli.llm_filter import llm_filter_app
from rag_core.cli.llm_filter_options import (
    Depth,
    Endpoint,
    Judges,
    Model,
    Queries,
    Setting,
    Spending,
    say,
    stop_if,
    with_given_labels,
)
from rag_core.cli.options import Collection, Commands, EvalSetName, Json, Lists, MinGrade, Workspace
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace

app = Commands()
app.add_typer(llm_filter_app, name="llm-filter")


@llm_filter_app.command("repeat")
def repeat(
    queries: Queries,
    judges: Judges,
    spending: Spending,
    runs: int = typer.Option(3, "--runs", min=2, max=20, help="How often each question is asked."),
    setting: list[str] = Setting,
    seed: int = typer.Option(0, help="Seed of the simulated judge."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Ask the same several times and in reverse order: repeatability, and whether the order sways decisions.

    Example: python -m rag_core llm-filter repeat --eval-set api-docs --simulated 0.1 --runs 3 -n 10
    """
    from rag_core.cli.llm_filter_run import ahead_line, steadiness_lines
    from rag_core.judged import asking, entrants, repeating

    folder = resolve_workspace(workspace)
    stages = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    bench = queries.bench(folder, stages[0].oversample)
    rivals = entrants.entrants(stages, judges.opened(folder, bench, seed, spending.rate))
    every = [one for rival in rivals for one in repeating.runs_of(rival, runs)]
    document = {"eval_set": bench.name, "preview": asking.ahead(bench, every)}
    if spending.preview:
        say(document, json, lambda found: [ahead_line(found["preview"])])
        return
    ran = spending.ask(bench, every, folder)
    steady = [repeating.steadiness(bench, rival, runs) for rival in rivals]
    say({**document, "run": ran.to_json(), "entrants": steady}, json, steadiness_lines)
    stop_if(ran.cancelled)


@llm_filter_app.command("depths")
def depths(
    queries: Queries,
    chosen: str = typer.Option("", "-t", help="Only this query; default the means over all."),
    wanted: int = typer.Option(25, "--max-chunks", min=1, max=1000, help="How many nearest chunks are expanded."),
    cap: int = typer.Option(50, "--max-total-chunks", min=0, max=1000, help="Most chunks that one of them brings."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """How many chunks and tokens references bring at depth 0, 1, 3 and 5. Asks no model.

    Example: python -m rag_core llm-filter depths --eval-set api-docs -t auth-display
    """
    from rag_core.cli.llm_filter_run import depth_lines
    from rag_core.judged.depths import depths as by_depth

    bench = queries.bench(resolve_workspace(workspace), wanted)
    if chosen and chosen not in bench.labels:
        raise InputError(f"there is no query {chosen[:80]!r}, expected one of the {len(bench.cases)} query ids")
    rows = [asdict(row) for row in by_depth(bench, wanted, cap, chosen)]
    say({"eval_set": bench.name, "query": chosen or None, "depths": rows}, json, depth_lines)


@llm_filter_app.command("answer")
def answer(
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    chosen: str = typer.Option("", "-t", help="The query that is answered; default the first."),
    endpoint: str = Endpoint,
    model: list[str] = Model,
    setting: list[str] = Setting,
    simulated: float | None = typer.Option(None, "--simulated", help="Filter with a simulated judge of this rate."),
    depth: int = Depth,
    collection: str | None = Collection,
    min_grade: int | None = MinGrade,
    seconds: float = typer.Option(60.0, "--seconds", min=0.1, max=3600, help="For the answers of one model."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Answer one question from the unfiltered and the filtered context, by every model named. Nothing is graded.

    The answers need an endpoint; the run is kept in the workspace's folder answers.
    Example: python -m rag_core llm-filter answer --eval-set api-docs -t auth-display --simulated 0.1 --model small
    """
    from rag_core.cli.llm_filter_run import answer_lines
    from rag_core.judged import answering, bench, entrants
    from rag_core.project import deeds

    folder = resolve_workspace(workspace)
    (stage,) = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    queries = bench.open_bench(eval_set, lists, collection, folder, None, None, min_grade, stage.oversample)
    queries = with_given_labels(queries, eval_set, folder)
    case = next((case for case in queries.cases if chosen in ("", case.query.id)), None)
    if case is None:
        raise InputError(f"there is no query {chosen[:80]!r}, expected one of the {len(queries.cases)} query ids")
    models = [entrants.endpoint_judge(folder, endpoint, one) for one in model or [""]]
    judge = models[0] if simulated is None else entrants.simulated_judge(queries, simulated, depth, 0)
    with deeds.command(deeds.ASK_MODEL, ", ".join(one.name for one in models), folder):
        document = answering.answer(case, replace(stage, judge=judge, chunks=queries.chunks), models, seconds=seconds)
        answering.keep(folder, document)
    say(document, json, answer_lines)


__all__ = ["answer", "depths", "llm_filter_app", "repeat"]
