"""Ingest of 10,000 real chunks: the rate, split into embedding and storing; and exact search held to brute force.

    python -m benchmarks.ingest [--chunks 10000]

Reads the collections of a data folder (WINNOW_SHARED, else ../shared; skips without it): Cranfield, code-chunks, a cut
of DBpedia, HotpotQA paragraphs, SRD entries. Embedding is what the embedder takes, counting tokens included; storing is
all the rest: hashes, rows, vectors, fingerprints, the switch. The peer of storing is one SQLite transaction per batch
with nothing but the vectors in it, each waiting for the disk, which ours do together at the end. Then the same chunks
are ingested again, which embeds nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from rag_core.index.embed import BundledEmbedder
from rag_core.index.handles import open_index
from rag_core.index.ingest import ingest_chunks
from rag_core.types import Chunk

DATA = Path(os.environ.get("WINNOW_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
QUESTIONS = 50
DEPTH = 200


def chunks() -> Iterator[Chunk]:
    """All real chunks at hand, in a fixed order."""
    for document in json.loads((DATA / "code-chunks" / "codebase_chunks.json").read_text()):
        for part in document["chunks"]:
            yield Chunk(f"code/{document['original_uuid']}/{part['original_index']}", "", part["content"])
    for number, record in enumerate(
        re.split(r"^\.I ", (DATA / "cranfield" / "cran.all.1400").read_text(), flags=re.M)[1:]
    ):
        title = re.search(r"^\.T\n(.*?)^\.A", record, re.M | re.S)
        text = re.search(r"^\.W\n(.*)", record, re.M | re.S)
        if text and text[1].strip():
            yield Chunk(f"cranfield/{number + 1}", (title[1] if title else "").strip(), text[1].strip())
    for line in (DATA / "beir-dbpedia-5k" / "corpus.jsonl").read_text().split("\n"):
        if line:
            record = json.loads(line)
            yield Chunk(f"dbpedia/{record['_id']}", record["title"], record["text"])
    seen: set[str] = set()
    for question in json.loads((DATA / "hotpotqa-100" / "hotpot_dev_distractor_first100.json").read_text()):
        for title, sentences in zip(question["context"]["title"], question["context"]["sentences"], strict=True):
            if title not in seen:
                seen.add(title)
                yield Chunk(f"hotpot/{title}", title, "".join(sentences))
    for path in sorted((DATA / "dnd5e-srd-2014").glob("*.json")):
        for record in json.loads(path.read_text()):
            text = " ".join(map(str, record.get("desc", []))) or json.dumps(record)[:900]
            yield Chunk(f"srd/{path.stem}/{record['index']}", record.get("name", record["index"]), text)


def bare_store(vectors: np.ndarray, folder: Path, batch: int) -> float:
    """Seconds to write the vectors alone, a transaction per batch."""
    connection = sqlite3.connect(folder / "peer.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE vector (id INTEGER PRIMARY KEY, value BLOB)")
    started = perf_counter()
    for start in range(0, len(vectors), batch):
        rows = [(start + row, vector.tobytes()) for row, vector in enumerate(vectors[start : start + batch])]
        with connection:
            connection.executemany("INSERT INTO vector VALUES (?, ?)", rows)
    return perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=10_000)
    options = parser.parse_args()
    wanted = options.chunks
    if not DATA.is_dir():
        print(f"skipped: {DATA} is not there; set WINNOW_SHARED to the folder that holds data/")
        return
    listed = list(islice(chunks(), wanted))
    embedder = BundledEmbedder()
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name)
        used = process_time()
        report = ingest_chunks(listed, "real", workspace, embedder)
        used = process_time() - used
        rate = report.chunks / report.seconds_embedding
        print(f"{report.chunks:,} real chunks, {len(report.too_long):,} longer than the window")
        each = 1000 * used / report.chunks
        print(f"embedding {report.seconds_embedding:.0f} s ({rate:.0f}/s, {each:.0f} CPU-ms a chunk)")
        index = open_index(workspace, "real", embedder)
        peer = bare_store(index.snapshot.vectors, workspace, embedder.batch)
        share = report.seconds_storing / peer
        stored = report.chunks / report.seconds_storing
        print(f"storing   {report.seconds_storing:.1f} s ({stored:.0f}/s), {share:.1f}x bare SQLite")
        again = ingest_chunks(listed, "real", workspace, embedder)
        print(f"again: {again.embedded} embedded, {again.seconds_embedding + again.seconds_storing:.1f} s")
        questions = [chunk.text[:200] for chunk in listed[:: max(1, len(listed) // QUESTIONS)]][:QUESTIONS]
        exact = index.snapshot.vectors.astype(np.float64)
        found = 0
        for text in questions:
            best = np.argsort(-(exact @ embedder.embed([text])[0].astype(np.float64)), kind="stable")[:DEPTH]
            truth = {index.snapshot.chunks[row].id for row in best}
            found += len(truth & {hit.chunk.id for hit in index.reader(text).read(0, DEPTH)})
        recall = found / (min(DEPTH, len(listed)) * len(questions))
        print(f"recall@{DEPTH} of exact search over {len(questions)} questions: {recall:.4f}")


if __name__ == "__main__":
    main()
