"""`llm-filter`: test the connection, compare prompt variants and a simulated judge with no model at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.options import Collection, EvalSetName, Json, Lists, MinGrade, Split, Workspace
from rag_core.cli.output import emit
from rag_core.cli.progress import AskingBar
from rag_core.errors import Cancelled, SurroundingsError
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.judged.bench import Bench
    from rag_core.llm import RecordedJudge

llm_filter_app = typer.Typer(
    help="The LLM filter: test-connection, variants, simulate, repeat, depths, answer.", no_args_is_help=False
)

First = typer.Option(None, "-n", min=1, help="Only the first N queries.")
Setting = typer.Option(None, "--set", help="A setting of LLMFilter, name=value; may be repeated.")
Endpoint = typer.Option("", "--endpoint", help="An endpoint by name; default the environment's.")
Model = typer.Option(None, "--model", help="A model of the endpoint; may be repeated.")
Simulated = typer.Option(None, "--simulated", help="A simulated judge of this error rate instead.")
Depth = typer.Option(0, "--depth", help="EXPAND depth of the simulated judge: 0, 1, 3 or 5.")
Free = typer.Option(None, "--pipeline", "-p", help="A free filter to compare with; may be repeated.")
Budget = typer.Option(None, "--budget", help="Stop before the spend passes this; needs prices.")
MaxCalls = typer.Option(None, "--max-calls", min=1, help="Stop after so many calls.")
Rate = typer.Option(None, "--rate", help="At most so many calls a second.")


@llm_filter_app.command("test-connection")
def connection(
    endpoint: str = Endpoint,
    model: str | None = typer.Option(None, "--model", help="The model's name; default that of the endpoint."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Ask an endpoint one small question: the one named, else that of OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL.

    Example: OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python -m rag_core llm-filter test-connection
    """
    from rag_core.filters.llm import NO_JUDGE
    from rag_core.llm import check_connection, endpoint_of, named_endpoint

    settings = named_endpoint(resolve_workspace(workspace), endpoint)
    if settings is None:
        raise SurroundingsError(NO_JUDGE)
    found = check_connection(endpoint_of(replace(settings, model=model) if model else settings))
    if json:
        emit(asdict(found))
        return
    typer.echo(f"{found.address} answers as {found.model} in {found.milliseconds:.0f} ms, form {found.form}")


@llm_filter_app.command("variants")
def variants(
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    variant: list[str] = typer.Option(None, "--variant", help="A prompt variant; may be repeated. Default: all."),
    endpoint: str = Endpoint,
    model: list[str] = Model,
    setting: list[str] = Setting,
    simulated: float | None = Simulated,
    depth: int = Depth,
    pipeline: list[str] = Free,
    collection: str | None = Collection,
    split: str | None = Split,
    first: int | None = First,
    min_grade: int | None = MinGrade,
    budget: float | None = Budget,
    max_calls: int | None = MaxCalls,
    rate: float | None = Rate,
    preview: bool = typer.Option(False, "--preview", help="Only say how many calls, tokens and what cost."),
    seed: int = typer.Option(0, help="Seed of the simulated judge, intervals and permutation tests."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Compare prompt variants with each other and with no model (rerank off) on labelled queries.

    Answers are stored in the workspace: a second run costs nothing, a stopped one goes on.
    Example: python -m rag_core llm-filter variants --eval-set api-docs --simulated 0.1 --preview
    """
    from rag_core.cli.llm_filter_run import lines
    from rag_core.judged import asking, bench, comparing, entrants

    folder = resolve_workspace(workspace)
    stages = entrants.stages_of(variant, entrants.settings_of(setting))
    deepest = max(stage.oversample for stage in stages)
    queries = bench.open_bench(eval_set, lists, collection, folder, split, first, min_grade, deepest)
    judges = judges_of(folder, queries, endpoint, model, simulated, depth, seed, rate)
    rivals = entrants.entrants(stages, judges)
    names = ", ".join(judge.name for judge in judges)
    document: dict[str, Any] = {
        "judge": names, "eval_set": queries.name, "preview": asking.ahead(queries, rivals)
    }  # fmt: skip
    ran = None
    if not preview:
        ran = asking.ask_all(queries, rivals, asking.limits_of(rivals, budget, max_calls, rate), AskingBar())
        document |= {"run": ran.to_json(), **comparing.compare(queries, rivals, seed, pipeline or [])}
    say(document, json, lines)
    stop_if(ran is not None and ran.cancelled)


@llm_filter_app.command("simulate")
def simulate(
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    error_rate: list[float] = typer.Option(None, "--error-rate", help="May be repeated. Default 0 to 0.5 by 0.1."),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Simulated judges per error rate."),
    depth: int = Depth,
    setting: list[str] = Setting,
    pipeline: list[str] = Free,
    price_in: float | None = typer.Option(None, "--price-in", min=0, help="Per million prompt tokens."),
    price_out: float | None = typer.Option(None, "--price-out", min=0, help="Per million completion tokens."),
    collection: str | None = Collection,
    split: str | None = Split,
    first: int | None = First,
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """How good must a judge be to beat the free filters, and what may it cost? Asks no model.

    Example: python -m rag_core llm-filter simulate --eval-set api-docs --price-in 0.15 --price-out 0.6
    """
    from rag_core.cli.llm_filter_run import simulated_lines
    from rag_core.judged import bench, entrants, simulating

    (stage,) = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    folder = resolve_workspace(workspace)
    queries = bench.open_bench(eval_set, lists, collection, folder, split, first, min_grade, stage.oversample)
    cost = entrants.price(price_in, price_out)
    rates = error_rate or simulating.RATES
    say(simulating.simulate(queries, stage, rates, seeds, depth, pipeline or [], cost), json, simulated_lines)


def judges_of(
    workspace: Path,
    queries: Bench,
    endpoint: str,
    models: Sequence[str] | None,
    simulated: float | None,
    depth: int,
    seed: int,
    rate: float | None = None,
) -> list[RecordedJudge]:
    """The simulated judge, or one judge per model of the endpoint."""
    from rag_core.judged import entrants
    from rag_core.llm import named_endpoint, price_of

    if simulated is not None:
        named = named_endpoint(workspace, endpoint)
        cost = price_of(named) if named else None
        return [entrants.simulated_judge(queries, simulated, depth, seed, cost)]
    return [entrants.endpoint_judge(workspace, endpoint, model, rate) for model in models or [""]]


def say(document: dict[str, Any], json: bool, lines: Callable[[dict[str, Any]], list[str]]) -> None:
    """The document, as JSON or as lines."""
    if json:
        emit(document)
    else:
        typer.echo("\n".join(lines(document)))


def stop_if(cancelled: bool) -> None:
    """A run that a person stopped ends as one."""
    if cancelled:
        raise Cancelled("stopped: what was answered is stored, the same command goes on from there")
