"""Comparing five pipelines that share a source: one shared run against one run a pipeline, and the memory of both ways.

Run: python -m benchmarks.compare [--queries 5000] [--depth 200] [--chunks 5000] [--rounds 3] [--json]

Synthetic vectors; five pipelines that begin with the same source and the same rules and end in different cuts. Both
ways go over the queries in turn, block by block, whichever is first changing with the block, so that a busy machine
slows both alike; a round's seconds are the sums over its blocks. A figure is the median of the rounds, a ratio the
median of the per-round ratios. Both ways must give the same figures.

Memory is measured apart from time, since watching allocations doubles it: the peak of Python's own allocations
(tracemalloc) at a fortieth and at a tenth of the queries, per query added, and what the process grew by over all of
them (resident, in the first round). Both grow with the tallies, not with the traces. Exit code 1 for a missed floor.

Floors: the shared run at least 1.5 times as fast; at most 20 kB a query and pipeline held.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from rag_core.compare.compare import contrasts, matrix, table
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.tally import PipelineTally, measure_all
from rag_core.retrieve.dense import Dense
from rag_core.stage import Pipeline
from rag_core.types import Case, Chunk, Hit, Metric, Query

FASTER = 1.5
HELD = 20_000
BLOCK = 100  # queries of one way before the other has its turn


class Ranking:
    """One query's hits, nearest first."""

    store_queries = 1
    fingerprint = "synthetic"

    def __init__(self, hits: tuple[Hit, ...]) -> None:
        """The ranking as far as it is read."""
        self.hits = hits
        self.matching = len(hits)

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits start … stop − 1."""
        return self.hits[start:stop]


class Index:
    """Random unit vectors, searched exactly; counts how often it is asked."""

    metric = Metric.COSINE
    exact = True
    fingerprint = "synthetic"

    def __init__(self, chunks: int, depth: int) -> None:
        """A fifth of the chunks carries a rule."""
        dice = np.random.default_rng(0)
        vectors = dice.standard_normal((chunks, 128)).astype(np.float32)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        rule = {"contain_one_of": [["armor class 3", "ac 3"]]}
        self.chunks = [
            Chunk(f"c{at}", f"chunk {at}", "word " * 60, query_must=rule if at % 5 == 0 else None)
            for at in range(chunks)
        ]
        self.depth, self.asked = depth, 0

    def reader(self, text: str, where: Any = None, file_filter: Any = None) -> Ranking:
        """The nearest chunks of a question; the question's number seeds its vector."""
        self.asked += 1
        wanted = np.random.default_rng(int(text.split()[-1])).standard_normal(128).astype(np.float32)
        distances = 1 - self.vectors @ (wanted / np.linalg.norm(wanted))
        nearest = np.argpartition(distances, self.depth)[: self.depth]
        nearest = nearest[np.argsort(distances[nearest], kind="stable")]
        hits = [
            Hit(self.chunks[at], rank, {"distance": float(distances[at])})
            for rank, at in enumerate(nearest.tolist(), 1)
        ]
        return Ranking(tuple(hits))


def cases(numbers: range, chunks: int) -> Iterator[Case]:
    """The questions of these numbers with ten labels each, made one by one."""
    for number in numbers:
        dice = np.random.default_rng(number)
        grades = {f"c{at}": int(dice.integers(0, 2)) for at in dice.integers(0, chunks, 10)}
        yield Case(Query(f"q{number}", f"armor class 3 question {number}"), grades)


def pipelines(index: Index) -> list[Pipeline]:
    """Five pipelines with a common beginning."""
    start = (Dense(depth=index.depth, index=index), QueryMust())
    ends = (TopK(15), AdaptiveGap(), AdaptiveGap(gap_policy="first"), MinSimilarity(0.2), TopK(50))
    return [Pipeline((*start, end), label=f"{at} {end.name}") for at, end in enumerate(ends)]


def shared(index: Index, numbers: range) -> list[PipelineTally]:
    """All pipelines together."""
    return measure_all(cases(numbers, len(index.chunks)), pipelines(index))


def apart(index: Index, numbers: range) -> list[PipelineTally]:
    """One run a pipeline."""
    return [measure_all(cases(numbers, len(index.chunks)), [pipeline])[0] for pipeline in pipelines(index)]


WAYS = {"shared": shared, "apart": apart}


def both(index: Index, queries: int) -> tuple[dict[str, float], list[PipelineTally]]:
    """One round: seconds of either way, and the shared run's tallies; the two must find the same."""
    seconds = dict.fromkeys(WAYS, 0.0)
    blocks: list[list[PipelineTally]] = []
    for at, start in enumerate(range(0, queries, BLOCK)):
        numbers = range(start, min(start + BLOCK, queries))
        found = {}
        for way in WAYS if at % 2 == 0 else reversed(WAYS):
            index.asked, started = 0, perf_counter()
            found[way] = WAYS[way](index, numbers)
            seconds[way] += perf_counter() - started
            assert index.asked == len(numbers) * (1 if way == "shared" else 5)
        assert [one.summary for one in found["shared"]] == [one.summary for one in found["apart"]]
        blocks.append(found["shared"])
    return seconds, [joined(parts) for parts in zip(*blocks, strict=True)]


def joined(parts: Sequence[PipelineTally]) -> PipelineTally:
    """The blocks of one pipeline as one tally."""
    return replace(parts[0], queries=tuple(query for part in parts for query in part.queries))


def peak(index: Index, queries: int) -> int:
    """Peak bytes of a shared run beyond what was there before."""
    tracemalloc.start()
    held = shared(index, range(queries))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held
    return most


def resident() -> int:
    """Bytes of this process that are in memory now; 0 where the system does not say."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.is_file() else 0


def page(tallies: list[PipelineTally]) -> dict[str, float]:
    """Seconds of what the page computes of the tallies: the table with all its tests, and what needs none."""
    started = perf_counter()
    table(tallies)
    tested = perf_counter()
    contrasts(tallies[0], tallies[1], order="regressions")
    matrix(tallies)
    return {"table": tested - started, "lists": perf_counter() - tested}


def measure(queries: int, depth: int, chunks: int, rounds: int) -> dict[str, Any]:
    """Every figure of the benchmark."""
    index = Index(chunks, depth)
    shared(index, range(min(queries, 20)))  # imports and first allocations are in no figure
    rows: dict[str, list[float]] = {}
    grown = 0
    for at in range(rounds):
        before = resident()
        seconds, tallies = both(index, queries)
        grown = grown if at else resident() - before
        for name, value in {**seconds, **page(tallies)}.items():
            rows.setdefault(name, []).append(value)
    del tallies
    small, large = max(1, queries // 40), max(2, queries // 10)
    held = (peak(index, large) - peak(index, small)) / max(1, (large - small) * 5)
    return {
        "queries": queries,
        "depth": depth,
        "load": os.getloadavg()[0],
        "seconds": {name: statistics.median(values) for name, values in rows.items()},
        "faster": statistics.median(b / a for a, b in zip(rows["shared"], rows["apart"], strict=True)),
        "bytes_per_query_and_pipeline": held,
        "resident_growth": grown,
    }


def main() -> int:
    """Print the figures; 1 where a floor is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.queries, options.depth, options.chunks, options.rounds)
    if options.json:
        print(json.dumps(found))
    else:
        seconds = found["seconds"]
        print(f"{options.queries} queries × {options.depth} candidates × 5 pipelines")
        print(f"shared run {seconds['shared']:.2f} s, one run a pipeline {seconds['apart']:.2f} s")
        print(f"ratio {found['faster']:.2f} (floor {FASTER})")
        print(
            f"table with intervals and tests {seconds['table']:.2f} s, contrasts and heat map {seconds['lists']:.2f} s"
        )
        print(f"held {found['bytes_per_query_and_pipeline']:,.0f} bytes a query and pipeline (at most {HELD:,})")
        print(
            f"the process grew by {found['resident_growth'] / 1e6:,.0f} MB over all of them; load {found['load']:.1f}"
        )
    return int(found["faster"] < FASTER or found["bytes_per_query_and_pipeline"] > HELD)


if __name__ == "__main__":
    sys.exit(main())
