"""Other people's stores through winnow_source.py, in an environment whose pins exclude ours."""

import os
import subprocess
from pathlib import Path

import numpy
import pytest

from rag_core.errors import RecordError, StoreError
from rag_core.sources.callable_source import CallOptions, load_callable

HERE = Path(__file__).parent / "stacks"
QUERIES = [f"question {n} about {['wolf', 'bear', 'owl'][n % 3]}" for n in range(50)]
EXPECTED = {
    "chroma_default": ("distance", "l2", "l2"),
    "chroma_cosine": ("distance", "cosine", "cosine distance"),
    "chroma_ip": ("distance", "ip", "ip"),
    "chroma_retriever": ("distance", "cosine", "cosine distance"),
    "faiss_l2": ("distance", "l2", "l2"),
    "faiss_ip": ("score", "", "dot"),
    "qdrant_cosine": ("similarity", "cosine", "cosine"),
    "qdrant_euclid": ("distance", "", "euclid"),
    "qdrant_dot": ("score", "", "dot"),
    "lance_l2": ("distance", "l2", "l2"),
    "lance_said_cosine": ("distance", "l2", "l2"),
    "milvus_l2": ("distance", "l2", "l2"),
    "milvus_cosine": ("similarity", "cosine", "cosine"),
    "milvus_ip": ("score", "", "dot"),
    "pgvector": ("distance", "cosine", "cosine distance"),
    "pgvector_l2": ("distance", "", "euclid"),
    "pgvector_ip": ("score", "", "dot"),
    "pgvector_plain": ("distance", "", "cosine distance"),
    "llama_index": ("similarity", "cosine", "cosine"),
}
"""Store → the score's kind and the metric it must be read as, and the arithmetic that its numbers are."""


@pytest.fixture(scope="module")
def options():
    """Their environment: made by `make test-peers`, elsewhere by naming its Python in WINNOW_STACKS_PYTHON."""
    usual = Path(__file__).parents[2] / ".venv-stacks" / "bin" / "python"
    return CallOptions(python=os.environ.get("WINNOW_STACKS_PYTHON", str(usual)), seconds=120, folder=str(HERE))


def test_their_pins_exclude_ours(options):
    said = subprocess.run([options.python, "-c", "import numpy; print(numpy.__version__)"], capture_output=True)
    assert said.stdout.decode().strip() != numpy.__version__


@pytest.mark.parametrize("name", EXPECTED)
def test_kind_direction_and_lists_are_the_stores_own_on_50_queries(name, options):
    kind, metric, arithmetic = EXPECTED[name]
    index = load_callable(f"their_rag:{name}", options)
    oracle = load_callable("their_rag:checks", options)
    if name != "pgvector_plain":  # a bare tuple says nothing of itself: its numbers do
        assert (index.proposal.kind, index.proposal.metric) == (kind, metric)
    for query in QUERIES:
        ours = index.ask(query, 20)
        theirs = oracle.ask(f"{name}|{arithmetic}|{query}", 20)
        assert [hit.chunk.id for hit in ours] == [hit.chunk.id for hit in theirs]
        assert len(ours) == 20
        for hit, own in zip(ours, theirs, strict=True):
            assert hit.scores[kind] == pytest.approx(own.chunk.metadata["own"], abs=1e-6)
            assert hit.scores[kind] == pytest.approx(own.chunk.metadata["true"], abs=1e-3)
    assert str(index.metric) == (metric or "unknown")


def test_squared_l2_called_cosine_is_refused(options):
    wrong = CallOptions(**{**vars_of(options), "score": "distance", "metric": "cosine"})
    with pytest.raises(RecordError, match="no cosine distance"):
        load_callable("their_rag:chroma_default", wrong).ask(QUERIES[0], 5)


def test_a_store_that_dies_is_one_sentence_and_the_next_query_works(options):
    index = load_callable("their_rag:chroma_cosine", options)
    before = [hit.chunk.id for hit in index.ask(QUERIES[0], 5)]
    os.kill(index.function._process.pid, 9)
    index.function._process.wait()
    assert [hit.chunk.id for hit in index.ask(QUERIES[0], 5)] == before
    hasty = load_callable("their_rag:chroma_cosine", CallOptions(**{**vars_of(options), "seconds": 0.0001}))
    with pytest.raises(StoreError, match="no answer in"):
        hasty.ask(QUERIES[0], 5)


def vars_of(options):
    return {name: getattr(options, name) for name in options.__slots__}
