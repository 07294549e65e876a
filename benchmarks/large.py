"""A million chunks through the product: ingest of stored vectors, exact answers, one page; processor time and memory.

    python -m benchmarks.large [--chunks 1000000] [--folder FOLDER] [--short]

Each step runs in a process of its own, and its peak memory and processor seconds are that process's. *Ingest*: chunks
of 40 words, by Zipf's law out of 50,000, come from a generator and their unit vectors (384 dimensions, in clusters of
50) from a file, through `ingest_chunks`, into a collection of its own. *Answers*: the collection is opened and asked
100 questions, 50 deep; then again by words. *Plain NumPy*: the same questions as one float64 product with all vectors,
block by block; the ids have to be the same in the same order and the distances within 1e-12, or the run ends with exit
code 1. *Page*: the product's server on a project over that collection; Chromium opens Data, and goes on to another page
of chunks. `--short` takes 20,000.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.parts.pairs import verdict
from benchmarks.peers.serving import APPS, chromium, serving
from benchmarks.scale import BATCH, DIMENSION, batch_of, questions
from rag_core.index.embed import BundledEmbedder, Vectors
from rag_core.types import Chunk, Query

NAME, QUESTIONS, DEPTH = "large", 100, 50
LENGTH, WORDS = 40, 50_000
SAME = "lists as plain NumPy has them"
STEPS = ("draw", "ingest", "answers", "plain")
MEGA = 1e6
ON_BENCH = 20  # questions
NARROWED = """
(all) => [...document.body.innerText.matchAll(/50 of ([\\d,]+) chunks/g)].some(([, number]) => number !== all)
"""


class StoredVectors:
    """Vectors from a file by the chunk's number; those of the questions from another."""

    name, dimension, window, batch = BundledEmbedder.name, DIMENSION, BundledEmbedder.window, BATCH

    def __init__(self, folder: Path) -> None:
        self._file = folder / "vectors.npy"
        self._questions = np.load(folder / "questions.npy")

    def embed(self, texts, progress=None) -> Vectors:
        """The stored vectors of the texts."""
        rows = [int(text.split(":")[0].split()[1]) for text in texts]
        if texts[0].startswith("question"):
            return self._questions[rows]
        return np.load(self._file, mmap_mode="r")[rows]  # opened anew: what was read of a mapped file counts as memory

    def count_tokens(self, texts) -> list[int]:
        """Their words."""
        return [len(text.split()) for text in texts]


def drawn(count: int) -> Iterator[Chunk]:
    """The chunks, one after the other."""
    weights = 1 / np.arange(1, WORDS + 1)
    names = np.array([f"w{number}" for number in range(WORDS)])
    for start in range(0, count, BATCH):
        dice = np.random.default_rng([13, start])
        rows = dice.choice(WORDS, size=(min(BATCH, count - start), LENGTH), p=weights / weights.sum())
        for row, words in enumerate(names[rows], start):
            yield Chunk(f"c{row:08d}", f"Chunk {row}", f"Chunk {row}: {' '.join(words)}")


def draw(folder: Path, count: int) -> dict[str, float]:
    """The files of vectors."""
    shape = (count, DIMENSION)
    held = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=shape)
    for start in range(0, count, BATCH):
        held[start : start + BATCH] = batch_of(start // BATCH)[1]
    held.flush()
    np.save(folder / "questions.npy", np.stack(list(questions(count, QUESTIONS).values())))
    return {}


def ingest(folder: Path, count: int) -> dict[str, float]:
    """All chunks into a collection."""
    from rag_core.index.ingest import ingest_chunks

    report = ingest_chunks(drawn(count), NAME, folder / "workspace", StoredVectors(folder))
    if report.chunks != count:
        raise SystemExit(f"{report.chunks:,} chunks are in the collection, expected {count:,}")
    disk = sum(path.stat().st_size for path in (folder / "workspace").rglob("*") if path.is_file())
    return {"disk, MB": disk / MEGA}


def answers(folder: Path, count: int) -> dict[str, float]:
    """Opened, then asked by meaning and by words."""
    from rag_core.index.handles import open_index

    def taken(what: str) -> None:
        nonlocal before
        figures[what] = process_time() - before
        before = process_time()

    before, figures = process_time(), dict[str, float]()
    index = open_index(folder / "workspace", NAME, StoredVectors(folder))
    taken("opened, CPU s")
    texts = [f"question {number}" for number in range(QUESTIONS)]
    found = [index.reader(texts[0]).read(0, DEPTH)]
    taken("first question, CPU s")
    found += [index.reader(text).read(0, DEPTH) for text in texts[1:]]
    taken("the other 99, CPU s")
    figures["peak before words, MB"] = peak()
    words = [chunk.text.partition(": ")[2] for chunk in index.snapshot.chunks[:: max(1, count // QUESTIONS)]]
    asked = [" ".join(text.split()[:8]) for text in words[:QUESTIONS]]
    assert index.lexical_reader(asked[0]).read(0, DEPTH)
    taken("first by words, CPU s")
    assert all(index.lexical_reader(text).read(0, DEPTH) for text in asked[1:])
    taken("the other 99 by words, CPU s")
    lists = [[(hit.chunk.id, hit.distance) for hit in hits] for hits in found]
    (folder / "found.json").write_text(json.dumps(lists))
    return figures


def plain(folder: Path, count: int) -> dict[str, float]:
    """The same questions by a product in float64, and the answers held to it."""
    wanted = np.load(folder / "questions.npy").astype(np.float64)
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    near = np.full((QUESTIONS, 0), 0.0)
    rows = np.zeros((QUESTIONS, 0), dtype=np.int64)
    for start in range(0, count, BATCH):
        some = 1.0 - wanted @ vectors[start : start + BATCH].astype(np.float64).T
        near = np.concatenate([near, some], axis=1)
        rows = np.concatenate([rows, np.broadcast_to(np.arange(start, start + some.shape[1]), some.shape)], axis=1)
        order = np.argsort(near, axis=1, kind="stable")[:, :DEPTH]
        near, rows = np.take_along_axis(near, order, axis=1), np.take_along_axis(rows, order, axis=1)
    said = json.loads((folder / "found.json").read_text())
    same = [[f"c{row:08d}" for row in line] == [one for one, _ in hits] for line, hits in zip(rows, said, strict=True)]
    off = float(np.abs(np.array([[distance for _, distance in hits] for hits in said]) - near).max())
    if not all(same) or off > 1e-12:
        raise SystemExit(f"{same.count(False)} of {QUESTIONS} lists differ from plain NumPy's, distances by {off:.1e}")
    return {SAME: same.count(True), "distances off by at most": off}


def page(folder: Path, count: int) -> dict[str, float]:
    """Data and Bench: seconds until the table or the rows stand there, and the server's processor and memory."""
    from rag_core.project.project import COLLECTION, ProjectSource, add_questions, init_project

    project = init_project(folder / "workspace", NAME, ProjectSource(COLLECTION, NAME))
    asked = {row: Query(f"q{row}", f"Which chunk is number {row}?") for row in range(ON_BENCH)}
    add_questions(project, asked.values(), {query.id: {f"c{row:08d}": 1} for row, query in asked.items()})
    as_started = [part.replace("app.py", "asgi.py") for part in APPS[0].command]
    figures: dict[str, float] = {}
    with serving(replace(APPS[0], command=as_started), folder / "workspace") as (url, _, server), chromium() as browser:
        shown = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        shown.set_default_timeout(900_000)

        def told(what: str, began: float, used: float) -> None:
            figures[f"{what}, s"] = perf_counter() - began
            figures[f"{what}, server's CPU s"] = used_by(server.pid) - used
            figures[f"{what}, server's peak MB"] = peak(server.pid)

        for what in ("Data, first visit", "Data, again"):
            began, used = perf_counter(), used_by(server.pid)
            shown.goto(f"{url}/data?project={NAME}")
            shown.get_by_text("–50 of ").first.wait_for()
            told(what, began, used)
        began, used = perf_counter(), used_by(server.pid)
        shown.get_by_label("Holds").fill("w77")
        shown.get_by_label("Holds").press("Enter")
        shown.wait_for_function(NARROWED, arg=f"{count:,}")
        told("Data, narrowed by a word", began, used)
        began, used = perf_counter(), used_by(server.pid)
        shown.goto(f"{url}/?project={NAME}")
        shown.locator(".bench .row").first.wait_for()
        told("Bench, first visit", began, used)
    return figures


def peak(process: int | str = "self") -> float:
    """Peak memory of a process in MB (Linux)."""
    (line,) = [line for line in Path(f"/proc/{process}/status").read_text().split("\n") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / MEGA


def used_by(process: int) -> float:
    """Processor seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def apart(step: str, folder: Path, count: int) -> dict[str, float]:
    """A step in a process of its own, with its time and its peak."""
    code = f"from benchmarks.large import run; run({step!r}, {str(folder)!r}, {count})"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{step} ended with exit code {done.returncode}")
    return json.loads(done.stdout)


def run(step: str, folder: str, count: int) -> None:
    """A step, in the process it is measured in."""
    began = perf_counter()
    figures: dict[str, Any] = {"draw": draw, "ingest": ingest, "answers": answers, "plain": plain}[step](
        Path(folder), count
    )
    whole = {"s": perf_counter() - began, "CPU s": process_time(), "peak MB": peak()}
    print(json.dumps(whole | figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the files are made; they are deleted afterwards")
    options = parser.parse_args()
    count = 20_000 if options.short else options.chunks
    if count % BATCH or count <= 0:
        parser.error(f"--chunks is to be a multiple of {BATCH:,}")
    print(f"{count:,} chunks × {DIMENSION}, {QUESTIONS} questions, {DEPTH} deep")
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        for step in (*STEPS, "page"):
            figures = page(folder, count) if step == "page" else apart(step, folder, count)
            for name, value in figures.items():
                shown = f"{value:12,.3g}" if value < 100 else f"{value:12,.0f}"
                goal = verdict(value == QUESTIONS, f"all {QUESTIONS}") if name == SAME else ""
                print(f"{step:8} {name:40} {shown}{goal}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
