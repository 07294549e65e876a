"""Explore with the LLM filter: the simulated judge, and a scripted endpoint on a real socket that counts its calls."""

import json

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.llm import ladder

CHAT = "/v1/chat/completions"
KEY = "sk-canary-0123456789abcdefXYZ9"
REFERRED = {"id": "schema", "title": "Token schema", "text": "A token has a lifetime.", "relevant": 1}
CANDIDATES = [
    {"id": "login", "title": "Log in", "text": "Send the key.", "distance": 0.2, "relevant": 2, "ref_ids": ["schema"]},
    {"id": "price", "title": "Prices", "text": "It costs money.", "distance": 0.3, "relevant": 0},
    {"id": "more", "title": "More on keys", "text": "Keys expire.", "distance": 0.4, "relevant": 1},
    {**REFERRED, "distance": 0.9},
]
LISTS = [{"id": "q", "query": "How do I log in?", "metric": "cosine", "candidates": CANDIDATES}]


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    ladder.forget()
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "WINNOW_PRICE_IN", "WINNOW_PRICE_OUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def endpoint(monkeypatch):
    """A scripted server: expands the first candidate, discards the second, keeps the others."""
    with HTTPServer(threaded=True) as server:
        calls = []

        def handler(request):
            text = request.get_json()["messages"][-1]["content"]
            calls.append(text)
            count = text.count(" end of ")
            said = {1: "EXPAND_1", 2: "DISCARD"}
            answer = "\n".join(f"{number} -> {said.get(number, 'KEEP')}" for number in range(1, count + 1))
            body = {"choices": [{"finish_reason": "stop", "message": {"content": answer or "yes"}}]}
            body["usage"] = {"prompt_tokens": 120, "completion_tokens": 12}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request(CHAT).respond_with_handler(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        server.calls = calls
        yield server


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.fixture
def page(open_app, jsonl):
    """Explore with the lists above and the LLM filter switched on."""
    app = open_app()
    app.file_uploader[0].upload("lists.jsonl", jsonl(*LISTS), "application/json").run()
    next(one for one in app.toggle if one.label == "LLM filter").set_value(True).run()
    return sane(app)


@pytest.fixture
def told(words):
    return lambda app: next(line for line in words(app).splitlines() if line.startswith("LLM filter · "))


def press(app, label):
    next(one for one in app.button if one.label == label).click().run()
    return sane(app)


def table(app):
    rows = app.dataframe[0].value
    return dict(zip(rows["title"], zip(rows["verdict"], rows["reason"], strict=True), strict=True))


def test_without_an_endpoint_one_sentence_says_what_to_set_and_the_simulated_judge_answers(page, words, told):
    assert page.selectbox(key="explore.judge").options == ["simulated judge"]
    assert "No model endpoint is set: set OPENAI_API_KEY" in words(page)
    assert told(page).startswith("LLM filter · simulated judge, error rate 0.1, seed 0 · 3 judged, ")
    assert told(page).endswith("no fallback")


def test_each_decision_stands_with_its_reason_and_what_references_brought(page, figures, told):
    page.number_input(key="explore.error_rate").set_value(0.0).run()
    page.selectbox(key="explore.judge_depth").set_value(1).run()
    assert table(sane(page)) == {
        "Log in": ("● kept", "EXPAND_1"),
        "Prices": ("○ dropped by LLMFilter", "DISCARD"),
        "More on keys": ("● kept", "KEEP"),
        "Token schema": ("● kept, weak", "expanded from login, 1 step (EXPAND_1)"),
    }
    assert "3 judged, 2 kept, 1 brought by references" in told(page)
    assert figures(page)["SetF"][0] == "1.000"


def test_an_endpoints_model_is_asked_only_when_the_button_is_pressed(endpoint, page, words, told):
    page.selectbox(key="explore.judge").set_value("environment").run()
    assert "The model was not asked about this list. Asking takes 1 call, about " in words(sane(page))
    assert endpoint.calls == []
    assert table(page)["Prices"][0] == "● kept"
    press(page, "Ask the model")
    assert len(endpoint.calls) == 1
    assert "small at environment · 3 judged, 2 kept, 1 brought by references · 1 call · 120 + 12 tokens" in told(page)
    assert "cost unknown" in told(page)
    assert table(page)["Prices"] == ("○ dropped by LLMFilter", "DISCARD")


def test_moving_a_floor_or_a_cap_never_asks_the_model_again(endpoint, page):
    page.selectbox(key="explore.judge").set_value("environment").run()
    press(page, "Ask the model")
    page.slider(key="explore.min_relevance_threshold").set_value(0.65).run()
    assert table(sane(page))["More on keys"][1] == "cosine similarity 0.6000 < 0.6500: not judged"
    page.number_input(key="explore.max_chunks").set_value(1).run()
    page.slider(key="explore.min_relevance_threshold").set_value(0.3).run()
    assert table(sane(page))["More on keys"][1] == "beyond the oversample"
    next(one for one in page.toggle if one.label == "adaptive").set_value(True).run()
    assert len(endpoint.calls) == 1


def test_a_lower_floor_lets_in_what_was_not_judged_and_offers_to_ask(endpoint, page, words):
    page.selectbox(key="explore.judge").set_value("environment").run()
    press(page, "Ask the model")
    page.slider(key="explore.min_relevance_threshold").set_value(0.0).run()
    assert len(endpoint.calls) == 1
    assert "1 chunk came in after the model was asked" in words(sane(page))
    press(page, "Ask the model")
    assert len(endpoint.calls) == 2
    assert "came in after" not in words(page)


def test_a_failing_endpoint_is_a_fallback_that_says_why_and_loses_nothing(endpoint, page, words, told, figures):
    endpoint.clear()
    endpoint.expect_request(CHAT).respond_with_data("<html>", content_type="text/html")
    page.selectbox(key="explore.judge").set_value("environment").run()
    press(page, "Ask the model")
    assert "web page instead of an answer" in words(page)
    assert told(page).rsplit(" · ", 1)[1] == "fallback"
    assert figures(page)["kept"][0] == "3 of 4"
    assert KEY not in words(page) + str(page.query_params)


def test_the_connection_can_be_tested(endpoint, page, words):
    page.selectbox(key="explore.judge").set_value("environment").run()
    press(page, "Test connection")
    assert "answers as small in " in words(page)
    assert KEY not in words(page)


def test_a_link_restores_filter_and_judge_and_asks_nobody(endpoint, page, open_app, words):
    page.selectbox(key="explore.judge").set_value("environment").run()
    page.slider(key="explore.min_relevance_threshold").set_value(0.5).run()
    address = dict(sane(page).query_params)
    assert address["judge"] == "environment"
    assert address["pipeline"] == '[{"LLMFilter":{"min_relevance_threshold":0.5}}]'
    again = sane(open_app(judge="environment", pipeline=address["pipeline"]))
    assert "The model was not asked about this list." in words(again)
    assert endpoint.calls == []


def test_a_link_to_an_endpoint_that_is_not_there_says_so(open_app, words):
    app = sane(open_app(judge="gone", pipeline='["LLMFilter"]'))
    assert "there is no endpoint 'gone', expected one of none yet" in words(app)


@pytest.mark.parametrize("judge", ["simulated:2:0", "simulated:0.1:4", "../x", "simulated"])
def test_a_link_with_a_judge_that_cannot_be_is_refused(open_app, words, judge):
    app = sane(open_app(judge=judge, pipeline='["LLMFilter"]'))
    assert "expected simulated:error rate:depth or an endpoint's name" in words(app)


def test_a_setting_without_a_control_is_refused_in_a_link(open_app, words):
    app = sane(open_app(pipeline='[{"LLMFilter":{"timeout_ms":100}}]'))
    assert "LLMFilter.timeout_ms is set" in words(app)


def test_all_queries_run_with_the_simulated_judge(page, words):
    page.number_input(key="explore.error_rate").set_value(0.0).run()
    page.segmented_control(key="explore.below").set_value("All queries").run()
    assert "mean SetF, macro over 1 of 1 queries" in words(sane(page))
