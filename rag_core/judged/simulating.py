"""How good must a judge be, and what may it cost? Simulated judges over error rates beside the free filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rag_core.filters.cutoff import TopK
from rag_core.filters.llm import LLMFilter
from rag_core.judged.bench import Bench
from rag_core.judged.comparing import RERANK_OFF, scores_of
from rag_core.judged.figures import break_even, simulated_rows
from rag_core.llm import Price, SimulatedJudge
from rag_core.measure.experiment import PipelineReport, run_all, run_case, start_of
from rag_core.spec import read_pipeline
from rag_core.stage import Pipeline
from rag_core.types import Case

RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def simulate(
    bench: Bench,
    stage: LLMFilter,
    rates: Sequence[float] = RATES,
    seeds: int = 3,
    depth: int = 0,
    free: Sequence[str] = (),
    cost: Price | None = None,
) -> dict[str, Any]:
    """F1 and cost over the error rate of a simulated judge, the free filters, and where both are even."""
    cases = [_judged_part(case, stage) for case in bench.cases]
    prompts = [stage.prompts(start_of(case)) for case in cases]  # the same for every judge

    def once(rate: float, seed: int) -> PipelineReport:
        judge = SimulatedJudge(bench.labels, rate, seed, bench.min_grade, depth, cost)
        asking = replace(stage, judge=judge, chunks=bench.chunks)
        asked = [asking.ask(start_of(case), one) for case, one in zip(cases, prompts, strict=True)]
        outcomes = tuple(
            run_case(case, Pipeline((replace(asking, asked=one),)), bench.min_grade)
            for case, one in zip(cases, asked, strict=True)
        )
        return PipelineReport(judge.name, Pipeline((asking,)), outcomes, bench.min_grade)

    rows = simulated_rows(once, rates, range(seeds))
    plain = [Pipeline((TopK(k=stage.max_chunks),), label=RERANK_OFF), *(read_pipeline(one) for one in free)]
    others = [scores_of(one) for one in run_all(bench.cases, plain, bench.min_grade)]
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


def _judged_part(case: Case, stage: LLMFilter) -> Case:
    """The case with as much of its list as is judged: what lies beyond goes anyway, and a deep list takes time."""
    start = start_of(case)
    return replace(case, candidates=replace(start, hits=start.hits[: stage.oversample]))
