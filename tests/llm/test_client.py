"""The client against faults on a real socket."""

import json
import logging
import time

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.errors import EndpointError
from rag_core.llm import client as client_module
from rag_core.llm import client as transport
from rag_core.llm.client import Client, RetryBudget
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.secret import Key

KEY = "sk-canary-0123456789abcdefXYZ9"
PATH = "/v1/embeddings"
CHAT = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_WAIT", 0.01)


def make_client(server: HTTPServer, **settings) -> Client:
    settings = {"deadline": 5.0, "key": Key(KEY), **settings}
    return Client(Endpoint("local", server.url_for("/v1"), "small-model", **settings))


def embedding_answer(*vectors, order=None):
    rows = [{"object": "embedding", "index": i, "embedding": list(v)} for i, v in enumerate(vectors)]
    return {"object": "list", "data": [rows[i] for i in order] if order else rows, "model": "small-model"}


def chat_json(content="yes", reason="stop", **message):
    return {"choices": [{"index": 0, "finish_reason": reason, "message": {"content": content, **message}}]}


def counted(server, path=PATH):
    return sum(request.path == path for request, _ in server.log)


def test_embeddings_come_in_the_order_of_the_texts_though_the_server_shuffles(httpserver):
    httpserver.expect_request(PATH).respond_with_json(embedding_answer([1, 0], [0, 1], [1, 1], order=[2, 0, 1]))
    assert make_client(httpserver).embed(["a", "b", "c"]) == [[1, 0], [0, 1], [1, 1]]


def test_the_request_holds_float_format_the_model_and_the_key(httpserver):
    httpserver.expect_request(PATH).respond_with_json(embedding_answer([1, 0]))
    make_client(httpserver).embed(["a"])
    request = httpserver.log[0][0]
    assert request.get_json() == {"model": "small-model", "input": ["a"], "encoding_format": "float"}
    assert request.headers["Authorization"] == f"Bearer {KEY}"


def test_no_texts_ask_nothing(httpserver):
    assert make_client(httpserver).embed([]) == []
    assert httpserver.log == []


def test_the_environment_lends_neither_address_nor_key_nor_organization(httpserver, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"):
        headers = "X-Stolen: from-environment\nAuthorization: Bearer from-environment"
        monkeypatch.setenv(name, headers if name.endswith("HEADERS") else "from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    httpserver.expect_request(PATH).respond_with_json(embedding_answer([1, 0]))
    make_client(httpserver).embed(["a"])
    sent = httpserver.log[0][0].headers
    assert "from-environment" not in str(sent)
    assert sent["Authorization"] == f"Bearer {KEY}"


EMBEDDING_FAULTS = {
    "too few": (embedding_answer([1, 0]), "sent 1 embeddings for 2 texts"),
    "none": ({"data": []}, "sent 0 embeddings for 2 texts"),
    "no list": ({"data": None}, "no list of embeddings"),
    "one index twice": ({"data": [{"index": 0, "embedding": [1]}] * 2}, "numbered its embeddings wrongly"),
    "index not a number": ({"data": [{"index": "0", "embedding": [1]}] * 2}, "numbered its embeddings wrongly"),
    "two widths": (embedding_answer([1, 0], [1, 0, 0]), "3 dimensions, expected 2"),
    "quarter width": (embedding_answer([1], [1]), "1 dimensions, expected 2"),
    "base64": ({"data": [{"index": i, "embedding": "AACAPw=="} for i in range(2)]}, "no list of numbers"),
    "words": ({"data": [{"index": i, "embedding": ["a", "b"]} for i in range(2)]}, "finite numbers"),
    "zeros": (embedding_answer([0, 0], [0, 1]), "zeros"),
    "error inside": ({"error": {"message": f"bad key {KEY}"}}, "reported an error"),
    "a list": ([1, 2], "a JSON list"),
}


@pytest.mark.parametrize("fault", EMBEDDING_FAULTS)
def test_a_wrong_embedding_answer_is_refused_in_one_sentence_and_not_asked_again(httpserver, fault):
    answer, sentence = EMBEDDING_FAULTS[fault]
    httpserver.expect_request(PATH).respond_with_json(answer)
    with pytest.raises(EndpointError, match=sentence) as caught:
        make_client(httpserver).embed(["a", "b"], dimension=2)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert counted(httpserver) == 1


def test_a_body_of_nan_is_not_taken_for_numbers(httpserver):
    httpserver.expect_request(PATH).respond_with_data(
        '{"data": [{"index": 0, "embedding": [NaN, 1]}]}', content_type="application/json"
    )
    with pytest.raises(EndpointError, match="not JSON"):
        make_client(httpserver).embed(["a"])


def test_a_web_page_is_no_answer(httpserver):
    httpserver.expect_request(PATH).respond_with_data("<html>login</html>", content_type="text/html")
    with pytest.raises(EndpointError, match="web page instead of an answer"):
        make_client(httpserver).embed(["a"])


@pytest.mark.parametrize("body", ["", '{"data": [{"index": 0, "embed'])
def test_an_empty_or_cut_json_body_is_tried_again(httpserver, body):
    httpserver.expect_ordered_request(PATH).respond_with_data(body, content_type="application/json")
    httpserver.expect_ordered_request(PATH).respond_with_json(embedding_answer([1, 0]))
    client = make_client(httpserver)
    assert client.embed(["a"]) == [[1, 0]]
    assert client.retries == 1


def test_a_connection_cut_inside_the_body_is_tried_again(httpserver):
    cut = Response('{"data": [', headers={"Content-Length": "5000"}, content_type="application/json")
    httpserver.expect_ordered_request(PATH).respond_with_handler(lambda request: cut)
    httpserver.expect_ordered_request(PATH).respond_with_json(embedding_answer([1, 0]))
    assert make_client(httpserver).embed(["a"]) == [[1, 0]]


@pytest.mark.parametrize("status", [429, 500, 503, 408])
def test_a_passing_fault_is_tried_again_at_most_attempts_times(httpserver, status):
    httpserver.expect_request(PATH).respond_with_json({"error": {"message": "x"}}, status=status)
    with pytest.raises(EndpointError, match=f"status {status}.*after 3 tries"):
        make_client(httpserver).embed(["a"])
    assert counted(httpserver) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_lasting_fault_is_asked_once(httpserver, status):
    httpserver.expect_request(PATH).respond_with_json({"error": {"message": "x"}}, status=status)
    with pytest.raises(EndpointError, match=f"status {status}"):
        make_client(httpserver).embed(["a"])
    assert counted(httpserver) == 1


def test_a_server_that_says_not_to_retry_is_asked_once(httpserver):
    httpserver.expect_request(PATH).respond_with_json({}, status=500, headers={"x-should-retry": "false"})
    with pytest.raises(EndpointError):
        make_client(httpserver).embed(["a"])
    assert counted(httpserver) == 1


def test_a_long_retry_after_is_passed_on_and_not_waited_for(httpserver):
    httpserver.expect_request(PATH).respond_with_json({}, status=429, headers={"Retry-After": "600"})
    with pytest.raises(EndpointError, match="come back in 600 seconds"):
        make_client(httpserver).embed(["a"])
    assert counted(httpserver) == 1


def test_the_retry_budget_is_shared_by_all_calls_of_a_run(httpserver):
    httpserver.expect_request(PATH).respond_with_json({}, status=500)
    endpoint = make_client(httpserver).endpoint
    budget = RetryBudget(3)
    for _ in range(2):
        with pytest.raises(EndpointError):
            Client(endpoint, budget).embed(["a"])
    with pytest.raises(EndpointError, match="3 retries are spent"):
        Client(endpoint, budget).embed(["a"])
    assert counted(httpserver) == 3 + 2 + 1  # two retries, then one, then none


def test_a_redirect_is_not_followed_and_the_text_goes_nowhere_else(httpserver):
    httpserver.expect_request(PATH).respond_with_data("", status=307, headers={"Location": httpserver.url_for("/else")})
    httpserver.expect_request("/else").respond_with_json(embedding_answer([1, 0]))
    with pytest.raises(EndpointError, match="redirect, which is not followed"):
        make_client(httpserver).embed(["a"])
    assert counted(httpserver, "/else") == 0


def test_a_slow_drip_ends_at_the_deadline(httpserver):
    def drip(request):
        def parts():
            for _ in range(100):
                yield b" "
                time.sleep(0.1)

        return Response(parts(), content_type="application/json")

    httpserver.expect_request(PATH).respond_with_handler(drip)
    with pytest.raises(EndpointError, match=r"did not answer within 0\.5 seconds"):
        make_client(httpserver, deadline=0.5).embed(["a"])


def test_a_closed_port_says_to_check_that_it_runs(httpserver):
    client = Client(Endpoint("local", "http://127.0.0.1:9/v1", "m", deadline=5.0))
    with pytest.raises(
        EndpointError, match=r"endpoint local \(127\.0\.0\.1\) cannot be reached.*check that it is running"
    ):
        client.embed(["a"])


def test_an_answer_over_the_limit_is_refused(httpserver, monkeypatch):
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 1000)
    httpserver.expect_request(PATH).respond_with_json(embedding_answer([0.5] * 1000))
    with pytest.raises(EndpointError, match="sent more than 1,000 bytes"):
        make_client(httpserver).embed(["a"])


def test_a_compressed_answer_is_refused(httpserver):
    httpserver.expect_request(PATH).respond_with_data(b"xx", headers={"Content-Encoding": "gzip"})
    with pytest.raises(EndpointError, match="compressed"):
        make_client(httpserver).embed(["a"])


def test_text_with_a_lone_surrogate_is_one_sentence(httpserver):
    with pytest.raises(EndpointError, match="not valid Unicode"):
        make_client(httpserver).embed(["\ud800"])


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_server_that_echoes_the_key_does_not_get_it_into_errors_or_logs(httpserver, status, caplog):
    caplog.set_level(logging.DEBUG, logger="rag_core")
    body = {"error": {"message": f"Incorrect API key {KEY}", "code": KEY.replace("-", "_"), "type": KEY}}
    httpserver.expect_request(PATH).respond_with_json(body, status=status, headers={"x-key": KEY})
    with pytest.raises(EndpointError) as caught:
        make_client(httpserver).embed(["a"])
    error = caught.value
    assert KEY not in str(error) + repr(error) + caplog.text
    assert error.__cause__ is None
    assert error.__context__ is None


def test_the_servers_own_words_stay_out_of_the_message(httpserver):
    body = {"error": {"message": "your text was: secret chunk text", "code": "context_length_exceeded"}}
    httpserver.expect_request(PATH).respond_with_json(body, status=400)
    with pytest.raises(EndpointError, match="context_length_exceeded") as caught:
        make_client(httpserver).embed(["a"])
    assert "secret chunk" not in str(caught.value)


def test_the_three_errors_of_a_new_user_say_what_to_do(httpserver):
    for status, advice in ((401, "set the right key"), (404, "check the model's name.*small-model")):
        httpserver.clear()
        httpserver.expect_request(PATH).respond_with_json({}, status=status)
        with pytest.raises(EndpointError, match=advice):
            make_client(httpserver).embed(["a"])


def test_a_chat_answer_carries_text_reason_and_tokens(httpserver):
    answer = {**chat_json(), "model": "served-model", "usage": {"prompt_tokens": 7, "completion_tokens": 1}}
    httpserver.expect_request(CHAT).respond_with_json(answer)
    said = make_client(httpserver).chat([{"role": "user", "content": "keep?"}], max_tokens=5)
    assert (said.text, said.finish_reason, said.model) == ("yes", "stop", "served-model")
    assert (said.prompt_tokens, said.completion_tokens) == (7, 1)
    asked = json.loads(httpserver.log[0][0].get_data())
    assert "temperature" not in asked
    assert asked["max_tokens"] == 5


CHAT_FAULTS = {
    "no choices": ({"choices": []}, "without a choice"),
    "null choices": ({"choices": None}, "without a choice"),
    "null content": (chat_json(None), "empty message"),
    "blank content": (chat_json(" \n"), "empty message"),
    "refusal": (chat_json("", refusal="no"), "refused to answer"),
    "filtered": (chat_json("x", reason="content_filter"), "refused to answer"),
    "no message": ({"choices": [{"finish_reason": "stop"}]}, "empty message"),
}


@pytest.mark.parametrize("fault", CHAT_FAULTS)
def test_a_chat_answer_without_a_message_is_an_error_not_an_empty_text(httpserver, fault):
    answer, sentence = CHAT_FAULTS[fault]
    httpserver.expect_request(CHAT).respond_with_json(answer)
    with pytest.raises(EndpointError, match=sentence):
        make_client(httpserver).chat([{"role": "user", "content": "x"}])


def test_a_cut_chat_answer_says_length(httpserver):
    httpserver.expect_request(CHAT).respond_with_json(chat_json("half a", reason="length"))
    assert make_client(httpserver).chat([{"role": "user", "content": "x"}]).finish_reason == "length"


def test_models_are_listed(httpserver):
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "a"}, {"id": "b"}, {}]})
    assert make_client(httpserver).models() == ["a", "b"]
