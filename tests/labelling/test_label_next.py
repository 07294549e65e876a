"""Label next: exact bounds held to brute force, settled is final, and far fewer labels than in random order."""

from itertools import product
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.labelling.label_next import OpenComparison, open_query, with_chances
from rag_core.measure.measures import f_measure
from rag_core.measure.scores import score

IDS = [f"c{i}" for i in range(9)]
CHUNKS = st.lists(st.sampled_from(IDS), max_size=5, unique=True)


def true_difference(kept, grades, total=None):
    """SetF(first) − SetF(second) of a fully judged query, from the definition; unscored is 0."""
    relevant = {chunk for chunk, grade in grades.items() if grade}
    whole = max(len(relevant), total or 0)
    if not whole:
        return 0.0
    first, second = (f_measure(len(relevant & set(ids)), len(ids), whole, 1) for ids in kept)
    return first - second


@given(CHUNKS, CHUNKS, st.dictionaries(st.sampled_from(IDS), st.integers(0, 1), max_size=6), st.integers(-1, 3))
def test_bounds_are_the_extremes_over_every_way_the_open_labels_may_fall(first, second, grades, spare):
    known = sum(grades.values())
    total = None if spare < 0 else known + spare
    unjudged = [chunk for chunk in dict.fromkeys((*first, *second)) if chunk not in grades]
    ways = [
        true_difference((first, second), {**grades, **dict(zip(unjudged, way, strict=True))}, total)
        for way in product((0, 1), repeat=len(unjudged))
        if total is None or sum(way) <= spare
    ]
    low, high = open_query("q", (first, second), grades, relevant_total=total).bounds
    assert low == pytest.approx(min(ways), abs=1e-12)
    assert high == pytest.approx(max(ways), abs=1e-12)


def test_a_case_counted_by_hand():
    # A keeps a and b, B keeps b and c; b is relevant. Best for A: a relevant too (1 − 1/2), worst: c relevant.
    low, high = open_query("q", (["a", "b"], ["b", "c"]), {"b": 1}).bounds
    assert (low, high) == (2 / 4 - 4 / 4, 4 / 4 - 2 / 4)


def test_settled_when_only_shared_chunks_of_equal_lists_are_open():
    assert OpenComparison((open_query("q", (["a", "b"], ["b", "a"]), {}),)).settled
    assert not OpenComparison((open_query("q", (["a"], ["b"]), {}),)).settled


def test_what_only_one_pipeline_kept_comes_before_what_both_kept():
    comparison = OpenComparison((open_query("q", (["a", "s", "t"], ["s", "t", "b"]), {}),))
    assert {chunk for _, _, chunk in comparison.ranked()[:2]} == {"a", "b"}


def planted(random, queries=30, overlap=0.8, length=10, same_length=True):
    """Two pipelines, and the truth about every chunk: per query they share `overlap` of all chunks, and what each has of
    its own is relevant at a rate of the pipeline's, drawn anew for every comparison."""
    rates = (random.random(), random.random())
    made = []
    for number in range(queries):
        size = random.randint(length - 3, length + 3)
        ids = [f"{number}-{i}" for i in range(size)]
        common = round(overlap * size)
        own = size - common
        half = (own + random.randint(0, 1)) // 2 if same_length else random.randint(0, own)
        parts = (ids[:common], ids[common : common + half], ids[common + half :])
        chances = (random.betavariate(1, 2), *rates)
        truth = {
            one: int(random.random() < chance) for part, chance in zip(parts, chances, strict=True) for one in part
        }
        made.append(((parts[0] + parts[1], parts[0] + parts[2]), truth))
    return made


class Run:
    """A comparison that is labelled one chunk after the other."""

    def __init__(self, made):
        self.made = made
        self.grades = [{} for _ in made]
        self.queries = [open_query(str(i), kept, {}) for i, (kept, _) in enumerate(made)]

    @property
    def comparison(self):
        return OpenComparison(tuple(self.queries))

    def label(self, number, chunk):
        kept, truth = self.made[number]
        self.grades[number][chunk] = truth[chunk]
        self.queries[number] = open_query(str(number), kept, self.grades[number])

    def settle(self, choose):
        """How many labels it takes until the winner stands."""
        for used in range(sum(len(truth) for _, truth in self.made) + 1):
            if self.comparison.settled:
                return used
            self.label(*choose(self))
        raise AssertionError("every chunk is labelled and the winner still open")


def in_order(order):
    left = iter(order)
    return lambda run: next(left)


def by_gain(run):
    """The first of label next, made anew every five labels as a queue does."""
    if not getattr(run, "ahead", None):
        run.queries = with_chances(run.queries, run.grades)
        run.ahead = [(int(query), chunk) for _, query, chunk in run.comparison.ranked()[:5]]
    return run.ahead.pop(0)


def share_of_random(random, overlap, same_length):
    made = planted(random, overlap=overlap, same_length=same_length)
    order = [(number, chunk) for number, (_, truth) in enumerate(made) for chunk in truth]
    random.shuffle(order)
    at_random = Run(made).settle(in_order(order))
    return Run(made).settle(by_gain) / at_random if at_random else 1.0


def simulated(count, overlap, same_length=True):
    random = Random(f"label next {overlap}")
    return median(share_of_random(random, overlap, same_length) for _ in range(count))


def test_half_the_labels_of_random_order_settle_a_comparison_that_shares_most_chunks():
    assert simulated(12, 0.8) <= 0.5


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_label_next_over_two_hundred_comparisons_and_its_curve():
    curve = {overlap: simulated(200, overlap) for overlap in (0.2, 0.4, 0.6, 0.8)}
    print("median share of random order's labels, by share of common chunks:", curve)
    assert curve[0.8] <= 0.5
    assert curve[0.8] < curve[0.6] < curve[0.4] < curve[0.2] < 1


@pytest.mark.slow
def test_lists_of_unlike_lengths_take_more_labels_and_still_fewer_than_random_order():
    share = simulated(100, 0.8, same_length=False)
    print("median share with lists of unlike lengths, 80 % common:", share)
    assert share <= 0.7


def deletions(count, seed):
    random = Random(seed)
    for _ in range(count):
        made = planted(random, queries=random.randint(1, 12), overlap=random.random(), length=6)
        yield made, [{chunk: grade for chunk, grade in truth.items() if random.random() < 0.5} for _, truth in made]


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_bounds_contain_the_truth_whatever_labels_are_deleted(count):
    for made, left in deletions(count, "deletions"):
        queries = [open_query("q", kept, grades) for (kept, _), grades in zip(made, left, strict=True)]
        low, high = OpenComparison(tuple(queries)).bounds
        truth = sum(true_difference(kept, truth) for kept, truth in made) / len(made)
        assert low - 1e-12 <= truth <= high + 1e-12


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_bounds_of_each_pipelines_set_f_contain_the_truth_whatever_labels_are_deleted(count):
    for made, left in deletions(count, "scores"):
        for (kept, truth), grades in zip(made, left, strict=True):
            known = {chunk: grade for chunk, grade in truth.items() if chunk in grades or chunk not in kept[0]}
            before, after = score(kept[0], truth), score(kept[0], known)
            if before.scored and after.scored:
                assert after.low["SetF"] <= before.values["SetF"] + 1e-12
                assert before.values["SetF"] <= after.high["SetF"] + 1e-12


def test_settled_stays_settled_whatever_the_remaining_labels_say():
    random = Random("settled")
    for _ in range(20):
        made = planted(random, queries=8)
        run = Run(made)
        run.settle(by_gain)
        winner = run.comparison.winner
        truth = sum(true_difference(kept, truth) for kept, truth in made)
        assert winner == (1 if truth > 1e-9 else 2 if truth < -1e-9 else 0)
