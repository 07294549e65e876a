"""`llm-filter`: test the connection, compare prompts and judges, simulate one, repeat, depths and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.options import Collection, Commands, EvalSetName, Json, Lists, MinGrade, Split, Workspace
from rag_core.cli.output import emit
from rag_core.errors import Cancelled, InputError, SurroundingsError
from rag_core.measure.experiment import shown
from rag_core.measure.significance import comparison_line
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.judged.asking import Ran
    from rag_core.judged.bench import Bench
    from rag_core.judged.entrants import Entrant
    from rag_core.llm import RecordedJudge

Setting = typer.Option(None, "--set", help="A setting of LLMFilter, name=value; may be repeated.")
Endpoint = typer.Option("", "--endpoint", help="An endpoint by name; default the environment's.")
Model = typer.Option(None, "--model", help="A model of the endpoint; may be repeated.")
Simulated = typer.Option(None, "--simulated", help="A simulated judge of this error rate instead.")
Depth = typer.Option(0, "--depth", help="EXPAND depth of the simulated judge: 0, 1, 3 or 5.")
Free = typer.Option(None, "--pipeline", "-p", help="A free filter to compare with; may be repeated.")


@dataclass(frozen=True)
class Queries:
    """Which labelled queries."""

    eval_set: str | None = EvalSetName
    lists: Path | None = Lists
    collection: str | None = Collection
    split: str | None = Split
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries.")
    min_grade: int | None = MinGrade

    def bench(self, workspace: Path, depth: int) -> Bench:
        """The queries with their candidates; `depth` chunks each where they have none of their own."""
        from rag_core.judged.bench import open_bench

        given = (self.split, self.first, self.min_grade)
        return with_given_labels(
            open_bench(self.eval_set, self.lists, self.collection, workspace, *given, depth), self.eval_set, workspace
        )


def with_given_labels(bench: Bench, eval_set: str | None, workspace: Path) -> Bench:
    """The queries of an eval set with the labels given in this workspace; those of a file of lists as they are."""
    from rag_core.given import given_labels, laid_over
    from rag_core.store.matching import AtHand

    if eval_set is None:
        return bench
    chunks = AtHand.of(bench.chunks.values())
    return replace(bench, cases=tuple(laid_over(given_labels(workspace, bench.name), bench.cases, chunks)))


@dataclass(frozen=True)
class Judges:
    """Who is asked: the models of an endpoint, or a simulated judge."""

    endpoint: str = Endpoint
    model: list[str] | None = Model
    simulated: float | None = Simulated
    depth: int = Depth

    def opened(self, workspace: Path, bench: Bench, seed: int, rate: float | None) -> list[RecordedJudge]:
        """The simulated judge, or one judge per model of the endpoint."""
        from rag_core.judged import entrants
        from rag_core.llm import named_endpoint, price_of

        if self.simulated is not None:
            named = named_endpoint(workspace, self.endpoint)
            cost = price_of(named) if named else None
            return [entrants.simulated_judge(bench, self.simulated, self.depth, seed, cost)]
        return [entrants.endpoint_judge(workspace, self.endpoint, model, rate) for model in self.model or [""]]


@dataclass(frozen=True)
class Spending:
    """What the calls may cost, and whether that is only foretold."""

    budget: float | None = typer.Option(None, "--budget", help="Stop before the spend passes this; needs prices.")
    max_calls: int | None = typer.Option(None, "--max-calls", min=1, help="Stop after so many calls.")
    rate: float | None = typer.Option(None, "--rate", help="At most so many calls a second.")
    preview: bool = typer.Option(False, "--preview", help="Only say how many calls, tokens and what cost.")

    def ask(self, bench: Bench, rivals: Sequence[Entrant], workspace: Path) -> Ran:
        """Every call that is not stored yet, within the limits, with a bar on stderr."""
        from rag_core.cli.output import AskingBar
        from rag_core.judged import asking
        from rag_core.project import deeds

        limits = asking.limits_of(rivals, self.budget, self.max_calls, self.rate)
        with deeds.command(deeds.ASK_MODEL, ", ".join(one.label for one in rivals), workspace):
            return asking.ask_all(bench, rivals, limits, AskingBar())


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


def ahead_line(ahead: Mapping[str, Any]) -> str:
    """What a run would take, before it is paid."""
    cost = "cost unknown" if ahead["cost"] is None else f"cost about {ahead['cost']:.4f}"
    tokens = f"about {ahead['prompt_tokens']:,} + {ahead['completion_tokens']:,} tokens"
    calls = f"{ahead['calls']:,} {'call' if ahead['calls'] == 1 else 'calls'}"
    return f"{calls} to make, {ahead['stored']:,} stored, {tokens}, {cost}"


def lines(document: Mapping[str, Any]) -> list[str]:
    """A comparison, or its preview, as a short table."""
    found = [f"{document['judge']} on {document['eval_set']}: {ahead_line(document['preview'])}"]
    if "variants" not in document:
        return found
    if document["run"]["stopped"]:
        found.append(f"stopped: {document['run']['stopped']}")
    found += failure_lines(document["run"])
    rows = [document["baseline"], *document["free"], *document["variants"]]
    wide = max(len(row["name"][:LONGEST_NAME]) for row in rows)
    found.append(f"  {'variant':<{wide}}   SetP   SetR   SetF  {'  '.join(title for title, _ in MORE)}")
    for row in rows:
        scores = "  ".join(shown(row[name]) for name in ("SetP", "SetR", "SetF"))
        rest = "  ".join(f"{tell(row):>{len(title)}}" for title, tell in MORE)
        found.append(f"  {row['name'][:LONGEST_NAME]:<{wide}}  {scores}  {rest}")
    base = document["baseline"]["name"]
    against = [one for one in document["comparison"] if one["a"] == base and one["delta"] is not None]
    return [*found, *map(comparison_line, against)]


def _amount(name: str, form: str) -> Callable[[Mapping[str, Any]], str]:
    """A figure of a row in that form, a dash where the row has none."""
    return lambda row: "-" if row.get(name) is None else format(row[name], form)


LONGEST_NAME = 60
MORE = (
    ("irrelevant removed", _amount("irrelevant_removed", ".3f")),
    ("agreement", _amount("agreement", ".3f")),
    ("kappa", _amount("kappa", ".3f")),
    ("false drops", _amount("false_drops", ",")),
    ("fallback", _amount("fallback_rate", ".3f")),
    ("ms p95", _amount("added_ms_p95", ",.0f")),
    ("cost", _amount("cost", ".4f")),
)
"""Heading → the figure of a row under it; a filter without a model has none, and an unknown cost is a dash."""


def failure_lines(run: Mapping[str, Any]) -> list[str]:
    """How many calls failed and why, with what to do where they only took too long."""
    failed = sum(row["failed"] for row in run["runs"])
    reasons = dict.fromkeys(reason for row in run["runs"] for reason in row["failures"])
    if not failed:
        return []
    slow = any("did not answer within" in reason for reason in reasons)
    advice = ["  a slow model needs more time for a call: a larger --set timeout_ms=…"] if slow else []
    counted = f"{failed:,} {'call' if failed == 1 else 'calls'} failed"
    return [f"{counted}; the candidates stay in distance order:", *(f"  {one}" for one in reasons), *advice]


def simulated_lines(document: Mapping[str, Any]) -> list[str]:
    """Simulated judges and free filters as a short table, with the break-even in words."""
    found = [f"simulated judge on {document['eval_set']}", "  error rate  seed   SetP   SetR   SetF   cost"]
    for row in document["rows"]:
        cost = "unknown" if row["cost"] is None else f"{row['cost']:.4f}"
        scores = "  ".join(shown(row[name]) for name in ("precision", "recall", "f1"))
        found.append(f"  {row['error_rate']:>10.2f}  {row['seed']:>4}  {scores}  {cost}")
    for row in document["free"]:
        found.append(f"  {row['name']:<16.40}  " + "  ".join(shown(row[name]) for name in ("SetP", "SetR", "SetF")))
    even = document["break_even_error_rate"]
    words = "is not crossed by the tried error rates" if even is None else f"is reached at an error rate of {even:.3f}"
    return [*found, f"  break-even with {document['best_free']} {words}"]


def steadiness_lines(document: Mapping[str, Any]) -> list[str]:
    """Repeatability and position bias in words, one line an entrant."""
    found = []
    for row in document["entrants"]:
        found.append(
            f"{row['name']}: repeatability {shown(row['repeatability'])} over {row['runs']} runs, "
            f"{row['flips']} of {row['checked']} decisions flip with the order ({shown(row['flip_rate'])}), "
            f"kept early {shown(row['kept_early'])}, late {shown(row['kept_late'])}, "
            f"fallback {shown(row['fallback_rate'])}"
        )
    return found


def depth_lines(document: Mapping[str, Any]) -> list[str]:
    """Chunks and tokens per depth of expansion."""
    found = ["  depth   chunks   tokens   share relevant   share of the relevant found"]
    for row in document["depths"]:
        found.append(
            f"  {row['depth']:>5}   {row['chunks']:6.1f}   {row['tokens']:6,.0f}   {row['relevant']:14.3f}   "
            f"{shown(row['found']):>27}"
        )
    return found


def answer_lines(document: Mapping[str, Any]) -> list[str]:
    """The answers side by side, one after the other."""
    found = [document["query"]["text"]]
    for context in document["contexts"]:
        note = f" ({context['note']})" if context["note"] else ""
        found.append(f"{context['name']}{note}: {len(context['chunks'])} chunks, about {context['tokens']:,} tokens")
    for row in document["answers"]:
        text = row["text"] if row["text"] is not None else f"no answer: {row['error']}"
        found += ["", f"--- {row['judge']}, {row['context']}", " ".join(text.split())[:2000]]
    return found


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
    from rag_core.judged import entrants, simulating

    (stage,) = entrants.stages_of([], entrants.settings_of(setting), only_default=True)
    bench = queries.bench(resolve_workspace(workspace), stage.oversample)
    cost = entrants.price(price_in, price_out)
    rates = error_rate or simulating.RATES
    say(simulating.simulate(bench, stage, rates, seeds, depth, pipeline or [], cost), json, simulated_lines)


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
