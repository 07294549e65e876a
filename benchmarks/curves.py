"""How the main operations grow: processor time at three sizes, the exponent fitted to it, and theory's beside it.

    python -m benchmarks.curves [--rounds 5] [--write]

Sizes grow threefold, and all operations and sizes are run in turn, round by round; a figure is the median processor
time of this process, threads included. The exponent is the slope of a line through log time over log size; theory's is
that of its law between the same two ends, so that n log n is a little over 1. The goal is theory's and .15 more. Lists
are synthetic, 50 candidates each; vectors are drawn, 384 wide; texts have 40 words by Zipf's law. `--write` draws
docs/images/curves.svg: the measured points, and theory as a line through the first. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from benchmarks.labels import product
from benchmarks.large import drawn
from benchmarks.parts.pairs import verdict
from benchmarks.parts.prepared import DrawnEmbedder
from benchmarks.peers.cut_loops import Data
from rag_core.compare.compare import side_by_side
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.index.handles import open_index
from rag_core.index.ingest import ingest_chunks
from rag_core.measure.experiment import Outcome, ReportFile, stream
from rag_core.measure.tally import measure_all
from rag_core.records import dump_lists, load_lists
from rag_core.stage import Pipeline
from rag_core.tune.plane import optimum, plane
from rag_core.tune.promise import promise
from rag_core.tune.steps import measure_kept
from rag_core.tune.variants import Captures
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

SLACK = 0.15
DEPTH = 50
LEAST_SECONDS = 0.05  # of work a round, so that the clock's steps do not show
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "curves.svg"
Work = Callable[[], object]
LAWS: dict[str, Callable[[float], float]] = {
    "1": lambda n: 1.0,
    "log n": lambda n: math.log(n),
    "n": lambda n: n,
    "n log n": lambda n: n * math.log(n),
    "n²": lambda n: n * n,
}
CUT = AdaptiveGap(0.05, 0.3, min_results=2, max_results=DEPTH)
PIPELINES = (Pipeline((TopK(k=15),)), Pipeline((CUT,)), Pipeline((CUT, TopK(k=10))))


def cases_of(count: int) -> list[Case]:
    """Questions with their lists and labels."""
    data = Data(count, DEPTH)
    made = []
    for at, (row, flags) in enumerate(zip(data.rows, data.flags, strict=True)):
        query = Query(f"q{at}", f"question {at}")
        hits = [
            Hit(Chunk(f"{at}-{rank}", f"Title {rank}"), rank, {"distance": distance})
            for rank, distance in enumerate(row, 1)
        ]
        grades = {hit.chunk.id: int(flag) for hit, flag in zip(hits, flags, strict=True)}
        start = Candidates(query, tuple(hits), metric=Metric.COSINE, recorded=True)
        made.append(Case(query, grades, start))
    return made


def searched(folder: Path, count: int) -> Work:
    index = _collection(folder, count)
    numbers = iter(range(10**9))
    return lambda: index.reader(f"question {next(numbers) % 400}").read(0, DEPTH)


def searched_by_words(folder: Path, count: int) -> Work:
    index = _collection(folder, count)
    texts = [" ".join(chunk.text.split()[2:10]) for chunk in index.snapshot.chunks[:100]]
    numbers = iter(range(10**9))
    return lambda: index.lexical_reader(texts[next(numbers) % 100]).read(0, DEPTH)


def opened(folder: Path, count: int) -> Work:
    _collection(folder, count)
    return lambda: open_index(folder, f"c{count}", DrawnEmbedder()).scan


def ingested(folder: Path, count: int) -> Work:
    chunks = list(drawn(count))
    return lambda: ingest_chunks(chunks, f"new{count}", folder, DrawnEmbedder(), force=True)


def _collection(folder: Path, count: int):
    name = f"c{count}"
    if not (folder / "collections" / name).is_dir():
        ingest_chunks(drawn(count), name, folder, DrawnEmbedder())
    return open_index(folder, name, DrawnEmbedder())


def evaluated(_: Path, count: int) -> Work:
    cases = cases_of(count)
    return lambda: measure_all(cases, PIPELINES[1:2])


def compared(_: Path, count: int) -> Work:
    cases = cases_of(count)
    return lambda: side_by_side(measure_kept(Captures(cases, 1), PIPELINES)).to_text()


def found_best(_: Path, count: int) -> Work:
    lists = Data(count, DEPTH).lists()
    return lambda: optimum(lists, max_results=DEPTH)


def swept(_: Path, count: int) -> Work:
    lists = Data(count, DEPTH).lists()
    thresholds, offsets = np.linspace(0.005, 0.2, 40), np.linspace(0.02, 0.5, 25)
    return lambda: plane(lists, thresholds, offsets, max_results=DEPTH)


def promised(_: Path, count: int) -> Work:
    cases = cases_of(count)
    return lambda: promise(cases, (), "distance_offset", 0.1)


def replayed(_: Path, count: int) -> Work:
    content = "".join(f"{line}\n" for line in dump_lists(cases_of(count))).encode()

    def work() -> object:
        report = ReportFile("cut", PIPELINES[1], 1, Outcome.json_text)
        for (outcome,) in stream(load_lists(content), PIPELINES[1:2]):
            report.add(outcome)
        return [json.dumps(report.summary.to_json()), *report.lines()]

    return work


def labelled(folder: Path, count: int) -> Work:
    (folder / f"labels{count}").mkdir()
    give, numbers = product(folder / f"labels{count}", count), iter(range(10**9))
    return lambda: give(next(numbers))


@dataclass(frozen=True)
class Operation:
    """What is measured: how it is made ready at a size, what the size counts, and the law it should follow."""

    ready: Callable[[Path, int], Work]
    counts: str
    smallest: int
    law: str

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Three sizes, each three times the one before."""
        return self.smallest, 3 * self.smallest, 9 * self.smallest


OPERATIONS = {
    "exact search": Operation(searched, "chunks", 10_000, "n"),
    "word search": Operation(searched_by_words, "chunks", 10_000, "n"),
    "open a collection": Operation(opened, "chunks", 10_000, "n"),
    "ingest": Operation(ingested, "chunks", 1_000, "n log n"),
    "evaluate": Operation(evaluated, "questions", 200, "n"),
    "compare three": Operation(compared, "questions", 200, "n"),
    "sweep": Operation(swept, "questions", 500, "n log n"),
    "optimum": Operation(found_best, "questions", 1_000, "n²"),
    "promised recall": Operation(promised, "questions", 200, "n log n"),
    "replay --json": Operation(replayed, "questions", 100, "n"),
    "a label": Operation(labelled, "labels held", 1_000, "log n"),
}


def seconds_of(work: Work) -> float:
    """Processor seconds of one call, from as many as make enough."""
    calls, began = 0, process_time()
    while not calls or process_time() - began < LEAST_SECONDS:
        work()
        calls += 1
    return (process_time() - began) / calls


def slope(sizes: list[int], seconds: list[float]) -> float:
    """The exponent: of a line through log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measured(rounds: int) -> dict[str, list[float]]:
    """Operation → median seconds at its three sizes."""
    with tempfile.TemporaryDirectory() as folder:
        works = {
            (name, size): operation.ready(Path(folder), size)
            for name, operation in OPERATIONS.items()
            for size in operation.sizes
        }
        gc.collect()
        gc.freeze()  # what one operation holds ready is not walked through while another is timed
        taken: dict[tuple[str, int], list[float]] = {key: [] for key in works}
        for number in range(rounds + 1):
            for key, work in works.items():
                found = seconds_of(work)
                if number:  # the first round warms up
                    taken[key].append(found)
    return {name: [median(taken[name, size]) for size in operation.sizes] for name, operation in OPERATIONS.items()}


WIDE, HIGH, EDGE, ACROSS = 210, 150, 34, 4
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #333 } .name { font-weight: 600 } .small { font-size: 9px; fill: #666 }
.frame { fill: none; stroke: #bbb } .theory { stroke: #888; fill: none; stroke-dasharray: 4 3 } .dot { fill: #0072b2 }
.own { stroke: #0072b2; fill: none; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .small { fill: #aaa } .frame { stroke: #555 } .theory { stroke: #999 } .dot { fill: #56b4e9 }
  .own { stroke: #56b4e9 }
}
"""


def drawing(seconds: dict[str, list[float]]) -> str:
    """One small log-log chart an operation: points, and theory as a dashed line through the first."""
    panels = [panel(name, seconds[name], *divmod(at, ACROSS)) for at, name in enumerate(seconds)]
    size = f"{WIDE * ACROSS} {HIGH * math.ceil(len(panels) / ACROSS)}"
    title = "Processor time over size, both logarithmic: measured (dots) and theory (dashed)"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-label="{title}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *panels, "</svg>\n"])


def panel(name: str, seconds: list[float], row: int, column: int) -> str:
    """The chart of one operation."""
    operation = OPERATIONS[name]
    sizes, law = operation.sizes, LAWS[operation.law]
    theory = [seconds[0] * law(size) / law(sizes[0]) for size in sizes]
    low = math.floor(math.log10(min(seconds + theory)) - 0.1)
    high = math.ceil(math.log10(max(seconds + theory)) + 0.3)
    inner, tall = WIDE - EDGE - 12, HIGH - 56

    def place(at: int, value: float) -> str:
        return f"{EDGE + 8 + at * (inner - 16) / 2:.1f},{22 + tall * (high - math.log10(value)) / (high - low):.1f}"

    dots = [place(at, value).split(",") for at, value in enumerate(seconds)]
    lines = [
        f'<g transform="translate({column * WIDE},{row * HIGH})">',
        f'<text class="name" x="{EDGE}" y="14">{escape(name)}</text>',
        f'<text class="small" x="{EDGE + 6}" y="36">n^{slope(list(sizes), seconds):.2f}, theory {operation.law}</text>',
        f'<rect class="frame" x="{EDGE}" y="22" width="{inner}" height="{tall}"/>',
        f'<polyline class="theory" points="{" ".join(place(at, value) for at, value in enumerate(theory))}"/>',
        f'<polyline class="own" points="{" ".join(place(at, value) for at, value in enumerate(seconds))}"/>',
        *(f'<circle class="dot" cx="{x}" cy="{y}" r="3"/>' for x, y in dots),
        *(
            f'<text class="small" x="{EDGE - 3}" y="{y}" text-anchor="end">{time_said(10.0**power)}</text>'
            for power, y in ((high, 30), (low, 22 + tall))
        ),
        *(
            f'<text class="small" x="{x}" y="{22 + tall + 12}" text-anchor="middle">{size:,}</text>'
            for size, (x, _) in zip(sizes, dots, strict=True)
        ),
        f'<text class="small" x="{EDGE + inner / 2}" y="{22 + tall + 23}" text-anchor="middle">'
        f"{operation.counts}</text></g>",
    ]
    return "\n".join(lines)


def time_said(seconds: float) -> str:
    """A power of ten as seconds, milliseconds or microseconds."""
    for unit, worth in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= worth * 0.999:
            return f"{seconds / worth:g} {unit}"
    return f"{seconds * 1e6:g} µs"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="draw the picture of the docs")
    options = parser.parse_args()
    found, missed = measured(options.rounds), False
    for name, seconds in found.items():
        operation = OPERATIONS[name]
        first, last = operation.sizes[0], operation.sizes[-1]
        theory = math.log(LAWS[operation.law](last) / LAWS[operation.law](first)) / math.log(last / first)
        own = slope(list(operation.sizes), seconds)
        missed |= own > theory + SLACK
        columns = "".join(
            f"{size:>9,} {1000 * one:9.2f} ms" for size, one in zip(operation.sizes, seconds, strict=True)
        )
        goal = verdict(own <= theory + SLACK, f"at most {theory + SLACK:.2f}")
        print(f"{name:18}{columns} {operation.counts:12} n^{own:.2f}, theory {operation.law} = n^{theory:.2f}{goal}")
    if options.write:
        PICTURE.write_text(drawing(found), encoding="utf-8")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
