"""The Lexical and Hybrid stages: parts of each hit, both queries, filters behind them, and reading on."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from rag_core.errors import EndpointError, InputError, SpecError, SurroundingsError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import MinSimilarity
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.search import CollectionIndex
from rag_core.records import dump_lists, load_lists
from rag_core.retrieve.capture import captured
from rag_core.retrieve.fuse import ranks_of
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical
from rag_core.retrieve.requery import Requery
from rag_core.spec import build, dump_stages, parse_pipeline
from rag_core.types import Candidates, Case, Chunk, Metric, Order, Query


class FixedEmbedder:
    """Embeds every query to (1, 0)."""

    name, dimension, window, batch = "fixed", 2, 10, 1

    def __init__(self, down=False):
        self.asked, self.down = [], down

    def embed(self, texts, progress=None):
        if self.down:
            raise EndpointError("endpoint e (127.0.0.1) cannot be reached")
        self.asked += texts
        return np.array([[1, 0]] * len(texts), dtype=np.float32)

    def count_tokens(self, texts):
        return [1] * len(texts)


TEXTS = ["cap", "hat", "cap hat", "boot"]  # c0 … c3
ANGLES = [90, 45, 180, 0]  # of their vectors to the query's: c3 is nearest, then c1, c0, c2


def index_of(texts=TEXTS, angles=ANGLES, rules=None, **embedder):
    chunks = tuple(
        Chunk(f"c{n}", text=text, metadata={"source": f"f{n % 2}.md"}, query_must=(rules or {}).get(n))
        for n, text in enumerate(texts)
    )
    turned = np.radians(np.array(angles, dtype=float))
    vectors = normalise(np.stack([np.cos(turned), np.sin(turned)], axis=1))
    return CollectionIndex(Snapshot("s", chunks, vectors, "fixed", 2, "f", "r"), FixedEmbedder(**embedder))


@pytest.fixture
def index():
    return index_of()


def fetch(stage, index, text="cap", **query):
    return build(parse_pipeline([stage]), {"index": index})(Candidates(Query("q", text, **query)))


def ids(candidates):
    return [hit.chunk.id for hit in candidates.hits]


def test_lexical_brings_the_chunks_that_share_a_word_with_score_and_distance(index):
    found = fetch(Lexical(), index)
    assert ids(found) == ["c0", "c2"]
    assert found.hits[0].scores["bm25"] > found.hits[1].scores["bm25"]
    assert [hit.distance for hit in found.hits] == pytest.approx([1, 2])
    assert (found.metric, found.order) == (Metric.COSINE, Order.FUSED)


def test_lexical_reads_the_query_of_its_side_and_distances_the_other(index):
    found = fetch(Lexical(), index, "nothing", lexical_text="boot", dense_text="Rewritten")
    assert ids(found) == ["c3"]
    assert index.embedder.asked == ["Rewritten"]


def test_lexical_without_a_shared_word_is_empty_and_says_so(index):
    found = fetch(Lexical(file_filter="f0"), index, "boot")
    assert (found.hits, found.fallbacks) == ((), ())
    assert "shares a word with the query and meets where and file_filter" in found.notices[0].text


def test_lexical_does_without_distances_where_the_query_cannot_be_embedded():
    found = fetch(Lexical(), index_of(down=True))
    assert ids(found) == ["c0", "c2"]
    assert found.hits[0].distance is None
    assert "without distances" in found.fallbacks[0].reason
    with pytest.raises(InputError, match="default thresholds, made for cosine distances, on a list of bm25 scores"):
        AdaptiveGap()(found)


def test_hybrid_keeps_every_part_of_every_hit(index):
    found = fetch(Hybrid(), index)
    parts = {hit.chunk.id: (hit.scores, dict(ranks_of(hit))) for hit in found.hits}
    assert {one: ranks for one, (_, ranks) in parts.items()} == {
        "c0": {"dense": 3, "lexical": 1},
        "c2": {"dense": 4, "lexical": 2},
        "c3": {"dense": 1},
        "c1": {"dense": 2},
    }
    assert parts["c0"][0]["rrf"] == pytest.approx(1 / 63 + 1 / 61)
    assert parts["c3"][0] == {"distance": pytest.approx(0), "bm25": 0, "rrf": pytest.approx(1 / 61)}
    assert ids(found) == ["c0", "c2", "c3", "c1"]
    assert [hit.rank for hit in found.hits] == [1, 2, 3, 4]
    assert found.order is Order.FUSED


def test_a_hit_of_words_alone_has_its_distance_from_the_stored_vector(index):
    found = fetch(Hybrid(depth=1), index)
    only = {hit.chunk.id: hit for hit in found.hits}["c0"]
    assert dict(ranks_of(only)) == {"lexical": 1}
    assert only.distance == pytest.approx(1)


def test_both_sides_get_their_own_query(index):
    found = fetch(Hybrid(), index, "neither", dense_text="Dense", lexical_text="boot")
    assert index.embedder.asked == ["Dense"]
    assert dict(ranks_of(found.hits[0])) == {"dense": 1, "lexical": 1}


def test_weights_and_k_are_those_of_the_fusion(index):
    found = fetch({"Hybrid": {"weights": [0.5, 0.25], "rrf_k": 10}}, index)
    scores = {hit.chunk.id: hit.scores["rrf"] for hit in found.hits}
    assert scores["c0"] == pytest.approx(0.5 / 13 + 0.25 / 11)


def test_conditions_hold_on_both_sides(index):
    assert set(ids(fetch(Hybrid(file_filter="f0"), index))) == {"c0", "c2"}
    nothing = fetch(Hybrid(where={"source": "none"}), index)
    assert nothing.hits == ()
    assert "meets where and file_filter" in nothing.notices[0].text


def test_the_step_says_what_each_side_found_and_how_they_were_fused(index):
    facts = fetch(Hybrid(), index).steps[0].facts
    assert (facts["found_dense"], facts["found_lexical"], facts["found_both"]) == (4, 2, 2)
    assert (facts["rrf_k"], facts["weights"], facts["depth"]) == (60, "1 : 1", 200)


@pytest.mark.parametrize(
    "settings",
    [
        {"weights": [1]},
        {"weights": [1, -1]},
        {"weights": [0, 0]},
        {"weights": "1,1"},
        {"weights": [True, 1]},
        {"weights": [1, float("inf")]},
        {"rrf_k": -1},
        {"depth": 0},
        {"where": "page"},
    ],
)
def test_settings_without_meaning_are_refused(settings):
    with pytest.raises(SpecError, match="Hybrid"):
        Hybrid(**settings)


def test_a_spec_with_weights_comes_back_the_same():
    (stage,) = parse_pipeline([{"Hybrid": {"weights": [2, 1]}}]).stages
    assert stage == Hybrid(weights=(2, 1))
    assert parse_pipeline(json.loads(json.dumps(dump_stages(stage)))).stages == (stage,)


@pytest.mark.parametrize("stage", [Lexical(), Hybrid()])
def test_without_a_collection_or_without_words_it_says_so(stage):
    with pytest.raises(SurroundingsError, match="no collection"):
        stage(Candidates(Query("q", "text")))
    with pytest.raises(SurroundingsError, match="searches words, this source has none"):
        fetch(stage, object())


@pytest.mark.parametrize("stage", [Lexical(), Hybrid()])
def test_a_recorded_list_is_left_alone(stage, index):
    assert build(parse_pipeline([stage]), {"index": index})(Candidates(Query("q", "cap"), recorded=True)).hits == ()


def test_the_relevance_floor_is_a_similarity_and_not_the_fused_score(index):
    """The original compared a fused score, at most 2/61, with a cosine threshold, which drops everything."""
    after = MinSimilarity(min_relevance=0.45)(fetch(Hybrid(), index))
    assert set(ids(after)) == {"c3", "c1"}  # at 0 and 45 degrees
    assert max(hit.scores["rrf"] for hit in after.hits) < 0.45
    assert "cosine similarity" in after.drops[0].reason.text


def test_the_cut_of_a_fused_list_works_on_distances_in_their_order(index):
    after = AdaptiveGap(gap_threshold=0.5, min_results=1, gap_policy="first")(fetch(Hybrid(), index))
    assert ids(after) == ["c3", "c1"]  # distances 0, 0.29 | 1, 2
    assert after.steps[-1].facts["cut"].kind == "gap"


@pytest.mark.parametrize("stage", [{"Hybrid": {"depth": 2}}, {"Lexical": {"depth": 1}}])
@pytest.mark.parametrize("strategy", ["deepen", "exclude", "prefilter"])
def test_requery_reads_on_in_words_and_in_both(stage, strategy):
    texts = ["cap"] * 12
    index = index_of(texts, list(range(0, 120, 10)), {n: {"contain": "druid"} for n in range(6)})
    after = Requery(k=3, max_iterations=9, strategy=strategy)(fetch(stage, index))
    assert len(after.hits) == 3
    assert all(hit.chunk.query_must is None for hit in after.hits)
    every = [hit.chunk.id for hit in (*after.hits, *(drop.hit for drop in after.drops))]
    assert max(Counter(every).values()) == 1


@limits(deadline=None)
@given(
    st.lists(st.tuples(st.text("ab ", max_size=4), st.integers(0, 180)), min_size=1, max_size=12),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_the_fused_ranking_is_the_same_however_it_is_read_and_ends_with_every_chunk(made, depth, step):
    texts, angles = zip(*made, strict=True)
    index = index_of(list(texts), list(angles))
    whole = fetch(Hybrid(depth=depth), index, "a b").reader.read(0, 100)
    reader, found = fetch(Hybrid(depth=depth), index, "a b").reader, []
    while batch := reader.read(len(found), len(found) + step):
        found += batch
    assert found == list(whole)
    assert {hit.chunk.id for hit in whole} == {chunk.id for chunk in index.snapshot.chunks}
    assert [hit.rank for hit in whole] == list(range(1, len(texts) + 1))


@pytest.mark.parametrize("stage", [Hybrid(depth=2), Lexical()])
def test_a_capture_keeps_every_part_and_reads_back_the_same(stage, index):
    (source,) = build(parse_pipeline([stage]), {"index": index}).stages
    case = captured(Case(Query("q", "cap"), {"c0": 2}), source)
    (read,) = load_lists("\n".join(dump_lists([case])).encode(), "lists")
    assert [hit.scores for hit in read.candidates.hits] == [hit.scores for hit in case.candidates.hits]
    assert [ranks_of(hit) for hit in read.candidates.hits] == [ranks_of(hit) for hit in case.candidates.hits]
    assert read.candidates.order is Order.FUSED
