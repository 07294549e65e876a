"""The Dense stage: depth, conditions, facts, and what it leaves for stages that read on."""

import numpy as np
import pytest

from rag_core.errors import SpecError, SurroundingsError
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.search import CollectionIndex
from rag_core.retrieve.dense import Dense
from rag_core.spec import build, parse_pipeline
from rag_core.types import Candidates, Chunk, Metric, Query


class FixedEmbedder:
    """Embeds every query to (1, 0)."""

    name, dimension, window, batch = "fixed", 2, 10, 1

    def __init__(self):
        self.asked = []

    def embed(self, texts, progress=None):
        self.asked += texts
        return np.array([[1, 0]] * len(texts), dtype=np.float32)

    def count_tokens(self, texts):
        return [1] * len(texts)


@pytest.fixture
def index():
    chunks = tuple(Chunk(f"c{n}", metadata={"source": f"f{n % 2}.md"}) for n in range(4))
    vectors = normalise(np.array([[0, 1], [1, 1], [1, 0], [-1, 0]], dtype=float))
    return CollectionIndex(Snapshot("s", chunks, vectors, "fixed", 2, "f", "r"), FixedEmbedder())


def fetch(stage, index, **query):
    return build(parse_pipeline([stage]), {"index": index})(Candidates(Query("q", "text", **query)))


def test_the_nearest_come_first_with_cosine_distances(index):
    found = fetch(Dense(), index)
    assert [hit.chunk.id for hit in found.hits] == ["c2", "c1", "c0", "c3"]
    assert [hit.distance for hit in found.hits] == pytest.approx([0, 1 - 2**-0.5, 1, 2])
    assert found.metric is Metric.COSINE


def test_depth_bounds_the_list_and_the_reader_reads_on(index):
    found = fetch(Dense(depth=2), index)
    assert [hit.rank for hit in found.hits] == [1, 2]
    assert [hit.chunk.id for hit in found.reader.read(2, 9)] == ["c0", "c3"]


def test_the_step_says_depth_matches_queries_and_that_it_is_exact(index):
    (step,) = fetch(Dense(file_filter="f1"), index).steps
    assert dict(step.facts) == {"depth": 200, "matching": 2, "store_queries": 1, "exact": True, "index": "f-exact"}
    assert (step.entered, step.left) == (0, 2)


def test_a_rewritten_query_is_what_is_embedded(index):
    fetch(Dense(), index, dense_text="rewritten")
    assert index.embedder.asked == ["rewritten"]


def test_conditions_that_admit_nothing_leave_an_empty_list_and_a_word(index):
    found = fetch(Dense(where={"source": "none.md"}), index)
    assert found.hits == ()
    assert "meets where and file_filter" in found.notices[0].text


def test_a_recorded_list_is_left_alone(index):
    recorded = Candidates(Query("q", "text"), recorded=True)
    assert build(parse_pipeline(["Dense"]), {"index": index})(recorded).hits == ()
    assert index.embedder.asked == []


def test_without_a_collection_it_says_so():
    with pytest.raises(SurroundingsError, match="no collection"):
        Dense()(Candidates(Query("q", "text")))


@pytest.mark.parametrize("settings", [{"depth": 0}, {"where": "page=3"}, {"file_filter": 7}])
def test_a_setting_of_the_wrong_kind_is_refused(settings):
    with pytest.raises(SpecError, match="Dense"):
        Dense(**settings)
