"""The work behind `llm-filter`: candidates, judges, runs and figures, put together from the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from rag_core.cli.llm_filter import given_one
from rag_core.cli.replay import chosen, shown
from rag_core.errors import InputError, SurroundingsError
from rag_core.evaluate.experiment import PipelineReport, run, run_all
from rag_core.evaluate.llm_filter import break_even, false_drops, figures, simulated_rows
from rag_core.evaluate.report import comparison_json
from rag_core.filters.cutoff import TopK
from rag_core.filters.llm import NO_JUDGE, LLMFilter
from rag_core.llm import AnswerStore, Judge, Limits, Price, RecordedJudge, SimulatedJudge, answer_all, environment_judge
from rag_core.llm import preview as look_ahead
from rag_core.spec import make_stage, read_pipeline
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk

RERANK_OFF = "rerank off"


@dataclass(frozen=True)
class Bench:
    """Labelled queries with their candidates, the chunks that references may bring, and what counts as relevant."""

    name: str
    cases: tuple[Case, ...]
    chunks: Mapping[str, Chunk]
    min_grade: int

    @property
    def labels(self) -> dict[str, Mapping[str, int]]:
        """The grades by query."""
        return {case.query.id: case.grades for case in self.cases}


def open_bench(
    eval_set: str | None,
    lists: Path | None,
    collection: str | None,
    workspace: Path,
    split: str | None,
    first: int | None,
    min_grade: int | None,
    depth: int,
) -> Bench:
    """The queries of a set or a file of lists; without candidates of their own, with the `depth` nearest chunks."""
    given_one(eval_set, lists)
    if lists is not None:
        from rag_core.records import load_lists

        cases = tuple(chosen(load_lists(lists), None, first))
        return Bench(lists.name, cases, _chunks_of(cases), min_grade or 1)
    from rag_core.evaluate.sets import load_set

    found = load_set(str(eval_set), workspace)
    part = found.split(split) if split else found
    grade = min_grade or found.min_grade
    if found.recorded and collection is None:
        cases = tuple(chosen(list(part.cases), None, first))
        return Bench(found.name, cases, _chunks_of(cases), grade)
    return _live_bench(str(eval_set), collection, workspace, tuple(chosen(list(part.cases), None, first)), grade, depth)


def _live_bench(
    eval_set: str, collection: str | None, workspace: Path, cases: tuple[Case, ...], min_grade: int, depth: int
) -> Bench:
    from rag_core import workbench
    from rag_core.cli.live import opened_set

    _, index = opened_set(eval_set, collection, workspace)
    source = workbench.source_of(index, depth)
    found = (replace(source(Candidates(case.query)), recorded=True) for case in cases)  # free filters skip their source
    listed = tuple(replace(case, candidates=one) for case, one in zip(cases, found, strict=True))
    return Bench(eval_set, listed, {chunk.id: chunk for chunk in index.snapshot.chunks}, min_grade)


def _chunks_of(cases: Sequence[Case]) -> dict[str, Chunk]:
    """Every chunk of the lists by its id, the first that has it."""
    found: dict[str, Chunk] = {}
    for case in cases:
        for hit in case.candidates.hits if case.candidates else ():
            found.setdefault(hit.chunk.id, hit.chunk)
    return found


def settings_of(given: Sequence[str] | None) -> dict[str, Any]:
    """Settings from `name=value`, each value read as JSON where it is some, else as text."""
    from rag_core.files import parse_json

    found: dict[str, Any] = {}
    for one in given or ():
        name, mark, value = one.partition("=")
        if not mark:
            raise InputError(f"--set {one[:80]!r} has no =, expected name=value")
        try:
            found[name.strip()] = parse_json(value, name)
        except InputError:
            found[name.strip()] = value
    return found


def stages_of(
    variants: Sequence[str] | None,
    models: Sequence[str] | None,
    settings: Mapping[str, Any],
    only_default: bool = False,
) -> list[LLMFilter]:
    """One filter per variant and model."""
    from rag_core.filters.llm import variant_names

    names = [str(settings.get("variant", "terse"))] if only_default else list(variants or variant_names())
    found = []
    for model in models or [settings.get("model", "")]:
        for name in names:
            stage = make_stage("LLMFilter", {**settings, "variant": name, "model": model})
            assert isinstance(stage, LLMFilter)
            found.append(stage)
    return found


def label_of(stage: LLMFilter) -> str:
    """A variant's name in tables: the wording, the model where one is named, the mode where it is not the usual."""
    parts = [stage.variant, stage.model, "" if stage.mode == "listwise" else stage.mode]
    return " · ".join(part for part in parts if part)


def price(price_in: float | None, price_out: float | None) -> Price | None:
    """A price from its two halves; None where neither is given, an InputError where one is."""
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise InputError("one price given, expected both --price-in and --price-out")
    return Price(price_in, price_out)


def judge_of(workspace: Path, bench: Bench, simulated: float | None, depth: int, seed: int) -> RecordedJudge:
    """The simulated judge with a memory of its own, or the environment's endpoint with the workspace's."""
    if simulated is not None:
        from rag_core.llm.named import price_of
        from rag_core.settings import model_settings

        named = model_settings()
        cost = price_of(named) if named else None
        judge = SimulatedJudge(bench.labels, simulated, seed, bench.min_grade, depth, cost)
        return RecordedJudge(AnswerStore(Path(":memory:")), judge, judge.name)
    found = environment_judge(workspace)
    if found is None:
        raise SurroundingsError(f"{NO_JUDGE} (--simulated 0.1)")
    return found


def limits_of(stages: Sequence[LLMFilter], budget: float | None, max_calls: int | None, rate: float | None) -> Limits:
    """The limits of a run; calls at once and the time of one as the stages have them."""
    seconds = max(stage.timeout_ms for stage in stages) / 1000
    return Limits(max(stage.concurrency for stage in stages), rate, budget, max_calls, seconds)


@dataclass(frozen=True)
class AskedAll:
    """What would be or was asked."""

    ahead: dict[str, Any]
    run: dict[str, Any]
    cancelled: bool


def ask_all(
    bench: Bench,
    stages: Sequence[LLMFilter],
    judge: RecordedJudge,
    limits: Limits,
    only_preview: bool,
    tell: Callable[[Any], None],
) -> AskedAll:
    """Look ahead and, unless that is all that is wanted, have every prompt of every stage answered."""
    by_model: dict[str, list[Any]] = {}
    for stage in stages:
        prompts = [
            prompt for case in bench.cases for prompt in stage.prompts(case.candidates or Candidates(case.query))
        ]
        by_model.setdefault(stage.model, []).extend(prompts)
    looks = {model: look_ahead(prompts, judge, model) for model, prompts in by_model.items()}
    costs = [look.cost for look in looks.values()]
    ahead = {
        "prompts": sum(look.prompts for look in looks.values()),
        "stored": sum(look.stored for look in looks.values()),
        "calls": sum(look.calls for look in looks.values()),
        "prompt_tokens": sum(look.prompt_tokens for look in looks.values()),
        "completion_tokens": sum(look.completion_tokens for look in looks.values()),
        "cost": None if None in costs else sum(cost or 0.0 for cost in costs),
        "estimated": True,
    }
    if only_preview:
        return AskedAll(ahead, {}, False)
    done, left = [], limits
    for model, prompts in by_model.items():
        one = answer_all(prompts, judge, left, model=model, on_progress=tell, cancel=Event())
        done.append({"model": model or judge.model, **asdict(one), "done": one.done})
        left = _left_of(left, one)
        if left is None:
            break
    stopped = "; ".join(one["stopped"] for one in done if one["stopped"])
    return AskedAll(ahead, {"runs": done, "stopped": stopped}, stopped == "cancelled")


def _left_of(limits: Limits, done: Any) -> Any:
    """What a run leaves of its limits for the next one, None where nothing is left or it was stopped."""
    if done.stopped:
        return None
    budget = None if limits.budget is None else limits.budget - (done.spent or 0.0)
    calls = None if limits.max_calls is None else limits.max_calls - done.asked
    if (budget is not None and budget <= 0) or (calls is not None and calls <= 0):
        return None
    return replace(limits, budget=budget, max_calls=calls)


def reports_of(bench: Bench, stages: Sequence[LLMFilter], judge: Judge) -> list[PipelineReport]:
    """The baseline without a model, then every stage with the judge."""
    judged = [Pipeline((replace(stage, judge=judge, chunks=bench.chunks),), label=label_of(stage)) for stage in stages]
    plain = Pipeline((TopK(k=stages[0].max_chunks),), label=RERANK_OFF)
    return run_all(bench.cases, [plain, *judged], bench.min_grade)


def compare_all(bench: Bench, stages: Sequence[LLMFilter], judge: RecordedJudge, seed: int) -> dict[str, Any]:
    """Every variant beside the baseline, on stored answers alone: what was not answered is a fallback, counted."""
    replay = RecordedJudge(judge.store, None, judge.model)
    reports = reports_of(bench, [replace(stage, cache=True) for stage in stages], replay)
    baseline, *judged = reports
    usual = {name: baseline.summary.means[name] for name in ("SetP", "SetR", "SetF")}
    rows = [
        {**figures(one, baseline, stage.concurrency), "false_drops_listed": false_drops(one)}
        for one, stage in zip(judged, stages, strict=True)
    ]
    summary = baseline.summary
    return {
        "queries_scored": summary.queries_scored,
        "queries_total": summary.queries_total,
        "baseline": {"name": RERANK_OFF, **usual},
        "variants": rows,
        "comparison": comparison_json(reports, seed, every_pair=True),
    }


def simulate_all(
    bench: Bench,
    stage: LLMFilter,
    rates: Sequence[float],
    seeds: int,
    depth: int,
    free: Sequence[str],
    cost: Price | None,
) -> dict[str, Any]:
    """F1 and cost over the error rate of a simulated judge, the free filters, and where both are even."""

    def once(rate: float, seed: int) -> PipelineReport:
        judge = SimulatedJudge(bench.labels, rate, seed, bench.min_grade, depth, cost)
        stages = (replace(stage, judge=judge, chunks=bench.chunks),)
        return run(bench.cases, Pipeline(stages), bench.min_grade, name=judge.name)

    rows = simulated_rows(once, rates, range(seeds))
    plain = [Pipeline((TopK(k=stage.max_chunks),), label=RERANK_OFF), *(read_pipeline(one) for one in free)]
    others: list[dict[str, Any]] = [
        {"name": one.name, **{name: one.summary.means[name] for name in ("SetP", "SetR", "SetF")}}
        for one in run_all(bench.cases, plain, bench.min_grade)
    ]
    best = max(others, key=lambda one: one["SetF"] or 0.0)
    return {
        "judge": "simulated judge",
        "eval_set": bench.name,
        "depth": depth,
        "rows": [asdict(row) for row in rows],
        "free": others,
        "best_free": best["name"],
        "break_even_error_rate": break_even(rows, best["SetF"] or 0.0),
    }


def lines(document: Mapping[str, Any]) -> list[str]:
    """A comparison, or its preview, as a short table."""
    ahead = document["preview"]
    cost = "cost unknown" if ahead["cost"] is None else f"cost about {ahead['cost']:.4f}"
    found = [
        f"{document['judge']} on {document['eval_set']}: {ahead['calls']:,} calls to make, {ahead['stored']:,} stored, "
        f"about {ahead['prompt_tokens']:,} + {ahead['completion_tokens']:,} tokens, {cost}"
    ]
    if "variants" not in document:
        return found
    if document["run"]["stopped"]:
        found.append(f"stopped: {document['run']['stopped']}")
    found.append("  variant               SetP   SetR   SetF   irrelevant removed  agreement  false drops  fallback")
    for row in [document["baseline"], *document["variants"]]:
        scores = "  ".join(shown(row[name]) for name in ("SetP", "SetR", "SetF"))
        rest = [shown(row.get(name)) for name in ("irrelevant_removed", "agreement")]
        ends = f"{row.get('false_drops', '-'):>11}  {shown(row.get('fallback_rate')):>8}"
        found.append(f"  {row['name']:<20.40}  {scores}  {rest[0]:>18}  {rest[1]:>9}  {ends}")
    return found


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
