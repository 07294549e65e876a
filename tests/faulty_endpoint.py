"""A model endpoint on a real socket that is at fault in one of the numbered ways, for tests of filter, pages and browser.

Two faults beyond the list put the key they were sent where a reader may see it: into a good answer, a body, a header.
"""

import json
import time
from contextlib import contextmanager

from pytest_httpserver import HTTPServer
from werkzeug import Response

CHAT = "/v1/chat/completions"
CANARY = "sk-canary-7f3a9c51e2d84b60ZZtop"
SECRET = CANARY[10:-4]  # what must not stand anywhere; the last four characters are shown on purpose


def body(content="", reason="stop", **message):
    return json.dumps({"choices": [{"finish_reason": reason, "message": {"content": content, **message}}]})


def reply(data="", status=200, kind="application/json", **headers):
    return lambda request: Response(
        data, status, {name.replace("_", "-"): value for name, value in headers.items()}, content_type=kind
    )


def late(request):
    time.sleep(1.0)
    return Response(body("1 -> DISCARD"), content_type="application/json")


def drip(request):
    def parts():
        for _ in range(30):
            yield b" "
            time.sleep(0.05)

    return Response(parts(), content_type="application/json")


def cut(request):
    parts = iter([b'{"choices": ['])
    return Response(parts, headers={"Content-Length": "5000"}, content_type="application/json", direct_passthrough=True)


def echo_key(request):
    return Response(
        json.dumps({"error": {"message": f"Incorrect key {request.headers['Authorization']}"}}),
        401,
        content_type="application/json",
    )


FAULTS = {
    "01 status 429 with a short Retry-After": (reply("{}", 429, Retry_After="0.01"), "asks for fewer requests", True),
    "02 status 429 with a long Retry-After": (reply("{}", 429, Retry_After="600"), "come back in 600 seconds", False),
    "03 status 429 with x-should-retry false": (
        reply("{}", 429, x_should_retry="false"),
        "asks for fewer requests",
        False,
    ),
    "04 status 500": (reply("{}", 500), "failed on its side", True),
    "05 status 503": (reply("{}", 503), "failed on its side", True),
    "06 no answer in time": (late, "did not answer", False),
    "07 slow drip": (drip, "did not answer", False),
    "08 body cut short": (cut, "cannot be reached or broke off", True),
    "09 truncated JSON": (reply('{"choices": [{"mess'), "not JSON", True),
    "10 empty body": (reply(""), "not JSON", True),
    "11 web page": (reply("<html>log in</html>", kind="text/html"), "web page", False),
    "12 error in a 200": (reply('{"error": {"message": "overloaded"}}'), "error inside a successful answer", False),
    "13 choices null": (reply('{"choices": null}'), "without a choice", False),
    "14 choices empty": (reply('{"choices": []}'), "without a choice", False),
    "15 content null": (reply(body(None)), "empty message", False),
    "16 refusal": (reply(body(None, refusal="I will not")), "refused to answer", False),
    "17 content filter": (reply(body("x", "content_filter")), "refused to answer", False),
    "18 length, nothing decided": (reply(body('{"decisions": [{"id', "length")), "decides on no candidate", False),
    "19 prose": (reply(body("I would keep most of these.")), "decides on no candidate", False),
    "20 unknown ids only": (reply(body("901 -> KEEP\n902 -> KEEP")), "2 unknown ids", False),
    "21 redirect": (reply("", 307, Location="/elsewhere"), "redirect, which is not followed", False),
    "22 status 401 that echoes the key": (echo_key, "did not accept the key", False),
    "23 status 400": (reply("{}", 400), "malformed", False),
    "24 status 404": (reply("{}", 404), "check the model's name", False),
    "25 ten megabytes": (reply(body("x" * 10_000_000)), "sent more than 2,000,000 bytes", False),
    "26 compressed": (reply(b"xx", Content_Encoding="gzip"), "compressed", False),
    "27 deep nesting": (reply("[" * 5000), "not JSON", True),
}


def echo_in_answer(request):
    """A good answer with the key it was sent in a reason and as the model's name; one passage is kept, one expanded."""
    key = request.headers["Authorization"]
    said = f'[{{"id": 1, "action": "KEEP", "reason": "you sent {key}"}}, {{"id": 2, "action": "DISCARD"}}]'
    return Response(json.dumps({**json.loads(body(said)), "model": key}), content_type="application/json")


def echo_as_body(request):
    return Response(request.headers["Authorization"], 500, {"x-request-id": request.headers["Authorization"]})


KEY_SENT_BACK = {"28 key in a good answer": echo_in_answer, "29 key as body and header": echo_as_body}


@contextmanager
def faulty_endpoint():
    """A server whose every chat answer is the fault of its attribute `fault`; `keys` are those it was sent."""
    answers = {name: handler for name, (handler, _, _) in FAULTS.items()} | KEY_SENT_BACK
    with HTTPServer(threaded=True) as server:
        server.fault, server.keys = next(iter(answers)), []

        def handler(request):
            server.keys.append(request.headers.get("Authorization", ""))
            server.log.clear()  # it would keep every answer, the largest too
            return answers[server.fault](request)

        server.expect_request(CHAT).respond_with_handler(handler)
        server.expect_request("/v1/models").respond_with_handler(handler)
        server.expect_request("/elsewhere").respond_with_data("not to be asked", status=599)
        yield server


def recorded_question(number):
    """A recorded list of two relevant chunks, for a filter that asks about each."""
    candidates = [
        {
            "id": f"q{number}{name}",
            "title": f"Title {name}",
            "text": f"Text {name}",
            "distance": 0.1 * at,
            "relevant": 1,
        }
        for at, name in enumerate("ab", 1)
    ]
    return {"id": f"q{number}", "query": f"question {number}", "metric": "cosine", "candidates": candidates}
