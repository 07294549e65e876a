"""The short mode of every benchmark that has a goal, one after the other, and their goals as the table in the docs.

Run: python -m benchmarks [NAME ...] [--write]

Each runs in a process of its own, prints as it goes, and is stopped after two minutes. A line that ends in a goal is a
row of the table; `--write` puts the table into docs/performance.md. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import perf_counter

SHORT = {
    "sweep": "--rounds 1",
    "steps": "--rounds 1",
    "query_must": "--rules 100000 --chunks 1000 --rounds 3",
    "entities": "--items 2400 --rounds 3",
    "lexical": "--sizes 1000 --rounds 5",
    "retrieval": "--sizes 10000 --rounds 3",
    "labels": "--labels 300",
    "curves": "--rounds 3",
    "large": "--short",
    "evaluating": "--rounds 1",
    "llm_targets": "--queries 24",  # 61 calls: with 36, four waves and a half of eight, .9 cannot be passed
}
LONGEST = 120
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
TABLE = "<!-- written by `make bench-short` -->\n"
Row = tuple[str, str, str, str]


def rows_of(name: str) -> list[Row]:
    """(benchmark, what was measured, goal, reached) of every line with a goal; the lines are shown as they come."""
    command = ["timeout", str(LONGEST), sys.executable, "-u", "-m", f"benchmarks.{name}", *SHORT[name].split()]
    rows, began = [], perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            said, found, goal = line.strip().rpartition("  goal ")
            if found:
                rows.append((name, " ".join(said.split()), *goal.rsplit(" ", 1)))
    print(f"== {name}: {perf_counter() - began:.0f} s, exit code {process.returncode}", flush=True)
    return rows or [(name, f"ended with exit code {process.returncode}", "-", "MISSED")]


def table(rows: list[Row]) -> str:
    """The rows as Markdown, with how busy the machine was."""
    load = f"{os.getloadavg()[2]:.1f} on {os.cpu_count()} cores"
    head = f"One run, {date.today()}; load of its last quarter of an hour: {load}.\n\n| benchmark | measured | goal | |"
    lines = [f"| `{name}` | {said.replace('|', '/')} | {goal} | {reached} |" for name, said, goal, reached in rows]
    return "\n".join([head, "| --- | --- | --- | --- |", *lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SHORT))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SHORT):
        parser.error(f"no short mode of {', '.join(sorted(unknown))}, expected {', '.join(SHORT)}")
    rows = [row for name in options.names or SHORT for row in rows_of(name)]
    text = table(rows)
    print(text)
    if options.write:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(TABLE)[0] + TABLE + text, encoding="utf-8")
    return int(any(reached == "MISSED" for *_, reached in rows))


if __name__ == "__main__":
    sys.exit(main())
