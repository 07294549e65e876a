"""Answers below the Bench: simulated without an endpoint, asked of a scripted one by a press, replayed ever after."""

import json

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from pages import state
from rag_core.llm import accepted
from rag_core.spec import parse_pipeline
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from tests.pages.walking import sane, waited

CHAT = "/v1/chat/completions"


@pytest.fixture
def own(workspace, jsonl):
    """Two questions with recorded lists: the needed chunk stands first of the one, last of the other."""
    folder = workspace / "eval_sets" / "own"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\ntitle: Own lists\n")
    rows = []
    for number, place in enumerate((1, 4)):
        candidates = [
            {
                "id": f"q{number}-{at}",
                "title": f"T{at}",
                "text": f"Text {at}",
                "distance": at / 10,
                "relevant": at == place,
            }
            for at in range(1, 5)
        ]
        for one in candidates:
            one["relevant"] = int(one["relevant"])
        expected = f"seven <b>{number}</b>"
        rows.append(
            {
                "id": f"q{number}",
                "query": f"question {number}",
                "expected_answer": expected,
                "split": "dev",
                "candidates": candidates,
            }
        )
    (folder / "lists.jsonl").write_bytes(jsonl(*rows))
    return "own"


TWO, FOUR = (state.encode(parse_pipeline([{"TopK": {"k": k}}])) for k in (2, 4))


def opened(open_app, own, **link):
    app = sane(open_app(project=own, a=TWO, b=FOUR, **link))
    return sane(app.segmented_control(key="bench.tool").set_value("Answers").run(timeout=60))


def test_without_an_endpoint_a_simulated_reader_says_so_and_answers(open_app, own, words):
    app = opened(open_app, own, q="q1", zoom="one")
    told = words(app)
    assert "Simulated" in told
    assert "refused" in told
    assert "right" in told
    assert "lost: q1-4 by TopK" in "\n".join(one.value for one in app.text)
    app = opened(open_app, own, zoom="all")
    frame = next(one.value for one in app.dataframe if "expected" in one.value.columns)
    assert list(frame["A"]) == ["right", "refused"]
    assert list(frame["B"]) == ["right", "right"]


def test_a_press_asks_the_endpoint_and_the_answers_are_read_again_for_nothing(open_app, own, words, monkeypatch):
    accepted.forget()
    with HTTPServer(threaded=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        asked = []

        def handler(request):
            asked.append(request.get_json()["messages"][-1]["content"])
            number = asked[-1].partition("\n")[0][-1]
            there = "T4" in asked[-1] if number == "1" else True
            text = f"Answer: seven <b>{number}</b>" if there else "Answer: <script>alert(1)</script>"
            body = {"choices": [{"finish_reason": "stop", "message": {"content": text}}]}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request(CHAT).respond_with_handler(handler)
        app = opened(open_app, own, zoom="all")
        assert not asked
        assert "4 calls to make" in "\n".join(one.value for one in app.text)
        app.button(key="answers.ask").click()
        app = waited(sane(app.run(timeout=60)))
        assert len(asked) == 4
        frame = next(one.value for one in app.dataframe if "expected" in one.value.columns)
        assert (list(frame["A"]), list(frame["B"])) == (["right", "wrong"], ["right", "right"])
        app = opened(open_app, own, q="q1", zoom="one")
        assert "alert(1)" in "\n".join(one.value for one in app.code)
        assert len(asked) == 4


def test_chunks_of_right_answers_alone_go_first_into_the_queue(open_app, own, workspace, monkeypatch, words):
    lists = workspace / "eval_sets" / "own" / "lists.jsonl"
    rows = [json.loads(line) for line in lists.read_text().splitlines()]
    for row in rows:
        for one in row["candidates"]:
            one["relevant"] = None if one["title"] == "T4" else one["relevant"]
    lists.write_text("\n".join(map(json.dumps, rows)))
    accepted.forget()
    with HTTPServer(threaded=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "scripted")

        def handler(request):
            asked = request.get_json()["messages"][-1]["content"]
            text = f"Answer: seven <b>{asked.partition(chr(10))[0][-1]}</b>" if "T4" in asked else "Answer: no"
            body = {"choices": [{"finish_reason": "stop", "message": {"content": text}}]}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request(CHAT).respond_with_handler(handler)
        app = opened(open_app, own, zoom="all")
        app.button(key="answers.ask").click()
        app = waited(sane(app.run(timeout=60)))
        assert "2 chunks without a label stand in the context of right answers alone" in words(app)
        sane(app.button(key="answers.label").click().run(timeout=60))
    assert not (workspace / "winnow.db").exists() or not list(LabelStore(open_store(workspace)).labels("own"))


def test_questions_without_an_expected_answer_are_told_where_to_give_one(open_app, words):
    app = sane(open_app(project="recorded-combat", a="query-must", b="unfiltered", zoom="all"))
    app = sane(app.segmented_control(key="bench.tool").set_value("Answers").run(timeout=60))
    assert "expected_answer" in words(app)
