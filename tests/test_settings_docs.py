"""docs/settings.md holds every variable the program reads, with the default and range it has, and no other."""

import re
from pathlib import Path

import pytest

from rag_core import settings
from rag_core.errors import InputError
from rag_core.workspace import DEFAULT, resolve_workspace

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = {
    name: (default.strip("`"), span)
    for name, default, span in re.findall(r"^\| `([A-Z_]+)` \| (.+?) \| (.+?) \| .+ \|$", TEXT, re.M)
}
NUMBERS = {name: re.match(r"(-?\d+) to (\d+)", span) for name, (_, span) in ROWS.items()}
SPANS = {name: (int(found[1]), int(found[2])) for name, found in NUMBERS.items() if found}
NAMED = re.compile(r"\"((?:WINNOW|OPENAI|CHROMA)_[A-Z_]+)\"|f\"\{PREFIX\}([A-Z_]+)\"")
SET_BY_US = re.compile(r"os\.environ(?:\.setdefault\(|\[)\"([A-Z_]+)\"")


def variables_in_the_code():
    sources = [*(ROOT / "rag_core").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py", ROOT / "asgi.py"]
    found = [pair for path in sources for pair in NAMED.findall(path.read_text(encoding="utf-8"))]
    return {whole or settings.PREFIX + tail for whole, tail in found}


def reads(environment):
    """Everything that is read of an environment, as one mapping."""
    read = settings.read(environment)
    model, chroma, server = read.model, settings.chroma_settings(environment), settings.server_settings(environment)
    return {
        **{f"CHUNK_FILTERING_{name.upper()}": value for name, value in vars(read.chunk_filtering).items()},
        "WINNOW_HISTORY_DAYS": settings.history_days(environment),
        "WINNOW_DATABASE_URL": read.database,
        "OPENAI_MODEL": model and model.model,
        "WINNOW_PRICE_IN": model and model.price_in,
        "WINNOW_PRICE_OUT": model and model.price_out,
        "WINNOW_MAX_ANSWER_TOKENS": model and model.max_tokens,
        "WINNOW_TEMPERATURE": model and model.temperature,
        "WINNOW_REASONING_EFFORT": model and model.reasoning_effort,
        "WINNOW_SEED": model and model.seed,
        "WINNOW_ALLOW_PRIVATE_ENDPOINT": chroma.allow_private,
        "CHROMA_API_KEY": chroma.key,
        "CHROMA_TENANT": chroma.tenant,
        "CHROMA_DATABASE": chroma.database,
        "WINNOW_USER_HEADER": server.user_header,
        "WINNOW_TRUSTED_PROXIES": ",".join(server.proxies),
        "WINNOW_CALLS_A_DAY": settings.calls_a_day(environment),
    }


def test_every_variable_of_the_code_stands_in_the_document():
    assert variables_in_the_code() - set(ROWS) == set()


def test_the_document_names_no_variable_the_code_does_not_read():
    assert set(ROWS) - variables_in_the_code() == set()


def test_the_search_finds_the_variables_of_both_modules():
    assert {"WINNOW_WORKSPACE", "CHUNK_FILTERING_LLM_TIMEOUT_MS", "OPENAI_API_KEY"} <= variables_in_the_code()


@pytest.mark.parametrize(
    "name", sorted(set(ROWS) - {"WINNOW_WORKSPACE", "WINNOW_PROJECT", "WINNOW_DEBUG", "OPENAI_BASE_URL"})
)
def test_the_default_in_the_document_is_the_one_that_holds(name):
    key = {} if name == "OPENAI_API_KEY" else {"OPENAI_API_KEY": "a-key"}
    read = {**reads(key), "OPENAI_API_KEY": settings.model_settings(key)}[name]
    written = "not set" if read in (None, "") else str(read).lower() if isinstance(read, bool) else str(read)
    assert ROWS[name][0] == written


def test_the_workspace_is_where_the_document_says(monkeypatch):
    monkeypatch.delenv("WINNOW_WORKSPACE", raising=False)
    assert ROWS["WINNOW_WORKSPACE"][0] == str(DEFAULT) == str(resolve_workspace())


def test_the_address_that_a_key_alone_means_is_the_one_written():
    assert f"with a key alone it is `{settings.OPENAI}`" in TEXT


def test_every_number_of_the_code_has_a_range_in_the_document():
    source = (ROOT / "rag_core" / "settings.py").read_text(encoding="utf-8")
    calls = re.findall(r"_(?:number|whole|price)\(\s*env, (?:f\"\{PREFIX\}(\w+)\"|\"(\w+)\")", source)
    assert {whole or settings.PREFIX + tail for tail, whole in calls} == set(SPANS) != set()


@pytest.mark.parametrize(("name", "edge"), [(name, edge) for name, span in SPANS.items() for edge in span])
def test_both_ends_of_a_range_are_taken(name, edge):
    assert reads({"OPENAI_API_KEY": "a-key", name: str(edge)})[name] == edge


@pytest.mark.parametrize(
    ("name", "beyond"), [(name, one) for name, (low, high) in SPANS.items() for one in (low - 1, high + 1)]
)
def test_beyond_a_range_is_refused(name, beyond):
    with pytest.raises(InputError, match=name):
        reads({"OPENAI_API_KEY": "a-key", name: str(beyond)})


@pytest.mark.parametrize("name", [name for name, (_, span) in ROWS.items() if span.endswith(", whole")])
def test_a_whole_number_has_no_fraction(name):
    with pytest.raises(InputError, match=f"{name} is '700.5', expected a whole number"):
        reads({name: "700.5"})


@pytest.mark.parametrize("name", [name for name, (_, span) in ROWS.items() if span == "switch"])
def test_a_switch_takes_the_words_of_the_document(name):
    words = re.search(r"A switch takes (.+?) or (.+?)\.", TEXT)
    for text, wanted in ((words[1], True), (words[2], False)):
        assert {reads({name: word})[name] for word in re.findall(r"`(\w+)`", text)} == {wanted}


def test_what_the_program_sets_for_itself_is_told():
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "rag_core").rglob("*.py"))
    for name in {name for source in sources for name in SET_BY_US.findall(source)}:
        assert f"`{name}`" in TEXT, name
