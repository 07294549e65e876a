"""`llm-filter`: test the connection, compare prompts and judges, simulate one, repeat, propose a floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Collection, Commands, Common, EvalSetName, Lists, MinGrade, Split
from rag_core.cli.output import AskingBar
from rag_core.cli.sessions import WorksOn, narrowed, open_session
from rag_core.errors import Cancelled, InputError, SurroundingsError
from rag_core.filters.llm.stage import NO_JUDGE, LLMFilter
from rag_core.judged import trials
from rag_core.judged.entrants import (
    Bench,
    Entrant,
    calls_of,
    endpoint_judge,
    entrants_of,
    limits_of,
    settings_of,
    simulated_judge,
    stages_of,
)
from rag_core.judged.floor import propose_floor
from rag_core.judged.study import keep
from rag_core.judged.study import study as study_of
from rag_core.llm.answer import Price
from rag_core.llm.client import check_connection
from rag_core.llm.endpoint import endpoint_of, named_endpoint, price_of
from rag_core.llm.judge import RecordedJudge
from rag_core.llm.run import Progress, RunLimits, answer_all, preview
from rag_core.project import deeds
from rag_core.project.asking import bench_of, judged_places, nearest
from rag_core.records import load_lists
from rag_core.stage import Pipeline
from rag_core.types import chunks_in

DEEP = 200
"""Candidates of a live set: what the filter never reads is counted as lost to its oversampling."""

Setting = typer.Option(None, "--set", help="A setting of LLMFilter, name=value; may be repeated.")
Endpoint = typer.Option("", "--endpoint", help="An endpoint by name; default the environment's.")
Simulated = typer.Option(None, "--simulated", help="A simulated judge of this error rate instead.")
Depth = typer.Option(0, "--depth", help="EXPAND depth of the simulated judge: 0, 1, 3 or 5.")
Free = typer.Option(None, "--pipeline", "-p", help="A free filter to compare with; may be repeated.")


@dataclass(frozen=True)
class Queries(Common):
    """Which labelled queries: a project's dev questions, an eval set's, or those of a file."""

    project: str | None = typer.Option(None, "--project", help="The dev questions of this project, on its source.")
    eval_set: str | None = EvalSetName
    lists: Path | None = Lists
    collection: str | None = Collection
    split: str | None = Split
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries.")
    min_grade: int | None = MinGrade

    def bench(self, depth: int = DEEP) -> Bench:
        """The queries with their candidates (`depth` where they have none of their own) and the labels of today."""
        if self.lists is not None:
            if self.project or self.eval_set or self.split:
                raise InputError("got --lists beside --project, --eval-set or --split, expected one of them")
            cases = load_lists(self.lists)[: self.first]
            return Bench(self.lists.name, tuple(cases), chunks_in(cases), self.min_grade or 1)
        session = open_session(self.folder, self.project, self.eval_set, self.collection, min_grade=self.min_grade)
        if self.eval_set is None and self.split is None:
            return nearest(session, depth, session.dev[: self.first])
        return nearest(session, depth, narrowed(session, self.split, first=self.first))


@dataclass(frozen=True)
class Judges:
    """Who is asked: the models of an endpoint, or a simulated judge."""

    endpoint: str = Endpoint
    model: list[str] | None = typer.Option(None, "--model", help="A model of the endpoint; may be repeated.")
    simulated: float | None = Simulated
    depth: int = Depth
    seed: int = typer.Option(0, help="Seed of the simulated judge.")

    def opened(self, workspace: Path, bench: Bench) -> list[RecordedJudge]:
        """The simulated judge, or one judge per model of the endpoint."""
        named = named_endpoint(workspace, self.endpoint)
        if self.simulated is None and named is None:
            raise SurroundingsError(f"{NO_JUDGE} (--simulated 0.1)")
        if self.simulated is None:
            return [endpoint_judge(workspace, self.endpoint, model) for model in self.model or [""]]
        return [simulated_judge(bench, self.simulated, self.depth, self.seed, price_of(named) if named else None)]


@dataclass(frozen=True)
class Spending:
    """What the calls may cost, and whether that is only foretold."""

    budget: float | None = typer.Option(None, "--budget", help="No call is made that may pass this; needs prices.")
    max_calls: int | None = typer.Option(None, "--max-calls", min=1, help="Stop after so many calls.")
    rate: float | None = typer.Option(None, "--rate", help="At most so many calls a second.")
    preview: bool = typer.Option(False, "--preview", help="Only say how many calls, tokens and what cost.")

    def limits(self, **others: Any) -> RunLimits:
        """What a run may use, with limits that are no option of everyone's."""
        return RunLimits(per_second=self.rate, budget=self.budget, max_calls=self.max_calls, **others)

    def ask(self, bench: Bench, rivals: Sequence[Entrant], workspace: Path) -> Progress:
        """Every call that is not stored yet, within the limits, with a bar on stderr."""
        limits = limits_of(rivals, self.budget, self.max_calls, self.rate)
        with deeds.command(deeds.ASK_MODEL, ", ".join(one.label for one in rivals), workspace):
            return answer_all(calls_of(bench, rivals), limits, on_progress=AskingBar())


def stop_if(cancelled: bool) -> None:
    """A run that a person stopped ends as one."""
    if cancelled:
        raise Cancelled("stopped: what was answered is stored, the same command goes on from there")


def failure_lines(ran: Progress) -> list[str]:
    """Why a run ended early, how many calls failed and why, with what to do where they only took too long."""
    lines = [f"stopped: {ran.stopped}"] if ran.stopped else []
    if not ran.failed:
        return lines
    counted = f"{ran.failed:,} {'call' if ran.failed == 1 else 'calls'} failed"
    lines += [f"{counted}; the candidates stay in distance order:", *(f"  {reason}" for reason in ran.failures)]
    slow = any("did not answer within" in reason for reason in ran.failures)
    return [*lines, "  a slow model needs more time for a call: a larger --set timeout_ms=…"] if slow else lines


def one_stage(settings: Sequence[str] | None) -> LLMFilter:
    """The filter with these settings."""
    (stage,) = stages_of([], settings_of(settings), only_default=True)
    return stage


app = Commands()
llm_filter_app = Commands("The LLM filter: test-connection, variants, simulate, study, floor.")
app.add_typer(llm_filter_app, name="llm-filter")


@llm_filter_app.command("test-connection")
def connection(
    common: Common,
    endpoint: str = Endpoint,
    model: str | None = typer.Option(None, "--model", help="The model's name; default that of the endpoint."),
) -> None:
    """Ask an endpoint one small question: the one named, else that of OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL.

    Example: OPENAI_BASE_URL=http://127.0.0.1:8080/v1 python -m rag_core llm-filter test-connection
    """
    settings = named_endpoint(common.folder, endpoint)
    if settings is None:
        raise SurroundingsError(NO_JUDGE)
    common.say(check_connection(endpoint_of(replace(settings, model=model) if model else settings)))


@llm_filter_app.command("variants")
def variants(
    queries: Queries,
    judges: Judges,
    spending: Spending,
    variant: list[str] = typer.Option(None, "--variant", help="A prompt variant; may be repeated. Default: all."),
    setting: list[str] = Setting,
    pipeline: list[str] = Free,
) -> None:
    """Compare prompt variants with each other and with no model (rerank off) on labelled queries.

    Answers are stored in the workspace: a second run costs nothing, a stopped one goes on.
    Example: python -m rag_core llm-filter variants --eval-set api-docs --simulated 0.1 --preview
    """
    stages = stages_of(variant, settings_of(setting))
    bench = queries.bench(max(DEEP, *(stage.oversample for stage in stages)))
    asked = judges.opened(queries.folder, bench)
    rivals = entrants_of(stages, asked)
    ahead = preview(calls_of(bench, rivals))
    names = ", ".join(judge.name for judge in asked)
    facts: dict[str, Any] = {"judge": names, "eval_set": bench.name, "preview": ahead.to_json()}
    text = f"{names} on {bench.name}: {ahead.to_text()}"
    if spending.preview:
        queries.say(facts, text)
        return
    ran = spending.ask(bench, rivals, queries.folder)
    trial = trials.compare(bench, rivals, pipeline or [])
    queries.say(
        {**facts, "run": ran.to_json(), **trial.to_json()},
        "\n".join([text, *failure_lines(ran), trial.to_text()]),
    )
    stop_if(ran.cancelled)


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
) -> None:
    """How good must a judge be to beat the free filters, and what may it cost? Asks no model.

    Example: python -m rag_core llm-filter simulate --eval-set api-docs --price-in 0.15 --price-out 0.6
    """
    if (price_in is None) != (price_out is None):
        raise InputError("one price given, expected both --price-in and --price-out")
    cost = None if price_in is None or price_out is None else Price(price_in, price_out)
    stage = one_stage(setting)
    bench = queries.bench(stage.oversample)
    queries.say(trials.simulate(bench, stage, error_rate or trials.RATES, seeds, depth, pipeline or [], cost))


@llm_filter_app.command("study")
def study(
    works: WorksOn,
    judges: Judges,
    spending: Spending,
    pipeline: str = typer.Option("", "--pipeline", "-p", help="One with an LLMFilter; default: it behind search."),
    runs: int = typer.Option(3, "--runs", min=1, max=20, help="How often each question is asked."),
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N dev questions."),
    replay: bool = typer.Option(False, "--replay", help="Ask nobody: what is not stored is an error."),
    setting: list[str] = Setting,
) -> None:
    """What a model does to a project's dev questions: irrelevant removed, relevant lost by step, cost, time, repeats.

    Everything is asked `--runs` times and once more in reverse order; answers are stored, and the study is kept in the
    workspace's folder studies. Example: python -m rag_core llm-filter study --project api-docs --model small --preview
    """
    session = works.session()
    chain = session.pipeline(pipeline) if pipeline else Pipeline((one_stage(setting),))
    places = judged_places(chain)
    if not places:
        raise InputError(f"pipeline {pipeline[:80]!r} asks no judge, expected one with an LLMFilter")
    stage = chain.stages[places[0]]
    assert isinstance(stage, LLMFilter)
    bench = bench_of(session, chain, places[0], session.dev[:first])
    rivals = [
        Entrant(stage, judge.replay() if replay else judge, judge.name) for judge in judges.opened(works.folder, bench)
    ]
    every = [one for rival in rivals for one in rival.runs(runs)]
    ahead = preview(calls_of(bench, every))
    facts: dict[str, Any] = {"project": bench.name, "preview": ahead.to_json()}
    if replay and ahead.calls:
        raise InputError(f"{ahead.calls} of {ahead.prompts} answers are not stored, expected all of them for a replay")
    if spending.preview:
        works.say(facts, ahead.to_text())
        return
    ran = spending.ask(bench, every, works.folder)
    studies = [study_of(bench, rival, runs) for rival in rivals]
    for one in studies:
        keep(works.folder, one)
    facts |= {"run": ran.to_json(), "studies": [one.to_json() for one in studies]}
    works.say(facts, "\n".join([*failure_lines(ran), *(one.to_text() for one in studies)]))
    stop_if(ran.cancelled)


@llm_filter_app.command("floor")
def floor(queries: Queries, setting: list[str] = Setting) -> None:
    """Propose a floor from the distances of labelled queries: it keeps 98 % of the relevant chunks. Asks no model.

    Example: python -m rag_core llm-filter floor --eval-set api-docs --split dev
    """
    stage = one_stage(setting)
    queries.say(propose_floor(queries.bench(max(DEEP, stage.oversample)), stage))
