"""The environment's settings: read in one place, refused by name and value."""

import pytest

from rag_core import settings
from rag_core.errors import InputError
from rag_core.filters.llm.stage import LLMFilter


def test_without_variables_the_defaults_hold_and_no_endpoint_is_named():
    read = settings.read({})
    assert read.chunk_filtering == settings.ChunkFiltering(True, 1.6, 0.3, 5000, 2000)
    assert read.model is None


def test_every_variable_is_read():
    read = settings.chunk_filtering(
        {
            "CHUNK_FILTERING_ENABLED": "false",
            "CHUNK_FILTERING_OVERSAMPLE_MULTIPLIER": "2",
            "CHUNK_FILTERING_MIN_RELEVANCE_THRESHOLD": "0.5",
            "CHUNK_FILTERING_LLM_TIMEOUT_MS": "1500",
            "CHUNK_FILTERING_MAX_PROMPT_TOKENS": "8000",
        }
    )
    assert read == settings.ChunkFiltering(False, 2.0, 0.5, 1500, 8000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENABLED", "maybe"),
        ("OVERSAMPLE_MULTIPLIER", "0.9"),
        ("OVERSAMPLE_MULTIPLIER", "nan"),
        ("OVERSAMPLE_MULTIPLIER", "inf"),
        ("MIN_RELEVANCE_THRESHOLD", "2"),
        ("MIN_RELEVANCE_THRESHOLD", "high"),
        ("LLM_TIMEOUT_MS", "0"),
        ("LLM_TIMEOUT_MS", "-1"),
        ("LLM_TIMEOUT_MS", "1.5"),
        ("MAX_PROMPT_TOKENS", "10"),
    ],
)
def test_a_value_out_of_range_names_variable_and_value(name, value):
    with pytest.raises(InputError, match=f"CHUNK_FILTERING_{name} is '{value}', expected"):
        settings.read({f"CHUNK_FILTERING_{name}": value})


def test_the_stage_has_the_environments_values_as_defaults_and_a_spec_wins(monkeypatch):
    monkeypatch.setenv("CHUNK_FILTERING_OVERSAMPLE_MULTIPLIER", "2")
    monkeypatch.setenv("CHUNK_FILTERING_LLM_TIMEOUT_MS", "900")
    assert LLMFilter().oversample_multiplier == 2
    assert LLMFilter().timeout_ms == 900
    assert LLMFilter(timeout_ms=700).timeout_ms == 700


def test_a_key_alone_means_openai_and_an_address_alone_a_server_without_key():
    assert settings.model_settings({"OPENAI_API_KEY": "sk-x"}).base_url == "https://api.openai.com/v1"
    named = settings.model_settings({"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1", "OPENAI_MODEL": "small"})
    assert (named.base_url, named.model, named.key) == ("http://127.0.0.1:8080/v1", "small", "")


def test_prices_are_unknown_unless_given():
    assert settings.model_settings({"OPENAI_API_KEY": "k"}).price_in is None
    given = {"OPENAI_API_KEY": "k", "WINNOW_PRICE_IN": "0", "WINNOW_PRICE_OUT": "0.6"}
    assert (settings.model_settings(given).price_in, settings.model_settings(given).price_out) == (0.0, 0.6)


def test_the_key_does_not_print():
    assert "sk-secret" not in repr(settings.read({"OPENAI_API_KEY": "sk-secret-0123456789"}))
