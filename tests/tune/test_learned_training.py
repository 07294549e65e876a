import json
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.filters.learned_filter import prior
from rag_core.spec import dump_pipeline, parse_pipeline
from rag_core.stage import Pipeline
from rag_core.tune.learned import AGAINST, FOR, choose_trained, labels_that_teach, moved, taught, train, train_filter
from rag_core.tune.tune import cross_validate, values_of
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query
from tests import planted


def test_a_planted_gap_is_learned_and_holds_on_other_queries():
    stage = train(planted.planted_gap(1, 60))
    assert fmean(values_of(planted.planted_gap(2, 40), Pipeline((stage,)), "SetF")) > 0.95


def test_every_query_is_judged_by_a_model_of_the_others():
    cases = planted.planted_gap(3, 30)
    pipeline = parse_pipeline(["LearnedCut"])
    found = cross_validate(cases, lambda dev: choose_trained(dev, pipeline), folds=3)
    assert found.value > 0.9 > found.baseline_value


def test_a_saved_model_cuts_as_the_trained_one():
    cases = planted.planted_gap(4, 20, noise=0.2)
    pipeline = Pipeline((train(cases),))
    again = parse_pipeline(json.loads(json.dumps(dump_pipeline(pipeline))))
    assert values_of(cases, again, "SetF") == values_of(cases, pipeline, "SetF")


def test_a_list_that_a_stage_in_front_emptied_teaches_nothing():
    cases = planted.planted_gap(6, 12)
    nothing = Case(Query("q-empty", "x"), {"c1": 1}, Candidates(Query("q-empty", "x"), recorded=True))
    assert train([nothing, *cases]).parameters == train(cases).parameters


def test_labels_of_one_kind_are_refused():
    with pytest.raises(InputError, match="all of one kind"):
        train([planted.case_of(1, [0.1, 0.2], [True, True])])


def test_scaled_numbers_give_the_chances_of_scikit_learn():
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from rag_core.filters.learned import features, query_length

    cases = planted.planted_gap(5, 20, noise=0.2)
    stage = train(cases)
    rows = [features([hit.distance for hit in case.candidates.hits], query_length(case.query.text)) for case in cases]
    flags = [case.grades[hit.chunk.id] for case in cases for hit in case.candidates.hits]
    scaler = StandardScaler().fit(np.vstack(rows))
    weights = np.full(len(flags), 50 / 15)
    model = LogisticRegression(max_iter=2000).fit(scaler.transform(np.vstack(rows)), flags, weights)
    expected = model.predict_proba(scaler.transform(rows[0]))[:, 1]
    chances = stage.chances([hit.distance for hit in cases[0].candidates.hits], query_length(cases[0].query.text))
    assert chances == pytest.approx(expected, abs=1e-9)


def test_training_writes_the_metric_of_its_lists_and_refuses_two():
    def case(name, metric):
        hits = tuple(Hit(Chunk(f"{name}{at}"), at, {"distance": at / 10}) for at in range(1, 6))
        asked = Query(name, "a question")
        return Case(asked, {f"{name}1": 1, f"{name}2": 0}, Candidates(asked, hits, metric=metric, recorded=True))

    assert train([case("a", Metric.L2), case("b", Metric.UNKNOWN)]).parameters["metric"] == "l2"
    with pytest.raises(InputError, match="cosine and l2 distances, expected one metric"):
        train([case("a", Metric.L2), case("b", Metric.COSINE)])


def worded(seed, count=12, longest=15):
    """Lists in which the chunks that hold the question's word are the relevant ones, wherever they stand."""
    import random

    dice, cases = random.Random(seed), []
    for at in range(count):
        word = dice.choice(["burrs", "boiler", "filter", "pump"])
        hits = []
        for rank in range(1, longest + 1):
            body = " ".join(dice.choice(["clean", "the", "tank", word, "valve", "hose", "handle"]) for _ in range(4))
            hits.append(Hit(Chunk(f"q{at}c{rank}", "", body), rank, {"distance": rank / 50}))
        grades = {hit.chunk.id: int(word in hit.chunk.text) for hit in hits}
        query = Query(f"q{at}", f"where is the {word}")
        cases.append(Case(query, grades, Candidates(query, tuple(hits), metric=Metric.COSINE, recorded=True)))
    return cases


def test_labels_move_the_filter_to_what_they_say_and_it_holds_on_other_questions():
    stage = train_filter(worded(1))
    assert stage.parameters["labels"] == 180
    assert fmean(values_of(worded(2), Pipeline((stage,)), "SetF")) > 0.95


def test_with_few_labels_the_prior_stands_in():
    with pytest.raises(InputError, match="30 labelled chunks, expected at least 100: until then the shipped prior"):
        train_filter(worded(1, 2))


def test_a_list_of_what_is_relevant_counts_as_ten_labels_at_least():
    def case(grades):
        return Case(Query("q", "?"), grades)

    listed = [{"a": 1}, {"a": 2, "b": 1, "c": 0, "d": 1}, {f"c{n}": 1 for n in range(12)}]  # > two thirds relevant
    judged = [{"a": 1, "b": 0, "c": 1}, {"a": 0, "b": 0}, {}]
    assert [labels_that_teach([case(grades)]) for grades in listed + judged] == [10, 10, 12, 3, 2, 0]
    assert labels_that_teach([case({"a": 1})] * 3, min_grade=2) == 3  # of the second grade there is none: no list of it


@given(st.integers(0, 50), st.integers(20, 60))
@settings(max_examples=10)
def test_no_label_turns_a_signal_that_speaks_for_a_chunk_against_it(seed, count):
    """Even where labels are drawn by lot."""
    rows, flags = taught(worded(seed, 8), Pipeline(), 100, 1)
    drawn = np.random.default_rng(seed).random(len(flags)) < count / 100
    for model in (prior(), moved(prior(), rows, drawn.astype(float), strength=0.01)):
        weights = {name: weight for name, (_, _, weight) in model["signals"].items()}
        assert all(weights[name] >= 0 for name in FOR)
        assert all(weights[name] <= 0 for name in AGAINST)


def test_the_stronger_the_prior_the_less_labels_move_it():
    rows, flags = taught(worded(3), Pipeline(), 100, 1)

    def way(strength):
        after = moved(prior(), rows, flags, strength=strength)["signals"]
        return sum((after[name][2] - weight) ** 2 for name, (_, _, weight) in prior()["signals"].items())

    assert way(1) > way(100) > way(1e9)
    assert way(1e9) < 1e-9


def test_a_list_teaches_as_deep_as_it_is_labelled():
    (case,) = worded(4, 1)
    first = {hit.chunk.id: case.grades[hit.chunk.id] for hit in case.candidates.hits[:5]}
    assert len(taught([Case(case.query, {**first, "q0c1": 0, "q0c2": 0}, case.candidates)], Pipeline(), 100, 1)[1]) == 5
    only_relevant = {id_: 1 for id_, grade in case.grades.items() if grade}
    assert len(taught([Case(case.query, only_relevant, case.candidates)], Pipeline(), 100, 1)[1]) == 15


def test_a_pipeline_with_the_filter_is_trained_behind_what_stands_in_front():
    cases = worded(5)
    choice = choose_trained(cases, parse_pipeline([{"TopK": {"k": 12}}, "LearnedFilter", {"TopK": {"k": 9}}]))
    assert [stage.name for stage in choice.pipeline.stages] == ["TopK", "LearnedFilter", "TopK"]
    assert choice.value > choice.baseline_value
