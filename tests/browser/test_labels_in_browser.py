"""Labels in Chromium: no press is lost whatever happens to server and page; keys, undo, back, note."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import uuid

import pytest
from playwright.sync_api import expect

from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import model_annotator, store_model_labels
from tests.browser.conftest import PATIENCE, ROOT, free_port, wait_until_healthy
from tests.browser.hands import IN_QUEUE, settle, shown

CARD = ".label-queue .card .title"


def write_set(workspace, name, lists):
    folder = workspace / "eval_sets" / name
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {name}\ntitle: {name}\n")
    (folder / "lists.jsonl").write_text("\n".join(json.dumps(line) for line in lists))


def many_pairs(queries, each):
    for q in range(queries):
        hits = [
            {
                "id": f"q{q}-c{i}",
                "title": f"Entry {q}.{i}",
                "text": f"Words of entry {q}.{i}.",
                "distance": 0.2 + i / 100,
            }
            for i in range(each)
        ]
        yield {"id": f"q{q}", "query": f"Question number {q}?", "candidates": hits}


class Server:
    """The app on one port, which can be killed and started again."""

    def __init__(self, workspace):
        self.workspace, self.port = workspace, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        arguments = ["--server.headless", "true", "--server.port", str(self.port)]
        with open(self.workspace / "app.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", "asgi.py", *arguments],
                cwd=ROOT,
                env={**os.environ, "WINNOW_WORKSPACE": str(self.workspace)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ready(self):
        wait_until_healthy(self.url, self.process)


@pytest.fixture(scope="module")
def server(tmp_path_factory, browser):
    running = Server(tmp_path_factory.mktemp("labels"))
    running.ready()
    yield running
    running.kill()


@pytest.fixture
def many(server):
    """The name of recorded lists that one test labels."""
    name = f"many-{uuid.uuid4().hex[:8]}"
    write_set(server.workspace, name, many_pairs(150, 15))
    return name


def open_queue(page, server, annotator, eval_set):
    page.goto(f"{server.url}/labels?project={eval_set}&annotator={annotator}")
    page.locator(CARD).wait_for()


def wait_for_chunk(page):
    page.wait_for_function(f"() => ({IN_QUEUE})() !== ''", timeout=PATIENCE)


def press_many(page, count, most_pause, seed, disturb):
    """Press random grades; (title, grade) of every press after which the queue went on to another chunk.

    A press does nothing while Streamlit's own "Connection error" lies over the page, and then the chunk stays.
    """
    draw = random.Random(seed)
    pressed = []
    while len(pressed) < count:
        disturb(len(pressed))
        if not shown(page):
            wait_for_chunk(page)
        title, before = page.locator(CARD).inner_text(), shown(page)
        key = draw.choice("0123u")
        page.keyboard.press(key)
        if shown(page) != before:
            pressed.append((title, None if key == "u" else int(key)))
        page.wait_for_timeout(draw.uniform(0, most_pause))
    return pressed


def stored(workspace, eval_set, annotator):
    with sqlite3.connect(workspace / "winnow.db") as connection:
        rows = connection.execute(
            "SELECT chunk_id, grade FROM label_event "
            "WHERE eval_set = ? AND annotator = ? AND kind = 'label' ORDER BY position",
            [eval_set, annotator],
        ).fetchall()
    return [("Entry " + chunk.replace("q", "").replace("-c", "."), grade) for chunk, grade in rows]


def all_saved(page):
    expect(page.locator(".label-queue .unsaved")).to_have_text("0 unsaved", timeout=PATIENCE)


def label_through(browser, server, many, presses, kills, reloads):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    pages = [context.new_page(), context.new_page()]
    names = ["ann", "bob"]
    for page, name in zip(pages, names, strict=True):
        page.set_default_timeout(PATIENCE)
        open_queue(page, server, name, many)
    pressed = {name: [] for name in names}
    disturbances = ["kill"] * kills + ["reload"] * reloads
    random.Random("order").shuffle(disturbances)
    parts = len(disturbances) + 1
    for part in range(parts):
        for page, name in zip(pages, names, strict=True):
            page.bring_to_front()
            wait_for_chunk(page)
            what = disturbances[part] if part < len(disturbances) and name == names[part % 2] else ""
            happens_at, happenings = presses // parts // 4, [what]

            def disturb(number, what=what, happens_at=happens_at, happenings=happenings, page=page):
                if number != happens_at or not happenings:
                    return
                happenings.pop()
                if what == "kill":
                    server.kill()
                    server.start()
                if what == "reload":
                    server.ready()
                    page.reload()
                    wait_for_chunk(page)

            pressed[name] += press_many(page, presses // parts // 2, 30, f"{part} {name}", disturb)
            server.ready()
    for page in pages:
        page.bring_to_front()
        all_saved(page)
    found = {name: stored(server.workspace, many, name) for name in names}
    context.close()
    return pressed, found


@pytest.mark.parametrize(
    ("presses", "kills", "reloads"), [(40, 1, 1), pytest.param(1000, 10, 10, marks=pytest.mark.slow)]
)
@pytest.mark.timeout(1500)
def test_every_press_is_stored_once_on_its_chunk_and_in_order(browser, server, many, presses, kills, reloads):
    pressed, found = label_through(browser, server, many, presses, kills, reloads)
    assert sum(map(len, pressed.values())) >= presses * 0.9
    for name in pressed:
        assert found[name] == pressed[name]
        assert len({title for title, _ in found[name]}) == len(found[name])
    with sqlite3.connect(server.workspace / "winnow.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def events(workspace, eval_set, annotator):
    with sqlite3.connect(workspace / "winnow.db") as connection:
        return connection.execute(
            "SELECT kind, chunk_id, grade, note FROM label_event WHERE eval_set = ? AND annotator = ? ORDER BY position",
            [eval_set, annotator],
        ).fetchall()


def test_a_person_labels_with_the_keyboard_alone(page, server, many):
    open_queue(page, server, "keys", many)
    first = page.locator(CARD).inner_text()
    page.keyboard.press("n")
    page.keyboard.type("2 words, u and z")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    second = page.locator(CARD).inner_text()
    page.keyboard.press("s")
    assert page.locator(CARD).inner_text() not in (first, second)
    page.keyboard.press("b")
    expect(page.locator(".label-queue .mine")).to_contain_text("You said: relevant")
    assert page.locator(CARD).inner_text() == first
    page.keyboard.press("3")
    page.keyboard.press("z")
    assert page.locator(CARD).inner_text() == first
    page.keyboard.press("?")
    expect(page.locator(".label-queue .sheet")).to_be_visible()
    all_saved(page)
    assert [(kind, grade, note) for kind, _, grade, note in events(server.workspace, many, "keys")] == [
        ("label", 2, "2 words, u and z"), ("label", 3, "2 words, u and z"), ("undo", None, ""),
    ]  # fmt: skip

    page.get_by_label("single-key shortcuts").uncheck()
    page.locator(".label-queue .query").click()
    page.keyboard.press("1")
    page.get_by_role("button", name=re.compile("answers it")).focus()
    page.keyboard.press("Enter")
    all_saved(page)
    assert [grade for _, _, grade, _ in events(server.workspace, many, "keys")][3:] == [3]


def test_y_says_what_a_model_proposes_and_nothing_where_it_proposes_nothing(page, server, many):
    said = [
        (f"q{q}", f"Question number {q}?", f"q{q}-c{i}", f"Words of entry {q}.{i}.", 1, "")
        for q in range(150)
        for i in range(15)
    ]
    with open_store(server.workspace) as store:
        store_model_labels(LabelStore(store), many, model_annotator("scripted"), said)
    open_queue(page, server, "yes", many)
    expect(page.locator(".label-queue .proposal")).to_be_empty()
    first = shown(page)
    page.keyboard.press("y")
    assert shown(page) == first
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("combobox", name="Show what a model proposes").click()
    page.get_by_role("option", name="model:scripted").click()
    page.keyboard.press("Escape")
    settle(page)
    proposed = []
    for _ in range(20):
        wait_for_chunk(page)
        before = shown(page)
        proposed.append("proposes: 1" in page.locator(".label-queue .proposal").inner_text())
        page.keyboard.press("y" if proposed[-1] else "0")
        page.wait_for_function(f"(before) => ({IN_QUEUE})() !== before", arg=before)
    all_saved(page)
    assert {True, False} == set(proposed)
    assert [grade for _, _, grade, _ in events(server.workspace, many, "yes")] == [int(one) for one in proposed]


def leave(page, many):
    """Two labels that an earlier visit left in the browser: one that can never be stored, and one behind it."""
    left = {"session": f"left {many}", "seq": 0, "started": 1, "pair": "x", "kind": "label", "grade": 2, "note": "a\x00b",
            "undoes": None, "others": [], "eval_set": many, "query_id": "q0", "query_hash": "", "chunk_id": "q0-c9",
            "text_hash": "", "annotator": "ann"}  # fmt: skip
    whole = {**left, "seq": 1, "note": "", "chunk_id": "q0-c8"}
    keep = "([key, entry]) => localStorage.setItem('winnow.label.' + key, JSON.stringify(entry))"
    for entry in (left, whole):
        page.evaluate(keep, [f"left.{entry['seq']}", entry])
    page.reload()
    return left


def test_a_label_that_can_never_be_stored_holds_no_other_up(page, server, many):
    open_queue(page, server, "ann", many)
    page.keyboard.press("2")
    all_saved(page)
    left = leave(page, many)
    tray = page.locator(".label-queue .tray")
    expect(tray).to_contain_text("1 label cannot be stored as it is (note holds a NUL", timeout=PATIENCE)
    wait_for_chunk(page)
    page.keyboard.press("3")
    all_saved(page)
    assert {chunk for _, chunk, _, _ in events(server.workspace, many, "ann")} >= {"q0-c8"}
    assert len(events(server.workspace, many, "ann")) == 3
    page.reload()
    with page.expect_download() as download:
        tray.get_by_role("button", name="Save as file").click()
    assert json.loads(download.value.path().read_text())[0]["entry"] == left
    tray.get_by_role("button", name="Discard").click()
    expect(tray).to_be_hidden()


def test_labels_left_unsaved_are_told_of_at_every_place_and_sent_by_a_finished_queue(page, server):
    name = f"few-{uuid.uuid4().hex[:8]}"
    write_set(server.workspace, name, [{**one, "candidates": [{**hit, "relevant": 1} for hit in one["candidates"]]}
                                       for one in many_pairs(2, 3)])  # fmt: skip
    page.goto(f"{server.url}/settings?project={name}")
    told = page.get_by_test_id("labels-waiting")
    expect(told).to_be_hidden(timeout=PATIENCE)
    left = {"session": "closed", "seq": 0, "started": 1, "pressed": 1, "pair": "x", "kind": "label", "grade": 2,
            "note": "", "undoes": None, "others": [], "eval_set": name, "query_id": "q0", "query_hash": "",
            "chunk_id": "q0-c1", "text_hash": "", "annotator": "ann"}  # fmt: skip
    page.evaluate("(entry) => localStorage.setItem('winnow.label.closed.0', JSON.stringify(entry))", left)
    for place in ("settings", "data", "questions", "ship", ""):
        page.goto(f"{server.url}/{place}?project={name}")
        expect(told).to_have_text(re.compile("^1 labels of this browser are NOT saved"), timeout=PATIENCE)
        expect(told).to_be_visible()
    page.goto(f"{server.url}/labels?project={name}&annotator=ann")
    expect(page.get_by_text("Every one of the 6 pairs in this pool has a label.")).to_be_visible(timeout=PATIENCE)
    all_saved(page)
    assert {chunk for _, chunk, _, _ in events(server.workspace, name, "ann")} == {"q0-c1"}
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('winnow.label.'))") == []
