"""Endpoints by name: the environment's, and those of the workspace's file."""

import pytest

from rag_core.errors import InputError
from rag_core.llm.answer import Price
from rag_core.llm.endpoint import ENDPOINTS, endpoint_of, endpoints, named_endpoint, price_of

LOCAL = "- name: local\n  base_url: http://127.0.0.1:8080/v1\n  model: small\n"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "WINNOW_PRICE_IN", "WINNOW_PRICE_OUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path):
    def written(text):
        (tmp_path / ENDPOINTS).write_text(text)
        return tmp_path

    return written


def test_without_file_and_environment_there_is_no_endpoint(tmp_path):
    assert endpoints(tmp_path) == {}
    assert named_endpoint(tmp_path) is None


def test_the_environments_endpoint_comes_first_and_is_the_one_without_a_name(file, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    place = file(LOCAL)
    assert list(endpoints(place)) == ["environment", "local"]
    assert named_endpoint(place).base_url == "https://api.openai.com/v1"


def test_an_entry_has_its_own_price_and_its_key_from_the_variable_it_names(file, monkeypatch):
    monkeypatch.setenv("LOCAL_KEY", "sk-0123456789abcdef")
    found = named_endpoint(file(LOCAL + "  key_variable: LOCAL_KEY\n  price_in: 1\n  price_out: 2.5\n"), "local")
    assert endpoint_of(found).key.reveal() == "sk-0123456789abcdef"
    assert price_of(found) == Price(1.0, 2.5)
    assert "0123456789" not in repr(found)


def test_an_unknown_name_lists_what_exists(file):
    with pytest.raises(InputError, match="'other', expected one of local"):
        named_endpoint(file(LOCAL), "other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "expected a list"),
        ("- name: x\n  model: m\n", "needs name, base_url, model"),
        (LOCAL + "  key: sk-0123456789abcdef\n", "nothing else"),
        (LOCAL + "  key_variable: sk-0123456789abcdef\n", "expected the name and not the key"),
        (LOCAL + "  allow_private: please\n", "expected true or false"),
        (LOCAL + "  price_in: -1\n", "price_in '-1', expected a number from 0 to 1,000,000"),
        (LOCAL + LOCAL, "entry 2 .* expected a name of its own"),
        (LOCAL.replace("local", "environment"), "expected a name of its own"),
        (LOCAL.replace("http://127.0.0.1:8080/v1", "http://169.254.169.254/v1"), "neither https nor http"),
        (LOCAL.replace("small", "[1]"), "no text"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_without_repeating_a_key(file, text, message):
    with pytest.raises(InputError, match=message) as refused:
        endpoints(file(text))
    assert "0123456789abcdef" not in str(refused.value)
