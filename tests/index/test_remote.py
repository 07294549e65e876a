"""The endpoint embedder, over a real socket where the wire matters."""

import json

import numpy as np
import pytest
from werkzeug import Response

from rag_core.errors import EndpointError, InputError
from rag_core.index.embed import OpenAIEmbedder, batches
from rag_core.llm.client import Client
from rag_core.llm.endpoint import Endpoint


def embedder(server, **settings):
    endpoint = Endpoint("local", server.url_for("/v1"), "tiny", deadline=5.0, attempts=1)
    return OpenAIEmbedder(Client(endpoint), "tiny", **{"dimension": 2, **settings})


def lengths(request):
    """A server whose vector is (length, 1), in shuffled order."""
    data = [{"index": i, "embedding": [len(text), 1]} for i, text in enumerate(request.get_json()["input"])]
    return Response(json.dumps({"data": data[::-1]}), content_type="application/json")


def test_vectors_are_unit_rows_in_the_order_of_the_texts(httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(lengths)
    vectors = embedder(httpserver).embed(["aaa", "b"])
    assert vectors.dtype == np.float32
    assert vectors[0] == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert vectors[1] == pytest.approx([1 / 2**0.5, 1 / 2**0.5])


def test_three_hundred_texts_are_three_requests_with_progress_after_each(httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(lengths)
    seen = []
    vectors = embedder(httpserver).embed(["x" * (i + 1) for i in range(300)], lambda *step: seen.append(step))
    assert seen == [(128, 300), (256, 300), (300, 300)]
    assert vectors[299] == pytest.approx(np.array([300, 1]) / 90001**0.5)


def test_another_width_than_the_models_is_refused(httpserver):
    httpserver.expect_request("/v1/embeddings").respond_with_handler(lengths)
    with pytest.raises(EndpointError, match="2 dimensions, expected 3"):
        embedder(httpserver, dimension=3).embed(["a"])


def test_openai_models_are_known_and_others_want_their_dimensions():
    assert OpenAIEmbedder(None, "text-embedding-3-small").dimension == 1536
    with pytest.raises(InputError, match="dimensions of model nomic"):
        OpenAIEmbedder(None, "nomic")


def test_batches_break_at_characters_too_and_cover_every_text_once():
    texts = ["a" * 300_000, "b" * 300_000, "c" * 900_000, "d", "e"]
    assert list(batches(texts)) == [(0, 1), (1, 2), (2, 3), (3, 5)]
    assert list(batches([])) == []


def test_tokens_are_estimated_at_four_characters():
    assert OpenAIEmbedder(None, "text-embedding-3-small").count_tokens(["", "abcd", "abcde"]) == [0, 1, 2]
