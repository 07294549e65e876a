"""Chromium from the system, and the real app on a free port with a workspace of its own."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag_core.eval_sets.reading import SHIPPED
from tests.conftest import free_port

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--process-per-site"]
PATIENCE = 90_000  # ms; the app loads its parts late, and a busy machine takes its time
NO_BROWSER = "Chromium is not on the PATH: `apt-get install chromium` (Debian, Ubuntu) brings it"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)
            # Chromium itself fails now and then on a busy machine; a fault of ours fails three times.
            item.add_marker(pytest.mark.flaky(reruns=2))


def chromium_path():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def browser():
    path = chromium_path()
    if path is None:
        if os.environ.get("WINNOW_REQUIRE_BROWSER") == "1":
            pytest.fail(NO_BROWSER)
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@contextmanager
def a_window(browser, **how):
    """A browser window whose pages run in one process: what one page has fetched and compiled, the next need not.

    Its first page is empty and stays open, because the process ends with its last page.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 900}, **how)
    keeper = context.new_page()
    keeper.route("http://127.0.0.1/", lambda route: route.fulfill(content_type="text/html", body=""))
    keeper.goto("http://127.0.0.1/")
    yield context
    context.close()


@contextmanager
def a_page(window):
    """A page of its own in a window, which remembers nothing of the page before."""
    opened = window.new_page()
    opened.set_default_timeout(PATIENCE)
    yield opened
    for left in window.pages[1:]:
        left.evaluate("() => { if (location.protocol !== 'about:') { localStorage.clear(); sessionStorage.clear(); } }")
        left.close()
    window.clear_cookies()


@pytest.fixture(scope="session")
def window(browser):
    """One browser window for all tests of a worker."""
    with a_window(browser, reduced_motion="reduce") as opened:
        yield opened


@pytest.fixture
def page(window):
    with a_page(window) as opened:
        yield opened


def wait_until_healthy(url, process, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the app ended with exit code {process.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the app did not answer at {url} within {seconds} s")


def start_app(workspace, log, script="asgi.py", *arguments):
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        script,
        "--server.headless",
        "true",
        "--server.port",
        str(port),
        *arguments,
    ]
    environment = {**os.environ, "WINNOW_WORKSPACE": str(workspace)}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    wait_until_healthy(url, process)
    return process, url


@contextmanager
def served(workspace):
    """The address of an app on that workspace, for as long as the block lasts."""
    with open(workspace / "app.log", "wb") as log:
        process, url = start_app(workspace, log)
        try:
            yield url
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture(scope="session")
def serve(browser):
    """Starts an app on a workspace that a test filled: `with serve(workspace) as url`."""
    return served


@pytest.fixture(scope="session")
def app_workspace(tmp_path_factory):
    """The workspace of the running app: what a test changes there is a project of its own."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="session")
def app(browser, app_workspace):
    """The address of the running app."""
    with served(app_workspace) as url:
        yield url


@pytest.fixture
def own_lists(app_workspace):
    """The name of a project of the app that holds the shipped recorded lists and that a test may label."""
    name = f"combat-{uuid.uuid4().hex[:8]}"
    shipped, own = SHIPPED / "recorded-combat", app_workspace / "eval_sets" / name
    own.mkdir(parents=True)
    shutil.copy(shipped / "lists.jsonl", own)
    (own / "meta.yaml").write_text(
        (shipped / "meta.yaml").read_text().replace("name: recorded-combat", f"name: {name}")
    )
    return name


@pytest.fixture
def own_app(browser, tmp_path):
    """The address of an app with an empty workspace: the shared one may hold what other tests left."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with served(workspace) as url:
        yield url
