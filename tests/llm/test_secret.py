"""Keys that do not print."""

import logging
import pickle

import pytest

from rag_core.errors import InputError
from rag_core.llm.secret import Key, RedactingFilter, redact

CANARY = "sk-canary-9876543210fedcbaQRS7"


def test_a_key_shows_its_last_four_characters_only():
    assert str(Key(CANARY)) == repr(Key(CANARY)) == f"{Key(CANARY)}" == "sk-…QRS7"


def test_a_short_key_shows_nothing():
    assert str(Key("short-key")) == "…"


def test_a_key_is_revealed_on_request_and_an_empty_one_is_none():
    assert Key(CANARY).reveal() == CANARY
    assert Key("").reveal() == "none"


@pytest.mark.parametrize("value", ["sk-a\nb", "sk-’x", "a b", "k" * 501, "\ud800"])
def test_a_key_of_the_wrong_shape_is_refused_without_repeating_it(value):
    with pytest.raises(InputError) as caught:
        Key(value)
    assert value not in str(caught.value)


def test_a_key_is_not_stored():
    with pytest.raises(TypeError):
        pickle.dumps(Key(CANARY))


def test_known_keys_and_what_looks_like_one_are_masked():
    Key("plain-looking-but-known-0001")
    Key(CANARY)
    text = redact(f"a plain-looking-but-known-0001 b {CANARY} c Bearer abcdefgh123 d sk-unknown12345 e")
    assert text == "a sk-…0001 b sk-…QRS7 c [key] d [key] e"


def test_the_logging_filter_masks_the_finished_message(caplog):
    Key(CANARY)
    logger = logging.getLogger("test-redaction")
    caplog.handler.addFilter(RedactingFilter())
    logger.warning("sent %s", CANARY)
    assert CANARY not in caplog.text
    assert "sent sk-…" in caplog.text
