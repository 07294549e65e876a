"""Does a model say the same twice, and does the order of the candidates sway it? The same questions, several times.

Each further run's answers are stored under a name of their own, so that a repetition that was stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from rag_core.filters.llm import DISCARD, Asking
from rag_core.judged.asking import Ran, ask_all
from rag_core.judged.bench import Bench
from rag_core.judged.entrants import Entrant
from rag_core.judged.figures import repeatability
from rag_core.llm import Progress, RecordedJudge, RunLimits
from rag_core.measure.experiment import PipelineReport, run
from rag_core.stage import Pipeline
from rag_core.types import Candidates


def runs_of(entrant: Entrant, times: int) -> list[Entrant]:
    """The entrant as often as it is to answer: the first with the usual store, the others under names of their own.

    Every one asks in reverse order too, where several candidates share a prompt.
    """
    judge, found = entrant.judge, []
    for number in range(1, times + 1):
        named = judge.model if number == 1 else f"{judge.model}, run {number}"
        again = RecordedJudge(judge.store, judge.behind, named)
        stage = replace(entrant.stage, check_order=True, model="")
        found.append(Entrant(stage, again, f"{entrant.label}, run {number}"))
    return found


def ask_again(
    bench: Bench,
    entrant: Entrant,
    times: int,
    limits: RunLimits,
    tell: Callable[[Progress], None] | None = None,
    cancel: Event | None = None,
) -> Ran:
    """Have every prompt answered `times` times, in both orders."""
    return ask_all(bench, runs_of(entrant, times), limits, tell, cancel)


def steadiness(bench: Bench, entrant: Entrant, times: int) -> dict[str, Any]:
    """How far stored repetitions agree, and what the order does: asks nobody.

    `repeatability` is the share of decisions on which all runs agree; `flip_rate` the share of decisions that another
    order changes; `kept_early` and `kept_late` the share of candidates kept in the first and in the second half of a
    prompt, each candidate once in either, so that a difference is the order's doing.
    """
    reports = [
        run(bench.cases, Pipeline((one.replay(bench),)), bench.min_grade, name=one.label)
        for one in runs_of(entrant, times)
    ]
    first = runs_of(entrant, 1)[0]
    orders = [_order(first, case.candidates or Candidates(case.query), bench) for case in bench.cases]
    checked, flips, early, late = (sum(values) for values in zip(*orders, strict=True))
    return {
        "name": entrant.label,
        "runs": times,
        "repeatability": repeatability(reports),
        "checked": checked,
        "flips": flips,
        "flip_rate": flips / checked if checked else None,
        "kept_early": early / checked if checked else None,
        "kept_late": late / checked if checked else None,
        "position_bias": (early - late) / checked if checked else None,
        "fallback_rate": _fallbacks(reports),
    }


def _fallbacks(reports: Sequence[PipelineReport]) -> float | None:
    outcomes = [bool(outcome.result.fallbacks) for report in reports for outcome in report.outcomes]
    return sum(outcomes) / len(outcomes) if outcomes else None


def _order(entrant: Entrant, candidates: Candidates, bench: Bench) -> tuple[int, int, int, int]:
    """Decisions made in both orders, those that differ, and how often a candidate was kept early and late in a prompt.

    The middle candidate of an odd number stands in the middle both times and is left out.
    """
    stage = entrant.replay(bench)
    asked: Asking = stage.ask(candidates)
    checked = flips = early = late = 0
    for prompt in stage.prompts(candidates):
        if prompt.second:
            continue
        for at, position in enumerate(prompt.positions):
            verdict = asked.verdicts[position]
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
