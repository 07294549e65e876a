"""`llm-filter repeat | depths | answer`: does a model say the same twice, what do references bring, and answers."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import typer

from rag_core.cli.llm_filter import (
    Budget,
    Depth,
    Endpoint,
    First,
    MaxCalls,
    Model,
    Rate,
    Setting,
    Simulated,
    judges_of,
    llm_filter_app,
    say,
    stop_if,
)
from rag_core.cli.options import Collection, EvalSetName, Json, Lists, MinGrade, Split, Workspace
from rag_core.cli.progress import AskingBar
from rag_core.errors import InputError
from rag_core.workspace import resolve_workspace


@llm_filter_app.command("repeat")
def repeat(
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    runs: int = typer.Option(3, "--runs", min=2, max=20, help="How often each question is asked."),
    endpoint: str = Endpoint,
    model: list[str] = Model,
    setting: list[str] = Setting,
    simulated: float | None = Simulated,
    depth: int = Depth,
    collection: str | None = Collection,
    split: str | None = Split,
    first: int | None = First,
    min_grade: int | None = MinGrade,
    budget: float | None = Budget,
    max_calls: int | None = MaxCalls,
    rate: float | None = Rate,
    preview: bool = typer.Option(False, "--preview", help="Only say how many calls, tokens and what cost."),
    seed: int = typer.Option(0, help="Seed of the simulated judge."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Ask the same several times and in reverse order: repeatability, and whether the order sways decisions.

    Example: python -m rag_core llm-filter repeat --eval-set api-docs --simulated 0.1 --runs 3 -n 10
    """
    from rag_core.cli.llm_filter_run import ahead_line, steadiness_lines
    from rag_core.judged import asking, bench, entrants, repeating

    folder = resolve_workspace(workspace)
    stages = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    queries = bench.open_bench(eval_set, lists, collection, folder, split, first, min_grade, stages[0].oversample)
    judges = judges_of(folder, queries, endpoint, model, simulated, depth, seed, rate)
    rivals = entrants.entrants(stages, judges)
    every = [one for rival in rivals for one in repeating.runs_of(rival, runs)]
    document = {"eval_set": queries.name, "preview": asking.ahead(queries, every)}
    if preview:
        say(document, json, lambda found: [ahead_line(found["preview"])])
        return
    ran = asking.ask_all(queries, every, asking.limits_of(every, budget, max_calls, rate), AskingBar())
    steady = [repeating.steadiness(queries, rival, runs) for rival in rivals]
    say({**document, "run": ran.to_json(), "entrants": steady}, json, steadiness_lines)
    stop_if(ran.cancelled)


@llm_filter_app.command("depths")
def depths(
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    chosen: str = typer.Option("", "-t", help="Only this query; default the means over all."),
    wanted: int = typer.Option(25, "--max-chunks", min=1, max=1000, help="How many nearest chunks are expanded."),
    cap: int = typer.Option(50, "--max-total-chunks", min=0, max=1000, help="Most chunks that one of them brings."),
    collection: str | None = Collection,
    split: str | None = Split,
    first: int | None = First,
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """How many chunks and tokens references bring at depth 0, 1, 3 and 5. Asks no model.

    Example: python -m rag_core llm-filter depths --eval-set api-docs -t auth-display
    """
    from rag_core.cli.llm_filter_run import depth_lines
    from rag_core.judged import bench
    from rag_core.judged.depths import depths as by_depth

    folder = resolve_workspace(workspace)
    queries = bench.open_bench(eval_set, lists, collection, folder, split, first, min_grade, wanted)
    if chosen and chosen not in queries.labels:
        raise InputError(f"there is no query {chosen[:80]!r}, expected one of the {len(queries.cases)} query ids")
    rows = [asdict(row) for row in by_depth(queries, wanted, cap, chosen)]
    say({"eval_set": queries.name, "query": chosen or None, "depths": rows}, json, depth_lines)


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

    folder = resolve_workspace(workspace)
    (stage,) = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    queries = bench.open_bench(eval_set, lists, collection, folder, None, None, min_grade, stage.oversample)
    case = next((case for case in queries.cases if chosen in ("", case.query.id)), None)
    if case is None:
        raise InputError(f"there is no query {chosen[:80]!r}, expected one of the {len(queries.cases)} query ids")
    models = [entrants.endpoint_judge(folder, endpoint, one) for one in model or [""]]
    judge = models[0] if simulated is None else entrants.simulated_judge(queries, simulated, depth, 0)
    document = answering.answer(case, replace(stage, judge=judge, chunks=queries.chunks), models, seconds=seconds)
    answering.keep(folder, document)
    say(document, json, answer_lines)


__all__ = ["answer", "depths", "llm_filter_app", "repeat"]
