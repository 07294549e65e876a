"""A key with a mark in it, through every fault of an endpoint, on every page that asks one: the pages never show it.

What a page sends to the browser is looked at whole, as it is sent: every element's message, tables and components too,
the address, and all files of the workspace afterwards.
"""

import json
import sqlite3
import time

import pytest

from rag_core.llm import accepted
from rag_core.llm import client as client_module
from tests.faulty_endpoint import CANARY, FAULTS, KEY_SENT_BACK, SECRET, faulty_endpoint, recorded_question

EVERY = [*FAULTS, *KEY_SENT_BACK]
SOME = [fault for fault in EVERY if fault.startswith(("22", "28"))]  # an error and an answer that hand the key back
BOTH = [pytest.param(SOME, id="some"), pytest.param(EVERY, id="every", marks=pytest.mark.slow)]


@pytest.fixture
def endpoint(monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    with faulty_endpoint() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        monkeypatch.setenv("OPENAI_API_KEY", CANARY)
        monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
        monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
        yield server


def messages(node):
    """The bytes of every message below a node of the page."""
    proto = getattr(node, "proto", None)
    if proto is not None:
        yield proto.SerializeToString()
    for child in getattr(node, "children", {}).values():
        yield from messages(child)


def sent(app):
    """All that the browser would get of the page, and its address."""
    assert not app.exception, [error.value for error in app.exception]
    return b"".join(messages(app._tree)).decode("utf-8", "replace") + str(dict(app.query_params))


class Walk:
    """What a page sent during each fault; a fault during which nobody was asked is no proof."""

    def __init__(self, endpoint, workspace):
        self.endpoint, self.workspace, self.seen = endpoint, workspace, {}

    def through(self, faults):
        for fault in faults:
            self.endpoint.fault, self.now = fault, self.seen.setdefault(fault, [])
            del self.endpoint.keys[:]
            accepted.forget()
            yield fault
            assert f"Bearer {CANARY}" in self.endpoint.keys, f"nobody was asked during {fault}"

    def look(self, app):
        self.now.append(sent(app))
        return app

    def places(self):
        """The faults whose pages held the key, and the files that hold it."""
        pages = {fault for fault, texts in self.seen.items() if SECRET in "".join(texts)}
        files = [path for path in self.workspace.rglob("*") if path.is_file()]
        return pages | {path.name for path in files if SECRET.encode() in path.read_bytes()}


@pytest.fixture
def walk(endpoint, workspace):
    return Walk(endpoint, workspace)


def forget_answers(workspace):
    """Have the next question asked anew."""
    if (workspace / "answers.sqlite").exists():
        with sqlite3.connect(workspace / "answers.sqlite") as store:
            store.execute("DELETE FROM answer")


@pytest.mark.parametrize("faults", BOTH)
def test_the_judge_of_the_bench_never_shows_the_key(walk, open_app, workspace, faults):
    folder = workspace / "eval_sets" / "own"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\ntitle: Own lists\n")
    (folder / "lists.jsonl").write_text("\n".join(json.dumps(recorded_question(number)) for number in range(2)))
    app = open_app(project="own", pipeline='[{"LLMFilter":{"variant":"reasons","min_relevance_threshold":-1}}]')
    app.session_state["bench.drawer"] = 0
    app.run()
    app.toggle(key="bench.section").set_value(True).run()
    for _ in walk.through(faults):
        forget_answers(workspace)
        walk.look(app.run())
        run_and_look(walk, app)
        walk.look(app.button(key="judge.test").click().run())
    assert walk.places() == set()


def run_and_look(walk, app):
    """Start the run and look at the page, again and again, while it is under way."""
    app.button(key="judge.ask.run").click().run()
    for _ in range(300):
        walk.look(app.run())
        if not any(one.key == "job.cancel" for one in app.button):
            return
        time.sleep(0.02)
    raise AssertionError("the run did not end")
