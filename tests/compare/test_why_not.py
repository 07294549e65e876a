"""Why not this chunk: kept, dropped, not brought, unknown; with the stage, the reason and what would bring it back."""

from dataclasses import dataclass

import pytest

from rag_core.compare.why_not import why_not
from rag_core.filters.cutoff import TopK
from rag_core.filters.query_must import QueryMust
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import Requery
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Chunk, Hit, Metric, Query

CHUNKS = [
    Chunk("t5", "Cleric matrix, armor class 5", query_must={"contain_one_of": [["cleric"], ["armor class 5"]]}),
    Chunk("t6", "Cleric matrix, armor class 6", query_must={"contain_one_of": [["cleric"], ["armor class 6", "ac 6"]]}),
    Chunk("s1", "Strength"),
    Chunk("s2", "Strength and exceptional strength"),
    *(Chunk(f"o{n}", f"Other {n}") for n in range(596)),
]
HITS = tuple(Hit(chunk, rank, {"distance": rank / 1000}) for rank, chunk in enumerate(CHUNKS, 1))
QUERY = Query("q", "a cleric to hit armor class 6")


@dataclass
class Index:
    """An index over a fixed ranking."""

    metric = Metric.COSINE
    exact = True
    fingerprint = "fixed"
    store_queries = 1
    matching = len(HITS)

    def reader(self, text, where=None, file_filter=None):
        return self

    def read(self, start, stop):
        return HITS[start:stop]

    def read_excluding(self, ids, count):
        return tuple(hit for hit in HITS if hit.chunk.id not in set(ids))[:count]


def live(depth, *stages):
    return Pipeline((Dense(depth=depth, index=Index()), *stages))


def recorded(count=10):
    return Candidates(QUERY, HITS[:count], recorded=True)


def test_a_kept_chunk_has_its_rank_and_its_position():
    found = why_not(QueryMust(), recorded(), "t6")
    assert (found.outcome, found.rank, found.position, found.stage) == ("kept", 2, 1, "")


def test_a_dropped_chunk_names_stage_reason_and_what_would_bring_it_back():
    found = why_not(QueryMust() >> TopK(5), recorded(), "t5")
    assert (found.outcome, found.rank, found.stage) == ("dropped", 1, "QueryMust")
    assert found.reason == "no word of: armor class 5"
    assert found.would_bring_back[0].text == "would stay if the query held armor class 5"


def test_the_stage_that_dropped_it_answers_and_not_an_earlier_one():
    found = why_not(QueryMust() >> TopK(2), recorded(), "s2")
    assert (found.stage, found.rank) == ("TopK", 4)
    assert [(one.parameter, one.value) for one in found.would_bring_back] == [("k", 3)]


@pytest.mark.parametrize(
    ("wanted", "identity", "others"),
    [
        ("Strength", "s1", ()),
        ("  sTRENGTH ", "s1", ()),
        ("exceptional", "s2", ()),
        ("strengt", "s1", ("s2",)),
        ("matrix", "t5", ("t6",)),
    ],
)
def test_a_title_is_looked_for_in_full_and_then_in_part(wanted, identity, others):
    found = why_not(TopK(1), recorded(), wanted)
    assert found.hit.chunk.id == identity
    assert found.others == others


def test_a_chunk_below_what_the_source_brought_has_its_rank_and_what_comes_then():
    found = why_not(live(50, QueryMust(), TopK(3)), Candidates(QUERY), "o500")
    assert (found.outcome, found.rank, found.stage) == ("not brought", 505, "Dense")
    assert found.reason == "rank 505 is beyond the 50 chunks that are read"
    assert [(one.parameter, one.value) for one in found.would_bring_back] == [("depth", 505)]
    assert (found.then.outcome, found.then.stage) == ("dropped", "TopK")


def test_what_comes_then_may_be_that_it_is_kept():
    found = why_not(live(2), Candidates(QUERY), "s1")
    assert (found.outcome, found.then.outcome, found.then.position) == ("not brought", "kept", 3)


def test_a_chunk_that_refill_read_beyond_the_source_is_found_in_the_trace():
    found = why_not(live(2, Requery(k=2)), Candidates(QUERY), "s1")
    assert (found.outcome, found.rank) == ("kept", 3)


@pytest.mark.parametrize("wanted", ["no such chunk", "", "   "])
def test_a_chunk_that_is_nowhere_is_unknown(wanted):
    assert why_not(QueryMust(), recorded(), wanted).outcome == "unknown"
    found = why_not(live(5), Candidates(QUERY), wanted)
    assert found.outcome == "unknown"
    assert "10,000 nearest" in found.reason


def test_a_chunk_of_a_recorded_list_that_was_never_read_is_dropped_as_such():
    found = why_not(Requery(k=1, max_iterations=1), recorded(), "o3")
    assert (found.outcome, found.reason) == ("dropped", "not read")
