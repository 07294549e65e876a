"""How far one machine goes: a Chroma server filled with chunks, the collection connected, and thousands of captures.

    python -m benchmarks.scale [--chunks 25000 100000 250000] [--queries 1000 1000 5000] [--json]

One real `chroma run` server on loopback, one collection that grows. At every size: seconds to add (and until the server
answers a question, for it indexes behind the adding), its processor time, memory and disk; `connect`, which
mirrors the collection here; `capture` of all queries at depth 50, exact, from the mirror; and the same queries captured
from the server itself by a source function, with the share of the exact lists that its graph finds. Connecting and the
captures run in processes of their own, through the functions that the commands call.

Data: 384-dimensional unit vectors in clusters of 50 that arrive together, texts of 20 words, queries near a chunk.
Query vectors are prepared, so that no embedding is timed. Wall-clock seconds say what the machine did besides, too:
processor seconds stand beside them. `--towards` is not run unless it is among the sizes: the figures there are
extrapolated from the smaller sizes by the fits named in the output, with the largest residual of each.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.parts.growth import table
from benchmarks.parts.prepared import PreparedEmbedder
from benchmarks.peers.chroma_server import GIGA, Server, client_of, serving, size_of
from rag_core.index.embed import Vectors, normalise
from rag_core.index.foreign import connect
from rag_core.index.foreign_place import ForeignPlace
from rag_core.index.handles import open_index
from rag_core.retrieve.capture import capture_to_file
from rag_core.sources.callable_source import CallableIndex
from rag_core.types import Case, Query
from rag_core.workbench import capture_fingerprint, source_of

DIMENSION, DEPTH, BATCH, CLUSTER = 384, 50, 5000, 50
SPACE = {"hnsw": {"space": "cosine"}}
NAME = "scale"
WORDS = ("owl", "bear", "cleric", "gate", "river", "stone", "lamp", "oak", "iron", "salt", "tower", "mill", "road")


def batch_of(number: int) -> tuple[list[str], Vectors, list[str]]:
    """The ids, vectors and texts of a batch of 5,000: the same whenever it is asked for."""
    rng = np.random.default_rng([7, number])
    centres = np.repeat(rng.normal(size=(BATCH // CLUSTER, DIMENSION)), CLUSTER, axis=0)
    vectors = normalise(centres + rng.normal(size=(BATCH, DIMENSION)) * 0.7)
    texts = [" ".join(WORDS[word] for word in row) for row in rng.integers(len(WORDS), size=(BATCH, 20))]
    return [f"c{number * BATCH + row:08d}" for row in range(BATCH)], vectors, texts


def questions(chunks: int, count: int) -> dict[str, Vectors]:
    """Query text → its vector, near a chunk each."""
    rng = np.random.default_rng([11, chunks])
    near = rng.integers(chunks, size=count)
    found = np.zeros((count, DIMENSION), dtype=np.float32)
    for batch in np.unique(near // BATCH):
        here = near // BATCH == batch
        found[here] = batch_of(int(batch))[1][near[here] % BATCH]
    found = normalise(found + rng.normal(size=found.shape) * 0.03)
    return {f"question {number}": vector for number, vector in enumerate(found)}


def fill(collection: Any, start: int, stop: int) -> tuple[list[float], float]:
    """Add the batches up to a size: seconds of each, and seconds until a question is answered then."""
    each = []
    for number in range(start // BATCH, stop // BATCH):
        ids, vectors, texts = batch_of(number)
        began = perf_counter()
        collection.add(ids=ids, embeddings=vectors, documents=texts)
        each.append(perf_counter() - began)
        if number % 10 == 9:
            say(f"  {(number + 1) * BATCH:,} added, {BATCH / np.mean(each[-10:]):,.0f} a second")
    began = perf_counter()
    collection.query(query_embeddings=[batch_of(0)[1][0]], n_results=DEPTH, include=["distances"])
    return each, perf_counter() - began


def connected(order: dict[str, Any]) -> dict[str, float]:
    """`connect` of the server's collection."""
    workspace = Path(order["workspace"])
    began, worked = perf_counter(), process_time()
    done = connect(
        ForeignPlace(url=f"http://127.0.0.1:{order['port']}", allow_private=True),
        NAME,
        NAME,
        workspace,
        PreparedEmbedder.name,
    )
    taken, own = perf_counter() - began, process_time() - worked
    if done.chunks != order["chunks"]:
        raise SystemExit(f"{done.chunks} chunks were mirrored, expected {order['chunks']}")
    return {"seconds": taken, "processor": own, "disk": size_of(workspace / "collections")}


def captured(order: dict[str, Any]) -> dict[str, float]:
    """`capture` of all queries, exact from the mirror or through the server's own graph."""
    workspace = Path(order["workspace"])
    vectors = questions(order["chunks"], order["queries"])
    began = perf_counter()
    if order["exact"]:
        index: Any = open_index(workspace, NAME, PreparedEmbedder(vectors))
    else:
        index = CallableIndex(server_search(order["port"], vectors), "scale:search")
    opened = perf_counter() - began
    cases = [Case(Query(str(number), text)) for number, text in enumerate(vectors)]
    mark = capture_fingerprint(index, DEPTH, cases)
    began, worked = perf_counter(), process_time()
    capture_to_file(cases, source_of(index, DEPTH), Path(order["out"]), mark)
    taken, own = perf_counter() - began, process_time() - worked
    each = {"milliseconds": taken / len(cases) * 1000, "processor ms": own / len(cases) * 1000}
    return {"opened": opened, "seconds": taken, **each}


def server_search(port: int, vectors: dict[str, Vectors]) -> Any:
    """A source function: (text, depth) → what the server's graph finds."""
    collection = client_of(port).get_collection(NAME, embedding_function=None)

    def search(text: str, depth: int) -> dict[str, Any]:
        asked = {"query_embeddings": [vectors[text]], "n_results": depth}
        answer = collection.query(**asked, include=["documents", "distances"])
        columns = zip(answer["ids"][0], answer["documents"][0], answer["distances"][0], strict=True)
        listed = [{"id": one, "text": text, "distance": max(0.0, distance)} for one, text, distance in columns]
        return {"candidates": listed, "metric": "cosine"}

    return search


def shared(exact: Path, graph: Path) -> float:
    """The mean share of the exact lists that the other lists hold."""
    shares = []
    with exact.open(encoding="utf-8") as one, graph.open(encoding="utf-8") as other:
        for pair in zip(one, other, strict=True):
            ids = [{entry["id"] for entry in json.loads(line)["candidates"]} for line in pair]
            shares.append(len(ids[0] & ids[1]) / len(ids[0]))
    return float(np.mean(shares))


def apart(part: str, order: dict[str, Any]) -> dict[str, float]:
    """A part in a process of its own, with its peak memory in gigabytes."""
    command = [sys.executable, "-m", "benchmarks.scale", "--part", part, "--order", json.dumps(order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{part} ended with exit code {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def measured(server: Server, chunks: int, queries: int, folder: Path) -> dict[str, float]:
    """Connecting and both captures at the collection's present size."""
    workspace = folder / "workspace"
    order = {"workspace": str(workspace), "port": server.port, "chunks": chunks, "queries": queries}
    lists = {exact: folder / f"lists-{exact}.jsonl" for exact in (True, False)}
    began = server.facts()["processor"]
    found = {f"connect {name}": value for name, value in apart("connected", order).items()}
    found["connect server processor"] = server.facts()["processor"] - began
    say(f"  connected in {found['connect seconds']:,.0f} s")
    for exact, what in ((True, "exact"), (False, "graph")):
        began = server.facts()["processor"]
        facts = apart("captured", order | {"exact": exact, "out": str(lists[exact])})
        found |= {f"{what} {name}": value for name, value in facts.items()}
        found[f"{what} server ms"] = (server.facts()["processor"] - began) / queries * 1000
        say(f"  {queries:,} queries captured ({what}) in {facts['seconds']:,.0f} s")
    found["lists shared"] = shared(lists[True], lists[False])
    shutil.rmtree(workspace)
    return found


def run(sizes: list[int], queries: list[int], folder: Path) -> list[dict[str, float]]:
    """One row per size."""
    rows: list[dict[str, float]] = []
    added = adding = 0.0
    with serving(folder / "server") as server:
        client = client_of(server.port)
        collection = client.create_collection(NAME, configuration=SPACE, embedding_function=None)
        for chunks, asked in zip(sizes, queries, strict=True):
            before = server.facts()["processor"]
            each, caught = fill(collection, int(rows[-1]["chunks"]) if rows else 0, chunks)
            facts = server.facts()
            adding += sum(each) + caught
            added += facts["processor"] - before
            row: dict[str, float] = {"chunks": chunks, "queries": asked, "add seconds": adding, "add processor": added}
            row |= {"last batch": each[-1], "catching up": caught}
            row |= {f"server {name}": facts[name] for name in ("memory", "peak", "disk")}
            rows.append(row | measured(server, chunks, asked, folder))
            say(json.dumps(rows[-1]))
    return rows


def say(text: str) -> None:
    """How far it is, on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, nargs="+", default=[25_000, 100_000, 250_000])
    parser.add_argument("--queries", type=int, nargs="+", default=[1000, 1000, 5000], help="of each size; or one")
    parser.add_argument("--towards", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", choices=["connected", "captured"], help=argparse.SUPPRESS)
    parser.add_argument("--order", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        found = {"connected": connected, "captured": captured}[chosen.part](json.loads(chosen.order))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGA
        print(json.dumps(found | {"peak": peak}))
        return
    if any(size % BATCH or size <= 0 for size in chosen.chunks):
        parser.error(f"--chunks are to be multiples of {BATCH:,}")
    queries = chosen.queries * (len(chosen.chunks) if len(chosen.queries) == 1 else 1)
    if len(queries) != len(chosen.chunks):
        parser.error("--queries takes one number, or one for each size")
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        rows = run(sorted(chosen.chunks), queries, Path(folder))
    print(json.dumps(rows) if chosen.json else "\n".join(table(rows, chosen.towards)))


if __name__ == "__main__":
    main()
