"""The page Compare on very many queries: seconds to each view, and the memory of the server after it.

Run: python -m benchmarks.compare_page [--queries 5000] [--depth 200]

Synthetic recorded lists in a workspace of their own, five shipped pipelines, Chromium. The first visit reads the file,
runs the pipelines and tests every difference; the second, in a fresh browser context, finds all of that kept. A view is
open when its own words stand there and the server says that its script has ended. Seconds are wall-clock on whatever
else the machine does (its load is printed); memory is the server's resident set, now and at most. Exit code 1 where the
most is over the limit.

Limit: 1,000 MB at 5,000 queries × 200 candidates.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from benchmarks.peers.serving import APPS, chromium, served

PATIENCE = 900_000  # ms
MOST = 1_000  # MB
PIPELINES = ["fixed-15", "adaptive-default", "unfiltered", "query-must", "query-must-refill"]
ADDRESS = f"/compare?set=many&pipelines={json.dumps(PIPELINES)}"
VIEWS = {
    "Queries": "1 to 200 of",
    "Slices": "SetF by tag",
    "Heat map": "most different first",
    "Where relevant chunks die": "Each stage",
}
ENDED = "() => document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"


def lists(queries: int, depth: int):
    """Lines of recorded lists: ascending distances with a jump now and then, labels on the first forty."""
    dice = random.Random(1)
    for number in range(queries):
        distance, candidates = 0.2 + 0.1 * dice.random(), []
        for rank in range(depth):
            distance += 0.004 * dice.random() * (10 if dice.random() < 0.03 else 1)
            one = {"id": f"c{dice.randrange(10**6)}x{rank}", "title": f"Chunk {rank}", "distance": round(distance, 4)}
            if rank < 40:
                one["relevant"] = int(dice.random() < 0.5 * 0.9**rank)
            candidates.append(one)
        tags = [f"t{number % 7}"]
        yield json.dumps({"id": f"q{number}", "query": f"question {number}", "tags": tags, "candidates": candidates})


def fill(workspace: Path, queries: int, depth: int) -> None:
    """The eval set on disk."""
    folder = workspace / "eval_sets" / "many"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: many\ntitle: Very many queries\n", encoding="utf-8")
    with (folder / "lists.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lists(queries, depth))


def memory() -> tuple[float, float]:
    """MB of the server, now and at most."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    server = next(pid for pid in children if b"streamlit" in Path(f"/proc/{pid}/cmdline").read_bytes())
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{server}/status").read_text().splitlines())
    now, most = (int(lines[name].split()[0]) / 1000 for name in ("VmRSS", "VmHWM"))
    return now, max(now, most)


def told(what: str, began: float) -> float:
    """Print one row; the most memory."""
    seconds = time.perf_counter() - began
    now, most = memory()
    print(f"{what:28s} {seconds:7.1f} s   {now:6.0f} MB now, {most:6.0f} at most   load {os.getloadavg()[0]:.1f}")
    return most


def shown(page, words: str) -> None:
    """Wait until these words stand on the page and its script has ended."""
    page.get_by_text(words).first.wait_for()
    page.wait_for_function(ENDED)


def visit(browser, url: str, what: str):
    """Open the page by its address in a context of its own."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    began = time.perf_counter()
    page.goto(url + ADDRESS)
    shown(page, "Differences to")
    told(what, began)
    return page


def walk(page) -> None:
    """Every view, and the second page of those that have pages."""
    for name, words in VIEWS.items():
        began = time.perf_counter()
        page.get_by_text(name, exact=True).first.click()
        shown(page, words)
        told(name, began)
        if page.get_by_text("1 to 200 of").count():
            began = time.perf_counter()
            page.get_by_test_id("stPagination").get_by_text("chevron_right").click()
            shown(page, "201 to 400 of")
            told(f"{name}, page 2", began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--depth", type=int, default=200)
    options = parser.parse_args()
    print(f"{options.queries} queries × {options.depth} candidates × {len(PIPELINES)} pipelines")
    filled = served(APPS[0], lambda workspace: fill(workspace, options.queries, options.depth))
    with chromium() as browser, filled as (url, _):
        walk(visit(browser, url, "first visit, table"))
        visit(browser, url, "second visit, table")
        most = memory()[1]
    return int(most > MOST)


if __name__ == "__main__":
    sys.exit(main())
