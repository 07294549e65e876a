"""Step functions of a pipeline's knobs against running the plain pipeline at every position.

Run: python -m benchmarks.steps [--rounds 3] [--json]

Synthetic lists, 500 and 5,000 questions × 200 candidates with rules on a fifth of the chunks, behind a refill, an
adaptive cut and a floor; 120 positions a knob or as many as it has. The plain loop runs the same pipeline at some
positions over some of the questions in the same round, and its time is multiplied up to all positions and questions;
its kept sets are compared with the step function's. Milliseconds are of the processor, not of the clock, since the loop
needs seconds where the arrays need milliseconds and a busy machine would slow them unlike. A figure is the median of
the rounds, a ratio the median of the per-round ratios. What is captured once for all knobs stands apart.

Floors: a knob at 500 questions within 25 ms, and at least 500 times as fast as the plain loop; no difference.
"""

from __future__ import annotations

import argparse
import json
import statistics
from time import process_time
from typing import Any

import numpy as np

from benchmarks.parts.pairs import verdict
from benchmarks.peers.cut_loops import Data
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.measure.experiment import kept_ids
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.stage import Pipeline
from rag_core.tune.steps import step_function, with_setting
from rag_core.tune.variants import Captures
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

SIZES = ((500, 200), (5000, 200))
WORDS = ("wolf", "forest", "what is a wolf", "describe a forest")
REFILL = (Dense(), Requery(k=40, max_iterations=3), AdaptiveGap(0.05, 0.2, 2, 40), MinSimilarity(0.05))
CUT = (Dense(), TopK(150), AdaptiveGap(0.05, 0.2, 2, 100), MinSimilarity(0.05))
FORMS = (Dense(), AdaptiveGap(0.05, 0.2, 2, 100, "first", query_specific=True))
KNOBS: tuple[tuple[str, tuple[Any, ...], int, str, Any], ...] = (
    ("gap threshold", CUT, 2, "gap_threshold", np.linspace(0, 0.2, 120)),
    ("distance offset", CUT, 2, "distance_offset", np.linspace(0, 0.6, 120)),
    ("min results", CUT, 2, "min_results", np.arange(101)),
    ("max results", CUT, 2, "max_results", np.arange(2, 122)),
    ("k in front", CUT, 1, "k", np.arange(1, 121)),
    ("floor behind", CUT, 3, "min_relevance", np.linspace(-0.5, 0.9, 120)),
    ("depth", CUT, 0, "depth", np.arange(1, 121)),
    ("refill's k", REFILL, 1, "k", np.arange(1, 67)),
    ("threshold, first gap, by form", FORMS, 1, "gap_threshold", np.linspace(0, 0.2, 120)),
)
"""Name, stages, place of the stage, its setting, the positions."""
SAMPLE, TRIED = 50, 3  # questions and positions of the plain loop
MOST_MS, LEAST_RATIO = 25.0, 500.0


def make_cases(queries: int, length: int) -> list[Case]:
    """Recorded cosine lists of the shared synthetic data."""
    data, dice = Data(queries, length), np.random.default_rng(1)
    rules = dice.choice([None, None, None, None, "wolf"], (queries, length)).tolist()
    cases = []
    for at, (row, relevant) in enumerate(zip(data.rows, data.relevant, strict=True)):
        chunks = [Chunk(f"c{place}", query_must={"contain": r} if r else None) for place, r in enumerate(rules[at])]
        hits = tuple(
            Hit(chunk, rank, {"distance": d}) for rank, (chunk, d) in enumerate(zip(chunks, row, strict=True), 1)
        )
        query = Query(f"q{at}", WORDS[at % len(WORDS)])
        start = Candidates(query, hits, metric=Metric.COSINE, recorded=True)
        cases.append(Case(query, {f"c{place}": 1 for place in relevant}, start))
    return cases


def compare(queries: int, length: int, rounds: int) -> list[dict[str, Any]]:
    """One row a knob."""
    cases = make_cases(queries, length)
    captures, dice, rows = Captures(cases, 1), np.random.default_rng(2), []
    for name, stages, place, setting, positions in KNOBS:
        pipeline, own, loop, differs = Pipeline(stages), [], [], 0
        started = process_time()
        step_function(captures, pipeline, place, setting, positions)
        first = process_time() - started
        for _ in range(rounds):
            sample = [int(at) for at in dice.choice(queries, SAMPLE, replace=False)]
            started = process_time()
            steps = step_function(captures, pipeline, place, setting, positions, cases[sample[0]].query.id)
            own.append(process_time() - started)
            tried = [int(at) for at in dice.choice(len(positions), TRIED, replace=False)]
            variants = [with_setting(pipeline, place, setting, float(positions[at])) for at in tried]
            started = process_time()
            depths = [int(positions[at]) if setting == "depth" else length for at in tried]
            kept = [
                [kept_ids(variant(shallow(cases[at].candidates, depth))) for at in sample]
                for variant, depth in zip(variants, depths, strict=True)
            ]
            loop.append((process_time() - started) / TRIED / SAMPLE * queries * len(positions))
            for at, lists in zip(tried, kept, strict=True):
                stays = {row for row, flag in zip(steps.rows, steps.kept[:, at], strict=True) if flag}
                differs += stays != set(lists[0])
                grades = [cases[question].grades for question in sample]
                shares = [
                    2 * len(g.keys() & set(ids)) / (len(g) + len(ids)) for g, ids in zip(grades, lists, strict=True)
                ]
                differs += int((steps.per_question[sample, at] != shares).sum())
        ratio = statistics.median(a / b for a, b in zip(loop, own, strict=True))
        rows.append(
            {"queries": queries, "candidates": length, "knob": name, "positions": len(positions), "ratio": ratio,
             "ms": statistics.median(own) * 1e3, "first_ms": first * 1e3, "plain_ms": statistics.median(loop) * 1e3,
             "differs": differs}
        )  # fmt: skip
    return rows


def shallow(start: Candidates | None, depth: int) -> Candidates:
    """A captured list read less deep."""
    assert start is not None
    return Candidates(start.query, start.hits[:depth], metric=start.metric, recorded=True)


def missed(rows: list[dict[str, Any]]) -> list[str]:
    """The floors that were not reached."""
    small = [row for row in rows if row["queries"] == SIZES[0][0]]
    fell_short = [f"{row['knob']}: {row['ms']:.1f} ms, floor {MOST_MS:g}" for row in small if row["ms"] > MOST_MS]
    fell_short += [
        f"{r['knob']}: {r['ratio']:,.0f} ×, floor {LEAST_RATIO:g}" for r in small if r["ratio"] < LEAST_RATIO
    ]
    return fell_short + [f"{row['knob']} differs {row['differs']} times" for row in rows if row["differs"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row for size in SIZES for row in compare(*size, options.rounds)]
    fell_short = missed(rows)
    if options.json:
        print(json.dumps({"rows": rows, "missed": fell_short}))
        return 1 if fell_short else 0
    for row in rows:
        where = f"{row['queries']:,} × {row['candidates']}  {row['knob']}, {row['positions']} positions"
        reached = row["ms"] <= MOST_MS and row["ratio"] >= LEAST_RATIO
        goal = verdict(reached, f"{LEAST_RATIO:g}×, {MOST_MS:g} ms") if row["queries"] == SIZES[0][0] else ""
        took = f"{row['ms']:7.1f} ms  first {row['first_ms']:6.0f} ms"
        print(f"{where:<56} {took}  {row['ratio']:7,.0f}× a plain loop{goal}")
    print("\n".join(f"MISSED {one}" for one in fell_short) or "all floors reached")
    return 1 if fell_short else 0


if __name__ == "__main__":
    raise SystemExit(main())
