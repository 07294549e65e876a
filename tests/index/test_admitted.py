"""Prefiltered exact search: the nearest of the chunks whose rules admit the query, and their ranks in the full list."""

import numpy as np
import pytest
from fakes import HashEmbedder
from hypothesis import given
from hypothesis import strategies as st

from rag_core.filters.query_must import QueryMust
from rag_core.index.chroma import ChromaIndex
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.search import CollectionIndex, rule_index
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.types import Candidates, Chunk, Query

RULES = [None, {"contain": "cleric"}, {"contain": "druid"}, "{", {"contain_one_of": [["ac 6", "armor class 6"]]}]
QUERY = "a cleric to hit armor class 6"


def make_index(rows, seed, noise=None):
    rng = np.random.default_rng(seed)
    vectors = normalise(np.repeat(rng.normal(size=(-(-rows // 2), 16)), 2, axis=0)[:rows])  # every vector twice: ties
    rules = [noise if noise is not None else RULES[at] for at in rng.integers(0, len(RULES), rows)]
    chunks = tuple(Chunk(f"c{row:05}", query_must=rule, metadata={"half": row % 2}) for row, rule in enumerate(rules))
    snapshot = Snapshot("books", chunks, vectors, model="hash-16", dimension=16, fingerprint="f", revision="r")
    return CollectionIndex(snapshot, HashEmbedder())


def admitted_by_walking(index, mode="token", where=None):
    hits = index.reader(QUERY, where).read(0, 100_000)
    return QueryMust(mode)(Candidates(Query("q", QUERY), hits)).hits


@given(
    st.integers(1, 150), st.integers(1, 40), st.integers(0, 10**6), st.sampled_from([None, {"half": 1}]), st.booleans()
)
def test_admitted_hits_are_the_survivors_of_the_whole_ranking_with_their_ranks(rows, count, seed, where, substring):
    index, mode = make_index(rows, seed), "substring" if substring else "token"
    found = index.reader(QUERY, where).read_admitted(QUERY, mode, (), count)
    expected = admitted_by_walking(index, mode, where)[:count]
    assert [(hit.chunk.id, hit.rank, hit.distance) for hit in found] == [
        (hit.chunk.id, hit.rank, hit.distance) for hit in expected
    ]


def test_ids_that_were_seen_are_left_out_and_unknown_ones_do_no_harm():
    index = make_index(60, 1)
    first, second, *_ = admitted_by_walking(index)
    found = index.reader(QUERY).read_admitted(QUERY, "token", [first.chunk.id, "no such id"], 1)
    assert [hit.chunk.id for hit in found] == [second.chunk.id]


def test_a_rule_that_cannot_be_read_admits_its_chunk():
    chunks = (Chunk("a", query_must="{"), Chunk("b", query_must={"contain": "druid"}), Chunk("c"))
    assert rule_index(chunks).mask(QUERY, "token").tolist() == [True, False, True]


def by_strategy(index, depth, **settings):
    before = Dense(depth=depth, index=index)(Candidates(Query("q", QUERY)))
    return {name: Requery(strategy=name, **settings)(before) for name in ("deepen", "exclude", "prefilter")}


@given(st.integers(1, 120), st.integers(1, 12), st.integers(1, 60), st.integers(0, 10**6))
def test_the_three_strategies_return_the_same_list_where_rounds_are_enough(rows, k, depth, seed):
    found = by_strategy(make_index(rows, seed), depth, k=k, max_iterations=100)
    lists = [[(hit.chunk.id, hit.rank, hit.distance) for hit in after.hits] for after in found.values()]
    assert lists[0] == lists[1] == lists[2]


def test_prefilter_fills_k_where_the_rounds_of_the_others_end_short():
    index = make_index(400, 3, noise={"contain": "druid"})
    chunks = (*index.snapshot.chunks[:-20], *(Chunk(chunk.id) for chunk in index.snapshot.chunks[-20:]))
    index = CollectionIndex(Snapshot("b", chunks, index.snapshot.vectors, "hash-16", 16, "f", "r"), HashEmbedder())
    found = by_strategy(index, 15)
    assert len(found["deepen"].hits) < 15
    assert found["deepen"].steps[-1].facts["stop"] == "max_iterations 3 reached"
    assert [hit.chunk.id for hit in found["prefilter"].hits] == [
        hit.chunk.id for hit in admitted_by_walking(index)[:15]
    ]
    facts = found["prefilter"].steps[-1].facts
    assert (facts["stop"], facts["store_queries"], facts["rounds"]) == ("k 15 found", 1, 2)


def test_prefilter_says_that_no_more_chunks_are_admitted():
    after = by_strategy(make_index(40, 2, noise={"contain": "druid"}), 5)["prefilter"]
    assert after.hits == ()
    assert after.steps[-1].facts["stop"] == "no more chunks are admitted"


@pytest.mark.parametrize("depth", [1, 15, 60])
def test_prefilter_notes_the_verdict_on_every_hit_it_brings(depth):
    after = by_strategy(make_index(60, 5), depth, k=15)["prefilter"]
    ruled = [hit for hit in after.hits if isinstance(hit.chunk.query_must, dict)]
    assert ruled
    assert all(hit.notes["QueryMust"].satisfied for hit in ruled)


def test_an_approximate_index_reads_admitted_chunks_exactly_and_asks_chroma_nothing(tmp_path):
    exact = make_index(80, 4)
    approximate = ChromaIndex(exact.snapshot, tmp_path, HashEmbedder())
    found = [
        index.reader(QUERY, {"half": 1}).read_admitted(QUERY, "token", ("c00003",), 9) for index in (exact, approximate)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 9
    assert approximate.store_queries == 0
