"""Agreement of a model with people: kappa by hand and as scikit-learn has it, an interval that covers, flips, the bar."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from rag_core.labelling.agreement import flip_rate, judge_agreement, kappa_of

GRADE = st.integers(0, 3)


def items(grades):
    return {(f"q{at % 20}", f"c{at}"): grade for at, grade in enumerate(grades)}


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(GRADE, GRADE), min_size=2, max_size=60))
def test_kappas_are_scikit_learns(pairs):
    people, model = zip(*pairs, strict=True)
    assume(len(set(people + model)) > 1)
    found = judge_agreement("m", items(people), [items(model)])
    assert found.grade_kappa == pytest.approx(cohen_kappa_score(people, model, labels=[0, 1, 2, 3]), abs=1e-9)
    sides = [[grade > 0 for grade in one] for one in (people, model)]
    if len(set(sides[0] + sides[1])) > 1:
        assert found.kappa == pytest.approx(cohen_kappa_score(*sides), abs=1e-9)
    assert sum(map(sum, found.confusion)) == found.items == len(pairs)


def test_kappa_by_hand():
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 35/50, by chance 1/2.
    assert kappa_of([[15, 10], [5, 20]]) == pytest.approx(0.4, abs=1e-12)
    assert kappa_of([[7, 0], [0, 0]]) is None


def test_grades_of_other_collections_count_as_the_nearest():
    people = {("q", "a"): -1, ("q", "b"): 4}
    found = judge_agreement("m", people, [{("q", "a"): 0, ("q", "b"): 3}])
    assert (found.confusion[0][0], found.confusion[3][3], found.observed) == (1, 1, 1.0)


def test_rows_are_people_and_columns_the_model():
    found = judge_agreement("m", {("q", "a"): 0, ("q", "b"): 3}, [{("q", "a"): 2, ("q", "b"): 3, ("q", "c"): 1}])
    assert found.confusion == ((0, 0, 1, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1))
    assert (found.items, found.observed) == (2, 0.5)


def test_min_grade_says_which_side_a_grade_is_on():
    people, model = items([0, 1, 2, 3] * 10), items([1, 0, 3, 2] * 10)
    assert judge_agreement("m", people, [model], min_grade=2).kappa == 1
    assert judge_agreement("m", people, [model], min_grade=1).kappa < 0.5


def test_the_interval_covers_the_true_kappa_about_as_often_as_it_says():
    dice, covered = random.Random("interval"), 0
    for _ in range(100):
        people = [dice.random() < 0.5 for _ in range(300)]
        model = [one != (dice.random() < 0.15) for one in people]
        found = judge_agreement("m", items(map(int, people)), [items(map(int, model))])
        covered += found.low <= 0.7 <= found.high  # observed .85, by chance .5: kappa .7
    print("covered", covered)
    assert covered >= 85


@pytest.mark.parametrize(("count", "passes"), [(400, True), (12, False)])
def test_a_model_passes_when_the_whole_interval_is_above_the_bar(count, passes):
    dice = random.Random("bar")
    people = [dice.randint(0, 3) for _ in range(count)]
    model = [3 - one if count > 12 and dice.random() < 0.06 else one for one in people]
    found = judge_agreement("m", items(people), [items(model)], bar=0.6)
    assert found.kappa > 0.6
    assert found.passes is passes
    assert ("it passes" in found.words) is passes
    assert judge_agreement("m", items(people), [items(model)], bar=0.99).passes is False


def test_without_shared_labels_nothing_is_claimed():
    found = judge_agreement("m", {}, [{("q", "a"): 1}])
    assert (found.items, found.kappa, found.low, found.passes, found.flip_rate) == (0, None, None, False, None)
    assert "too few" in found.words
    assert judge_agreement("m", {}, []).passes is False


def test_flips_are_counted_on_what_every_run_graded():
    runs = [{1: 0, 2: 1, 3: 2, 4: 0}, {1: 0, 2: 2, 3: 2}, {1: 0, 2: 1, 3: 3, 4: 0}]
    assert flip_rate(runs) == pytest.approx(2 / 3)
    assert flip_rate(runs[:1]) is None
