import pytest

from rag_core.measure.economy import Economy, economy_of, total
from rag_core.types import Candidates, Chunk, Hit, Query


def result(*texts):
    hits = tuple(Hit(Chunk(f"c{at}", text=text), at, {}) for at, text in enumerate(texts, 1))
    return Candidates(Query("q", "x"), hits)


def test_tokens_by_label_by_hand():
    # 40 characters are 10 tokens, 41 are 11, 4 are 1
    found = economy_of(result("a" * 40, "b" * 41, "c" * 4, "").hits, {"c1": 2, "c2": 0})
    assert found == Economy(relevant=10, irrelevant=11, unjudged=1, relevant_chunks=1, without_text=1)
    assert found.tokens == 22
    assert found.relevant_per_1000 == pytest.approx(1000 / 22)
    assert found.noise == pytest.approx(12 / 22)
    assert found.noise_known == pytest.approx(11 / 22)


def test_min_grade_decides_what_is_relevant():
    assert economy_of(result("a" * 40).hits, {"c1": 1}, min_grade=2).irrelevant == 10


def test_a_chunk_that_came_twice_counts_once():
    one = result("a" * 40)
    twice = Candidates(one.query, (one.hits[0], Hit(one.hits[0].chunk, 1, origin="expanded")))
    assert economy_of(twice.hits, {}).tokens == 10


def test_without_texts_there_is_no_share():
    found = economy_of(result("", "").hits, {"c1": 1})
    assert (found.tokens, found.relevant_per_1000, found.noise, found.without_text) == (0, None, None, 2)


def test_a_total_weighs_every_token_the_same():
    found = total([Economy(relevant=90, relevant_chunks=3), Economy(irrelevant=10)])
    assert (found.tokens, found.noise, found.relevant_per_1000) == (100, 0.1, 30)
    assert found.to_json()["noise_known"] == 0.1
