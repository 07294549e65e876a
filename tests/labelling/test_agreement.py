import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.labelling.agreement import (
    FEWEST_ITEMS,
    GRADES,
    LINEAR,
    UNEQUAL,
    cohen_kappa,
    disagreements,
    interval_of,
    kappas,
    krippendorff_alpha,
    pair_agreements,
    tables_by_cluster,
)

GRADE = st.sampled_from(GRADES)


def raters_of(counts):
    """Annotators whose grades give these counts per item: the first so many say 0, the next so many 1 …"""
    rows = [[grade for grade, count in enumerate(row) for _ in range(count)] for row in counts]
    return {f"a{n}": {item: row[n] for item, row in enumerate(rows)} for n in range(len(rows[0]))}


def test_cohen_by_hand():
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 35/50, by chance 1/2 · 30/50 + 1/2 · 20/50 = 1/2.
    first = [1] * 25 + [0] * 25
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(first, second) == pytest.approx((35 / 50 - 1 / 2) / (1 - 1 / 2), abs=1e-12)


def test_linear_misses_count_by_their_distance():
    # Misses 1, 0, 0, 1: observed 2 over 4 pairs; by chance, all 16 pairs of 0,1,2,3 and 1,1,2,2: 16 over 4.
    first, second = [0, 1, 2, 3], [1, 1, 2, 2]
    assert cohen_kappa(first, second, LINEAR) == pytest.approx(1 - 2 / (16 / 4), abs=1e-12)


@pytest.fixture(scope="module")
def scikit_learns():
    from sklearn.metrics import cohen_kappa_score

    return cohen_kappa_score


@pytest.mark.parametrize("weights", [None, "linear"])
@given(pairs=st.lists(st.tuples(GRADE, GRADE), min_size=1, max_size=30))
def test_cohen_is_scikit_learns_wherever_it_is_defined(scikit_learns, weights, pairs):
    first, second = (list(side) for side in zip(*pairs, strict=True))
    assume(len(set(first + second)) > 1)
    expected = scikit_learns(first, second, weights=weights, labels=list(GRADES))
    assert cohen_kappa(first, second, LINEAR if weights else UNEQUAL) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("first", "second"), [([], []), ([2, 2], [2, 2])])
def test_cohen_is_none_where_chance_explains_everything(first, second):
    assert cohen_kappa(first, second) is None


def test_lists_of_two_lengths_are_refused():
    with pytest.raises(InputError, match="1 and 2 grades"):
        cohen_kappa([1], [1, 2])


def test_pairs_are_compared_on_what_both_judged():
    labels = {"bob": {"x": 1, "y": 0, "z": 3}, "ann": {"x": 1, "y": 1}, "cy": {}}
    found = {(pair.first, pair.second): pair for pair in pair_agreements(labels)}
    assert list(found) == [("ann", "bob"), ("ann", "cy"), ("bob", "cy")]
    assert (found["ann", "bob"].items, found["ann", "bob"].observed) == (2, 1 / 2)
    assert (found["ann", "cy"].items, found["ann", "cy"].observed, found["ann", "cy"].kappa) == (0, None, None)


# Krippendorff 2011, four observers and twelve units, each value one less; without unit 10, the only one of a fifth value.
OBSERVERS = ["012210301...", "012211301..2", ".22212311.0.", "012213301.0."]
EXAMPLE = {
    f"o{n}": {unit: int(value) for unit, value in enumerate(row) if value != "."} for n, row in enumerate(OBSERVERS)
}


def table(labels):
    items = sorted({item for given in labels.values() for item in given})
    return np.array([[given.get(item, np.nan) for item in items] for given in labels.values()], dtype=float)


def test_alpha_by_hand():
    # Units 0-0, 3-3, 0-3: of six values three are 0 and three are 3, so Do = 2/6, De = 2·3·3/(6·5).
    labels = {"a": {1: 0, 2: 3, 3: 0}, "b": {1: 0, 2: 3, 3: 3}}
    assert krippendorff_alpha(labels) == pytest.approx(1 - (2 / 6) / (2 * 3 * 3 / (6 * 5)), abs=1e-12)


def test_alpha_of_an_example_with_gaps_is_the_reference_value():
    expected = krippendorff.alpha(table(EXAMPLE), level_of_measurement="ordinal", value_domain=list(GRADES))
    assert krippendorff_alpha(EXAMPLE) == pytest.approx(expected, abs=1e-9)


@given(rows=st.lists(st.lists(st.none() | GRADE, min_size=12, max_size=12), min_size=2, max_size=5))
def test_alpha_is_the_reference_packages_wherever_it_is_defined(rows):
    labels = {
        f"a{n}": {item: grade for item, grade in enumerate(row) if grade is not None} for n, row in enumerate(rows)
    }
    ours = krippendorff_alpha(labels)
    assume(ours is not None)
    expected = krippendorff.alpha(table(labels), level_of_measurement="ordinal", value_domain=list(GRADES))
    assert ours == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("labels", [{}, {"a": {1: 0, 2: 3}}, {"a": {1: 0}, "b": {2: 1}}, {"a": {1: 2}, "b": {1: 2}}])
def test_alpha_is_none_where_it_is_undefined(labels):
    assert krippendorff_alpha(labels) is None


def test_full_agreement_is_one():
    labels = {"a": {1: 0, 2: 3, 3: 1}, "b": {1: 0, 2: 3, 3: 1}}
    assert krippendorff_alpha(labels) == cohen_kappa([0, 3, 1], [0, 3, 1]) == 1


def test_a_grade_out_of_range_is_refused():
    with pytest.raises(InputError, match="grade is 4"):
        krippendorff_alpha({"a": {1: 4}, "b": {1: 0}})


def test_disagreements_come_widest_first():
    labels = {"a": {"x": 1, "y": 0, "z": 2, "w": 1}, "b": {"x": 2, "y": 3, "z": 2}}
    assert [(found.item, found.spread, dict(found.grades)) for found in disagreements(labels)] == [
        ("y", 3, {"a": 0, "b": 3}),
        ("x", 1, {"a": 1, "b": 2}),
    ]


def test_an_interval_of_kappa_covers_where_few_questions_hold_few_relevant_chunks():
    """Ten questions of five labels, 8 % relevant: the percentile bootstrap covered .81 of such runs."""
    dice, runs = np.random.default_rng(4), 400

    def tables(count):
        rates = np.clip(dice.normal(0.08, 0.06, count), 0.02, 0.98)
        truth = dice.random((count, 5)) < rates[:, None]
        one, other = (truth ^ (dice.random(truth.shape) < 0.025) for _ in range(2))
        made = np.zeros((count, 2, 2))
        np.add.at(made, (np.arange(count)[:, None], one.astype(int), other.astype(int)), 1)
        return made

    true = kappas(tables(50_000).sum(axis=0)[None])[0]
    found = [interval_of(tables(10), kappas, 50) for _ in range(runs)]
    known = [low <= true <= high for low, high in found if low is not None]
    assert len(known) > 0.9 * runs
    assert np.mean(known) >= 0.93 - 2 * (0.05 * 0.95 / runs) ** 0.5


def test_full_agreement_has_an_interval_of_some_width_and_too_little_has_none():
    tables = np.array([np.diag([3.0, 1.0])] * 8)
    low, high = interval_of(tables, kappas, 32)
    assert 0.3 < low < 0.95
    assert high == 1
    assert interval_of(tables[:5], kappas, 20) == (None, None)  # five questions
    assert interval_of(tables, kappas, 19) == (None, None)
    assert interval_of(np.array([np.diag([4.0, 0.0])] * 8), kappas, 32) == (None, None)  # one grade is all there is


@given(st.lists(st.lists(st.tuples(GRADE, GRADE), min_size=1, max_size=6), min_size=6, max_size=9))
def test_the_figure_lies_within_its_interval_and_swapping_the_two_changes_nothing(rows):
    pairs = [(at, one, other) for at, group in enumerate(rows) for one, other in group]
    tables = tables_by_cluster(pairs)
    low, high = interval_of(tables, kappas, FEWEST_ITEMS)
    assume(low is not None)
    assert -1 <= low <= kappas(tables.sum(axis=0)[None])[0] <= high <= 1
    assert interval_of(tables.transpose(0, 2, 1), kappas, FEWEST_ITEMS) == pytest.approx((low, high))


def test_two_people_have_an_interval_over_questions():
    ann = {(f"q{at}", place): int(place < 2) for at in range(10) for place in range(4)}
    bob = {
        item: 1 - grade if item[0] == "q0" else grade for item, grade in ann.items()
    }  # differs on all of one question
    (by_question,) = pair_agreements({"ann": ann, "bob": bob}, cluster=lambda item: item[0])
    (by_item,) = pair_agreements({"ann": ann, "bob": bob})
    assert by_question.kappa == by_item.kappa == pytest.approx(0.8)
    assert (by_question.clusters, by_item.clusters) == (10, 40)
    assert by_question.high - by_question.low > by_item.high - by_item.low
