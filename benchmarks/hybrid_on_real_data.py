"""Vector, word and hybrid search on public sets with the bundled model, and hops with a judge that knows the titles.

Words as they stand, and without English stop words and endings (analyzer english).

    python -m benchmarks.hybrid_on_real_data [--sets NAME ...] [--json]

Needs the folder WINNOW_SHARED (else ../shared). Per set the mean over queries with a relevant document of nDCG@10 and
R@100 with a 95 % interval, and hybrid against each side by the comparison in force. Both sides read 200;
weights 1 and 1, k 60. Documents are embedded whole as far as the model reads (256 tokens).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.parts import real_lists
from benchmarks.parts.hop_judge import SimulatedHopJudge, labelled_titles
from benchmarks.parts.real_lists import Corpus
from rag_core.index.collection import Snapshot
from rag_core.index.embed import BundledEmbedder
from rag_core.index.search import CollectionIndex
from rag_core.measure.experiment import run
from rag_core.measure.measures import SET_MEASURES, parse_measure
from rag_core.measure.significance import compare, mean_interval, shown_p
from rag_core.spec import parse_pipeline
from rag_core.types import Case, Chunk, Query
from rag_core.workbench import live

SETS: dict[str, Callable[[], Corpus]] = {
    "cranfield": real_lists.cranfield,
    "adi": real_lists.adi,
    "code-chunks": real_lists.code_chunks,
    "beir-dbpedia-5k": real_lists.dbpedia,
    "hotpotqa-100": real_lists.hotpotqa,
    "restbench-spotify": real_lists.spotify,
}
SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "vector": ("Dense", {}),
    "BM25": ("Lexical", {}),
    "BM25 english": ("Lexical", {"analyzer": "english"}),
    "hybrid": ("Hybrid", {}),
    "hybrid english": ("Hybrid", {"analyzer": "english"}),
}
AGAINST = (("hybrid", "vector"), ("hybrid", "BM25"), ("BM25 english", "BM25"), ("hybrid english", "vector"))
MEASURES = ("nDCG@10", "R@100")
HOPS = ({"TopK": {"k": 5}}, {"MultiHop": {"max_hops": 2, "hop_chunk_limit": 5}})


def opened(corpus: Corpus) -> tuple[CollectionIndex, list[Case]]:
    """The set as a collection in memory, and its queries that have a relevant document."""
    ids = sorted(corpus.documents)
    model = BundledEmbedder()
    made = dict(zip(corpus.documents, real_lists.vectors(list(corpus.documents.values())), strict=True))
    vectors = np.stack([made[one] for one in ids])
    chunks = tuple(Chunk(one, text=corpus.documents[one]) for one in ids)  # titles stand in the texts
    index = CollectionIndex(Snapshot(corpus.name, chunks, vectors, model.name, model.dimension, "f", "r"), model)
    queries = [(one, " ".join(text.split())) for one, text in corpus.queries.items()]
    cases = [Case(Query(one, text), corpus.grades.get(one, {})) for one, text in queries]
    return index, [case for case in cases if any(grade > 0 for grade in case.grades.values())]


def interval(values: list[float]) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean."""
    return mean_interval(values)[:2]


def one_set(name: str) -> dict[str, Any]:
    """Every source on one set."""
    index, cases = opened(SETS[name]())
    values: dict[str, dict[str, list[float]]] = {}
    for shown, (stage, settings) in SOURCES.items():
        pipeline = live(parse_pipeline([{stage: {"depth": 200, **settings}}, {"TopK": {"k": 100}}]), index)
        report = run(cases, pipeline, 1, (*SET_MEASURES, *map(parse_measure, MEASURES)), shown)
        values[shown] = {one: [outcome.scores.values[one] or 0.0 for outcome in report.outcomes] for one in MEASURES}
    return {
        "set": name,
        "documents": len(index.snapshot.chunks),
        "queries": len(cases),
        "means": {shown: {one: mean(row) for one, row in rows.items()} for shown, rows in values.items()},
        "intervals": {shown: {one: interval(row) for one, row in rows.items()} for shown, rows in values.items()},
        "differences": {
            f"{one} − {other}": compare(values[other]["nDCG@10"], values[one]["nDCG@10"], measure="nDCG@10").to_json()
            for one, other in AGAINST
        },
    }


def hops() -> dict[str, Any]:
    """Recall of at most 10 chunks on two-hop questions: 10 of the source, or 5 and what hops bring."""
    corpus = real_lists.hotpotqa()
    index, cases = opened(corpus)
    titled = tuple(Chunk(chunk.id, title=chunk.id, text=chunk.text) for chunk in index.snapshot.chunks)
    snapshot = Snapshot("hotpotqa", titled, index.snapshot.vectors, index.embedder.name, 384, "f", "r")
    index = CollectionIndex(snapshot, index.embedder)
    judge = SimulatedHopJudge(labelled_titles(cases, titled))
    found: dict[str, Any] = {}
    for shown, (stage, settings) in SOURCES.items():
        rows = {}
        for name, rest in (("before", ({"TopK": {"k": 10}},)), ("after", HOPS)):
            pipeline = live(parse_pipeline([{stage: settings}, *rest]), index, hop_judge=judge)
            report = run(cases, pipeline, 1, SET_MEASURES, name)
            values = [outcome.scores.values["SetR"] or 0.0 for outcome in report.outcomes]
            rows[name] = {"mean": mean(values), "interval": interval(values)}
        found[shown] = rows
    return found


def table(results: list[dict[str, Any]]) -> str:
    """The sets as a Markdown table."""
    lines = [f"| set | queries | measure | {' | '.join(SOURCES)} |", "| --- " * (3 + len(SOURCES)) + "|"]
    for one in results:
        for measure in MEASURES:
            cells = [
                f"{one['means'][shown][measure]:.3f} [{low:.3f}, {high:.3f}]"
                for shown in SOURCES
                for low, high in (one["intervals"][shown][measure],)
            ]
            lines.append(f"| {one['set']} | {one['queries']} | {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    results = [one_set(name) for name in chosen.sets]
    found = hops()
    if chosen.json:
        print(json.dumps({"version": 1, "sets": results, "hops": found}, indent=1))
        return 0
    print(table(results))
    for one in results:
        for pair, test in one["differences"].items():
            print(f"{one['set']}: {pair}: nDCG@10 {test['delta']:+.3f}, CI {test['ci']}, {shown_p(test['p'])}")
    for shown, rows in found.items():
        cells = [f"{name} {row['mean']:.3f} {row['interval']}" for name, row in rows.items()]
        print(f"hops on hotpotqa-100, {shown}: recall of at most 10 chunks {', '.join(cells)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
