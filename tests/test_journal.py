"""The log: one JSON object a line with the run's id, and nothing in it that is not for a log."""

import io
import json
import logging

import pytest

from rag_core.journal import JsonLines, redacted, run_id, running, start_journal


@pytest.fixture
def lines():
    """What was logged, line by line as objects."""
    log, stream = logging.getLogger("winnow"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    before, propagate = log.level, log.propagate
    log.setLevel(logging.INFO)
    log.propagate = False
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    log.removeHandler(handler)
    log.setLevel(before)
    log.propagate = propagate


def test_every_line_of_a_run_carries_its_id(lines):
    log = logging.getLogger("winnow.part")
    log.info("before")
    with running("capture", count=3) as identity:
        log.info("inside")
    log.info("after")
    told = lines()
    assert [line.get("run") for line in told] == [None, identity, identity, identity, None]
    assert told[1]["message"] == "capture began"
    assert told[1]["count"] == 3
    assert run_id.get() == ""


def test_a_run_that_fails_says_the_kind_and_not_the_words(lines):
    with pytest.raises(ValueError, match="chunk text"), running("capture"):
        raise ValueError("chunk text")
    assert lines()[-1]["kind"] == "ValueError"
    assert "chunk text" not in json.dumps(lines())


def test_fields_that_are_not_listed_are_not_written(lines):
    logging.getLogger("winnow").info("asked", extra={"text": "The beholder has AC 18", "count": 1})
    assert "beholder" not in json.dumps(lines())
    assert lines()[0]["count"] == 1


def test_an_exception_is_kind_and_places_without_source_or_values(lines):
    secret = "The beholder has AC 18"
    try:
        raise KeyError(secret)
    except KeyError:
        logging.getLogger("winnow").error("page error", exc_info=True)
    (line,) = lines()
    assert line["error"] == "KeyError"
    assert line["where"][-1].startswith("tests/test_journal.py:")
    assert "beholder" not in json.dumps(line)


@pytest.mark.parametrize(
    "text",
    [
        "sk-canary1234567", "Bearer canary1234567", "postgresql://ann:canary1234567@host/db", "key-canary1234567",
        "ck-canary1234567",
    ],
)  # fmt: skip
def test_what_looks_like_a_key_is_taken_out(text, lines):
    assert "canary" not in redacted(f"asked {text} now")
    logging.getLogger("winnow").info("asked %s", text, extra={"peer": text})
    assert "canary" not in json.dumps(lines())


def test_a_message_stays_on_one_line(lines):
    logging.getLogger("winnow").info("one\ntwo\u2028three")
    assert len(lines()) == 1


def test_the_journal_is_started_once():
    log = logging.getLogger("winnow")
    before, propagate = list(log.handlers), log.propagate
    log.handlers = []  # a page that was tested before may have started it
    try:
        start_journal()
        start_journal()
        assert len(log.handlers) == 1
    finally:
        log.handlers, log.propagate = before, propagate
