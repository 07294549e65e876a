"""A key with a mark in it goes through every fault of an endpoint: nowhere does it stand afterwards.

Looked at are logs of all libraries at their most talkative, the stored answers, exports, kept answers, and what a
logging handler that records spans would get. Pages and addresses: tests/pages and tests/browser, test_canary_key*.
"""

import json
import logging
import sqlite3
from dataclasses import replace

import pytest
from pytest_httpserver import HTTPServer
from test_endpoint_faults import COUNT, batches, serve
from werkzeug import Response

from rag_core.answers.answering import Answering
from rag_core.errors import EndpointError
from rag_core.filters.llm.stage import LLMFilter
from rag_core.llm import accepted
from rag_core.llm import client as client_module
from rag_core.llm.client import Client, RetryBudget
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits
from rag_core.llm.secret import Key
from rag_core.llm.store import AnswerStore
from rag_core.measure.experiment import run
from rag_core.stage import Pipeline
from rag_core.types import Case
from tests.faulty_endpoint import CANARY, CHAT, FAULTS, KEY_SENT_BACK, SECRET, body


class Spans(logging.Handler):
    """Keeps every record with all its attributes, as a tracing exporter that hangs on logging would send them."""

    def __init__(self):
        super().__init__(logging.NOTSET)
        self.kept = []

    def emit(self, record):
        self.kept.append({**record.__dict__, "message": record.getMessage()})


@pytest.fixture
def watched():
    """All loggers at debug, with a handler that keeps everything."""
    spans, root = Spans(), logging.getLogger()
    before = root.level
    root.addHandler(spans)
    root.setLevel(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield spans
    root.removeHandler(spans)
    root.setLevel(before)


@pytest.fixture(scope="module")
def server():
    with HTTPServer(threaded=True) as started:
        yield started


@pytest.mark.parametrize("fault", [*FAULTS, *KEY_SENT_BACK])
def test_the_key_stands_nowhere_after_a_fault(server, fault, watched, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    accepted.forget()
    server.clear()
    serve(server, KEY_SENT_BACK[fault] if fault in KEY_SENT_BACK else FAULTS[fault][0], "Question")
    endpoint = Endpoint("local", server.url_for("/v1"), "small", Key(CANARY), deadline=1.0)
    store = AnswerStore(tmp_path / "answers.sqlite")
    judge = RecordedJudge(store, EndpointJudge(endpoint, budget=RetryBudget(5)), "small")
    stage = replace(LLMFilter(timeout_ms=1000, concurrency=8, max_chunks=COUNT, variant="reasons"), judge=judge)
    case = Case(batches().query, {"c1": 1}, batches())
    report = run([case], Pipeline((stage,)))
    exported = json.dumps([outcome.to_json() for outcome in report.outcomes], default=str)
    answered = Answering(judge, judge=judge).run([report], RunLimits(seconds_per_call=1.0))
    told = ""
    try:
        Client(endpoint).models()
    except EndpointError as error:
        told = f"{error} {error.__cause__} {error.__context__}"
    store.close()
    rows = sqlite3.connect(tmp_path / "answers.sqlite").execute("SELECT * FROM answer").fetchall()
    ours = [span for span in watched.kept if not span["name"].startswith("werkzeug")]  # that is the server under test
    places = {
        "report": repr(report) + str(report),
        "export": exported,
        "answers of questions": json.dumps(answered.to_json()) + answered.to_text(),
        "errors": told,
        "logs and spans": repr(ours),
        "answers": repr(rows),
        "files": "".join(path.read_bytes().decode("latin-1") for path in tmp_path.iterdir() if path.is_file()),
        "endpoint": repr(endpoint) + str(endpoint),
    }
    assert {name for name, text in places.items() if SECRET in text} == set()
    assert watched.kept  # the handler did see what was logged


def test_the_server_did_get_the_key_so_that_the_test_can_fail(server, monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)
    server.clear()
    seen = []

    def handler(request):
        seen.append(request.headers["Authorization"])
        return Response(body("1 -> KEEP"), content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)
    endpoint = Endpoint("local", server.url_for("/v1"), "small", Key(CANARY), deadline=5.0)
    replace(LLMFilter(max_chunks=COUNT), judge=EndpointJudge(endpoint))(batches())
    assert f"Bearer {CANARY}" in seen
