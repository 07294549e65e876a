"""The judge of the Bench's LLM filter: simulated without an endpoint, an endpoint's stored answers, what asking pays,
and judges on trial; against a scripted server, no model.
"""

import json
import re

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from pages import state
from rag_core.llm import accepted
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.spec import parse_pipeline
from tests.pages.walking import sane, waited

KEY = "sk-canary-0123456789abcdefXYZ9"
QUERIES, NAMES = 7, "abcdef"  # the last question has no label
ENTRY = state.encode(parse_pipeline([{"LLMFilter": {"min_relevance_threshold": 0}}]))
FIRST, UNLABELLED = "q0", "q6"


def record(number):
    labels = {} if number == QUERIES - 1 else {name: 1 if name in "ac" else 0 for name in NAMES}
    candidates = [
        {
            "id": f"q{number}{name}", "title": f"Title {name}", "text": f"Text {name} <b>&", "distance": 0.1 * at,
            "ref_ids": [f"q{number}c"] if name == "a" else [], **({"relevant": labels[name]} if labels else {}),
        }
        for at, name in enumerate(NAMES, 1)
    ]  # fmt: skip
    return {"id": f"q{number}", "query": f"question {number}", "metric": "cosine", "candidates": candidates}


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch):
    accepted.forget()
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
    """A scripted server that keeps the first candidate of every prompt."""
    with HTTPServer(threaded=True) as server:
        server.calls = []

        def handler(request):
            text = request.get_json()["messages"][-1]["content"]
            server.calls.append(text)
            count = text.count(" end of ")
            lines = [f"{number} -> {'KEEP' if number == 1 else 'DISCARD'}" for number in range(1, count + 1)]
            body = {"choices": [{"finish_reason": "stop", "message": {"content": "\n".join(lines) or "yes"}}]}
            body["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
            return Response(json.dumps(body), content_type="application/json")

        server.expect_request("/v1/chat/completions").respond_with_handler(handler)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        monkeypatch.setenv("OPENAI_MODEL", "small")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
        monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
        yield server


@pytest.fixture
def bench(lists, open_app):
    """The Bench with the drawer of the LLM filter open."""

    def opened(question=FIRST, **link):
        app = sane(open_app(project="own", q=question, a=ENTRY, b="unfiltered", **link))
        app.session_state["bench.drawer"] = 0
        return sane(app.run())

    return opened


@pytest.fixture
def sides(lists, workspace):
    """How many questions are dev, and how many are held out: a call each."""
    session = Session(open_project("own", workspace))
    return len(session.dev), len(session.held_out)


def press(app, key):
    return sane(app.button(key=key).click().run())


def decisions(app):
    return sane(app.toggle(key="bench.section").set_value(True).run())


def ask(app, about="dev"):
    app.segmented_control(key="judge.scope").set_value(about).run()
    return waited(press(app, "judge.ask.run"))


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def test_without_an_endpoint_a_simulated_judge_answers_and_says_so(bench, words):
    app = bench()
    assert "No model endpoint is set" in words(app)
    assert "simulated: drawn from the labels, 10% wrong" in words(app)
    assert "cost" not in words(app).replace("No cost", "")


def test_the_simulated_judge_errs_as_often_as_it_is_told(bench):
    app = bench()
    agreed = {}
    for rate in (0, 100):
        app.number_input(key="judge.rate").set_value(rate).run()
        rows = frame(decisions(app), "stays")
        pairs = zip(rows["stays"], rows["label"], strict=True)
        agreed[rate] = [(stays == "✓ kept") == (label == 1) for stays, label in pairs]
    assert all(agreed[0])
    assert not any(agreed[100])


def test_a_question_without_labels_refuses_the_simulated_judge_and_says_what_it_needs(bench, words):
    app = bench(UNLABELLED)
    assert "This question has no label" in words(app)
    assert "label some of its chunks" in words(app)


def test_relevant_chunks_are_counted_by_what_took_them(bench):
    app, took = bench(), {}
    for rate in (0, 100):
        app.number_input(key="judge.rate").set_value(rate).run()
        took[rate] = frame(decisions(app), "step").set_index("step")["relevant chunks"]
    assert (took[0]["lost to the model"], took[100]["kept"]) == (0, 0)
    assert took[0]["kept"] == took[100]["lost to the model"] > 0


def test_no_verdict_stands_on_a_simulated_judge(bench, words):
    app = bench()
    button = next(one for one in app.button if one.label.startswith("Judge on"))
    assert button.disabled
    assert "no verdict" in words(app)


def test_decisions_show_each_action_and_what_was_thrown_away_with_its_text(bench, words):
    app = bench()
    app.number_input(key="judge.rate").set_value(50).run()
    decisions(app)
    assert set(frame(app, "action")["action"]) == {"KEEP", "DISCARD"}
    dropped = frame(app, "reason")
    assert f"**{len(dropped)} relevant chunks thrown away**" in words(app)
    assert set(dropped["text"]) <= {"Text a <b>&", "Text c <b>&"}
    assert len(dropped) > 0


def test_how_good_a_judge_must_be_is_said_with_its_break_even(bench, words):
    app = decisions(bench())
    app.toggle(key="judge.how_good").set_value(True).run()
    said = re.search(r"decide ([\d.]+)% of the chunks rightly to beat the best cheap filter", words(sane(app)))
    assert 50 < float(said[1]) <= 100


def test_an_endpoint_is_the_default_and_looking_asks_nobody(endpoint, bench, words):
    app = bench(zoom="all")
    decisions(app).toggle(key="judge.how_good").set_value(True).run()
    assert endpoint.calls == []
    assert "simulated: drawn" not in words(app)
    assert "1 call to make, 0 stored" in words(app)


def test_a_run_is_previewed_then_paid_changes_the_figures_and_costs_nothing_again(endpoint, bench, sides, words):
    app = decisions(bench())
    assert "decided nothing on dev yet" in words(app)
    app.segmented_control(key="judge.scope").set_value("dev").run()
    assert f"{sides[0]} calls to make, 0 stored" in words(app)
    ask(app)
    assert len(endpoint.calls) == sides[0]
    assert f"0 calls to make, {sides[0]} stored: nothing to pay" in words(app)
    assert f"terse on {sides[0]} dev questions: {len(NAMES) * sides[0]} decisions" in words(app)
    assert dict(zip(*(frame(app, "action")[name] for name in ("action", "given")), strict=True)) == {
        "KEEP": sides[0], "DISCARD": (len(NAMES) - 1) * sides[0],
    }  # fmt: skip
    assert "1 of 1 call answered" in words(app)
    assert KEY not in words(app)
    again = bench()
    assert len(endpoint.calls) == sides[0]
    assert "recorded answers of small" in words(again)


def test_a_limit_stops_the_run_and_it_goes_on(endpoint, bench, sides, words):
    app = bench()
    app.segmented_control(key="judge.scope").set_value("dev").run()
    app.number_input(key="judge.ask.calls").set_value(2).run()
    waited(press(app, "judge.ask.run"))
    assert len(endpoint.calls) == 2
    assert "the limit of 2 calls is reached" in words(app)
    app.number_input(key="judge.ask.calls").set_value(0).run()
    waited(press(app, "judge.ask.run"))
    assert len(endpoint.calls) == sides[0]


def test_a_verdict_waits_until_the_model_was_asked_about_every_held_out_question(endpoint, bench, sides, words):
    app = bench()
    judge = next(one for one in app.button if one.label.startswith("Judge on"))
    sane(judge.click().run())
    assert f"{sides[1]} calls about the {sides[1]} held-out questions were never made" in words(app)
    ask(app, "held-out")
    judge = next(one for one in app.button if one.label.startswith("Judge on"))
    sane(judge.click().run())
    assert "were never made" not in words(app)


def test_the_connection_is_tested_by_one_small_question(endpoint, bench, words):
    app = press(bench(), "judge.test")
    assert len(endpoint.calls) >= 1
    assert "answers as small" in words(app)
    assert KEY not in words(app)


def test_one_persons_judge_is_not_anothers(bench, words):
    first, second = bench(), bench()
    first.number_input(key="judge.rate").set_value(100).run()
    assert "100% wrong" in words(first)
    assert "10% wrong" in words(sane(second.run()))


def test_a_broken_file_of_endpoints_is_one_sentence(bench, workspace, words):
    (workspace / "endpoints.yaml").write_text("- name: x\n")
    assert "The file of endpoints cannot be read" in words(bench())
