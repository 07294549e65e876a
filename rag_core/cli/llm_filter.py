"""`llm-filter`: test the connection, compare prompt variants and a simulated judge with no model at all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import typer

from rag_core.cli.output import emit
from rag_core.errors import Cancelled, InputError, SurroundingsError
from rag_core.workspace import resolve_workspace

llm_filter_app = typer.Typer(help="The LLM filter: test-connection, variants, simulate.", no_args_is_help=False)

Workspace = typer.Option(None, "--workspace", help="Folder of labels, indexes, runs and stored answers.")
Json = typer.Option(False, "--json", help="One JSON document on stdout.")
EvalSetName = typer.Option(None, "--eval-set", help="An eval set by name, or a folder with meta.yaml.")
Lists = typer.Option(None, "--lists", help="Recorded lists with labels, JSONL, instead of an eval set.")
Split = typer.Option(None, "--split", help="Only the queries of this split (dev, test).")
First = typer.Option(None, "-n", min=1, help="Only the first N queries.")
MinGrade = typer.Option(None, "--min-grade", help="Relevant means this grade or more.")
Setting = typer.Option(None, "--set", help="A setting of LLMFilter, name=value; may be repeated.")


@llm_filter_app.command("test-connection")
def connection(
    model: str | None = typer.Option(None, "--model", help="The model's name; default OPENAI_MODEL."),
    json: bool = Json,
) -> None:
    """Ask the environment's endpoint (OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL) one small question.

    Example: OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python -m rag_core llm-filter test-connection
    """
    from rag_core.filters.llm import NO_JUDGE
    from rag_core.llm import check_connection, endpoint_of
    from rag_core.settings import model_settings

    settings = model_settings()
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
    model: list[str] = typer.Option(None, "--model", help="A model of the endpoint; may be repeated."),
    setting: list[str] = Setting,
    simulated: float | None = typer.Option(None, "--simulated", help="A simulated judge of this error rate instead."),
    depth: int = typer.Option(0, "--depth", help="EXPAND depth of the simulated judge: 0, 1, 3 or 5."),
    collection: str | None = typer.Option(None, "--collection", help="Search this collection."),
    split: str | None = Split,
    first: int | None = First,
    min_grade: int | None = MinGrade,
    budget: float | None = typer.Option(None, "--budget", help="Stop before the spend passes this; needs prices."),
    max_calls: int | None = typer.Option(None, "--max-calls", min=1, help="Stop after so many calls."),
    rate: float | None = typer.Option(None, "--rate", help="At most so many calls a second."),
    preview: bool = typer.Option(False, "--preview", help="Only say how many calls, tokens and what cost."),
    seed: int = typer.Option(0, help="Seed of the simulated judge, intervals and permutation tests."),
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Compare prompt variants with each other and with no model (rerank off) on labelled queries.

    Answers are stored in the workspace: a second run costs nothing, a stopped one goes on.
    Example: python -m rag_core llm-filter variants --eval-set api-docs --simulated 0.1 --preview
    """
    from rag_core.cli import llm_filter_run as work

    folder = resolve_workspace(workspace)
    stages = work.stages_of(variant, model, work.settings_of(setting))
    bench = work.open_bench(
        eval_set, lists, collection, folder, split, first, min_grade, max(s.oversample for s in stages)
    )
    judge = work.judge_of(folder, bench, simulated, depth, seed)
    asked = work.ask_all(bench, stages, judge, work.limits_of(stages, budget, max_calls, rate), preview, Bar())
    document = {"judge": judge.name, "eval_set": bench.name, "preview": asked.ahead}
    if not preview:
        document |= {"run": asked.run, **work.compare_all(bench, stages, judge, seed)}
    if json:
        emit(document)
    else:
        typer.echo("\n".join(work.lines(document)))
    if asked.cancelled:
        raise Cancelled("stopped: what was answered is stored, the same command goes on from there")


@llm_filter_app.command("simulate")
def simulate(
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    error_rate: list[float] = typer.Option(None, "--error-rate", help="May be repeated. Default 0 to 0.5 by 0.1."),
    seeds: int = typer.Option(3, "--seeds", min=1, help="Simulated judges per error rate."),
    depth: int = typer.Option(0, "--depth", help="EXPAND depth for relevant chunks with references: 0, 1, 3 or 5."),
    setting: list[str] = Setting,
    pipeline: list[str] = typer.Option(None, "--pipeline", "-p", help="Free filters to beat; may be repeated."),
    price_in: float | None = typer.Option(None, "--price-in", min=0, help="Per million prompt tokens."),
    price_out: float | None = typer.Option(None, "--price-out", min=0, help="Per million completion tokens."),
    collection: str | None = typer.Option(None, "--collection", help="Search this collection."),
    split: str | None = Split,
    first: int | None = First,
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """How good must a judge be to beat the free filters, and what may it cost? Asks no model.

    Example: python -m rag_core llm-filter simulate --eval-set api-docs --price-in 0.15 --price-out 0.6
    """
    from rag_core.cli import llm_filter_run as work

    (stage,) = work.stages_of([], [], work.settings_of(setting), only_default=True)
    folder = resolve_workspace(workspace)
    bench = work.open_bench(eval_set, lists, collection, folder, split, first, min_grade, stage.oversample)
    rates = error_rate or [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    document = work.simulate_all(bench, stage, rates, seeds, depth, pipeline or [], work.price(price_in, price_out))
    if json:
        emit(document)
    else:
        typer.echo("\n".join(work.simulated_lines(document)))


class Bar:
    """Progress on stderr where a person watches: n of N, rate, time left, spend."""

    def __init__(self) -> None:
        self.shown = 0.0

    def __call__(self, progress: Any) -> None:
        """Show how far the run is, a few times a second."""
        now = perf_counter()
        if not sys.stderr.isatty() or (now - self.shown < 0.2 and progress.done < progress.total):
            return
        self.shown = now
        spend = "cost unknown" if progress.spent is None else f"spent {progress.spent:.4f}"
        left = "" if progress.remaining_seconds is None else f" · {progress.remaining_seconds:,.0f} s left"
        text = f"{progress.done:,} of {progress.total:,} · {progress.rate:.1f} a second{left} · {spend}"
        sys.stderr.write(f"\r{text}   " + ("\n" if progress.done >= progress.total else ""))
        sys.stderr.flush()


def given_one(eval_set: str | None, lists: Path | None) -> None:
    """Exactly one of an eval set and a file of lists, or an InputError."""
    if (eval_set is None) == (lists is None):
        raise InputError(f"{'both' if eval_set else 'neither'} --eval-set and --lists given, expected one of them")


__all__: Sequence[str] = ("Bar", "given_one", "llm_filter_app")
