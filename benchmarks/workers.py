"""Two Dask workers against one process: a capture, and evaluations of recorded lists and of searches.

    python -m benchmarks.workers [--questions 5000 10000] [--rounds 1] [--json]

The commands run as a person types them, each in a process of its own: once alone, once with --engine on a scheduler
and two workers of one thread on this machine, in alternation. Printed are wall-clock seconds of both and their ratio,
whether the output is the same (the bytes of a capture, the figures of an evaluation but for times), and the processor
time and peak memory of the command itself. Two workers need two idle cores: the machine's load stands beside.

Data: questions made of the demo's questions with a number behind each, on the demo's rulebook; recorded lists of 50 of
5,000 texts of 100 words, drawn with a seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from rag_core.eval_sets.reading import SHIPPED

DEPTH = 50
CUTS = ({"TopK": {"k": 15}}, "AdaptiveGap")
WORDS = ("owl", "bear", "cleric", "gate", "river", "stone", "lamp", "oak", "iron", "salt", "tower", "mill", "road")
GOAL = 1.6


@dataclass(frozen=True)
class Run:
    """A command's wall-clock seconds, its own processor seconds and peak memory in MB, and what it gave."""

    seconds: float
    processor: float
    memory: float
    output: str


def run(arguments: list[str], out: Path) -> Run:
    """The command in a process of its own; `out` is what it writes, else what it prints."""
    program = [
        sys.executable,
        "-c",
        "import resource, sys\n"
        "from rag_core.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]  # ru_maxrss is the parent's, too\n"
        "sys.stderr.write(f'\\n{used.ru_utime + used.ru_stime} {int(peak) / 1000}')\n"
        "sys.exit(code)",
    ]
    printed = out.with_name("printed")
    began = perf_counter()
    with printed.open("wb") as file:
        done = subprocess.run([*program, *arguments], stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    seconds = perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-400:]}")
    processor, memory = map(float, done.stderr.rsplit("\n", 1)[1].split())
    return Run(seconds, processor, memory, digest(out if out.is_file() else printed))


def digest(file: Path) -> str:
    """Of a file's bytes; of a command's JSON without times and counts of looks."""
    if file.suffix == ".jsonl":
        return hashlib.sha256(file.read_bytes()).hexdigest()
    said = without_times(json.loads(file.read_bytes()))
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def without_times(value: Any) -> Any:
    """The value without milliseconds and looks, which differ from run to run."""
    if isinstance(value, dict):
        return {
            name: without_times(one) for name, one in value.items() if name not in ("milliseconds", "looks", "notices")
        }
    return [without_times(one) for one in value] if isinstance(value, list) else value


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A scheduler and two workers of one thread each; their address."""
    from distributed import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place, environment = (
        f"tcp://127.0.0.1:{port}",
        {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SHIPPED.parent)},
    )
    module = [sys.executable, "-m"]
    scheduler = [*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = [*module, "distributed.cli.dask_worker", place, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1"]
    with (folder / "cluster.log").open("w") as log:
        processes = [
            subprocess.Popen([*one, "--no-dashboard"], cwd=folder, stdout=log, stderr=log, env=environment)
            for one in (scheduler, worker, worker)
        ]
        try:
            with Client(place, timeout=60, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=60)
            yield f"dask://127.0.0.1:{port}"
        finally:
            for process in processes:
                process.kill()
                process.wait()


def asked_set(folder: Path, count: int) -> Path:
    """An eval set of that many questions on the demo's rulebook."""
    folder.mkdir(parents=True)
    shipped = [json.loads(line) for line in (SHIPPED / "rulebook" / "queries.jsonl").open()]
    for name in ("meta.yaml", "corpus.jsonl"):
        (folder / name).write_bytes((SHIPPED / "rulebook" / name).read_bytes())
    with (folder / "queries.jsonl").open("w") as file:
        for number in range(count):
            text = f"{shipped[number % len(shipped)]['query']} ({number})"
            file.write(json.dumps({"id": f"q{number}", "query": text}) + "\n")
    grades = [line.split("\t") for line in (SHIPPED / "rulebook" / "qrels.tsv").read_text().splitlines()[1:]]
    numbers = {one["id"]: number for number, one in enumerate(shipped)}
    with (folder / "qrels.tsv").open("w") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for id_, chunk, grade in grades:
            file.writelines(f"q{n}\t{chunk}\t{grade}\n" for n in range(numbers[id_], count, len(shipped)))
    return folder


def recorded_set(folder: Path, count: int) -> Path:
    """An eval set of that many recorded lists."""
    folder.mkdir(parents=True)
    dice = random.Random(1)
    texts = [" ".join(dice.choices(WORDS, k=100)) for _ in range(5000)]
    (folder / "meta.yaml").write_text("version: 1\nname: recorded\ntitle: Recorded\nmin_grade: 1\n")
    with (folder / "lists.jsonl").open("w") as file:
        for number in range(count):
            distances = sorted(round(dice.gammavariate(8, 0.08), 4) for _ in range(DEPTH))
            candidates = [
                {
                    "id": f"c{chunk}",
                    "text": texts[chunk],
                    "distance": distance,
                    "relevant": int(dice.random() < 0.5 / (1 + place / 3)),
                }
                for place, (chunk, distance) in enumerate(zip(dice.sample(range(5000), DEPTH), distances, strict=True))
            ]
            file.write(json.dumps({"id": f"q{number}", "query": f"question {number}", "candidates": candidates}) + "\n")
    return folder


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--questions", type=int, nargs=2, default=[5000, 10000], help="of the capture, evaluations")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    captured, evaluated = given.questions
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        workspace, out = place / "workspace", place / "lists.jsonl"
        few, many = (asked_set(place / name, count) for name, count in (("few", captured), ("many", evaluated)))
        lists = recorded_set(place / "recorded", evaluated)
        common = ["--workspace", str(workspace), "--json"]
        live = ["--collection", "rulebook", "--split", "all"]
        recorded = [json.dumps([cut]) for cut in CUTS]
        searched = [json.dumps([{"Dense": {"depth": DEPTH}}, cut]) for cut in CUTS]
        jobs = {
            f"capture of {captured:,} questions, {DEPTH} deep": [
                "capture", "--eval-set", str(few), "--depth", str(DEPTH), "--out", str(out),
            ],
            f"evaluate {evaluated:,} × {DEPTH} × 2, searched": [
                "evaluate", "--eval-set", str(many), *live, "-p", searched[0], "-p", searched[1],
            ],
            f"evaluate {evaluated:,} × {DEPTH} × 2, recorded": [
                "evaluate", "--eval-set", str(lists), "-p", recorded[0], "-p", recorded[1],
            ],
        }  # fmt: skip
        run(["query", "a torch", "--collection", "rulebook", *common], out)  # makes the demo's collection
        found = []
        with cluster(place) as address:
            for name, arguments in jobs.items():
                pairs = []
                for _ in range(given.rounds):
                    alone, out_there = run([*arguments, *common], out), None
                    out.unlink(missing_ok=True)
                    out_there = run([*arguments, *common, "--engine", address], out)
                    out.unlink(missing_ok=True)
                    pairs.append((alone, out_there))
                ratio = statistics.median(alone.seconds / there.seconds for alone, there in pairs)
                alone, there = pairs[-1]
                same = all(one.output == other.output for one, other in pairs)
                found.append({"job": name, "ratio": ratio, "same": same} | {"here": vars(alone), "there": vars(there)})
                itself = f"the command itself {there.processor:.1f} s of processor, {there.memory:.0f} MB"
                said = f"{'same' if same else 'OTHER'} output, load {os.getloadavg()[0]:.1f}"
                print(
                    f"{name}: {alone.seconds:.1f} s here, {there.seconds:.1f} s on two workers ({itself}; {said}) "
                    f"{ratio:.2f}×  goal {GOAL}× {'ok' if ratio >= GOAL else 'MISSED'}",
                    flush=True,
                )
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
