"""`evaluate` on recorded lists beside the array work in it: processor time of every layer, in one process and one run.

    python -m benchmarks.evaluating [--questions 10000] [--rounds 3]

10,000 questions × 50 candidates through one adaptive cut. *Arrays*: the engine's own functions (`View`) on arrays that
are in memory: where every list ends, then precision, recall, F and number kept of each question. *Figures*: the same
from lists in memory through `figures_of`, as a page asks; *records*: `measure_kept`, which `compare` and `tune` stand
on, a record of ids and figures a question; *outcomes*: every list with its trace and eight measures, as `evaluate`
runs it; *read*: the file of lists. *The command*: `evaluate`, whole, in a process of its own, less what starting
`winnow --help` takes. Layers are run in turn; figures are medians. The goal was set for the command.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from benchmarks.curves import CUT, DEPTH, cases_of
from benchmarks.parts.pairs import verdict
from rag_core.measure.experiment import stream
from rag_core.records import dump_lists, load_lists
from rag_core.spec import dump_stages
from rag_core.stage import Pipeline
from rag_core.tune.arrays import View
from rag_core.tune.steps import figures_of, measure_kept
from rag_core.tune.variants import Captures

MOST = 2.0
ARRAYS, FIGURES, COMMAND = "arrays", "figures", "the command"
SET = "lists"


def written(workspace: Path, count: int) -> Path:
    """An eval set of recorded lists; its file."""
    folder = workspace / "eval_sets" / SET
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {SET}\ntitle: Lists\nmin_grade: 1\n")
    file = folder / "lists.jsonl"
    file.write_text("".join(f"{line}\n" for line in dump_lists(cases_of(count))))
    return file


def layers(file: Path) -> dict[str, Callable[[], object]]:
    """Every layer as work of this process."""
    pipeline, cases = Pipeline((CUT,)), load_lists(file)
    captures = Captures(cases, 1)
    lists = captures.after(()).lists
    thresholds, offsets = np.array([CUT.gap_threshold]), np.array([CUT.distance_offset])

    def arrays() -> object:
        view = View(lists, CUT.min_results, CUT.max_results, CUT.gap_policy)
        return list(view.worths(view.kept(thresholds, offsets), (0, 1, 2, 3)))

    return {
        ARRAYS: arrays,
        FIGURES: lambda: figures_of(captures, pipeline),
        "records": lambda: measure_kept(captures, [pipeline]),
        "outcomes": lambda: sum(1 for _ in stream(cases, [pipeline])),
        "read": lambda: load_lists(file),
    }


def command(*arguments: str) -> float:
    """Processor seconds of a command."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "rag_core", *arguments], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of one call, of as many as take a twentieth of one."""
    calls, began = 0, process_time()
    while not calls or process_time() - began < 0.05:
        work()
        calls += 1
    return (process_time() - began) / calls


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = written(Path(folder), options.questions)
        works = layers(file)
        gc.collect()
        gc.freeze()
        spec = json.dumps(dump_stages(Pipeline((CUT,))))
        evaluate = ("evaluate", "--project", SET, "-p", spec, "--workspace", folder)
        for number in range(options.rounds + 1):
            row = {name: seconds_of(work) for name, work in works.items()}
            row[COMMAND] = command(*evaluate) - command("--help")
            for name, seconds in row.items() if number else ():  # the first round warms up
                taken.setdefault(name, []).append(seconds)
    print(f"{options.questions:,} questions × {DEPTH}, {CUT.name}")
    missed = False
    for name, seconds in taken.items():
        ratio = median(one / floor for one, floor in zip(seconds, taken[ARRAYS], strict=True))
        said = verdict(ratio <= MOST, f"at most {MOST:g}×") if name in (FIGURES, COMMAND) else ""
        missed |= "MISSED" in said
        print(f"{name:12} {1000 * median(seconds):10,.2f} ms {ratio:10,.1f}× the array work{said}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
