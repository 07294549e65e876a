"""A scripted endpoint (no model) and a small bench for tests of judges."""

import json
from threading import Lock

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.judged.entrants import Bench
from rag_core.llm import accepted
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

CHAT = "/v1/chat/completions"


class ScriptedServer:
    """Answers each prompt by `script(text, count, number of the call)`; keeps what was asked."""

    def __init__(self, server):
        self.server, self.asked, self._lock = server, [], Lock()
        self.script = lambda text, count, number: [(at, "KEEP" if at == 1 else "DISCARD") for at in range(1, count + 1)]
        server.expect_request(CHAT).respond_with_handler(self._handle)

    def _handle(self, request):
        given = request.get_json()
        text = given["messages"][-1]["content"]
        with self._lock:
            self.asked.append(given)
            number = len(self.asked)
        said = self.script(text, text.count(" end of "), number)
        content = said if isinstance(said, str) else "\n".join(f"{at} -> {action}" for at, action in said)
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        body = {"choices": [{"finish_reason": "stop", "message": {"content": content}}], "usage": usage}
        return Response(json.dumps(body), content_type="application/json")


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    accepted.forget()
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "WINNOW_PRICE_IN", "WINNOW_PRICE_OUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def scripted(monkeypatch):
    """A scripted server, named by the environment."""
    with HTTPServer(threaded=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        yield ScriptedServer(server)


@pytest.fixture
def bench():
    """Three queries with four candidates each; the first and the third are relevant, the first refers to a schema."""
    schema = Chunk("schema", "Token", "A token has a lifetime.")
    cases = []
    for number in range(3):
        chunks = [
            Chunk(f"q{number}{name}", name, f"Text {name}", ref_ids=("schema",) if name == "a" else ())
            for name in "abcd"
        ]
        hits = tuple(Hit(chunk, rank, {"distance": rank / 10}) for rank, chunk in enumerate(chunks, 1))
        query = Query(f"q{number}", f"question {number}")
        grades = {f"q{number}a": 2, f"q{number}b": 0, f"q{number}c": 1, "schema": 1}
        cases.append(Case(query, grades, Candidates(query, hits, metric=Metric.COSINE, recorded=True)))
    chunks = {hit.chunk.id: hit.chunk for case in cases for hit in case.candidates.hits}
    return Bench("small", tuple(cases), {**chunks, "schema": schema}, 1)
