"""The page LLM filter, with simulated judges and against a scripted server (no model)."""

import json
import time

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.llm import ladder

KEY = "sk-canary-0123456789abcdefXYZ9"
SIMULATED = "terse · simulated judge, error rate 0.1, seed 0"
QUERIES, NAMES = 6, "abcdef"


def record(number):
    candidates = [
        {
            "id": f"q{number}{name}", "title": f"Title {name}", "text": f"Text {name} <b>&", "distance": 0.1 * at,
            "relevant": 1 if name in "ac" else 0, "ref_ids": [f"q{number}c"] if name == "a" else [],
        }
        for at, name in enumerate(NAMES, 1)
    ]  # fmt: skip
    return {"id": f"q{number}", "query": f"question {number}", "metric": "cosine", "candidates": candidates}


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    ladder.forget()
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "WINNOW_PRICE_IN", "WINNOW_PRICE_OUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lists(workspace):
    folder = workspace / "eval_sets" / "own"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\ntitle: Own lists\n")
    (folder / "lists.jsonl").write_text("\n".join(json.dumps(record(number)) for number in range(QUERIES)))


@pytest.fixture
def endpoint(monkeypatch):
    """A scripted server: keeps the first candidate of every prompt; answers a question with its number of passages."""
    with HTTPServer(threaded=True) as server:
        server.calls = []

        def handler(request):
            text = request.get_json()["messages"][-1]["content"]
            server.calls.append(text)
            count = text.count(" end of ")
            lines = [f"{number} -> {'KEEP' if number == 1 else 'DISCARD'}" for number in range(1, count + 1)]
            said = "\n".join(lines) or f"an answer from {text.count('| Text')} passages"
            body = {"choices": [{"finish_reason": "stop", "message": {"content": said}}]}
            body["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request("/v1/chat/completions").respond_with_handler(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
        monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
        yield server


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.fixture
def page(lists, open_app):
    """The page on the lists above, with the free list as the only cheap filter."""
    app = open_app()
    app.query_params.clear()  # as a browser does on the way to another page
    app.session_state["choice.eval_set"] = "own"
    return sane(app.switch_page("pages/llm_filter.py").run())


def view(app, name):
    return sane(app.segmented_control(key="llm.view").set_value(name).run())


def press(app, key):
    return sane(app.button(key=key).click().run())


def waited(app):
    """The page after its job is over."""
    for _ in range(100):
        sane(app.run())
        if not any(one.key == "llm.cancel" for one in app.button):
            return app
        time.sleep(0.1)
    raise AssertionError("the run did not end")


def table(app, at=0):
    return app.dataframe[at].value


def figures(app):
    return table(app, 1).set_index("prompt and judge")


def test_without_an_endpoint_the_page_says_what_to_set_and_compares_the_simulated_judge(page, words):
    assert "No model endpoint is set: set OPENAI_API_KEY" in words(page)
    rows = table(page).set_index("prompt and judge")
    assert list(rows.index) == ["rerank off", "adaptive-default", SIMULATED]
    assert rows.loc[SIMULATED, "SetF"] > rows.loc["rerank off", "SetF"]
    assert rows.loc[SIMULATED, "cost, USD"] > 0
    assert figures(page).loc[SIMULATED, "fallback"] == 0
    assert f"{SIMULATED} against rerank off: SetF +" in words(page)


def test_judges_of_several_error_rates_stand_side_by_side(page):
    page.multiselect(key="llm.rates").set_value([0.0, 0.5]).run()
    names = list(table(sane(page))["prompt and judge"])
    assert "terse · simulated judge, error rate 0, seed 0" in names
    assert "terse · simulated judge, error rate 0.5, seed 0" in names


def test_decisions_show_each_action_and_what_was_thrown_away_with_its_text(page, words):
    page.multiselect(key="llm.rates").set_value([0.5]).run()
    view(page, "Decisions")
    assert set(table(page)["action"]) == {"KEEP", "DISCARD"}
    dropped = table(page, 1)
    assert f"**{len(dropped)} relevant chunks thrown away**" in words(page)
    assert set(dropped["text"]) <= {"Text a <b>&", "Text c <b>&"}
    assert len(dropped) > 0


def test_how_good_a_judge_must_be_is_said_with_its_break_even(page, words):
    view(page, "How good?")
    assert "% of the chunks rightly to beat the best free filter" in words(page)
    assert list(table(page).columns)[:2] == ["accuracy", "seed"]
    assert len(table(page)) == 18


def test_the_depth_shows_what_references_bring(page):
    page.number_input(key="llm.most").set_value(1).run()
    view(page, "Depth")
    assert list(table(page)["chunks"]) == [1, 2, 2, 2]


def test_the_order_does_not_sway_a_simulated_judge(page):
    view(page, "Repeat")
    shown = {metric.label: (metric.value, metric.delta) for metric in page.metric}
    assert shown["repeatability"] == ("100%", "over 3 runs")
    assert shown["order flips"][0] == "0%"


def test_a_run_is_previewed_then_paid_and_costs_nothing_again(endpoint, page, words):
    page.multiselect(key="llm.rates").set_value([]).run()
    page.multiselect(key="llm.endpoints").set_value(["environment"]).run()
    assert "6 calls to make, 0 stored" in words(sane(page))
    assert endpoint.calls == []
    assert "terse: no question is answered yet" in words(page)
    assert list(table(page)["prompt and judge"]) == ["rerank off", "adaptive-default"]
    assert "terse against" not in words(page)
    press(page, "llm.variants.run")
    waited(page)
    assert len(endpoint.calls) == 6
    assert "0 calls to make, 6 stored" in words(page)
    assert "6 queries better, 0 equal, 0 worse" in words(page)
    rows = table(page).set_index("prompt and judge")
    assert rows.loc["terse", "SetP"] == 1.0
    assert rows.loc["terse", "cost, USD"] == pytest.approx(6 * 0.11)
    assert KEY not in words(page)


def test_a_budget_stops_the_run_and_the_rest_is_a_counted_fallback(endpoint, page, words):
    page.multiselect(key="llm.rates").set_value([]).run()
    page.multiselect(key="llm.endpoints").set_value(["environment"]).run()
    page.number_input(key="llm.variants.calls").set_value(2).run()
    press(page, "llm.variants.run")
    waited(page)
    assert len(endpoint.calls) == 2
    assert "the limit of 2 calls is reached" in words(page)
    assert figures(page).loc["terse", "fallback"] == 0.67
    page.number_input(key="llm.variants.calls").set_value(0).run()
    press(page, "llm.variants.run")
    waited(page)
    assert len(endpoint.calls) == 6


def test_a_question_is_answered_from_both_contexts_and_kept(endpoint, page, words):
    page.multiselect(key="llm.rates").set_value([0.0]).run()
    page.multiselect(key="llm.endpoints").set_value(["environment"]).run()
    view(page, "Answer")
    page.selectbox(key="llm.answer.by").set_value("terse · simulated judge, error rate 0, seed 0").run()
    press(page, "llm.answer")
    assert [block.value for block in page.code] == ["an answer from 6 passages", "an answer from 2 passages"]
    again = view(view(page, "Depth"), "Answer")
    assert [block.value for block in again.code] == ["an answer from 6 passages", "an answer from 2 passages"]


def test_one_of_a_kind_stands_in_the_singular(endpoint, page, words):
    page.number_input(key="llm.first.own").set_value(1).run()
    page.multiselect(key="llm.endpoints").set_value(["environment"]).run()
    assert "1 call to make, 0 stored" in words(sane(page))
    assert page.button(key="llm.variants.run").label == "Ask 1 question"
    assert f"{SIMULATED} against rerank off: SetF +" in words(page)
    assert "1 query better" in words(page)


def test_without_an_endpoint_answer_says_that_it_needs_one(page, words):
    view(page, "Answer")
    assert "Answering needs an endpoint" in words(page)


def test_without_a_judge_the_page_asks_for_one(page, words):
    page.multiselect(key="llm.rates").set_value([]).run()
    assert "Choose at least one prompt and one judge" in words(sane(page))
