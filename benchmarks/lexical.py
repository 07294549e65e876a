"""Word search, fusion and header look-up against their usual peers on the same synthetic data, as ratios.

    python -m benchmarks.lexical [--documents 50000] [--sizes 1000 10000 100000] [--headers 2400] [--rounds 15] [--json]

Rounds interleave the rows; a figure is the median, a ratio the median of the per-round ratios. Documents have 20 to 60
words of a vocabulary with Zipf frequencies; queries have 10 words. Fusion is measured against ranx where that is
installed (requirements-peers.txt). What a rank is worth and the weights of common words are computed when first asked
for; the first round, left out, warms both sides up. Hybrid latency is a whole query without embedding: both sides,
fusion, hits.
Exit code 1 where a floor is missed.

Floors: BM25 at 50,000 documents at least 100 times faster than rank_bm25; fusion of two lists of 200 at least 10 times
faster than ranx; 23 titles in 2,400 headers at least 15 times faster than a loop over pairs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.parts.pairs import Ratio, in_turn, processor_ms, ratio, verdict
from benchmarks.parts.prepared import PreparedEmbedder
from benchmarks.retrieval import DIMENSION
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.headers import HeaderIndex
from rag_core.index.lexical import LexicalReader, count_words, weighed
from rag_core.index.search import CollectionIndex
from rag_core.retrieve.fuse import fuse
from rag_core.spec import build, parse_pipeline
from rag_core.text import words
from rag_core.types import Candidates, Chunk, Query

TOP, WORDS, VOCABULARY = 50, 10, 20_000
FLOORS = {"BM25 : rank_bm25": 100.0, "fusion : ranx": 10.0, "headers : loop": 15.0}


def texts_of(count: int, seed: int = 1) -> list[str]:
    """Documents of 20 to 60 words with Zipf frequencies."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, VOCABULARY + 1)
    drawn = rng.choice(VOCABULARY, size=(count, 60), p=chances / chances.sum())
    lengths = rng.integers(20, 61, size=count)
    return [" ".join(f"w{one}" for one in row[:length]) for row, length in zip(drawn, lengths, strict=True)]


def word_search(documents: int, rounds: int) -> dict[str, Any]:
    """Ours against rank_bm25: the first 50 of queries of 10 words; and the seconds each takes to build."""
    from rank_bm25 import BM25Okapi

    texts, queries = texts_of(documents), texts_of(rounds + 1, seed=2)
    asked = [" ".join(query.split()[:WORDS]) for query in queries]
    started = perf_counter()
    index = weighed(count_words(texts))
    built = perf_counter() - started
    peer = BM25Okapi([words(text) for text in texts])
    chunks = [Chunk(f"c{row:06}") for row in range(documents)]
    rows = {chunk.id: row for row, chunk in enumerate(chunks)}

    def ours(number: int) -> Any:
        return LexicalReader(chunks, rows, index.scores(asked[number]), None, "f").read(0, TOP)

    def theirs(number: int) -> Any:
        return np.argsort(peer.get_scores(words(asked[number])))[::-1][:TOP]

    times = in_turn({"rank_bm25": theirs, "BM25": ours}, rounds)
    return {**_figures(times, "BM25 : rank_bm25", "rank_bm25", "BM25"), "seconds_to_build": built}


def fusion(rounds: int, length: int = 200) -> dict[str, Any] | None:
    """Ours against ranx on two lists; None where ranx is not installed."""
    if find_spec("ranx") is None:
        return None
    from ranx import Run
    from ranx import fuse as peer

    rng = np.random.default_rng(3)
    lists = [[[f"d{one}" for one in rng.permutation(400)[:length]] for _ in range(2)] for _ in range(rounds + 1)]
    runs = [[Run({"q": {one: 1 / rank for rank, one in enumerate(ids, 1)}}) for ids in pair] for pair in lists]
    rows = {
        "ranx": lambda number: peer(runs[number], method="rrf", params={"k": 60}),
        "fusion": lambda number: fuse(lists[number]),
    }
    times = in_turn(rows, rounds)
    return _figures(times, "fusion : ranx", "ranx", "fusion")


def headers(count: int, rounds: int) -> dict[str, Any]:
    """23 misspelt titles looked up at once against a loop over all pairs."""
    from rapidfuzz import fuzz

    rng = np.random.default_rng(4)
    names = [" ".join(f"word{one}" for one in rng.integers(0, 900, size=4)) for _ in range(count)]
    index = HeaderIndex(Chunk(f"c{at}", title=name) for at, name in enumerate(names))
    known = [name.casefold() for name in names]
    asked = [[f"{names[at][:-1]}x" for at in rng.integers(0, count, size=23)] for _ in range(rounds + 1)]

    def loop(number: int) -> Any:
        return [max(known, key=lambda name, one=one: fuzz.ratio(one, name)) for one in asked[number]]

    rows = {"loop": loop, "headers": lambda number: index.find(asked[number])}
    times = in_turn(rows, rounds, processor_ms)  # by the clock, other work made it 4 to 99 times in one run
    return _figures(times, "headers : loop", "loop", "headers")


def hybrid(count: int, rounds: int) -> dict[str, float]:
    """Milliseconds of one query by each source, 15 of a depth of 200 kept; the query's vector is at hand."""
    rng = np.random.default_rng(count)
    vectors = normalise(rng.normal(size=(count, DIMENSION)))
    chunks = tuple(Chunk(f"c{row:06}", text=text) for row, text in enumerate(texts_of(count)))
    queries = [" ".join(text.split()[:WORDS]) for text in texts_of(rounds + 1, seed=2)]
    asked = dict(zip(queries, normalise(rng.normal(size=(len(queries), DIMENSION))), strict=True))
    snapshot = Snapshot("bench", chunks, vectors, "synthetic", DIMENSION, "f", "r")
    index = CollectionIndex(snapshot, PreparedEmbedder(asked))

    def row(stage: str) -> Callable[[int], Any]:
        pipeline = build(parse_pipeline([stage, {"TopK": {"k": 15}}]), {"index": index})
        return lambda number: pipeline(Candidates(Query("q", queries[number])))

    times = in_turn({"vector": row("Dense"), "BM25": row("Lexical"), "hybrid": row("Hybrid")}, rounds)
    return {name: statistics.median(each) for name, each in times.items()}


def _figures(times: dict[str, list[float]], name: str, slow: str, fast: str) -> dict[str, Any]:
    medians = {row: statistics.median(each) for row, each in times.items()}
    return {"milliseconds": medians, "ratio": {"name": name, **ratio(times[slow], times[fast])._asdict()}}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--documents", type=int, default=50_000)
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--headers", type=int, default=2_400)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    found = {
        "word search": word_search(chosen.documents, chosen.rounds),
        "fusion": fusion(chosen.rounds),
        "headers": headers(chosen.headers, chosen.rounds),
        "one query": {str(size): hybrid(size, chosen.rounds) for size in chosen.sizes},
    }
    ratios = [one["ratio"] for one in found.values() if one and "ratio" in one]
    missed = [one["name"] for one in ratios if one["median"] < FLOORS[one["name"]]]
    if chosen.json:
        print(json.dumps({"version": 1, **found, "missed": missed}, indent=1))
        return 1 if missed else 0
    for one in ratios:
        floor = FLOORS[one["name"]]
        said = verdict(one["median"] >= floor, f"{floor:g}×")
        print(f"{one['name']:20} {Ratio(one['median'], one['low'], one['high'])}{said}")
    for size, medians in found["one query"].items():
        print(f"{int(size):,} chunks: " + ", ".join(f"{name} {value:.2f} ms" for name, value in medians.items()))
    print("all floors reached" if not missed else f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
