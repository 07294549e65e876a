from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.eval_sets.split import fold_queries, near_duplicates, split_queries
from rag_core.text import fold, words
from rag_core.types import Query


def numbered(count, tags=()):
    """Queries that share no word with each other."""
    return [
        Query(f"q{number}", f"alpha{number} beta{number} gamma{number}", tags=tuple(tags)) for number in range(count)
    ]


texts = st.lists(
    st.sampled_from(["who", "hits", "what", "armor", "class", "six", "nine", "cleric", "fighter"]), max_size=6
).map(" ".join)
query_lists = st.lists(st.tuples(texts, st.sets(st.sampled_from("xyz"))), min_size=1, max_size=25).map(
    lambda rows: [Query(f"q{number}", text, tags=tuple(sorted(tags))) for number, (text, tags) in enumerate(rows)]
)


def jaccard(one, other):
    first, second = set(words(one.text)), set(words(other.text))
    return len(first & second) / len(first | second) if first | second else 0.0


# ---------------------------------------------------------------- near-duplicates


def groups_of(*texts):
    groups = near_duplicates([Query(str(number), text) for number, text in enumerate(texts)])
    return [[query.id for query in group] for group in groups]


def test_four_of_five_words_in_common_is_a_near_duplicate():
    assert groups_of("one two three four five", "five four three two", "six") == [["0", "1"], ["2"]]  # 4 / 5


def test_three_of_four_words_in_common_is_none():
    assert groups_of("one two three four", "one two three") == [["0"], ["1"]]


def test_queries_equal_after_folding_are_one_group():
    assert groups_of("What is AC?", "what is  ac?", "WHAT IS AC?") == [["0", "1", "2"]]


def test_queries_without_a_word_are_near_only_where_they_read_the_same():
    assert groups_of("???", "???", "!!!", "") == [["0", "1"], ["2"], ["3"]]


def test_being_near_is_passed_on():
    first, second = "a1 b c d e f g h i j", "a2 b c d e f g h i j"  # 9 / 11
    third = "a2 b2 c d e f g h i j"  # 9 / 11 with the second, 8 / 12 with the first
    assert groups_of(first, third, second) == [["0", "1", "2"]]


@given(query_lists)
def test_groups_equal_the_components_of_all_pairs_compared(queries):
    group_of = {query.id: at for at, group in enumerate(near_duplicates(queries)) for query in group}
    parts = {query.id: {query.id} for query in queries}
    for one, other in combinations(queries, 2):
        same = " ".join(fold(one.text).split()) == " ".join(fold(other.text).split())
        if (same or jaccard(one, other) >= 0.8 - 1e-9) and parts[one.id] is not parts[other.id]:
            parts[one.id] |= parts[other.id]
            parts.update(dict.fromkeys(parts[one.id], parts[one.id]))
    for one, other in combinations(queries, 2):
        assert (group_of[one.id] == group_of[other.id]) == (parts[one.id] is parts[other.id])


# ---------------------------------------------------------------- the split


def test_the_test_side_has_its_share():
    split = split_queries(numbered(100), 0.3)
    assert (len(split.dev), len(split.test)) == (70, 30)


def test_every_tag_has_its_share_on_the_test_side():
    queries = [Query(f"q{n}", f"u{n} v{n} w{n}", tags=("rare",) if n % 10 == 0 else ("usual",)) for n in range(100)]
    tags = {query.id: query.tags[0] for query in queries}
    assert Counter(tags[id_] for id_ in split_queries(queries, 0.3).test) == {"rare": 3, "usual": 27}


@given(query_lists, st.integers(0, 5), st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_a_split_holds_every_query_once_and_no_near_duplicates_on_both_sides(queries, seed, share):
    groups = near_duplicates(queries)
    if len(groups) < 2:
        with pytest.raises(InputError):
            split_queries(queries, share, seed)
        return
    split = split_queries(queries, share, seed)
    assert split.dev
    assert split.test
    assert sorted(split.dev + split.test) == sorted(query.id for query in queries)
    for group in groups:
        assert len({query.id in split.test for query in group}) == 1


def test_the_same_seed_gives_the_same_split_in_any_order_of_the_input():
    queries = numbered(30, tags=("t",))
    split, turned = split_queries(queries, seed=3), split_queries(queries[::-1], seed=3)
    assert (set(split.dev), set(split.test)) == (set(turned.dev), set(turned.test))


def test_another_seed_gives_another_split():
    assert len({split_queries(numbered(30), seed=seed).test for seed in range(10)}) == 10


def test_over_many_seeds_every_query_is_tested_about_equally_often():
    times = Counter(id_ for seed in range(400) for id_ in split_queries(numbered(10), 0.3, seed).test)
    assert len(times) == 10
    assert all(80 < count < 160 for count in times.values())  # 120 expected, standard deviation 9


def test_the_sides_keep_the_order_of_the_input():
    queries = numbered(20)
    split = split_queries(queries)
    order = [query.id for query in queries]
    assert list(split.dev) == [id_ for id_ in order if id_ in split.dev]


# ---------------------------------------------------------------- folds


@given(query_lists, st.integers(2, 5), st.integers(0, 3))
def test_folds_test_every_query_once_and_choose_on_the_rest(queries, count, seed):
    groups = near_duplicates(queries)
    if len(groups) < count:
        with pytest.raises(InputError):
            fold_queries(queries, count, seed)
        return
    folds = fold_queries(queries, count, seed)
    assert sorted(id_ for split in folds for id_ in split.test) == sorted(query.id for query in queries)
    for split in folds:
        assert split.test
        assert sorted(split.dev + split.test) == sorted(query.id for query in queries)
        for group in groups:
            assert len({query.id in split.test for query in group}) == 1


def test_folds_of_single_queries_are_of_even_size_and_even_tags():
    queries = [Query(f"q{n}", f"u{n} v{n} w{n}", tags=("even" if n % 2 == 0 else "odd",)) for n in range(20)]
    tags = {query.id: query.tags[0] for query in queries}
    assert [Counter(tags[id_] for id_ in split.test) for split in fold_queries(queries, 5)] == [
        {"even": 2, "odd": 2}
    ] * 5


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_outside_0_to_1_is_refused(share):
    with pytest.raises(InputError, match="test_share"):
        split_queries(numbered(5), share)


def test_a_repeated_query_id_is_refused():
    with pytest.raises(InputError, match="'q0' is there more than once"):
        split_queries([*numbered(3), *numbered(1)])


def test_fewer_than_two_folds_are_refused():
    with pytest.raises(InputError, match="folds is 1"):
        fold_queries(numbered(5), 1)


def test_near_duplicates_alone_cannot_be_split():
    with pytest.raises(InputError, match="got 1 groups"):
        split_queries([Query("a", "one two"), Query("b", "two one")])
