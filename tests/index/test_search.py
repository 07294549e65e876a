"""Exact search: equal to brute force, ties by id, deepening equal to excluding, the model checked."""

import numpy as np
import pytest
from fakes import HashEmbedder
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.scan import greatest, nearest, nearest_lists, similarities, within
from rag_core.index.search import CollectionIndex
from rag_core.types import Chunk


def make_snapshot(vectors, **fields):
    chunks = tuple(Chunk(f"c{row:05}", metadata={"half": row % 2}) for row in range(len(vectors)))
    defaults = {"model": "hash-16", "dimension": vectors.shape[1], "fingerprint": "f", "revision": "r"}
    return Snapshot("books", chunks, vectors, **{**defaults, **fields})


def make_index(rows=300, seed=0, repeated=3):
    rng = np.random.default_rng(seed)
    vectors = normalise(np.repeat(rng.normal(size=(rows // repeated, 16)), repeated, axis=0))
    return CollectionIndex(make_snapshot(vectors), HashEmbedder())


def brute_force(index, text, keep=lambda chunk: True):
    """(distance, id) of every admitted chunk by plain Python arithmetic, nearest first."""
    query = [float(x) for x in index.embedder.embed([text])[0]]
    found = []
    for chunk, row in zip(index.snapshot.chunks, index.snapshot.vectors, strict=True):
        if keep(chunk):
            found.append((1 - sum(float(a) * b for a, b in zip(row, query, strict=True)), chunk.id))
    return sorted((round(distance, 12), identity) for distance, identity in found)


@pytest.mark.parametrize("seed", range(5))
def test_the_whole_ranking_is_that_of_brute_force_with_ties_by_id(seed):
    index = make_index(seed=seed)
    hits = index.reader("a question").read(0, 1000)
    assert [hit.chunk.id for hit in hits] == [identity for _, identity in brute_force(index, "a question")]
    assert [hit.rank for hit in hits] == list(range(1, 301))
    expected = [distance for distance, _ in brute_force(index, "a question")]
    assert [hit.distance for hit in hits] == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 120), st.integers(1, 130), st.integers(1, 4), st.integers(0, 10**6))
def test_any_depth_is_the_beginning_of_the_full_ranking(rows, count, repeated, seed):
    index = make_index(rows * repeated, seed, repeated)
    full = [hit.chunk.id for hit in index.reader("q").read(0, 10_000)]
    assert [hit.chunk.id for hit in index.reader("q").read(0, count)] == full[:count]


def test_reading_on_continues_the_ranking_in_one_pass():
    index = make_index()
    reader = index.reader("q")
    pieces = reader.read(0, 10) + reader.read(10, 40) + reader.read(40, 41) + reader.read(299, 500)
    full = index.reader("q").read(0, 500)
    assert pieces == full[:41] + full[299:]
    assert reader.store_queries == 1


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 5))
def test_excluding_what_was_read_equals_reading_further_down(seed, step, rounds):
    index = make_index(seed=seed)
    deeper, excluder = index.reader("q"), index.reader("q")
    seen = []
    for number in range(rounds):
        read = deeper.read(number * step, (number + 1) * step)
        assert excluder.read_excluding(seen, step) == read
        seen += [hit.chunk.id for hit in read]


def test_nothing_excluded_returns_and_unknown_ids_do_no_harm():
    index = make_index(30)
    some = {"c00001", "c00017", "no such id"}
    hits = index.reader("q").read_excluding(some, 100)
    assert len(hits) == 28
    assert not some & {hit.chunk.id for hit in hits}


def test_conditions_cut_the_ranking_and_keep_its_order():
    index = make_index()
    reader = index.reader("q", where={"half": 1})
    expected = brute_force(index, "q", keep=lambda chunk: chunk.metadata["half"] == 1)
    assert [hit.chunk.id for hit in reader.read(0, 999)] == [identity for _, identity in expected]
    assert reader.matching == 150
    first = [hit.chunk.id for hit in reader.read(0, 5)]
    assert reader.read_excluding(first, 5) == reader.read(5, 10)


def test_the_margin_keeps_float32_rounding_from_choosing():
    """Vectors closer to each other than float32 products can tell still come in the order of their true distances."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=384)
    vectors = normalise(base + rng.normal(size=(400, 384)) * 1e-6)
    query = normalise(base[None] + 0.01)[0]
    true = 1 - vectors.astype(np.float64) @ query.astype(np.float64)
    rows, found = nearest(vectors, query, similarities(vectors, query), 20)
    assert found == pytest.approx(np.sort(true)[:20], abs=1e-15)
    assert np.array_equal(rows, nearest(vectors, query, similarities(vectors, query), 400)[0][:20])


@given(st.integers(1, 9000), st.integers(1, 9000), st.sampled_from([3, 50, 10**6]), st.integers(0, 10**6))
def test_the_greatest_scores_are_found_without_ordering_all(rows, count, different, seed):
    """Few different values are ties; a half of minus infinity is what conditions leave out."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-different, different, rows).astype(np.float32)
    scores[rng.random(rows) < 0.5 * (seed % 2)] = -np.inf
    count = min(count, rows)
    assert greatest(scores, count) == np.sort(scores)[-count]


def test_within_gives_allowed_rows_only_and_as_many_as_there_are():
    scores = np.arange(10, dtype=np.float32)
    allowed = np.arange(10) % 3 == 0
    assert within(scores, 2, allowed, 0.0).tolist() == [6, 9]
    assert within(scores, 2, allowed, 3.0).tolist() == [3, 6, 9]
    assert within(scores, 99, allowed, 0.0).tolist() == [0, 3, 6, 9]
    assert within(scores, 99, allowed & (scores > 9), 1.0).tolist() == []


def test_lists_of_many_queries_are_those_of_each_query():
    index = make_index(400, repeated=2)
    queries = HashEmbedder().embed([f"q{n}" for n in range(7)])
    vectors = index.snapshot.vectors
    for query, (rows, found) in zip(queries, nearest_lists(vectors, queries, 33), strict=True):
        alone = nearest(vectors, query, similarities(vectors, query), 33)
        assert np.array_equal(rows, alone[0])
        assert np.array_equal(found, alone[1])


def test_an_empty_collection_gives_an_empty_ranking():
    index = CollectionIndex(make_snapshot(np.zeros((0, 16), dtype=np.float32)), HashEmbedder())
    assert index.reader("q").read(0, 10) == index.reader("q").read_excluding(["x"], 3) == ()


def test_another_model_is_refused_naming_both():
    vectors = normalise(np.ones((1, 1536)))
    other = make_snapshot(vectors, model="text-embedding-3-small")
    with pytest.raises(InputError, match=r"text-embedding-3-small \(1536 dimensions\).*all-MiniLM-L6-v2-int8 \(384\)"):
        CollectionIndex(other)


def test_a_query_is_embedded_once():
    index = make_index()
    index.reader("same")
    index.reader("same")
    assert index.embedder.embedded == ["same"]


def test_a_readers_fingerprint_depends_on_query_and_conditions():
    index = make_index()
    asked = [("q", None, None), ("r", None, None), ("q", {"half": 1}, None), ("q", None, "x")]
    assert len({index.reader(*one).fingerprint for one in asked}) == 4
    assert index.reader("q", {}, "").fingerprint == index.reader("q").fingerprint
