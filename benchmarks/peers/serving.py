"""Start the compared apps on loopback and drive Chromium at them: shared by the benchmarks of the pages."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).resolve().parent
STREAMLIT = [sys.executable, "-m", "streamlit", "run"]
QUIET = ["--server.headless", "true", "--browser.gatherUsageStats", "false", "--server.fileWatcherType", "none"]


@dataclass(frozen=True)
class App:
    """One compared app: how it starts, where its chart is, and the text in it that changes with the threshold."""

    name: str
    command: list[str]
    path: str
    health: str
    chart: str  # selector of something only the drawn chart has
    mark: str  # selector of the threshold's value on the chart
    attribute: str = ""  # read this attribute instead of the text


CUT = '[{"AdaptiveGap":{"gap_threshold":0.1,"distance_offset":0.3,"min_results":2,"max_results":200}}]'
APPS = (
    App(
        "Bench",
        [*STREAMLIT, str(ROOT / "app.py"), *QUIET, "--server.port"],
        f"/?set=many&pipelines={quote(json.dumps(['fixed-15', CUT]))}",
        "/_stcore/health",
        ".bench .stage",
        ".bench",
        "data-version",
    ),
    App(
        "stock Streamlit + Plotly",
        [*STREAMLIT, str(PEERS / "many_streamlit.py"), *QUIET, "--server.port"],
        "/",
        "/_stcore/health",
        ".annotation-text",
        ".annotation-text",
    ),
    App(
        "Dash",
        [sys.executable, str(PEERS / "many_dash.py")],
        "/",
        "/",
        ".annotation-text",
        ".annotation-text",
    ),
)
"""The compared apps: a threshold, its figures and two charts over 500 questions × 200 candidates."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def served(app: App, fill: Callable[[Path], None] | None = None) -> Iterator[tuple[str, float]]:
    """The app running on a workspace that `fill` prepared: its address, and the seconds from start to healthy."""
    with tempfile.TemporaryDirectory() as workspace:
        if fill is not None:
            fill(Path(workspace))
        with serving(app, Path(workspace)) as (url, seconds, _):
            yield url, seconds


@contextmanager
def serving(app: App, workspace: Path) -> Iterator[tuple[str, float, subprocess.Popen[bytes]]]:
    """The app running on a workspace: its address, the seconds from start to healthy, its process."""
    port = free_port()
    started = time.perf_counter()
    process = subprocess.Popen(
        [*app.command, str(port)],
        env={**os.environ, "WINNOW_WORKSPACE": str(workspace)},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}{app.health}", process)
        yield f"http://127.0.0.1:{port}", time.perf_counter() - started, process
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(url: str, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the app ended with exit code {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"no answer at {url}")


@contextmanager
def chromium() -> Iterator[object]:
    """A headless browser, or an exit that says how to get one."""
    path = shutil.which("chromium")
    if path is None:
        raise SystemExit("Chromium is not on the PATH: `apt-get install chromium` brings it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-frame-rate-limit",  # frames as fast as they come: 60 a second would hide what is measured
                "--disable-gpu-vsync",
            ],
        )
        yield browser
        browser.close()
