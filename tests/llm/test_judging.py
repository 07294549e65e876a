"""Judges over a real socket: concurrency, cost, forms, stored answers, redaction."""

import json
import threading
import time

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.errors import EndpointError, InputError, StoreError
from rag_core.llm import accepted
from rag_core.llm import client as client_module
from rag_core.llm import judge as judging
from rag_core.llm.answer import Price
from rag_core.llm.client import RetryBudget, check_connection
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.prompt import Prompt
from rag_core.llm.run import Pace
from rag_core.llm.secret import Key
from rag_core.llm.simulated import SimulatedJudge
from rag_core.llm.store import AnswerStore, answer_key
from rag_core.types import Chunk, Query

KEY = "sk-canary-0123456789abcdefXYZ9"
CHAT = "/v1/chat/completions"
SCHEMA = {"type": "object"}


def Ask(text, schema=None, chunks=()):  # noqa: N802
    """A prompt of one message."""
    return Prompt(({"role": "user", "content": text},), Query("q", "?"), chunks, schema, 10)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    accepted.forget()
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)


@pytest.fixture
def busy_server():
    """A server that answers several requests at once."""
    with HTTPServer(threaded=True) as server:
        yield server


def judge_of(server, price=None, **settings):
    settings = {"deadline": 5.0, "key": Key(KEY), **settings}
    return EndpointJudge(Endpoint("local", server.url_for("/v1"), "small", **settings), price, RetryBudget(20))


def said(text="1 -> KEEP", tokens=(7, 3), **choice):
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]} if tokens else None
    body = {"choices": [{"finish_reason": "stop", "message": {"content": text}, **choice}], "usage": usage}
    return {key: value for key, value in body.items() if value is not None}


def ask(judge, *prompts, seconds=5.0, concurrency=4, model="", cache=True):
    return judge.ask(list(prompts), seconds=seconds, concurrency=concurrency, model=model, cache=cache)


def echo(server):
    """Answer each prompt with its own text."""

    def handler(request):
        return Response(json.dumps(said(request.get_json()["messages"][0]["content"])), content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)


def test_answers_come_in_the_order_of_the_prompts(httpserver):
    echo(httpserver)
    answers = ask(judge_of(httpserver), *(Ask(f"n{at}") for at in range(20)))
    assert [answer.text for answer in answers] == [f"n{at}" for at in range(20)]


def test_loading_the_library_takes_none_of_the_calls_time(httpserver, monkeypatch):
    echo(httpserver)
    clock, opened = [0.0], client_module.Client._opened

    def slowly(client):
        clock[0] += 10 if client._http is None else 0
        return opened(client)

    monkeypatch.setattr(client_module.Client, "_opened", slowly)
    monkeypatch.setattr(judging, "monotonic", lambda: clock[0])
    answers = ask(judge_of(httpserver), Ask("one"), Ask("two"), concurrency=1)
    assert [answer.text for answer in answers] == ["one", "two"]


def test_calls_one_after_the_other_share_the_time(httpserver, monkeypatch):
    clock = [0.0]

    def handler(request):
        clock[0] += 10
        return Response(json.dumps(said()), content_type="application/json")

    httpserver.expect_request(CHAT).respond_with_handler(handler)
    monkeypatch.setattr(judging, "monotonic", lambda: clock[0])
    answers = ask(judge_of(httpserver), Ask("one"), Ask("two"), concurrency=1)
    assert [answer.error for answer in answers] == ["", "no time was left for this call within 5 seconds"]


def test_no_more_calls_than_allowed_are_under_way_at_once(busy_server):
    lock, state = threading.Lock(), {"now": 0, "most": 0}

    def handler(request):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        time.sleep(0.03)
        with lock:
            state["now"] -= 1
        return Response(json.dumps(said()), content_type="application/json")

    busy_server.expect_request(CHAT).respond_with_handler(handler)
    ask(judge_of(busy_server), *(Ask(str(at)) for at in range(12)), concurrency=3)
    assert state["most"] == 3


def test_an_answer_costs_its_tokens_and_without_a_price_it_is_unknown(httpserver):
    httpserver.expect_request(CHAT).respond_with_json(said(tokens=(1000, 100)))
    assert ask(judge_of(httpserver), Ask("a"))[0].cost is None
    priced = ask(judge_of(httpserver, Price(2.0, 10.0)), Ask("a"))[0]
    assert priced.cost == pytest.approx(1000 * 2e-6 + 100 * 10e-6)


def test_tokens_the_endpoint_does_not_count_are_estimated_for_the_cost(httpserver):
    httpserver.expect_request(CHAT).respond_with_json(said("x" * 40, tokens=None))
    answer = ask(judge_of(httpserver, Price(1.0, 1.0)), Ask("a" * 400))[0]
    assert answer.prompt_tokens is None
    assert answer.cost == pytest.approx((100 + 10) * 1e-6)


def test_another_model_can_be_named(httpserver):
    httpserver.expect_request(CHAT).respond_with_json(said())
    ask(judge_of(httpserver), Ask("a"), model="large")
    assert httpserver.log[0][0].get_json()["model"] == "large"


def test_a_pace_spaces_calls():
    pace, started = Pace(per_second=50), time.monotonic()
    for _ in range(4):
        pace.wait()
    assert time.monotonic() - started >= 3 / 50
    Pace().wait()


def formats(server):
    return [request.get_json().get("response_format", {}).get("type", "text") for request, _ in server.log]


@pytest.mark.parametrize(
    ("taken", "first", "second"),
    [
        ("json_schema", ["json_schema"], ["json_schema"]),
        ("json_object", ["json_schema", "json_object"], ["json_object"]),
        ("text", ["json_schema", "json_object", "text"], ["text"]),
    ],
)
def test_the_strictest_form_the_server_takes_is_found_once_and_remembered(httpserver, taken, first, second):
    def handler(request):
        asked = request.get_json().get("response_format", {}).get("type", "text")
        status = 200 if asked == taken else 400
        return Response(json.dumps(said()), status=status, content_type="application/json")

    httpserver.expect_request(CHAT).respond_with_handler(handler)
    assert ask(judge_of(httpserver), Ask("a", SCHEMA))[0].text == "1 -> KEEP"
    assert formats(httpserver) == first
    assert ask(judge_of(httpserver), Ask("b", SCHEMA))[0].text == "1 -> KEEP"
    assert formats(httpserver) == first + second


def test_a_prompt_too_long_is_not_asked_in_another_form(httpserver):
    body = {"error": {"message": "x", "code": "context_length_exceeded"}}
    httpserver.expect_request(CHAT).respond_with_json(body, status=400)
    assert "context_length_exceeded" in ask(judge_of(httpserver), Ask("a", SCHEMA))[0].error
    assert set(formats(httpserver)) == {"json_schema"}
    assert len(httpserver.log) <= 3  # the limit of the answer may have been what was too long


def test_without_a_schema_no_form_is_asked_for(httpserver):
    httpserver.expect_request(CHAT).respond_with_json(said())
    ask(judge_of(httpserver), Ask("a"))
    assert formats(httpserver) == ["text"]


def test_a_chat_answer_over_two_megabytes_is_refused_and_a_long_one_cut(httpserver):
    httpserver.expect_ordered_request(CHAT).respond_with_json(said("x" * 2_100_000))
    httpserver.expect_ordered_request(CHAT).respond_with_json(said("x" * 1_000_000))
    judge = judge_of(httpserver)
    assert "sent more than 2,000,000 bytes" in ask(judge, Ask("a"))[0].error
    assert len(ask(judge, Ask("b"))[0].text) == 200_000


def test_an_answer_that_echoes_the_key_is_masked_and_stored_masked(httpserver, tmp_path):
    httpserver.expect_request(CHAT).respond_with_json({**said(f"your key is {KEY}"), "model": KEY})
    store = AnswerStore(tmp_path / "answers.sqlite")
    answer = ask(RecordedJudge(store, judge_of(httpserver), "small"), Ask("a"))[0]
    assert KEY not in str(answer)
    store.close()
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())


# --- stored answers ---


def recorded(tmp_path, behind):
    return RecordedJudge(AnswerStore(tmp_path / "answers.sqlite"), behind, "small")


def test_a_stored_answer_is_not_asked_for_again_not_even_by_another_process(httpserver, tmp_path):
    echo(httpserver)
    ask(recorded(tmp_path, judge_of(httpserver, Price(1, 1))), Ask("a"), Ask("b"))
    again = ask(recorded(tmp_path, judge_of(httpserver)), Ask("b"), Ask("c"), Ask("a"))
    assert [(answer.text, answer.cached) for answer in again] == [("b", True), ("c", False), ("a", True)]
    assert again[0].cost == pytest.approx(10e-6)
    assert len(httpserver.log) == 3


def test_a_failed_call_is_not_stored(httpserver, tmp_path):
    httpserver.expect_ordered_request(CHAT).respond_with_json({}, status=401)
    httpserver.expect_ordered_request(CHAT).respond_with_json(said("now"))
    judge = recorded(tmp_path, judge_of(httpserver))
    assert ask(judge, Ask("a"))[0].error
    assert ask(judge, Ask("a"))[0].text == "now"


def test_without_the_cache_nothing_is_read_or_stored(httpserver, tmp_path):
    echo(httpserver)
    judge = recorded(tmp_path, judge_of(httpserver))
    ask(judge, Ask("a"), cache=False)
    ask(judge, Ask("a"), cache=False)
    assert len(httpserver.log) == 2
    assert judge.store.count() == 0


def test_a_replay_gives_what_was_recorded_and_says_what_was_not(httpserver, tmp_path):
    echo(httpserver)
    ask(recorded(tmp_path, judge_of(httpserver)), Ask("a"))
    replay = recorded(tmp_path, judge_of(httpserver)).replay()
    answers = ask(replay, Ask("a"), Ask("b"))
    assert answers[0].text == "a"
    assert answers[1].error == "the answer to this prompt was not recorded"
    assert replay.name == "recorded answers of small"


def test_the_store_can_be_cleared(httpserver, tmp_path):
    echo(httpserver)
    judge = recorded(tmp_path, judge_of(httpserver))
    ask(judge, Ask("a"), Ask("b"))
    assert judge.store.clear() == 2
    assert judge.store.count() == 0


def test_the_identity_of_a_question_is_the_address_with_its_parameters_model_messages_and_schema():
    here, there = (Endpoint("e", f"https://{host}/v1", "m").place for host in ("a.example", "b.example"))
    thinks = Endpoint("e", "https://a.example/v1", "m", reasoning_effort="high").place
    keys = [
        answer_key(here, "m", Ask("a")),
        answer_key(here, "n", Ask("a")),
        answer_key(here, "m", Ask("b")),
        answer_key(here, "m", Ask("a", SCHEMA)),
        answer_key(there, "m", Ask("a")),
        answer_key(thinks, "m", Ask("a")),
    ]
    assert len(set(keys)) == 6
    assert answer_key(here, "m", Ask("a")) == keys[0]


def test_a_store_that_breaks_while_in_use_costs_no_answer(httpserver, tmp_path):
    echo(httpserver)
    judge = recorded(tmp_path, judge_of(httpserver))
    judge.store.close()
    assert ask(judge, Ask("a"))[0].text == "a"


def test_a_file_that_is_no_store_is_named(tmp_path):
    (tmp_path / "answers.sqlite").write_bytes(b"no database at all, but long enough to be read as one" * 50)
    with pytest.raises(StoreError, match=r"answers\.sqlite cannot be used"):
        AnswerStore(tmp_path / "answers.sqlite")


# --- simulated judge ---

CHUNKS = tuple(Chunk(f"c{at}", ref_ids=("x",) if at % 2 else ()) for at in range(1000))
LABELS = {"q": {f"c{at}": at % 4 for at in range(1000)}}


def decided(judge, chunks=CHUNKS):
    (answer,) = ask(judge, Ask("", chunks=chunks))
    return [one["action"] for one in json.loads(answer.text)["decisions"]]


def test_a_simulated_judge_without_error_answers_the_labels():
    assert decided(SimulatedJudge(LABELS), CHUNKS[:4]) == ["DISCARD", "KEEP", "KEEP", "KEEP"]
    assert decided(SimulatedJudge(LABELS, min_grade=2), CHUNKS[:4]) == ["DISCARD", "DISCARD", "KEEP", "KEEP"]


def test_a_question_without_labels_is_refused_by_a_simulated_judge():
    (answer,) = ask(SimulatedJudge({}), Ask("", chunks=CHUNKS[:2]))
    assert answer.text is None
    assert "label some of its chunks" in answer.error


def test_its_depth_is_for_relevant_chunks_with_references():
    assert decided(SimulatedJudge(LABELS, depth=3), CHUNKS[:4]) == ["DISCARD", "EXPAND_3", "KEEP", "EXPAND_3"]


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_its_error_rate_is_what_was_asked_for(rate):
    right, wrong = decided(SimulatedJudge(LABELS)), decided(SimulatedJudge(LABELS, rate, seed=5))
    share = sum(a != b for a, b in zip(right, wrong, strict=True)) / 1000
    assert share == pytest.approx(rate, abs=0.03)
    assert decided(SimulatedJudge(LABELS, 1.0), CHUNKS[:2]) == ["KEEP", "DISCARD"]
    assert decided(SimulatedJudge(LABELS, 1.0, errs="keeping"), CHUNKS[:2]) == ["KEEP", "KEEP"]
    assert decided(SimulatedJudge(LABELS, 1.0, errs="dropping"), CHUNKS[:2]) == ["DISCARD", "DISCARD"]


def test_an_error_does_not_depend_on_batch_or_order_but_on_the_seed():
    judge = SimulatedJudge(LABELS, 0.3, seed=1)
    assert decided(judge, CHUNKS[::-1]) == decided(judge)[::-1]
    assert decided(judge, CHUNKS[500:501]) == decided(judge)[500:501]
    assert decided(judge) != decided(SimulatedJudge(LABELS, 0.3, seed=2))


def test_it_has_a_price_and_always_says_what_it_is():
    judge = SimulatedJudge(LABELS, 0.1, price=Price(1.0, 2.0))
    (answer,) = ask(judge, Ask("", chunks=CHUNKS[:1]))
    assert answer.cost == pytest.approx(2 * 10 * 1e-6)  # the prompt has no text
    assert judge.name.startswith("simulated judge")


@pytest.mark.parametrize("wrong", [{"error_rate": 1.5}, {"error_rate": -0.1}, {"depth": 2}])
def test_what_it_cannot_be_is_refused(wrong):
    with pytest.raises(InputError, match="simulated judge"):
        SimulatedJudge({}, **wrong)


# --- test connection ---


def test_a_connection_shows_the_model_the_form_and_the_tokens(httpserver):
    httpserver.expect_request(CHAT).respond_with_json({**said('{"answer": "yes"}'), "model": "served"})
    found = check_connection(judge_of(httpserver).endpoint)
    assert (found.model, found.form, found.prompt_tokens) == ("served", "json schema", 7)


def test_a_new_user_without_a_key_is_told_to_set_one(httpserver):
    httpserver.expect_request(CHAT).respond_with_json({}, status=401)
    with pytest.raises(EndpointError, match="wants a key and none is set; set OPENAI_API_KEY"):
        check_connection(Endpoint("local", httpserver.url_for("/v1"), "small"))


def test_a_new_user_with_a_wrong_model_name_is_told_the_right_ones(httpserver):
    httpserver.expect_request(CHAT).respond_with_json({}, status=404)
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": f"m{at}"} for at in range(10)]})
    with pytest.raises(EndpointError, match=r"does not know the model.*\(model small\).*it has m0, .*m7 and 2 more"):
        check_connection(judge_of(httpserver).endpoint)


def test_a_new_user_whose_server_is_down_is_told_to_check_it():
    with pytest.raises(EndpointError, match=r"cannot be reached.*check that it is running"):
        check_connection(Endpoint("local", "http://127.0.0.1:9/v1", "small"))
