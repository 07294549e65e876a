"""`llm-filter`: test the connection, compare prompt variants and a simulated judge with no model at all."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.llm_filter_options import Depth, Endpoint, Free, Judges, Queries, Setting, Spending, say, stop_if
from rag_core.cli.options import Commands, Json, Workspace
from rag_core.cli.output import emit
from rag_core.errors import SurroundingsError
from rag_core.workspace import resolve_workspace

llm_filter_app = Commands("The LLM filter: test-connection, variants, simulate, repeat, depths, answer.")


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
    queries: Queries,
    judges: Judges,
    spending: Spending,
    variant: list[str] = typer.Option(None, "--variant", help="A prompt variant; may be repeated. Default: all."),
    setting: list[str] = Setting,
    pipeline: list[str] = Free,
    seed: int = typer.Option(0, help="Seed of the simulated judge, intervals and permutation tests."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Compare prompt variants with each other and with no model (rerank off) on labelled queries.

    Answers are stored in the workspace: a second run costs nothing, a stopped one goes on.
    Example: python -m rag_core llm-filter variants --eval-set api-docs --simulated 0.1 --preview
    """
    from rag_core.cli.llm_filter_run import lines
    from rag_core.judged import asking, comparing, entrants

    folder = resolve_workspace(workspace)
    stages = entrants.stages_of(variant, entrants.settings_of(setting))
    bench = queries.bench(folder, max(stage.oversample for stage in stages))
    asked = judges.opened(folder, bench, seed, spending.rate)
    rivals = entrants.entrants(stages, asked)
    names = ", ".join(judge.name for judge in asked)
    document: dict[str, Any] = {"judge": names, "eval_set": bench.name, "preview": asking.ahead(bench, rivals)}
    ran = None
    if not spending.preview:
        ran = spending.ask(bench, rivals, folder)
        document |= {"run": ran.to_json(), **comparing.compare(bench, rivals, seed, pipeline or [])}
    say(document, json, lines)
    stop_if(ran is not None and ran.cancelled)


@llm_filter_app.command("simulate")
def simulate(
    queries: Queries,
    error_rate: list[float] = typer.Option(None, "--error-rate", help="May be repeated. Default 0 to 0.5 by 0.1."),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Simulated judges per error rate."),
    depth: int = Depth,
    setting: list[str] = Setting,
    pipeline: list[str] = Free,
    price_in: float | None = typer.Option(None, "--price-in", min=0, help="Per million prompt tokens."),
    price_out: float | None = typer.Option(None, "--price-out", min=0, help="Per million completion tokens."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """How good must a judge be to beat the free filters, and what may it cost? Asks no model.

    Example: python -m rag_core llm-filter simulate --eval-set api-docs --price-in 0.15 --price-out 0.6
    """
    from rag_core.cli.llm_filter_run import simulated_lines
    from rag_core.judged import entrants, simulating

    (stage,) = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    bench = queries.bench(resolve_workspace(workspace), stage.oversample)
    cost = entrants.price(price_in, price_out)
    rates = error_rate or simulating.RATES
    say(simulating.simulate(bench, stage, rates, seeds, depth, pipeline or [], cost), json, simulated_lines)
