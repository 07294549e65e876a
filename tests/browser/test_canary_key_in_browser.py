"""A key with a mark in it, through every fault of an endpoint, in Chromium: nothing the browser sees or sends holds it.

Looked at: the page as it stands after every step, its address, all requests, both directions of the web socket, the
console, what the browser keeps, the server's log, and every file of the workspace.
"""

import json
import re
import sqlite3
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.hands import settle
from tests.faulty_endpoint import CANARY, FAULTS, KEY_SENT_BACK, SECRET, faulty_endpoint, recorded_question

EVERY = [*FAULTS, *KEY_SENT_BACK]
SOME = [fault for fault in EVERY if fault.startswith(("22", "28"))]  # an error and an answer that hand the key back
KEPT = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
FILTER = '[{"LLMFilter":{"variant":"reasons"}}]'


@pytest.fixture(scope="module")
def world(serve, tmp_path_factory):
    """(endpoint, address, workspace) of an app whose model endpoint is at fault."""
    workspace = tmp_path_factory.mktemp("canary")
    folder = workspace / "eval_sets" / "own"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\ntitle: Own lists\n")
    (folder / "lists.jsonl").write_text(
        "\n".join(json.dumps(recorded_question(number)) for number in range(len(EVERY)))
    )
    with faulty_endpoint() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", endpoint.url_for("/v1"))
        patch.setenv("OPENAI_MODEL", "small")
        patch.setenv("OPENAI_API_KEY", CANARY)
        patch.setenv("WINNOW_PRICE_IN", "1000")
        patch.setenv("WINNOW_PRICE_OUT", "1000")
        with serve(workspace) as url:
            yield endpoint, url, workspace


class Seen:
    """Everything that passes between a page and the world, by where it was seen."""

    def __init__(self, page):
        self.page, self.texts = page, {}
        page.on("request", lambda one: self.note("requests", f"{one.url} {one.headers} {one.post_data_buffer}"))
        page.on("console", lambda one: self.note("console", one.text))
        page.on("websocket", self._socket)

    def _socket(self, socket):
        self.note("requests", socket.url)
        socket.on("framereceived", lambda payload: self.note("web socket", payload))
        socket.on("framesent", lambda payload: self.note("web socket", payload))

    def note(self, place, text):
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        self.texts.setdefault(place, []).append(text)

    def look(self):
        """Until the page stands still, then the page, its address, and what the browser keeps."""
        self.page.wait_for_function("() => !document.querySelector('[data-testid=stSkeleton]')")
        expect(self.page.get_by_test_id("stStatusWidget")).to_have_count(0)
        self.note("page", self.page.content())
        self.note("address", self.page.url)
        self.note("kept", self.page.evaluate(KEPT))

    def places(self, workspace):
        """Where the key stands."""
        files = [path for path in workspace.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
        return {place for place, texts in self.texts.items() if SECRET in "".join(texts)} | set(map(str, files))


def during(endpoint, workspace, faults):
    """The number and name of each fault while it lasts; what was answered before is forgotten."""
    for fault in faults:
        endpoint.fault = fault
        del endpoint.keys[:]
        if (workspace / "answers.sqlite").exists():
            with sqlite3.connect(workspace / "answers.sqlite", timeout=30) as store:
                store.execute("DELETE FROM answer")
        yield EVERY.index(fault)
        assert f"Bearer {CANARY}" in endpoint.keys, f"nobody was asked during {fault}"


def everything_was_looked_at(seen):
    return {"requests", "web socket", "page", "address", "kept"} <= set(seen.texts)


@pytest.mark.parametrize(
    ("places", "views"),
    [(["settings"], ["All"]), pytest.param(["data", "labels", "settings"], ["All", "One"], marks=pytest.mark.slow)],
)
def test_no_place_holds_the_key_of_the_environment(page, world, places, views):
    """The Bench comes last; no other place names an endpoint."""
    _, url, workspace = world
    seen = Seen(page)
    for place in places:
        page.goto(f"{url}/{place}?project=own")
        settle(page)
        seen.look()
    page.goto(f"{url}/?project=own&pipeline={quote(FILTER)}")
    page.locator(".bench .stage .drawer").last.click()  # the judge's: it names the endpoint
    settle(page)
    seen.look()
    for view in views:
        page.get_by_role("button", name=view, exact=True).click()
        settle(page)
        show(page, "Share")
        settle(page)
        seen.look()
    assert everything_was_looked_at(seen)
    assert seen.places(workspace) == set()


@pytest.mark.slow  # every other fault: tests/pages/test_canary_key_in_pages.py
@pytest.mark.timeout(600)
def test_the_judge_of_the_bench_never_holds_the_key(page, world):
    endpoint, url, workspace = world
    seen = Seen(page)
    page.goto(f"{url}/?project=own&pipeline={quote(FILTER)}")
    page.locator(".bench .stage .drawer").last.click()
    page.get_by_text("Judges on trial", exact=True).click()
    for _ in during(endpoint, workspace, SOME):
        seen.look()
        asking(page, endpoint, page.get_by_role("button", name=re.compile("^Make 1 call")).first)
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        seen.look()
        page.get_by_role("button", name="Test connection").click()
        seen.look()
    assert everything_was_looked_at(seen)
    assert seen.places(workspace) == set()


def asking(page, endpoint, button):
    """Press the button until the endpoint is asked: a click while the page redraws can go nowhere."""
    before = len(endpoint.keys)
    for _ in range(10):
        button.last.click()
        for _ in range(30):
            if len(endpoint.keys) > before:
                return
            page.wait_for_timeout(100)
    raise AssertionError("nobody was asked")


def show(page, view):
    page.get_by_role("radio", name=view, exact=True).or_(
        page.get_by_role("button", name=view, exact=True)
    ).first.click()
