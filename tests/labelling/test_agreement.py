import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.labelling.agreement import (
    GRADES,
    cohen_kappa,
    disagreements,
    fleiss_kappa,
    krippendorff_alpha,
    pair_agreements,
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


def test_quadratic_weights_forgive_near_misses():
    # Squared misses: observed 1 + 1 = 2 over 4 pairs; by chance, all 16 pairs of 0,1,2,3 and 1,1,2,2: 24 / 4 = 6 over 4.
    first, second = [0, 1, 2, 3], [1, 1, 2, 2]
    assert cohen_kappa(first, second, "quadratic") == pytest.approx(1 - 2 / (24 / 4), abs=1e-12)


@pytest.fixture(scope="module")
def scikit_learns():
    from sklearn.metrics import cohen_kappa_score

    return cohen_kappa_score


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
@settings(max_examples=200, deadline=None)
@given(pairs=st.lists(st.tuples(GRADE, GRADE), min_size=1, max_size=30))
def test_cohen_is_scikit_learns_wherever_it_is_defined(scikit_learns, weights, pairs):
    first, second = (list(side) for side in zip(*pairs, strict=True))
    assume(len(set(first + second)) > 1)
    expected = scikit_learns(first, second, weights=weights, labels=list(GRADES))
    assert cohen_kappa(first, second, weights) == pytest.approx(expected, abs=1e-9)


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


def test_fleiss_by_hand():
    # Three raters, items 3-0, 2-1, 0-3: P = 1, 1/3, 1; shares 5/9 and 4/9.
    mean, chance = (1 + 1 / 3 + 1) / 3, (5 / 9) ** 2 + (4 / 9) ** 2
    assert fleiss_kappa(raters_of([[3, 0], [2, 1], [0, 3]])) == pytest.approx((mean - chance) / (1 - chance), abs=1e-12)


def test_fleiss_leaves_out_items_not_judged_by_all():
    labels = raters_of([[3, 0], [2, 1], [0, 3]])
    assert fleiss_kappa(labels | {"a0": labels["a0"] | {"extra": 2}}) == fleiss_kappa(labels)


@pytest.mark.parametrize("labels", [{}, {"a": {1: 0}}, {"a": {1: 0}, "b": {2: 0}}, {"a": {1: 2}, "b": {1: 2}}])
def test_fleiss_is_none_where_it_is_undefined(labels):
    assert fleiss_kappa(labels) is None


# Krippendorff 2011, four observers and twelve units, each value one less; without unit 10, the only one of a fifth value.
OBSERVERS = ["012210301...", "012211301..2", ".22212311.0.", "012213301.0."]
EXAMPLE = {
    f"o{n}": {unit: int(value) for unit, value in enumerate(row) if value != "."} for n, row in enumerate(OBSERVERS)
}


def table(labels):
    items = sorted({item for given in labels.values() for item in given})
    return np.array([[given.get(item, np.nan) for item in items] for given in labels.values()], dtype=float)


LEVELS = pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])


def test_alpha_by_hand():
    # Units 0-0, 1-1, 0-1: of six values three are 0 and three are 1, so Do = 2/6, De = 2·3·3/(6·5).
    labels = {"a": {1: 0, 2: 1, 3: 0}, "b": {1: 0, 2: 1, 3: 1}}
    assert krippendorff_alpha(labels, "nominal") == pytest.approx(1 - (2 / 6) / (2 * 3 * 3 / (6 * 5)), abs=1e-12)


@LEVELS
def test_alpha_of_an_example_with_gaps_is_the_reference_value(level):
    expected = krippendorff.alpha(table(EXAMPLE), level_of_measurement=level, value_domain=list(GRADES))
    assert krippendorff_alpha(EXAMPLE, level) == pytest.approx(expected, abs=1e-9)


@LEVELS
@settings(max_examples=300, deadline=None)
@given(rows=st.lists(st.lists(st.none() | GRADE, min_size=12, max_size=12), min_size=2, max_size=5))
def test_alpha_is_the_reference_packages_wherever_it_is_defined(level, rows):
    labels = {
        f"a{n}": {item: grade for item, grade in enumerate(row) if grade is not None} for n, row in enumerate(rows)
    }
    ours = krippendorff_alpha(labels, level)
    assume(ours is not None)
    expected = krippendorff.alpha(table(labels), level_of_measurement=level, value_domain=list(GRADES))
    assert ours == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("labels", [{}, {"a": {1: 0, 2: 3}}, {"a": {1: 0}, "b": {2: 1}}, {"a": {1: 2}, "b": {1: 2}}])
def test_alpha_is_none_where_it_is_undefined(labels):
    assert krippendorff_alpha(labels) is None


def test_full_agreement_is_one():
    labels = {"a": {1: 0, 2: 3, 3: 1}, "b": {1: 0, 2: 3, 3: 1}}
    assert fleiss_kappa(labels) == krippendorff_alpha(labels) == cohen_kappa([0, 3, 1], [0, 3, 1]) == 1


@pytest.mark.parametrize("measure", [fleiss_kappa, krippendorff_alpha])
def test_a_grade_out_of_range_is_refused(measure):
    with pytest.raises(InputError, match="grade is 4"):
        measure({"a": {1: 4}, "b": {1: 0}})


def test_an_unknown_level_is_refused():
    with pytest.raises(InputError, match="nominal, ordinal or interval"):
        krippendorff_alpha({"a": {1: 1}, "b": {1: 0}}, "ratio")


def test_disagreements_come_widest_first():
    labels = {"a": {"x": 1, "y": 0, "z": 2, "w": 1}, "b": {"x": 2, "y": 3, "z": 2}}
    assert [(found.item, found.spread, dict(found.grades)) for found in disagreements(labels)] == [
        ("y", 3, {"a": 0, "b": 3}),
        ("x", 1, {"a": 1, "b": 2}),
    ]
