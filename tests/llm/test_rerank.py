"""Rerankers over a real socket, scripted: the shapes servers answer in, stored scores, limits, faults."""

import json

import pytest
from werkzeug import Response

from rag_core.errors import EndpointError, StoreError
from rag_core.llm.answer import Price
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.rerank import RerankJudge, ScoreStore, StoredReranker, prompts_of
from rag_core.llm.run import RunLimits, answer_all, preview
from rag_core.llm.secret import Key
from rag_core.llm.store import forget_answers
from rag_core.types import Chunk, Query
from tests.scripted_reranker import cohere, score, scripted_reranker, tei, voyage

QUERY = Query("q", "how tall is the red tower")
CHUNKS = [Chunk(f"c{at}", text=text) for at, text in enumerate(["the red tower", "a blue house", "how tall it is"])]
TEXTS = [chunk.text for chunk in CHUNKS]


def stored_of(server, workspace, model="small", **settings):
    endpoint = Endpoint("scripted", server.url_for("/v1"), model, key=Key("sk-test-0123456789"), attempts=1, **settings)
    return StoredReranker(endpoint, ScoreStore(workspace))


def asked(stored, chunks=CHUNKS, price=None, **limits):
    judge = RerankJudge(stored, price)
    calls = [(judge, prompts_of(QUERY, chunks))]
    return preview(calls), answer_all(calls, RunLimits(concurrency=1, **limits)), judge


@pytest.mark.parametrize("shape", [cohere, voyage, tei])
def test_scores_come_in_the_order_of_the_texts_in_every_shape(shape, tmp_path):
    with scripted_reranker(shape) as server:
        stored = stored_of(server, tmp_path)
        _, ran, _ = asked(stored)
        assert (ran.asked, ran.failed) == (1, 0)
        assert stored(QUERY.text, TEXTS) == [score(QUERY.text, text) for text in TEXTS]
        assert server.asked[0]["query"] == QUERY.text


def test_a_second_run_and_another_process_ask_nothing_and_a_deeper_list_only_what_is_new(tmp_path):
    with scripted_reranker() as server:
        asked(stored_of(server, tmp_path), CHUNKS[:2])
        ahead, _, judge = asked(stored_of(server, tmp_path), CHUNKS[:2])
        assert (ahead.calls, judge.calls, len(server.asked)) == (0, 0, 1)
        asked(stored_of(server, tmp_path))
        assert server.asked[1]["documents"] == TEXTS[2:]
        _, _, other = asked(stored_of(server, tmp_path, "another model"))
        assert other.calls == 1
        forget_answers(tmp_path)
        with pytest.raises(EndpointError, match="3 of 3 texts have no stored score of scripted"):
            stored_of(server, tmp_path)(QUERY.text, TEXTS)


def test_limits_hold_before_a_call_is_made(tmp_path):
    many = [Chunk(f"c{at}", text=f"text {at}") for at in range(250)]
    with scripted_reranker() as server:
        ahead, ran, _ = asked(stored_of(server, tmp_path), many, max_calls=2)
        assert (ahead.calls, len(server.asked)) == (3, 2)
        assert ran.stopped == "the limit of 2 calls is reached"
        _, dear, _ = asked(stored_of(server, tmp_path), many, Price(1000.0, 0.0), budget=0.001)
        assert len(server.asked) == 2
        assert "the budget of 0.001 is reached" in dear.stopped
        assert [len(one["documents"]) for one in server.asked] == [100, 100]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("{}", 500, "failed on its side"),
        ("{}", 401, "did not accept the key"),
        ("not json", 200, "not JSON"),
        ('{"results": [{"index": 0, "relevance_score": 1}]}', 200, "1 scores for 3 texts"),
        (json.dumps({"results": [{"index": 0, "relevance_score": 0.1}] * 3}), 200, "numbered its scores wrongly"),
        (json.dumps({"results": [{"index": at} for at in range(3)]}), 200, "no finite number"),
        ('{"results": null}', 200, "no list of scores"),
    ],
)
def test_a_fault_is_an_answer_with_its_reason_and_nothing_is_stored(body, status, said, tmp_path):
    with scripted_reranker() as server:
        server.fault = Response(body, status, content_type="application/json")
        stored = stored_of(server, tmp_path)
        _, ran, _ = asked(stored)
        assert ran.failed == 1
        assert said in ran.failures[0]
        assert "sk-test" not in ran.failures[0]
        assert stored.known(QUERY.text, TEXTS) == {}


def test_a_damaged_file_of_scores_is_one_sentence(tmp_path):
    store = ScoreStore(tmp_path)
    store.write({b"key": 0.5})
    store.path.write_bytes(b"no database " * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        store.read([b"key"])
