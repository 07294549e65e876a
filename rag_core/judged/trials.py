"""Judges on trial over labelled questions: as classifiers, compared, asked again, simulated.

Everything here reads stored answers and what runs left in their traces. Nobody is asked, so it may be done again at any
time: what was not answered is a fallback, counted. A candidate without a label counts as irrelevant, and how many of
the decided ones have a label stands beside every figure.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import ceil
from statistics import fmean
from typing import Any

from rag_core.filters.cutoff import TopK
from rag_core.filters.llm.deciding import CAUSES, FLOOR, MODEL
from rag_core.filters.llm.decisions import DISCARD
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged.entrants import Bench, Entrant
from rag_core.labelling.agreement import interval_of, kappa_of, kappas, tables_by_cluster
from rag_core.llm.answer import Price
from rag_core.llm.simulated import SimulatedJudge
from rag_core.measure.experiment import Outcome, PipelineReport, kept_ids, run, run_all, run_case, shown, start_of
from rag_core.measure.significance import compare_reports, comparison_line
from rag_core.spec import read_pipeline
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Step

STAGE = LLMFilter.__name__
DROPPED = ("DISCARD", "not mentioned")
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of the model beside the label."""

    query_id: str
    chunk_id: str
    action: str
    relevant: bool
    labelled: bool

    @property
    def kept(self) -> bool:
        """Whether the model wanted the chunk."""
        return self.action not in DROPPED

    @property
    def right(self) -> bool:
        """Whether it was right."""
        return self.kept == self.relevant


def step_of(outcome: Outcome) -> Step | None:
    """The LLM filter's step in a trace, None where it has none."""
    return next((step for step in outcome.result.steps if step.stage == STAGE), None)


def decisions_of(report: PipelineReport) -> list[Decided]:
    """Every decision the model made in a report; candidates left undecided are not among them."""
    made = []
    for outcome in report.outcomes:
        step, grades = step_of(outcome), outcome.case.grades
        for chunk, action in (step.facts.get("decisions", {}) if step else {}).items():
            if action != UNDECIDED:
                relevant = grades.get(chunk, 0) >= report.min_grade
                made.append(Decided(outcome.case.query.id, chunk, action, relevant, chunk in grades))
    return made


def classifier(report: PipelineReport) -> dict[str, Any]:
    """How well the decisions agree with the labels: share right, kappa, and per action its share of relevant chunks.

    Kappa is over labelled chunks alone, its interval over questions; without one it is too little to say.
    `false_drops` are relevant chunks the model threw away, `false_keeps` irrelevant ones it kept.
    """
    made = decisions_of(report)
    labelled = [one for one in made if one.labelled]
    tables = tables_by_cluster((one.query_id, int(one.kept), int(one.relevant)) for one in labelled)
    low, high = interval_of(tables, kappas, len(labelled))
    return {
        "decided": len(made),
        "decided_labelled": len(labelled),
        "agreement": _share([one.right for one in made]),
        "agreement_labelled": _share([one.right for one in labelled]),
        "kappa": kappa_of(tables.sum(axis=0)),
        "kappa_low": low,
        "kappa_high": high,
        "actions": {action: _action(made, action) for action in sorted({one.action for one in made})},
        "false_drops": sum(one.relevant and not one.kept for one in made),
        "false_keeps": sum(one.kept and not one.relevant for one in made),
    }


def _action(made: Sequence[Decided], action: str) -> dict[str, Any]:
    """How often an action was given, which share of it is relevant, which share of the relevant chunks it holds."""
    given = [one.relevant for one in made if one.action == action]
    relevant = sum(one.relevant for one in made)
    recall = sum(given) / relevant if relevant else None
    return {"count": len(given), "relevant": _share(given), "of_relevant": recall}


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def false_drops(report: PipelineReport) -> list[dict[str, Any]]:
    """The relevant chunks the model threw away, with title, text and its reason."""
    rows = []
    for outcome in report.outcomes:
        for drop in outcome.result.drops:
            grade = outcome.case.grades.get(drop.hit.chunk.id, 0)
            if drop.stage == STAGE and grade >= report.min_grade and drop.reason.text.startswith(DROPPED):
                chunk = drop.hit.chunk
                row = {"query": outcome.case.query.id, "id": chunk.id, "title": chunk.title, "text": chunk.text}
                rows.append({**row, "grade": grade, "reason": drop.reason.text})
    return rows


def irrelevant_removed(report: PipelineReport, baseline: PipelineReport) -> float | None:
    """The share of the baseline's irrelevant chunks that a report has fewer, net of what expansion brings."""
    before, after = sum(irrelevant_kept(baseline)), sum(irrelevant_kept(report))
    return 1 - after / before if before else None


def irrelevant_kept(report: PipelineReport) -> list[int]:
    """How many chunks that are not labelled relevant each question's list has."""
    return [
        sum(outcome.case.grades.get(name, 0) < report.min_grade for name in kept_ids(outcome.result))
        for outcome in report.outcomes
    ]


def losses(report: PipelineReport) -> dict[str, Any]:
    """What became of the relevant chunks that search put into the lists: kept, or lost to which step of the filter.

    `listed` is `kept` and all `lost` together; `brought` are relevant chunks that only references brought. A judge that
    never errs loses all that `floor` and `oversample` lose, and no figure of its decisions says so.
    """
    lost = dict.fromkeys(CAUSES, 0)
    kept = brought = 0
    for outcome in report.outcomes:
        step, grades = step_of(outcome), outcome.case.grades
        causes = step.facts.get("causes", {}) if step else {}
        staying, entered = kept_ids(outcome.result), {hit.chunk.id for hit in outcome.result.hits if not hit.origin}
        for chunk in {name for name, grade in grades.items() if grade >= report.min_grade}:
            if chunk in staying:
                listed = chunk in entered or chunk in causes
                kept, brought = kept + listed, brought + (not listed)
            elif chunk in causes:
                lost[causes[chunk]] += 1
    return {"listed": kept + sum(lost.values()), "kept": kept, "lost": lost, "brought": brought}


def floor_warning(row: Mapping[str, Any], floor: float) -> str:
    """'' or the sentence that the floor costs more relevant chunks than the model."""
    lost = row["relevant"]["lost"]
    if lost[FLOOR] <= lost[MODEL]:
        return ""
    return (
        f"{row['name']}: the floor of {floor:g} loses {lost[FLOOR]} of {row['relevant']['listed']} relevant chunks "
        f"unread, the model {lost[MODEL]}"
    )


def spent(report: PipelineReport, concurrency: int) -> dict[str, Any]:
    """Calls, tokens, cost, fallbacks and the time the filter adds to a query where its calls run side by side."""
    facts = [step.facts for outcome in report.outcomes if (step := step_of(outcome)) is not None]
    added = sorted(makespan(one.get("call_milliseconds", ()), concurrency) for one in facts)
    costs = [one.get("cost_without_cache") for one in facts]
    known = [cost for cost in costs if cost is not None]
    prompts, failed = _total(facts, "prompts"), _total(facts, "prompts_failed")
    priced = len(known) == len(costs) and (failed < prompts or not prompts)  # without an answer no price is known
    return {
        "prompts": prompts,
        "prompts_failed": failed,
        "cache_hits": _total(facts, "cache_hits"),
        "prompt_tokens": _total(facts, "prompt_tokens"),
        "completion_tokens": _total(facts, "completion_tokens"),
        "cost": sum(known) if priced else None,
        "retries": _total(facts, "retries"),
        "fallback_rate": _share([bool(one.get("fallback_used")) for one in facts]),
        "order_flips": _total(facts, "order_flips"),
        "kept_mean": fmean([len(kept_ids(outcome.result)) for outcome in report.outcomes]) if report.outcomes else None,
        "added_ms_p50": percentile(added, 0.5),
        "added_ms_p95": percentile(added, 0.95),
    }


def is_silent(row: Mapping[str, Any]) -> bool:
    """Whether no call of a variant was answered: its lists are those of no model, and no figures of one."""
    return bool(row["prompts"]) and row["prompts_failed"] == row["prompts"]


def _total(facts: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(one.get(name, 0) for one in facts)


def makespan(durations: Sequence[float], workers: int) -> float:
    """When the last call ends if `workers` take them in order, each as soon as it is free."""
    free = [0.0] * max(1, workers)
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def percentile(ascending: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of sorted values; None of none."""
    return ascending[max(0, ceil(share * len(ascending)) - 1)] if ascending else None


def figures(report: PipelineReport, baseline: PipelineReport, concurrency: int) -> dict[str, Any]:
    """All figures of one variant beside the baseline without the model."""
    means, usual = report.summary.means, baseline.summary.means
    used = spent(report, concurrency)
    gain = None if means["SetF"] is None or usual["SetF"] is None else 100 * (means["SetF"] - usual["SetF"])
    per_point = used["cost"] / gain if used["cost"] is not None and gain is not None and gain > 0 else None
    return {
        "name": report.name,
        **{name: means[name] for name in ("SetP", "SetR", "SetF")},
        "irrelevant_removed": irrelevant_removed(report, baseline),
        **classifier(report),
        "relevant": losses(report),
        **used,
        "cost_per_point": per_point,
    }


def repeatability(reports: Sequence[PipelineReport]) -> float | None:
    """The share of (query, chunk) pairs, decided in every one of several runs, on which all agree; None under two."""
    runs = [{(one.query_id, one.chunk_id): one.action for one in decisions_of(report)} for report in reports]
    if len(runs) < 2:
        return None
    common = set.intersection(*(set(run) for run in runs))
    return _share([len({run[pair] for run in runs}) == 1 for pair in common])


@dataclass(frozen=True, slots=True)
class SimulatedRow:
    """A simulated judge of one error rate and seed: what it reaches and what it costs."""

    error_rate: float
    seed: int
    precision: float | None
    recall: float | None
    f1: float | None
    cost: float | None
    prompts: int
    prompt_tokens: int


def simulated_rows(
    run: Callable[[float, int], PipelineReport], error_rates: Sequence[float], seeds: Sequence[int]
) -> list[SimulatedRow]:
    """`run(error rate, seed)` for every pair, as rows."""
    rows = []
    for rate in error_rates:
        for seed in seeds:
            report = run(rate, seed)
            means, used = report.summary.means, spent(report, 1)
            scores = (means["SetP"], means["SetR"], means["SetF"])
            rows.append(SimulatedRow(rate, seed, *scores, used["cost"], used["prompts"], used["prompt_tokens"]))
    return rows


def break_even(rows: Sequence[SimulatedRow], free_f1: float) -> float | None:
    """The error rate at which a judge's mean F1 falls to that of a free filter, by straight lines between rates.

    None where no tried rate is better, or where all are.
    """
    points = [
        (rate, fmean([row.f1 or 0.0 for row in rows if row.error_rate == rate]))
        for rate in sorted({row.error_rate for row in rows})
    ]
    for (rate, above), (further, below) in pairwise(points):
        if above >= free_f1 > below:
            return rate + (further - rate) * (above - free_f1) / (above - below)
    return None


# Judges compared


RERANK_OFF = "rerank off"
SCORES = ("SetP", "SetR", "SetF")
RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
LONGEST_NAME = 60


def _amount(name: str, form: str) -> Callable[[Mapping[str, Any]], str]:
    """A figure of a row in that form, a dash where the row has none."""
    return lambda row: "-" if row.get(name) is None else format(row[name], form)


def _lost(cause: str) -> Callable[[Mapping[str, Any]], str]:
    """How many relevant chunks a step of the filter lost."""
    return lambda row: str(row["relevant"]["lost"][cause]) if "relevant" in row else "-"


def _kappa(row: Mapping[str, Any]) -> str:
    """Kappa with its interval; a dash for a filter without a model."""
    if "kappa" not in row:
        return "-"
    low, high = row["kappa_low"], row["kappa_high"]
    return "too few" if low is None else f"{row['kappa']:.2f} [{low:.2f}, {high:.2f}]"


COLUMNS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("irrelevant removed", _amount("irrelevant_removed", ".3f")),
    ("agreement", _amount("agreement_labelled", ".3f")),
    ("kappa [95 % interval]", _kappa),
    ("lost to floor", _lost("floor")),
    ("oversample", _lost("oversample")),
    ("model", _lost("model")),
    ("cap", _lost("cap")),
    ("fallback", _amount("fallback_rate", ".3f")),
    ("ms p95", _amount("added_ms_p95", ",.0f")),
    ("cost", _amount("cost", ".4f")),
)
"""Heading → the figure of a row under it; a filter without a model has none, and an unknown cost is a dash."""


@dataclass(frozen=True)
class Trial:
    """Entrants beside the list without a model and beside filters that cost nothing."""

    queries_scored: int
    queries_total: int
    baseline: Mapping[str, Any]  # name and scores without a model
    free: Sequence[Mapping[str, Any]]
    variants: Sequence[Mapping[str, Any]]  # every entrant with the filter's figures as a classifier
    comparison: Sequence[Mapping[str, Any]]  # the paired tests of all pairs
    warnings: Sequence[str] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def to_text(self) -> str:
        """A table with one line a filter, the differences from no model, and what a reader must know."""
        rows = [self.baseline, *self.free, *self.variants]
        wide = max(len(row["name"][:LONGEST_NAME]) for row in rows)
        lines = [f"  {'variant':<{wide}}   SetP   SetR   SetF  {'  '.join(title for title, _ in COLUMNS)}"]
        for row in rows:
            scores = "  ".join(shown(row[name]) for name in SCORES)
            rest = "  ".join(f"{cell(row):>{len(title)}}" for title, cell in COLUMNS)
            lines.append(f"  {row['name'][:LONGEST_NAME]:<{wide}}  {scores}  {rest}")
        base = self.baseline["name"]
        against = [row for row in self.comparison if row["a"] == base and row["delta"] is not None]
        return "\n".join([*lines, *map(comparison_line, against), *self.warnings])


def compare(bench: Bench, entrants: Sequence[Entrant], free: Sequence[str] = ()) -> Trial:
    """Every entrant beside the baseline without a model and the `free` filters (pipeline specs), on stored answers.

    An entrant of which nothing is answered is not tested: its lists are those of no model.
    """
    plain = Pipeline((TopK(k=entrants[0].stage.max_chunks),), label=RERANK_OFF)
    judged = [Pipeline((one.replay(bench),), label=one.label) for one in entrants]
    reports = run_all(bench.cases, [plain, *map(read_pipeline, free), *judged], bench.min_grade)
    cheap, asked = reports[: len(free) + 1], reports[len(free) + 1 :]
    baseline = cheap[0]
    rows: list[dict[str, Any]] = [
        {**figures(one, baseline, entrant.stage.concurrency), "false_drops_listed": false_drops(one)}
        for one, entrant in zip(asked, entrants, strict=True)
    ]
    floors = [floor_warning(row, one.stage.min_relevance_threshold) for row, one in zip(rows, entrants, strict=True)]
    heard = [report for report, row in zip(asked, rows, strict=True) if not is_silent(row)]
    tests = compare_reports([baseline, *heard], every_pair=True)
    return Trial(
        queries_scored=baseline.summary.queries_scored,
        queries_total=baseline.summary.queries_total,
        baseline=scores_of(baseline),
        free=[scores_of(one) for one in cheap[1:]],
        variants=rows,
        comparison=[row.to_json() for row in tests],
        warnings=[sentence for sentence in floors if sentence],
    )


def scores_of(report: PipelineReport) -> dict[str, Any]:
    """Name and means of a report."""
    return {"name": report.name, **{name: report.summary.means[name] for name in SCORES}}


# Does a model say the same twice, and does the order of the candidates sway it?


@dataclass(frozen=True)
class Steadiness:
    """How far stored repetitions of an entrant agree, and what the order of the candidates does."""

    name: str
    runs: int
    repeatability: float | None  # share of decisions on which all runs agree
    checked: int  # decisions made in both orders
    flips: int  # of them, those that another order changes
    kept_early: float | None  # share kept in the first half of a prompt, each candidate once in either half
    kept_late: float | None
    fallback_rate: float | None

    @property
    def flip_rate(self) -> float | None:
        """The share of the checked decisions that another order changes."""
        return self.flips / self.checked if self.checked else None

    @property
    def position_bias(self) -> float | None:
        """What standing early in a prompt does to a candidate's chance to stay."""
        return None if self.kept_early is None or self.kept_late is None else self.kept_early - self.kept_late

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "flip_rate": self.flip_rate, "position_bias": self.position_bias}

    def to_text(self) -> str:
        """All of it in one line."""
        return (
            f"{self.name}: repeatability {shown(self.repeatability)} over {self.runs} runs, "
            f"{self.flips} of {self.checked} decisions flip with the order ({shown(self.flip_rate)}), "
            f"kept early {shown(self.kept_early)}, late {shown(self.kept_late)}, fallback {shown(self.fallback_rate)}"
        )


def steadiness(bench: Bench, entrant: Entrant, times: int) -> Steadiness:
    """How far stored repetitions (Entrant.runs) agree, and what the order does."""
    runs = entrant.runs(times)
    reports = [run(bench.cases, Pipeline((one.replay(bench),)), bench.min_grade, name=one.label) for one in runs]
    orders = [_order(runs[0], case.candidates or Candidates(case.query), bench) for case in bench.cases]
    checked, flips, early, late = (sum(values) for values in zip(*orders, strict=True))
    fell = [bool(outcome.result.fallbacks) for report in reports for outcome in report.outcomes]
    return Steadiness(
        name=entrant.label,
        runs=times,
        repeatability=repeatability(reports),
        checked=checked,
        flips=flips,
        kept_early=early / checked if checked else None,
        kept_late=late / checked if checked else None,
        fallback_rate=fmean(fell) if fell else None,
    )


def _order(entrant: Entrant, candidates: Candidates, bench: Bench) -> tuple[int, int, int, int]:
    """Decisions made in both orders, those that differ, and how often a candidate was kept early and late in a prompt.

    The middle candidate of an odd number stands in the middle both times and is left out.
    """
    stage = entrant.replay(bench)
    verdicts = stage.ask(candidates).verdicts
    checked = flips = early = late = 0
    for prompt in stage.prompts(candidates):
        if prompt.second:
            continue
        for at, position in enumerate(prompt.positions):
            verdict = verdicts[position]
            middle = 2 * at + 1 == len(prompt.positions)
            if middle or not verdict.checked or verdict.decision is None or verdict.second is None:
                continue
            kept = verdict.decision.action != DISCARD, verdict.second.action != DISCARD
            is_early = 2 * at + 1 < len(prompt.positions)
            checked += 1
            flips += verdict.flipped
            early += kept[0] if is_early else kept[1]
            late += kept[1] if is_early else kept[0]
    return checked, flips, early, late


# How good must a judge be, and what may it cost?


@dataclass(frozen=True)
class Simulation:
    """F1 and cost over the error rate of a simulated judge, the free filters, and where both are even."""

    eval_set: str
    depth: int
    rows: Sequence[SimulatedRow]
    free: Sequence[Mapping[str, Any]]
    best_free: str
    break_even_error_rate: float | None
    break_even_by: Mapping[str, float | None]  # the same where a judge errs one way only: by keeping, by dropping

    def to_json(self) -> dict[str, Any]:
        """Plain values; it always says that the judge is simulated."""
        return {"judge": "simulated judge", **asdict(self)}

    def to_text(self) -> str:
        """A short table, with the break-even in words."""
        lines = [f"simulated judge on {self.eval_set}", "  error rate  seed   SetP   SetR   SetF   cost"]
        for row in self.rows:
            cost = "unknown" if row.cost is None else f"{row.cost:.4f}"
            scores = "  ".join(shown(value) for value in (row.precision, row.recall, row.f1))
            lines.append(f"  {row.error_rate:>10.2f}  {row.seed:>4}  {scores}  {cost}")
        lines += [f"  {row['name']:<16.40}  " + "  ".join(shown(row[name]) for name in SCORES) for row in self.free]
        even = self.break_even_error_rate
        words = (
            "is not crossed by the tried error rates" if even is None else f"is reached at an error rate of {even:.3f}"
        )
        one_way = (f"{way} {'not crossed' if at is None else f'{at:.3f}'}" for way, at in self.break_even_by.items())
        lines.append(f"  break-even with {self.best_free} {words}")
        return "\n".join([*lines, f"  of a judge that errs one way only: by {', by '.join(one_way)}"])


def simulate(
    bench: Bench,
    stage: LLMFilter,
    rates: Sequence[float] = RATES,
    seeds: int = 3,
    depth: int = 0,
    free: Sequence[str] = (),
    cost: Price | None = None,
) -> Simulation:
    """Simulated judges over error rates beside the free filters."""
    cases = [_judged_part(case, stage) for case in bench.cases]
    prompts = [stage.prompts(start_of(case)) for case in cases]  # the same for every judge

    def once(rate: float, seed: int, errs: str = "both") -> PipelineReport:
        judge = SimulatedJudge(bench.labels, rate, seed, bench.min_grade, depth, cost, errs=errs)
        asking = replace(stage, judge=judge, chunks=bench.chunks)
        outcomes = tuple(
            run_case(case, Pipeline((replace(asking, asked=asking.ask(start_of(case), own)),)), bench.min_grade)
            for case, own in zip(cases, prompts, strict=True)
        )
        return PipelineReport(judge.name, Pipeline((asking,)), outcomes, bench.min_grade)

    rows = simulated_rows(once, rates, range(seeds))
    plain = [Pipeline((TopK(k=stage.max_chunks),), label=RERANK_OFF), *map(read_pipeline, free)]
    others = [scores_of(one) for one in run_all(bench.cases, plain, bench.min_grade)]
    best = max(others, key=lambda one: one["SetF"] or 0.0)
    free_f1, up_to_all = best["SetF"] or 0.0, sorted({*rates, 0.7, 0.85, 1.0})
    one_way = {
        errs: break_even(simulated_rows(partial(once, errs=errs), up_to_all, range(seeds)), free_f1)
        for errs in ("keeping", "dropping")
    }
    return Simulation(bench.name, depth, rows, others, best["name"], break_even(rows, free_f1), one_way)


def _judged_part(case: Case, stage: LLMFilter) -> Case:
    """The case with as much of its list as is judged: what lies beyond goes anyway, and a deep list takes time."""
    start = start_of(case)
    return replace(case, candidates=replace(start, hits=start.hits[: stage.oversample]))
