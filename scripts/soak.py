"""Four browser sessions label and tune for some minutes while the server's memory and log are watched.

    python scripts/soak.py --minutes 20

Ends with 0 where memory grew by at most 10 % after the first tenth of the time (everything is loaded by then), no error
stands in the server's log and no session got stuck; prints one JSON document. Needs Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TUNING = "/?pipeline=%5B%22QueryMust%22%2C%22AdaptiveGap%22%5D"  # the Bench with both filters on
SESSIONS, GROWTH, STUCK = 4, 0.10, 60_000
ERRORS = ('"level": "error"', "Traceback", "Uncaught")


def memory(process: int) -> int:
    """Resident bytes of a process and of all below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    total, waiting = 0, [process]
    while waiting:
        one = waiting.pop()
        waiting += parents.get(one, [])
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total


def serve(workspace: Path, log: Path, **variables: str) -> tuple[subprocess.Popen[bytes], str]:
    """The server on a free port, answering."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    command = [sys.executable, "-m", "streamlit", "run", "asgi.py", "--server.headless", "true", "--server.port"]
    environment = {**os.environ, "WINNOW_WORKSPACE": str(workspace), **variables}
    process = subprocess.Popen(  # noqa: S603 — our own app
        [*command, address.rsplit(":", 1)[1]],
        cwd=ROOT,
        env=environment,
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
    )
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/api/health", timeout=5)  # noqa: S310 — a loopback address
            return process, address
        except OSError:
            time.sleep(0.1)
    process.kill()
    raise SystemExit(log.read_text())


def label(page: Any) -> None:
    """A label, and every now and then back and another."""
    queue = page.get_by_test_id("label-queue")
    queue.wait_for(timeout=STUCK)
    queue.click(position={"x": 5, "y": 5})
    for key in "2103zu":
        page.keyboard.press(key)
        page.wait_for_timeout(150)


def tune(page: Any) -> None:
    """Move the gap of the cut to and fro."""
    slider = page.get_by_role("slider", name="gap threshold", exact=True).first
    slider.wait_for(timeout=STUCK)
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
        page.wait_for_timeout(400)


def open_sessions(browser: Any, address: str) -> list[tuple[Any, Any]]:
    """(page, what is done on it): half of them label, the others tune."""
    found = []
    for number in range(SESSIONS):
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        labelling = number % 2 == 0
        path = f"/labels?project=recorded-combat&annotator=person-{number}" if labelling else TUNING
        page.goto(address + path)
        if labelling:
            page.get_by_role("button", name="Label them as a second opinion").click(timeout=STUCK)
        found.append((page, label if labelling else tune))
    return found


def run(minutes: float) -> dict[str, Any]:
    """The figures of one soak."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        log = Path(folder) / "log"
        process, address = serve(Path(folder) / "workspace", log)
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            figures = soak(open_sessions(browser, address), process.pid, minutes)
            browser.close()
            with urllib.request.urlopen(f"{address}/api/health", timeout=30) as answer:  # noqa: S310
                figures["healthy"] = json.load(answer)["status"] == "ok"
        finally:
            process.kill()
            process.wait()
        figures["errors"] = errors(log)
        return figures


def errors(log: Path) -> list[str]:
    """The lines of the server's log that tell of a fault."""
    return [line[:200] for line in log.read_text().splitlines() if any(sign in line for sign in ERRORS)]


def soak(sessions: list[tuple[Any, Any]], process: int, minutes: float) -> dict[str, Any]:
    """Go round the sessions until the time is over; memory is read after each round."""
    began, rounds, readings = time.monotonic(), 0, list[tuple[float, int]]()
    while (passed := time.monotonic() - began) < minutes * 60:
        for page, work in sessions:
            work(page)
        rounds += 1
        readings.append((passed, memory(process)))
    warm = [size for at, size in readings if at >= minutes * 6] or [size for _, size in readings]
    tail = warm[-max(1, len(warm) // 10) :]
    head = warm[: max(1, len(warm) // 10)]
    growth = (sum(tail) / len(tail)) / (sum(head) / len(head)) - 1
    return {
        "minutes": minutes,
        "sessions": len(sessions),
        "rounds": rounds,
        "megabytes": tail[-1] / 1e6,
        "growth": growth,
    }


def main() -> None:
    """Options, one soak, the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    figures = run(parser.parse_args().minutes)
    passed = figures["growth"] <= GROWTH and not figures["errors"] and figures["healthy"]
    sys.stdout.write(json.dumps({**figures, "passed": passed}) + "\n")
    raise SystemExit(0 if passed else 1)


if __name__ == "__main__":
    main()
