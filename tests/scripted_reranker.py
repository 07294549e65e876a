"""A scripted Cohere-shaped reranker on a real socket: it scores by words in common, and counts what it is asked."""

import json
import re
from contextlib import contextmanager

from pytest_httpserver import HTTPServer
from werkzeug import Response

PATH = "/v1/rerank"


def words(text):
    return set(re.findall(r"\w+", text.casefold()))


def score(query, text):
    """The share of the question's words that the text has."""
    wanted = words(query)
    return len(wanted & words(text)) / max(1, len(wanted))


def cohere(scores):
    rows = [{"index": at, "relevance_score": value} for at, value in enumerate(scores)]
    return {"id": "x", "results": sorted(rows, key=lambda row: -row["relevance_score"])}


def voyage(scores):
    rows = [{"index": at, "relevance_score": value} for at, value in enumerate(scores)]
    return {"object": "list", "data": rows[::-1], "usage": {"total_tokens": 42}}


def tei(scores):
    return [{"index": at, "score": value} for at, value in enumerate(scores)]


@contextmanager
def scripted_reranker(shape=cohere):
    """The server; `asked` are the requests it answered, `fault` an answer it gives instead of scores."""
    with HTTPServer(threaded=True) as server:
        server.asked, server.fault = [], None

        def handler(request):
            sent = json.loads(request.data)
            if server.fault is not None:
                return server.fault
            if shape is tei and "texts" not in sent:
                return Response("missing field `texts`", 422)
            server.asked.append(sent)
            texts = sent.get("texts") or sent["documents"]
            made = shape([score(sent["query"], text) for text in texts])
            return Response(json.dumps(made), content_type="application/json")

        server.expect_request(PATH, method="POST").respond_with_handler(handler)
        yield server
