"""Filtered retrieval and candidate lists against ChromaDB on the same synthetic vectors, as ratios.

    python -m benchmarks.retrieval [--sizes 1000 10000 100000] [--rounds 15] [--json]

For every size one child process holds both sides: Chroma's PersistentClient over a temporary folder, and a collection
of ours in memory. Rounds interleave the rows; a figure is the median, a ratio the median of the per-round ratios. Data:
384-dimensional float32 vectors in clusters of about 50, queries near a chunk; 21 % of the chunks carry a rule that the
query does not meet. Exit code 1 where a floor is missed. From 8,000 chunks on, ours reads one byte a number first and
then whole vectors where they could matter, which gives brute force's answer (rag_core/index/scan.py); below, all of
them.

Floors: the pipeline at least 5 times (10,000 chunks) and 30 times (100,000) faster than the plain loop with a working
key; candidate lists (200 queries × 200) at 10,000 at least 3 times faster than Chroma's batch; recall 1.0 and no chunk
twice.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.parts.pairs import Ratio, in_turn, ratio, verdict
from benchmarks.parts.prepared import PreparedEmbedder
from benchmarks.peers.chroma_loops import QUESTION, RULE, K, fill_chroma, oversampled, plain_loop
from rag_core.index.collection import Snapshot
from rag_core.index.embed import Vectors, normalise
from rag_core.index.scan import nearest_lists
from rag_core.index.search import CollectionIndex
from rag_core.spec import build, parse_pipeline
from rag_core.types import Candidates, Chunk, Query

DIMENSION = 384
DEPTH, QUERIES = 200, 200
RATIOS = (("pipeline", "plain loop"), ("pipeline", "oversampled Chroma"), ("lists", "Chroma batch"))
"""Fast row and slow row of each ratio."""
FLOORS = {
    (10_000, "pipeline : plain loop"): 5.0,
    (100_000, "pipeline : plain loop"): 30.0,
    (10_000, "lists : Chroma batch"): 3.0,
}


def make_data(rows: int) -> tuple[Vectors, Vectors, tuple[Chunk, ...]]:
    """Clustered unit vectors, queries near some of them, and chunks of which 21 % carry a rule."""
    rng = np.random.default_rng(rows)
    centres = rng.normal(size=(max(1, rows // 50), DIMENSION))
    spread = rng.normal(size=(rows, DIMENSION)) * 0.7
    vectors = normalise(centres[rng.integers(len(centres), size=rows)] + spread)
    queries = normalise(vectors[rng.integers(rows, size=QUERIES)] + rng.normal(size=(QUERIES, DIMENSION)) * 0.03)
    ruled = rng.random(rows) < 0.21
    chunks = tuple(
        Chunk(f"c{row:06}", f"Title {row}", "Some words of a chunk. " * 12, query_must=RULE if ruled[row] else None)
        for row in range(rows)
    )
    return vectors, queries, chunks


def one_size(rows: int, rounds: int) -> dict[str, Any]:
    """All rows of the table for one number of chunks."""
    vectors, queries, chunks = make_data(rows)
    ours = our_pipeline(vectors, queries, chunks)
    with tempfile.TemporaryDirectory() as folder:
        started = perf_counter()
        collection = fill_chroma(folder, vectors, chunks)
        filled = perf_counter() - started
        gc.collect()
        gc.freeze()  # as the app does after loading; both sides gain
        one_query = {
            "plain loop": lambda number: plain_loop(collection, queries[number]),
            "oversampled Chroma": lambda number: oversampled(collection, queries[number]),
            "pipeline": ours,
        }
        all_queries = {
            "Chroma batch": lambda number: collection.query(
                query_embeddings=list(queries), n_results=min(DEPTH, rows), include=["distances"]
            ),
            "lists": lambda number: nearest_lists(vectors, queries, DEPTH),
        }
        times = in_turn(one_query, rounds) | in_turn(all_queries, max(3, rounds // 5))
        quality = recalls(collection, vectors, queries, chunks, ours)
    return {
        "chunks": rows,
        "milliseconds": {name: statistics.median(each) for name, each in times.items()},
        "ratios": {f"{fast} : {slow}": ratio(times[slow], times[fast]) for fast, slow in RATIOS},
        "recall": quality,
        "seconds_to_fill_chroma": filled,
    }


def our_pipeline(vectors: Vectors, queries: Vectors, chunks: tuple[Chunk, ...]) -> Callable[[int], list[str]]:
    """Number of a query → the ids that our pipeline keeps of it, over a collection in memory."""
    texts = {f"query {number}": query for number, query in enumerate(queries)}
    snapshot = Snapshot("bench", chunks, vectors, PreparedEmbedder.name, DIMENSION, "f", "r")
    index = CollectionIndex(snapshot, PreparedEmbedder(texts))
    pipeline = build(parse_pipeline([{"Dense": {"depth": K}}, {"Requery": {"k": K}}]), {"index": index})

    def ours(number: int) -> list[str]:
        query = Query("q", QUESTION, dense_text=f"query {number}")
        return [hit.chunk.id for hit in pipeline(Candidates(query)).hits]

    return ours


def recalls(
    collection: Any, vectors: Vectors, queries: Vectors, chunks: tuple[Chunk, ...], ours: Callable[[int], list[str]]
) -> dict[str, float]:
    """Recall against brute force in float64: of the 15 that pass, and of the 200 nearest; and duplicates returned."""
    passing = np.array([chunk.query_must is None for chunk in chunks])
    found: dict[str, list[float]] = {"pipeline": [], "plain loop": [], "lists": [], "Chroma list": []}
    duplicates = 0
    depth = min(DEPTH, len(chunks))
    for number in range(20):
        distance = 1 - vectors.astype(np.float64) @ queries[number].astype(np.float64)
        order = np.lexsort((np.arange(len(chunks)), distance))
        true = {chunks[row].id for row in order[passing[order]][:K]}
        deep = {chunks[row].id for row in order[:depth]}
        kept, looped = ours(number), plain_loop(collection, queries[number])
        duplicates += len(kept) - len(set(kept))
        found["pipeline"].append(len(true & set(kept)) / K)
        found["plain loop"].append(len(true & set(looped)) / K)
        ((rows, _),) = nearest_lists(vectors, queries[number : number + 1], depth)
        found["lists"].append(len(deep & {chunks[row].id for row in rows}) / depth)
        answer = collection.query(query_embeddings=[queries[number]], n_results=depth, include=["distances"])
        found["Chroma list"].append(len(deep & set(answer["ids"][0])) / depth)
    return {name: statistics.mean(each) for name, each in found.items()} | {"duplicates": float(duplicates)}


def missed(result: dict[str, Any]) -> list[str]:
    """The floors this result does not reach, as sentences."""
    rows, ratios, recall = result["chunks"], result["ratios"], result["recall"]
    found = [
        f"{rows:,}: {name} is {ratios[name][0]:.1f}, floor {floor:g}"
        for (size, name), floor in FLOORS.items()
        if size == rows and ratios[name][0] < floor
    ]
    exact = recall["pipeline"] == recall["lists"] == 1.0 and not recall["duplicates"]
    return found + ([] if exact else [f"{rows:,}: recall of the exact paths is below 1.0 or a chunk came twice"])


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['chunks']:,} chunks (Chroma filled in {result['seconds_to_fill_chroma']:.0f} s)")
    for name, value in result["milliseconds"].items():
        print(f"  {name:32} {value:10.2f} ms")
    for name, value in result["ratios"].items():
        floor = FLOORS.get((result["chunks"], name))
        said = "" if floor is None else verdict(value[0] >= floor, f"{floor:g}×")
        print(f"  {name:32} {Ratio(*value)}{said}", flush=True)
    for name, value in result["recall"].items():
        print(f"  {'recall ' * (name != 'duplicates') + name:32} {value:10.3f}")


def in_child(rows: int, rounds: int) -> dict[str, Any]:
    """One size in a process of its own: Chroma never runs in ours."""
    command = [sys.executable, "-m", "benchmarks.retrieval", "--child", str(rows), "--rounds", str(rounds)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--json", action="store_true")
    options.add_argument("--child", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.child:
        print(json.dumps(one_size(chosen.child, chosen.rounds)))
        return 0
    results = []
    for rows in chosen.sizes:
        results.append(in_child(rows, chosen.rounds))
        if not chosen.json:
            show(results[-1])
    problems = [problem for result in results for problem in missed(result)]
    if chosen.json:
        print(json.dumps({"version": 1, "results": results, "missed": problems}, indent=1))
    else:
        print("\n" + ("\n".join(problems) if problems else "all floors reached"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
