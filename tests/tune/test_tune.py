"""Choosing on dev queries and judging on held-out ones: nothing found where nothing is, planted signals recovered."""

from statistics import fmean

import pytest

from rag_core.errors import InputError
from rag_core.filters.cutoff import TopK
from rag_core.project.ledger import Look, key_of, look, looks_at
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline
from rag_core.tune.grid import parse_grid
from rag_core.tune.plane import middle
from rag_core.tune.tune import choose, cross_validate, dev_and_test, judge, parse_floor, sentence, values_of
from rag_core.types import Case, Query
from tests import planted

PLANE = parse_grid("gap_threshold=0.01:0.3:30,distance_offset=0.05:0.6:20", "AdaptiveGap")
CUT = parse_pipeline(["AdaptiveGap"])


def test_a_planted_gap_is_found_and_told():
    dev, test = dev_and_test(planted.planted_gap(1))
    choice = choose(dev, CUT, PLANE)
    found = judge(test, choice)
    assert choice.value == found.value == 1
    assert 0.05 <= choice.settings["gap_threshold"] <= 0.1
    assert found.tells
    assert found.ruling.word in sentence(found)


def test_a_planted_k_is_the_baseline_and_nothing_beats_it():
    cases = [planted.case_of(n, [0.1 + 0.03 * at for at in range(12)], [at < 5 for at in range(12)]) for n in range(20)]
    dev, test = dev_and_test(cases)
    choice = choose(dev, CUT, PLANE)
    assert (choice.baseline_k, choice.baseline.label) == (5, "fixed k 5")
    found = judge(test, choice)
    assert found.against_baseline.delta == 0
    assert not found.tells


def test_the_baseline_is_the_best_of_every_k():
    cases = planted.random_labels(3)
    choice = choose(cases, CUT, PLANE)
    every = [fmean(values_of(cases, Pipeline((TopK(k=k),)), "SetF")) for k in range(1, 16)]
    assert choice.baseline_value == pytest.approx(max(every), abs=1e-12)


def test_the_chosen_pipeline_gives_the_value_that_was_promised():
    cases = planted.planted_gap(2, noise=0.2)
    choice = choose(cases, CUT, PLANE)
    assert fmean(values_of(cases, choice.pipeline, "SetF")) == pytest.approx(choice.value, abs=1e-12)


def test_a_floor_is_kept_on_the_dev_queries():
    cases = planted.planted_gap(4, noise=0.25)
    choice = choose(cases, CUT, PLANE, "SetP", floor=("SetR", 0.9))
    assert fmean(values_of(cases, choice.pipeline, "SetR")) >= 0.9 - 1e-12
    assert fmean(values_of(cases, choice.baseline, "SetR")) >= 0.9 - 1e-12


def test_a_floor_nobody_reaches_is_refused_with_the_highest():
    cases = [planted.case_of(n, [0.1, 0.2], [True, False], total=4) for n in range(3)]
    with pytest.raises(InputError, match=r"no setting reaches SetR 0\.9 on the dev queries, the highest is 0\.250"):
        choose(cases, CUT, PLANE, floor=("SetR", 0.9))


@pytest.mark.parametrize("text", ["SetR", "SetR>0.9", "SetR>=2", "nDCG>=0.5", "SetR>=x", "SetR>=nan"])
def test_a_constraint_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="constraint is"):
        parse_floor(text)


def test_a_constraint_is_a_measure_and_a_floor():
    assert parse_floor("SetR>=0.95") == ("SetR", 0.95)


def test_a_set_with_its_own_dev_and_test_keeps_them():
    cases = [
        Case(Query(f"q{n}", f"word{n}", metadata={"split": side}), {"a": 1})
        for n, side in enumerate(["test", "dev", "dev"])
    ]
    dev, test = dev_and_test(cases)
    assert [[case.query.id for case in side] for side in (dev, test)] == [["q1", "q2"], ["q0"]]
    assert len(dev_and_test(planted.random_labels(1, 20), 0.25)[1]) == 5


def test_queries_without_relevant_take_no_part():
    cases = [*planted.random_labels(1, 4), Case(Query("none", "nothing here"), {"a": 0})]
    dev, test = dev_and_test(cases)
    assert "none" not in [case.query.id for case in dev + test]


def test_folds_judge_on_queries_that_were_not_chosen_on():
    found = cross_validate(planted.planted_gap(5, 30), lambda dev: choose(dev, CUT, PLANE), folds=3)
    assert (found.folds, found.value) == (3, 1)
    assert found.gain > 0.1


def test_a_chosen_threshold_stands_inside_its_cell():
    assert middle(0.0500000012, 0.1) == 0.075
    assert middle(0.2, None) == 0.2
    assert middle(0.1234567890, 0.1234567895) == 0.1234567890  # too narrow a cell to stand in the middle of


def test_looks_are_counted_per_held_out_set_whatever_the_order(tmp_path):
    cases = planted.random_labels(1, 4)
    key, other = key_of(cases), key_of(cases[:3])
    assert key == key_of(cases[::-1]) != other
    seen = [look(tmp_path, Look(name, "l", split, 4)) for name, split in (("a", key), ("a", other), ("b", key))]
    assert seen == [1, 1, 2]
    assert looks_at(tmp_path, key) == 2


def test_every_further_pair_has_less_to_spend():
    dev, test = dev_and_test(planted.planted_gap(6, noise=0.3))
    choice = choose(dev, CUT, PLANE)
    once, third = (judge(test, choice, looks=pair, pair=pair) for pair in (1, 3))
    assert third.ruling.low < once.ruling.low
    assert "After 3 looks." in sentence(third)


def test_the_sentence_says_when_the_data_cannot_tell():
    dev, test = dev_and_test(planted.planted_gap(3, 10, noise=0.4))
    found = judge(test, choose(dev, CUT, PLANE))
    assert found.against_baseline.delta
    assert not found.tells
    assert f"(optimism of the gain {found.optimism:+.3f})" in sentence(found)


@pytest.mark.slow
def test_random_labels_gain_nothing_on_held_out_queries_though_dev_promises():
    dev_gains, test_gains = [], []
    for seed in range(200):
        dev, test = dev_and_test(planted.random_labels(seed), 0.5, seed)
        choice = choose(dev, CUT, PLANE)
        dev_gains.append(choice.value - choice.baseline_value)
        chosen, fixed = (fmean(values_of(test, one, "SetF")) for one in (choice.pipeline, choice.baseline))
        test_gains.append(chosen - fixed)
    assert abs(fmean(test_gains)) <= 0.01
    assert fmean(dev_gains) > 0
