import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.filters.variety import Deduplicate, Diversity
from rag_core.stage import counterfactuals
from rag_core.types import Candidates, Chunk, Hit, Query

CLERIC = "A cleric of level seven hits armor class six on a roll of ten or more"
TABLE = "Clerics of level 7 need 10 to hit armor class 6 with any weapon they may use"


def candidates(*texts):
    hits = tuple(
        Hit(Chunk(f"c{at}", title="Same title", text=text), at, {"score": 1.0}) for at, text in enumerate(texts, 1)
    )
    return Candidates(Query("q", "x"), hits)


def kept(stage, *texts):
    return [hit.rank for hit in stage(candidates(*texts)).hits]


def test_a_repeated_text_goes_and_names_the_one_that_stays():
    found = Deduplicate()(candidates(CLERIC, "Owlbears hug", CLERIC.upper()))
    assert [hit.rank for hit in found.hits] == [1, 2]
    assert found.drops[0].reason.text == "nearly repeats rank 1 (1.00 of its word triples, at least 0.80)"


def test_texts_that_differ_in_a_number_are_not_the_same():
    assert kept(Deduplicate(likeness=0), TABLE, TABLE.replace("class 6", "class 5")) == [1, 2]


def test_equal_titles_and_missing_texts_are_no_likeness():
    assert kept(Deduplicate(likeness=0.0), "", "", "") == [1, 2, 3]


def test_one_changed_word_of_sixteen_is_a_near_repeat_only_below_its_likeness():
    other = CLERIC.replace("roll", "throw")  # 14 triples each, 3 of them differ: 11 of 17 shared
    assert kept(Deduplicate(likeness=11 / 17), CLERIC, other) == [1]
    assert kept(Deduplicate(likeness=11 / 17 + 0.001), CLERIC, other) == [1, 2]


def test_diversity_prefers_a_chunk_that_says_something_else():
    near, far = CLERIC, "Owlbears hug their prey with both arms"
    assert kept(Diversity(k=2, relevance=0.5), near, near, far) == [1, 3]
    assert kept(Diversity(k=2, relevance=1), near, near, far) == [1, 2]


def test_diversity_by_hand():
    # n = 4, weight 0.5: 2nd choice among rank 2 (0.5·0.75 − 0.5·1 < 0) and rank 3 (0.5·0.5), then rank 4 (0.5·0.25)
    assert kept(Diversity(k=4, relevance=0.5), CLERIC, CLERIC, "one two three four", "five six seven eight") == [
        1,
        3,
        4,
        2,
    ]


@given(
    st.lists(st.sampled_from([CLERIC, TABLE, "", "one two three four"]), max_size=8), st.integers(1, 5), st.floats(0, 1)
)
def test_what_diversity_drops_is_kept_where_it_says(texts, k, relevance):
    before = candidates(*texts)
    stage = Diversity(k, relevance)
    for key, found in counterfactuals(stage, before).items():
        assert key in [hit.key for hit in Diversity(found[0].value, relevance)(before).hits]


@pytest.mark.parametrize("texts", [(CLERIC, CLERIC), (CLERIC, CLERIC.replace("roll", "throw"))])
def test_what_deduplicate_drops_is_kept_where_it_says(texts):
    before = candidates(*texts)
    for key, (found,) in counterfactuals(Deduplicate(0.5), before).items():
        if found.value is not None:
            assert key in [hit.key for hit in Deduplicate(found.value)(before).hits]
