"""Estimates from few labels: their integrals against every way the labels may fall, the design against its chances."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.labelling.estimate import (
    Question,
    any_relevant,
    estimates,
    f_of,
    in_order_of_asking,
    key_of,
    pool_bounds,
    precision_of,
    questions_of,
    sample_of,
    weight_of,
)
from rag_core.labelling.pooling import Pair
from rag_core.types import Chunk, Query

chances = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.2, 0.7, 1.0])), min_size=1, max_size=6)


def plain(measure, kept, odds):
    """The expectation over every way in which the labels may fall."""
    total = 0.0
    for way in product([0, 1], repeat=len(odds)):
        weight = np.prod([odd if one else 1 - odd for one, odd in zip(way, odds, strict=True)])
        total += weight * measure(kept, np.array(way))
    return total


def set_p(kept, labels):
    return labels[kept].sum() / max(1, kept.sum())


def set_f(kept, labels):
    return 2 * labels[kept].sum() / max(1, kept.sum() + labels.sum())


@given(chances, st.integers(1, 4))
def test_relevant_labels_outside_of_the_pool_count_as_relevant_and_as_never_kept(rows, beyond):
    kept, odds = np.array([one for one, _ in rows]), np.array([odd for _, odd in rows])
    wider_kept, wider = np.append(kept, [False] * beyond), np.append(odds, [1.0] * beyond)
    for measure in (f_of, precision_of):
        assert measure(kept, odds, beyond).value == pytest.approx(measure(wider_kept, wider).value, abs=1e-9)
    assert any_relevant(odds, beyond).value == any_relevant(wider).value == 1


@given(chances)
def test_the_integral_is_the_expectation_and_the_slopes_are_its_differences(rows):
    kept, odds = np.array([one for one, _ in rows]), np.array([odd for _, odd in rows])
    for fast, slow in ((precision_of, set_p), (f_of, set_f)):
        found = fast(kept, odds)
        assert found.value == pytest.approx(plain(slow, kept, odds), abs=1e-9)
        for at in range(len(odds)):
            on, off = (np.where(np.arange(len(odds)) == at, value, odds) for value in (1.0, 0.0))
            assert found.slopes[at] == pytest.approx(plain(slow, kept, on) - plain(slow, kept, off), abs=1e-9)
    assert any_relevant(odds).value == pytest.approx(1 - np.prod(1 - odds))


def pool(count=40, length=12):
    """Pairs whose first four of twelve are shown by A as well, all distinct."""
    return [
        Pair(
            Query(f"q{at}", f"what of thing{at}"),
            Chunk(f"c{at}-{place}", text=f"text {place} of thing{at}"),
            places={"all": place, **({"A": place} if place <= 4 else {})},
            distance=place / 20,
        )
        for at in range(count)
        for place in range(1, length + 1)
    ]


def labelled(pairs, share, seed=0):
    """The labels of the first share of the pairs in the order of asking; what stands first is relevant most often."""
    dice = np.random.default_rng(5)
    grades = {}
    truth = {pair.chunk.id: int(dice.random() < 0.7 / pair.places["all"]) for pair in pairs}
    for pair in in_order_of_asking(pairs, seed)[: round(share * len(pairs))]:
        grades.setdefault(pair.query.id, {})[pair.chunk.id] = truth[pair.chunk.id]
    return grades


def test_the_order_holds_every_pair_once_and_better_places_sooner():
    pairs = pool()
    order = in_order_of_asking(pairs)
    assert sorted(map(id, order)) == sorted(map(id, pairs))
    asked = [pair.places["all"] for pair in order]
    assert np.mean(asked[:120]) < np.mean(asked[-120:])


def test_the_sample_ends_before_the_first_pair_without_a_label_and_knows_its_chances():
    pairs = pool()
    questions = questions_of(pairs, labelled(pairs, 0.5), ("A", "all"))
    sample = sample_of(questions)
    known = sum(int((~np.isnan(one.labels)).sum()) for one in questions)
    assert 0 < sample.size <= known
    keys = [
        key_of(0, one.id, chunk, place)
        for one in questions
        for chunk, place, label in zip(one.chunks, one.places, one.labels, strict=True)
        if np.isnan(label)
    ]
    for one, taken, chance in zip(questions, sample.taken, sample.chances, strict=True):
        for chunk, place, is_taken, odd in zip(one.chunks, one.places, taken, chance, strict=True):
            assert is_taken == (key_of(0, one.id, chunk, place) < min(keys))
            assert odd == pytest.approx(min(1.0, weight_of(place) * min(keys)))


def test_all_labels_leave_nothing_to_estimate_and_few_say_nothing():
    pairs = pool()
    whole = questions_of(pairs, labelled(pairs, 1.0), ("A", "all"))
    found = estimates(whole)
    scored = [one for one in whole if one.labels.any()]
    for name, measure in (("SetP", set_p), ("SetF", set_f)):
        for at in range(2):
            exact = np.mean([measure(one.kept[at], one.labels) for one in scored])
            assert found.single[name][at] == pytest.approx((exact, 0.0), abs=1e-9)
    assert estimates(questions_of(pairs, labelled(pairs, 0.04), ("A", "all"))) is None
    assert estimates([]) is None


def test_half_of_the_labels_come_near_and_say_how_near():
    pairs = pool()
    truth = estimates(questions_of(pairs, labelled(pairs, 1.0), ("A", "all")))
    found = estimates(questions_of(pairs, labelled(pairs, 0.5), ("A", "all")))
    for name in ("SetP", "SetF"):
        for one, exact in zip(
            found.single[name] + found.against[name], truth.single[name] + truth.against[name], strict=True
        ):
            assert abs(one.value - exact.value) <= 2 * one.half
    assert "20 more labels" in found.to_text(["A", "the search"])


@st.composite
def small_pools(draw):
    """One to three questions of one to four chunks: labelled relevant or not, or open; kept or not."""
    questions = []
    for at in range(draw(st.integers(1, 3))):
        rows = draw(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 1.0, np.nan])), min_size=1, max_size=4))
        kept, labels = np.array([[one for one, _ in rows]]), np.array([label for _, label in rows])
        chunks = tuple(f"{at}-{place}" for place in range(len(rows)))
        questions.append(Question(f"q{at}", chunks, kept, np.arange(1.0, len(rows) + 1)[:, None], labels))
    return questions


@given(small_pools())
def test_bounds_are_the_least_and_greatest_mean_over_every_way_the_open_labels_may_fall(questions):
    unjudged = [(at, place) for at, one in enumerate(questions) for place in np.flatnonzero(np.isnan(one.labels))]
    seen = {"SetP": [], "SetR": [], "SetF": []}
    for way in product([0.0, 1.0], repeat=len(unjudged)):
        labels = [one.labels.copy() for one in questions]
        for (at, place), label in zip(unjudged, way, strict=True):
            labels[at][place] = label
        rows = [(one.kept[0], row) for one, row in zip(questions, labels, strict=True) if row.any()]
        if rows:
            seen["SetP"].append(np.mean([set_p(*row) for row in rows]))
            seen["SetF"].append(np.mean([set_f(*row) for row in rows]))
            seen["SetR"].append(np.mean([row[kept].sum() / row.sum() for kept, row in rows]))
    for name, pair in pool_bounds(questions, 0).items():
        assert pair == (pytest.approx((min(seen[name]), max(seen[name]))) if seen[name] else None)


def test_one_label_a_question_leaves_recall_nearly_open():
    """Ten questions of four chunks, two kept; the first is relevant and all else is open."""
    chunks, kept = tuple("abcd"), np.array([[True, True, False, False]])
    labels = np.array([1.0, np.nan, np.nan, np.nan])
    questions = [Question(f"q{at}", chunks, kept, np.arange(1.0, 5)[:, None], labels) for at in range(10)]
    found = pool_bounds(questions, 0)
    assert found["SetR"] == pytest.approx((1 / 3, 1.0))  # both dropped ones relevant; none of them
    assert found["SetP"] == pytest.approx((1 / 2, 1.0))
    assert found["SetF"] == pytest.approx((2 / (2 + 3), 1.0))
