"""Models of today on scripted servers: what they refuse, how strict they are, and the shapes of their answers.

The servers are scripted from the documents of OpenAI (structured outputs, reasoning models), Ollama (OpenAI
compatibility), vLLM (OpenAI-compatible server), llama.cpp (tools/server) and LiteLLM (proxy); none of them is run here.
"""

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import chain, combinations

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.answers.answering import JUDGED
from rag_core.filters.llm.prompts import answer_schema
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged.grading import SCHEMA as GRADE
from rag_core.judged.questions import SCHEMA as QUESTION
from rag_core.llm import accepted
from rag_core.llm.answer import MOST_TOKENS, Answer, Price
from rag_core.llm.client import Client, check_connection
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.prompt import Prompt, strict
from rag_core.llm.run import RunLimits, answer_all
from rag_core.llm.store import AnswerStore
from rag_core.retrieve.multihop import SCHEMA as HOP
from rag_core.rules import generate
from rag_core.types import Candidates, Chunk, Hit, Metric, Query

CHAT = "/v1/chat/completions"
OPTIONS = {"temperature": 0.0, "seed": 7, "reasoning_effort": "low"}
REFUSABLE = ("temperature", "max_tokens", "response_format", "seed")
SOME = [*chain.from_iterable(combinations(REFUSABLE, count) for count in (1, 4))]


@pytest.fixture(scope="module")
def server():
    with HTTPServer(threaded=True) as started:
        yield started


@pytest.fixture(autouse=True)
def fresh(server):
    accepted.forget()
    server.clear()
    server.log.clear()


def keeps_all(sent):
    count = sent["messages"][-1]["content"].count(" end of ")
    said = {"decisions": [{"id": at, "action": "KEEP"} for at in range(1, count + 1)]}
    return {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(said)}}]}


def as_openai(name):
    error = {"message": f"Unsupported parameter: '{name}' is not supported with this model. Use another instead."}
    return 400, {"error": {**error, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}}


def as_litellm(name):
    text = f"litellm.UnsupportedParamsError: small does not support parameters: ['{name}'], for model=small. To drop"
    return 400, {"error": {"message": text, "type": None, "param": None, "code": "400"}}


def as_fastapi(name):
    return 422, {
        "detail": [{"loc": ["body", name], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"}]
    }


def unnamed(name):
    return 400, {"error": {"code": 400, "message": "invalid request", "type": "invalid_request_error"}}


def serve(server, refused, shape):
    """Keep every candidate; a request with a refused parameter is refused in the shape of that server."""

    def handler(request):
        sent = request.get_json()
        wrong = next((name for name in sent if name in refused), None)
        status, body = (200, keeps_all(sent)) if wrong is None else shape(wrong)
        return Response(json.dumps(body), status, content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)


def a_list(count=3):
    hits = [Hit(Chunk(f"c{at}", f"T{at}", f"Text {at}"), at, {"distance": at / 100}) for at in range(1, count + 1)]
    return Candidates(Query("q", "How?"), tuple(hits), metric=Metric.COSINE)


@pytest.mark.parametrize("shape", [as_openai, as_litellm, as_fastapi, unnamed])
@pytest.mark.parametrize("refused", SOME, ids=" ".join)
def test_what_an_endpoint_refuses_is_left_out_at_once_and_never_sent_again(server, refused, shape):
    serve(server, refused, shape)
    endpoint = Endpoint("scripted", server.url_for("/v1"), "small", deadline=20.0, **OPTIONS)
    stage = replace(LLMFilter(timeout_ms=20_000), judge=EndpointJudge(endpoint))
    first = stage(a_list())
    assert not first.fallbacks
    assert first.steps[-1].facts["decided"] == 3
    before = len(server.log)
    assert not stage(a_list(4)).fallbacks
    assert len(server.log) == before + 1  # accepted at the first try
    sent = server.log[-1][0].get_json()
    assert not set(sent) & set(refused)
    if shape is not unnamed:  # what was named is left out, and nothing else
        kept = {"temperature", "seed", "response_format", "reasoning_effort"} - set(refused)
        assert kept <= set(sent)
        assert "max_completion_tokens" in sent or "max_tokens" not in refused


def test_nothing_is_sent_that_is_not_set_but_the_limit_of_an_answer(server):
    serve(server, (), unnamed)
    Client(Endpoint("scripted", server.url_for("/v1"), "small")).chat([{"role": "user", "content": "?"}])
    assert set(server.log[0][0].get_json()) == {"model", "messages", "max_tokens"}


def test_the_sentence_names_what_is_refused_and_the_connection_what_is_left_out(server):
    serve(server, ("seed",), as_openai)
    said = check_connection(Endpoint("scripted", server.url_for("/v1"), "small", seed=1))
    assert said.left_out == ("seed",)
    assert "without seed" in said.to_text()
    server.clear()
    server.expect_request(CHAT).respond_with_json(as_openai("messages")[1], status=400)
    failed = Client(Endpoint("scripted", server.url_for("/v1"), "other")).try_chat([{"role": "user", "content": "?"}])
    assert "unsupported_parameter: messages" in failed.error


# Strict validators: each refuses what its document does not list


def of_openai(schema, root=True):
    """Structured outputs: an object at the root, every property required, no others, nesting of at most ten."""
    listed = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description"}
    assert set(schema) <= listed, set(schema) - listed
    assert not root or (schema.get("type") == "object" and "anyOf" not in schema)
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    assert len(schema.get("enum", ())) <= 1000


def of_llama_cpp(schema, root=True):
    """The grammar converter: a type by one name, arrays with items, references resolved."""
    assert isinstance(schema.get("type", ""), str)
    assert schema.get("type") in ("object", "array", "string", "integer", "number", "boolean", "null", None)
    assert "$ref" not in schema
    assert schema.get("type") != "array" or "items" in schema
    assert "type" in schema or "anyOf" in schema or "enum" in schema


def of_vllm(schema, root=True):
    """The xgrammar backend: it refuses these keywords."""
    unsupported = {"multipleOf", "uniqueItems", "contains", "minContains", "maxContains", "patternProperties",
                   "propertyNames", "minProperties", "maxProperties", "$defs", "format"}  # fmt: skip
    assert not set(schema) & unsupported


def walked(schema, check, root=True):
    check(schema, root)
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        walked(inner, check, False)
    if "items" in schema:
        walked(schema["items"], check, False)


SCHEMAS = {
    "decisions": answer_schema(40),
    "decisions with reasons": answer_schema(3, with_reasons=True),
    "grades": GRADE,
    "hops": HOP,
    "rules": generate.answer_schema(5),
    "one rule": generate.rule_schema(),
    "answers judged": JUDGED,
    "questions": QUESTION,
}


@pytest.mark.parametrize("validator", [of_openai, of_llama_cpp, of_vllm])
@pytest.mark.parametrize("name", SCHEMAS)
def test_three_scripted_strict_validators_accept_every_schema(server, name, validator):
    def handler(request):
        sent = request.get_json()
        try:
            walked(sent["response_format"]["json_schema"]["schema"], validator)
        except AssertionError:
            return Response("{}", 400, content_type="application/json")
        return Response(json.dumps(keeps_all(sent)), content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)
    client = Client(Endpoint("scripted", server.url_for("/v1"), "small"))
    assert client.try_chat([{"role": "user", "content": "?"}], SCHEMAS[name]).error == ""
    assert len(server.log) == 1
    assert client.accepted.form == 0


def test_a_rule_of_a_strict_answer_loses_its_nulls_and_nothing_else():
    rule = {"contain_one_of": [["dragon"]], "contain": None, "number_in": None}
    ((number, read),) = generate._entries(json.dumps({"rules": [{"number": 1, "query_must": rule}]}), "stop")
    assert (number, read) == (1, {"contain_one_of": [["dragon"]]})


def test_a_strict_schema_allows_every_value_that_the_schema_allows():
    jsonschema = pytest.importorskip("jsonschema")
    for rule in ({"contain_one_of": [["a", 1]]}, {"number_in": [{"label": ["ac"], "min": 1, "max": 4}]}):
        jsonschema.validate(rule, generate.rule_schema())
        full = {name: rule.get(name) for name in generate.rule_schema()["properties"]}
        for element in full.get("number_in") or ():
            element |= {"min": element.get("min"), "max": element.get("max")}
        jsonschema.validate(full, strict(generate.rule_schema()))


# Shapes of answers


def scripted(content, **message):
    return {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}


SHAPES = {
    "scripted ollama": {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "qwen3:8b",
        "system_fingerprint": "fp_ollama", "choices": [scripted("1 -> KEEP", reasoning="it fits")],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    },
    "scripted vllm": {
        "id": "chatcmpl-2", "object": "chat.completion", "created": 1, "model": "Qwen/Qwen3-8B",
        "choices": [{**scripted("1 -> KEEP", refusal=None, tool_calls=[], reasoning_content=None), "logprobs": None,
                     "stop_reason": None, "token_ids": None}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17, "prompt_tokens_details": None},
        "prompt_logprobs": None, "kv_transfer_params": None,
    },
    "scripted llama.cpp": {
        "choices": [scripted("1 -> KEEP")], "created": 1, "model": "gpt-3.5-turbo", "object": "chat.completion",
        "usage": {"completion_tokens": 5, "prompt_tokens": 12, "total_tokens": 17}, "id": "chatcmpl-3",
        "timings": {"prompt_n": 12, "prompt_ms": 1.5, "predicted_n": 5},
    },
    "scripted litellm": {
        "id": "chatcmpl-4", "created": 1, "model": "gpt-5-mini", "object": "chat.completion",
        "choices": [scripted("1 -> KEEP", provider_specific_fields={"refusal": None}, annotations=[])],
        "usage": {"completion_tokens": 5, "prompt_tokens": 12, "total_tokens": 17,
                  "completion_tokens_details": {"reasoning_tokens": 3}}, "service_tier": "default",
    },
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_answers_of_servers_people_run_are_read(server, shape):
    server.expect_request(CHAT).respond_with_json(SHAPES[shape])
    said = Client(Endpoint("scripted", server.url_for("/v1"), "small")).chat([{"role": "user", "content": "?"}])
    assert (said.text, said.prompt_tokens, said.completion_tokens) == ("1 -> KEEP", 12, 5)
    assert said.model == SHAPES[shape]["model"]


@pytest.mark.parametrize("count", [-1, 1.5, True, "9", None, MOST_TOKENS + 1, 2**70])
def test_a_count_of_tokens_that_cannot_be_is_none(server, count):
    server.expect_request(CHAT).respond_with_json({"choices": [scripted("x")], "usage": {"prompt_tokens": count}})
    said = Client(Endpoint("scripted", server.url_for("/v1"), "small")).chat([{"role": "user", "content": "?"}])
    assert said.prompt_tokens is None


def test_a_model_that_only_thought_says_that_the_limit_may_be_too_small(server):
    choice = {**scripted(None, reasoning="hm, hm"), "finish_reason": "length"}
    server.expect_request(CHAT).respond_with_json({"choices": [choice]})
    said = Client(Endpoint("scripted", server.url_for("/v1"), "small")).try_chat([{"role": "user", "content": "?"}])
    assert "a larger max_tokens may help" in said.error


def test_no_budget_is_kept_with_an_endpoint_that_takes_no_limit(server):
    serve(server, ("max_tokens", "max_completion_tokens"), as_openai)
    judge = EndpointJudge(Endpoint("scripted", server.url_for("/v1"), "small"), Price(1.0, 1.0))
    prompts = [Prompt(({"role": "user", "content": f"{at}"},), Query("q", "?")) for at in range(9)]
    done = answer_all([(judge, prompts)], RunLimits(concurrency=1, budget=1.0))
    assert "takes no limit of an answer's length" in done.stopped
    assert done.asked == 1


def with_odds(sent, **changes):
    """Every candidate kept, each token of three characters with a probability of a half."""
    body = keeps_all(sent)
    text = body["choices"][0]["message"]["content"]
    tokens = [{"token": text[at : at + 3], "logprob": math.log(0.5), "bytes": None} for at in range(0, len(text), 3)]
    body["choices"][0]["logprobs"] = {"content": tokens} | changes
    return body


def test_log_probabilities_are_asked_for_where_set_and_say_how_sure_a_decision_is(server, tmp_path):
    asked = []

    def handler(request):
        asked.append(request.get_json())
        return Response(json.dumps(with_odds(asked[-1])), content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)
    endpoint = Endpoint("scripted", server.url_for("/v1"), "small", logprobs=True)
    judge = RecordedJudge(AnswerStore(tmp_path / "a.sqlite"), EndpointJudge(endpoint), "small")
    notes = []
    for one in (judge, judge.replay()):
        after = replace(LLMFilter(timeout_ms=20_000), judge=one)(a_list())
        notes.append([hit.notes["LLMFilter"] for hit in after.hits])
    assert asked[0]["logprobs"] is True
    assert len(asked) == 1
    assert notes[0] == notes[1]
    assert set(notes[0]) <= {"KEEP (25% sure)", "KEEP (12% sure)"}  # four letters lie in two or three tokens


@pytest.mark.parametrize("wrong", [{"content": None}, {"content": [{"token": "x", "logprob": -1}]}, {"content": "no"}])
def test_log_probabilities_of_another_text_are_none(server, wrong):
    def handler(request):
        return Response(json.dumps(with_odds(request.get_json(), **wrong)), content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)
    endpoint = Endpoint("scripted", server.url_for("/v1"), "small", logprobs=True)
    assert Client(endpoint).try_chat([{"role": "user", "content": "?"}]).odds == ()


def test_answers_stored_before_there_were_log_probabilities_are_read(tmp_path):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE answer (key TEXT PRIMARY KEY, model TEXT NOT NULL, judge TEXT NOT NULL, text TEXT NOT "
                    "NULL, finish_reason TEXT NOT NULL, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, "
                    "milliseconds REAL NOT NULL, asked_at REAL NOT NULL) WITHOUT ROWID")  # fmt: skip
        old.execute("INSERT INTO answer VALUES ('k', 'm', 'j', 'yes', 'stop', 1, 2, NULL, 3.0, 4.0)")
        old.commit()
    store = AnswerStore(path)
    assert (store.get("k").text, store.get("k").odds) == ("yes", ())
    store.put("l", "m", "j", Answer("no", odds=((2, -0.5),)))
    assert store.get("l").odds == ((2, -0.5),)
