"""Scores against their oracles, the traps, the bounds and the means. Expected values are written as arithmetic."""

import json
import os
import random
from itertools import product
from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.measure.measures import SET_MEASURES, parse_measure
from rag_core.measure.scores import score, summarise

NAMES = "SetP SetR SetF P@1 P@5 P@15 R@5 R@15 RR RR@3 AP AP@5 nDCG nDCG@1 nDCG@5 nDCG@10 Success@3 Rprec bpref"
ALL = [parse_measure(name) for name in NAMES.split()]


def value(name, kept, grades, **more):
    return score(kept, grades, measures=[parse_measure(name)], **more).values[name]


# ---------------------------------------------------------------- oracles


def random_cases(count, seed):
    """(kept, grades, relevant_total) by the hundred: short, long, empty, unlabelled and irrelevant ones among them."""
    dice = random.Random(seed)
    for _ in range(count):
        pool = [f"c{number}" for number in range(dice.choice([1, 3, 15, 40]))]
        dice.shuffle(pool)
        kept = pool[: dice.randint(0, len(pool))]
        top = dice.choice([0, 1, 3])
        grades = {id_: dice.randint(0, top) for id_ in pool if dice.random() < dice.choice([0, 0.3, 1])}
        known = sum(grade >= 1 for grade in grades.values())
        yield kept, grades, dice.choice([None, None, known, known + dice.randint(1, 4)])


def as_trec(cases, min_grade):
    """Qrels and runs of the cases: unique scores −rank, and one unnamed chunk per relevant one that is only counted."""
    qrels, runs = {}, {}
    for number, (kept, grades, total) in enumerate(cases):
        missing = max(0, (total or 0) - sum(grade >= min_grade for grade in grades.values()))
        unnamed = {f"unnamed{n}": min_grade for n in range(missing)}
        qrels[str(number)] = {**grades, **unnamed} or {"nothing": 0}
        runs[str(number)] = {id_: -float(rank) for rank, id_ in enumerate(kept, 1)}
    return qrels, runs


TREC = {"SetP": "set_P", "SetR": "set_recall", "SetF": "set_F", "RR": "recip_rank", "AP": "map", "nDCG": "ndcg",
        "Rprec": "Rprec", "bpref": "bpref"}  # fmt: skip
TREC_AT = {"P@k": "P", "R@k": "recall", "AP": "map_cut", "nDCG": "ndcg_cut", "Success@k": "success"}


def trec_name(measure):
    return f"{TREC_AT[measure.family]}_{measure.cutoff}" if measure.cutoff else TREC[measure.family]


@pytest.mark.parametrize("min_grade", [1, 2, 3])
def test_every_measure_equals_pytrec_eval_on_random_lists(min_grade):
    import pytrec_eval

    cases = list(random_cases(150, seed=min_grade))
    qrels, runs = as_trec(cases, min_grade)
    measures = [measure for measure in ALL if measure.name != "RR@3"]
    asked = {trec_name(measure).replace("_", ".") if measure.cutoff else trec_name(measure) for measure in measures}
    asked = {name.replace("map.cut", "map_cut").replace("ndcg.cut", "ndcg_cut") for name in asked}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked, relevance_level=min_grade).evaluate(runs)
    scored = 0
    for number, (kept, grades, total) in enumerate(cases):
        ours = score(kept, grades, total, min_grade, measures)
        scored += ours.scored
        for measure in measures:
            if ours.scored:
                theirs_value = theirs[str(number)][trec_name(measure)]
                assert ours.values[measure.name] == pytest.approx(theirs_value, abs=1e-9), (measure, number)
            else:
                assert ours.values[measure.name] is None
    assert 45 < scored < 143


@pytest.mark.parametrize("min_grade", [1, 2])
def test_every_measure_equals_ir_measures_on_random_lists(min_grade):
    import ir_measures

    cases = list(random_cases(150, seed=10 + min_grade))
    qrels, runs = as_trec(cases, min_grade)
    wanted = {}
    for measure in ALL:
        theirs = ir_measures.parse_measure(measure.name.replace("bpref", "Bpref"))
        wanted[theirs if measure.family == "nDCG" else theirs(rel=min_grade)] = measure
    found = {(wanted[one.measure], one.query_id): one.value for one in ir_measures.iter_calc(wanted, qrels, runs)}
    for number, (kept, grades, total) in enumerate(cases):
        ours = score(kept, grades, total, min_grade, ALL)
        for measure in ALL if ours.scored else ():
            assert ours.values[measure.name] == pytest.approx(found[measure, str(number)], abs=1e-9), (measure, number)


def test_set_measures_equal_scikit_learn_on_random_lists():
    from sklearn.metrics import precision_recall_fscore_support

    betas = ("", "2", "0.5", "3")
    names = ("SetP", "SetR", *(f"SetF{beta}" for beta in betas))
    for kept, grades, _ in random_cases(150, seed=99):
        ours = score(kept, grades, measures=[parse_measure(name) for name in names])
        if not ours.scored:
            continue
        chunks = sorted({*kept, *grades})
        truth = [grades.get(id_, 0) >= 1 for id_ in chunks]
        said = [id_ in kept for id_ in chunks]
        for beta in betas:
            theirs = precision_recall_fscore_support(
                truth, said, beta=float(beta or 1), average="binary", zero_division=0
            )[:3]
            assert [ours.values[name] for name in ("SetP", "SetR", f"SetF{beta}")] == pytest.approx(theirs, abs=1e-9)


# ---------------------------------------------------------------- traps


def test_precision_at_k_divides_by_k_though_the_list_is_shorter():
    one = score(["a", "b"], {"a": 1, "b": 1}, measures=[parse_measure("P@5"), parse_measure("SetP")])
    assert one.values == {"P@5": 2 / 5, "SetP": 2 / 2}
    assert one.denominators == {"P@5": 5, "SetP": 2}


def test_the_ideal_of_ndcg_comes_from_the_labels_not_from_what_was_kept():
    expected = 1 / (1 + 1 / log2(3))  # 0.613: one of two relevant chunks, at rank 1
    assert value("nDCG@10", ["a"], {"a": 1, "b": 1}) == pytest.approx(expected)
    assert round(expected, 3) == 0.613


def test_the_ideal_of_ndcg_counts_relevant_chunks_that_only_the_total_knows():
    assert value("nDCG@10", ["a"], {"a": 1}, relevant_total=2) == pytest.approx(1 / (1 + 1 / log2(3)))


def test_macro_f_is_the_mean_of_per_query_f_not_the_f_of_the_means():
    narrow = score(["a"], {"a": 1, "b": 1, "c": 1, "d": 1})  # P 1, R 1/4, F 2/5
    wide = score(["a", "b", "c", "d"], {"a": 1})  # P 1/4, R 1, F 2/5
    means = summarise([narrow, wide]).means
    assert means["SetF"] == pytest.approx((2 / 5 + 2 / 5) / 2)
    assert means["SetP"] == means["SetR"] == 5 / 8  # whose F would be 5/8


def test_an_empty_result_scores_0_is_flagged_and_counts_in_the_mean():
    empty = score([], {"a": 1})
    assert empty.empty
    assert empty.scored
    assert empty.values["SetP"] == empty.values["SetR"] == empty.values["SetF"] == 0
    summary = summarise([empty, score(["a"], {"a": 1})])
    assert summary.means["SetP"] == (0 + 1) / 2
    assert (summary.queries_empty, summary.queries_scored) == (1, 2)


def test_a_query_without_relevant_is_kept_apart_and_gets_a_false_return_rate():
    returned = score(["a"], {"a": 0})
    silent = score([], {"a": 0})
    assert returned.without_relevant
    assert set(returned.values.values()) == {None}
    assert returned.denominators == returned.low == {}
    summary = summarise([returned, silent, score(["a"], {"a": 1})])
    assert summary.means["SetF"] == 1
    assert (summary.queries_total, summary.queries_scored, summary.queries_without_relevant) == (3, 1, 2)
    assert summary.false_return_rate == 1 / 2


def test_a_total_of_zero_says_that_nothing_is_relevant_even_without_labels():
    assert score(["a"], {}, relevant_total=0).without_relevant


def test_a_query_without_any_label_is_run_and_not_scored():
    one = score(["a", "b"], {})
    assert (one.unjudged, one.scored, one.without_relevant, one.judged) == (True, False, False, 0)
    summary = summarise([one])
    assert (summary.means["SetF"], summary.queries_scored, summary.queries_unjudged) == (None, 0, 1)


def test_a_total_without_labels_does_not_make_a_query_scored():
    assert score(["a"], {}, relevant_total=3).unjudged


def test_a_chunk_kept_twice_is_refused():
    with pytest.raises(InputError, match="'b' more than once"):
        score(["a", "b", "b"], {"a": 1})


def test_relevant_means_at_least_the_minimum_grade():
    grades = {"a": 1, "b": 2, "c": 3}
    assert [value("SetP", ["a", "b", "c"], grades, min_grade=grade) for grade in (1, 2, 3)] == [1, 2 / 3, 1 / 3]


@pytest.mark.parametrize(("name", "bad"), [("min_grade", 0), ("relevant_total", -1)])
def test_a_setting_out_of_range_is_refused_by_name_and_value(name, bad):
    with pytest.raises(InputError, match=f"{name} is {bad}"):
        score(["a"], {"a": 1}, **{name: bad})


def test_recall_is_measured_against_the_total_where_it_is_known():
    assert value("SetR", ["a", "b"], {"a": 1, "b": 1}, relevant_total=8) == 2 / 8


def test_labels_that_outgrew_the_total_raise_it():
    one = score(["a"], {"a": 1, "b": 1, "c": 1}, relevant_total=2)
    assert (one.relevant_total, one.values["SetR"]) == (3, 1 / 3)


def test_f_beta_weighs_recall_by_beta_squared():
    kept, grades = ["a", "x"], {"a": 1, "b": 1, "c": 1, "x": 0}  # P 1/2, R 1/3
    assert value("SetF2", kept, grades) == pytest.approx(5 * (1 / 2) * (1 / 3) / (4 * (1 / 2) + 1 / 3))


# ---------------------------------------------------------------- bounds


def test_bounds_by_hand_without_a_total():
    one = score(["a", "x"], {"a": 1, "b": 1})  # x unjudged: P 1/2 … 2/2, R 1/2 … 2/3
    assert (one.low["SetP"], one.high["SetP"]) == (1 / 2, 2 / 2)
    assert (one.low["SetR"], one.high["SetR"]) == (1 / 2, 2 / 3)
    assert (one.low["SetF"], one.high["SetF"]) == pytest.approx((1 / 2, 2 * 2 / (2 + 3)))


def test_bounds_by_hand_with_a_total_that_leaves_one_open():
    one = score(["a", "x", "y"], {"a": 1, "b": 1}, relevant_total=3)
    assert (one.low["SetP"], one.high["SetP"]) == (1 / 3, 2 / 3)
    assert (one.low["SetR"], one.high["SetR"]) == (1 / 3, 2 / 3)


def test_a_list_with_every_chunk_judged_has_no_room_between_its_bounds():
    one = score(["a", "b"], {"a": 1, "b": 0})
    assert one.low == one.high == {"SetP": 1 / 2, "SetR": 1.0, "SetF": 2 / 3}


labels = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1)
lists = st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=8)


@given(lists, st.sets(st.sampled_from("abcdefghijkl"), max_size=8), labels, st.none() | st.integers(0, 12))
def test_bounds_are_the_extremes_over_all_ways_of_judging_the_unjudged_of_the_pool(kept, pool, grades, total):
    measures = [*SET_MEASURES, parse_measure("SetF2")]
    one = score(kept, grades, total, measures=measures, pool=pool)
    if not one.scored:
        return
    open_ids = [id_ for id_ in {**dict.fromkeys(kept), **dict.fromkeys(pool)} if id_ not in grades]
    known = sum(grade >= 1 for grade in grades.values())
    room = len(open_ids) if total is None else max(known, total) - known
    ways = [way for way in product([0, 1], repeat=len(open_ids)) if sum(way) <= room]
    judged = [
        score(kept, {**grades, **dict(zip(open_ids, way, strict=True))}, total, measures=measures).values
        for way in ways
    ]
    for name in ("SetP", "SetR", "SetF", "SetF2"):
        values = [way[name] for way in judged]
        assert (one.low[name], one.high[name]) == pytest.approx((min(values), max(values)), abs=1e-12)
        assert one.low[name] <= one.values[name] + 1e-12


def test_one_label_a_question_brackets_recall_and_does_not_say_that_nothing_exists():
    pool = ["a", "b", "c", "d"]
    one = score(["a"], {"a": 1}, pool=pool)
    assert (one.values["SetR"], one.low["SetR"], one.high["SetR"]) == (1.0, 1 / 4, 1.0)
    nothing = score(["a"], {"a": 0}, pool=pool)
    assert (nothing.undecided, nothing.without_relevant, nothing.scored) == (True, False, False)
    whole = score(["a"], dict.fromkeys(pool, 0), pool=pool)
    assert (whole.undecided, whole.without_relevant) == (False, True)


# ---------------------------------------------------------------- means and counts


def test_the_judged_share_is_over_all_kept_chunks():
    summary = summarise([score(["a", "x"], {"a": 1}), score(["b", "c"], {"b": 1, "c": 0}), score([], {"a": 1})])
    assert summary.judged == 3 / 4


def test_the_judged_share_of_nothing_kept_is_unknown():
    assert summarise([score([], {"a": 1})]).judged is None


def test_fallbacks_are_counted():
    summary = summarise([score(["a"], {"a": 1}, fallback=True), score(["a"], {"a": 1})])
    assert summary.queries_fallback == 1


def test_the_bounds_of_the_mean_are_the_means_of_the_bounds():
    first = score(["a", "x"], {"a": 1})
    second = score(["a"], {"a": 1, "b": 1})
    written = summarise([first, second]).to_json()
    assert written["SetF_low"] == pytest.approx((2 / 3 + 2 / 3) / 2)  # P 1/2 R 1, and P 1 R 1/2
    assert written["SetF_high"] == pytest.approx((1 + 2 / 3) / 2)
    assert written["SetF_low"] <= written["SetF"] <= written["SetF_high"]
    assert written["kind"] == {"SetP": "bounds", "SetR": "exact", "SetF": "bounds"}  # R is 1 whatever x is
    assert summarise([second]).to_json()["kind"] == {"SetP": "exact", "SetR": "exact", "SetF": "exact"}


def test_a_summary_of_no_query_has_its_counts_and_no_figure():
    written = summarise([]).to_json()
    assert (written["queries_total"], written["SetF_low"], written["judged"]) == (0, None, None)


def test_every_query_is_scored_or_without_relevant_or_unjudged():
    scores = [score(kept, grades, total) for kept, grades, total in random_cases(300, seed=4)]
    summary = summarise(scores)
    unscored = summary.queries_without_relevant + summary.queries_undecided + summary.queries_unjudged
    assert summary.queries_scored + unscored == summary.queries_total == 300
    assert min(summary.queries_scored, summary.queries_without_relevant, summary.queries_unjudged) > 0


def test_a_summary_is_json_without_nan():
    text = json.dumps(summarise([score([], {}), score(["a"], {"a": 0})]).to_json(), allow_nan=False)
    assert json.loads(text)["SetP"] is None


# ---------------------------------------------------------------- worked examples


@pytest.mark.parametrize(
    ("relevant_ranks", "kept_ranks", "expected"),
    [
        ({3}, range(1, 16), (1 / 15, 1.0, 2 / 16)),
        ({3}, (3, 8), (1 / 2, 1.0, 2 / 3)),
        ({1, 2, 3, 4, 5, 6, 7, 9}, range(1, 16), (8 / 15, 1.0, 16 / 23)),
        ({1, 2, 3, 4, 5, 6, 7, 9}, (1, 2, 3, 4, 5, 6, 7, 9, 11, 12), (8 / 10, 1.0, 16 / 18)),
        ({1, 2}, range(1, 6), (2 / 5, 1.0, 4 / 7)),
        ({1, 2}, (1, 2), (1.0, 1.0, 1.0)),
    ],
)
def test_precision_recall_and_f_by_hand(relevant_ranks, kept_ranks, expected):
    grades = {str(rank): int(rank in relevant_ranks) for rank in range(1, 16)}
    values = score([str(rank) for rank in kept_ranks], grades).values
    assert (values["SetP"], values["SetR"], values["SetF"]) == pytest.approx(expected, abs=1e-12)


WORKED = {
    "combat-1": [(range(1, 16), (0.067, 1, 0.125)), ((3, 8), (0.5, 1, 0.667))],
    "combat-2": [(range(1, 16), (0.533, 1, 0.696)), ((*range(1, 8), 9, 11, 12), (0.8, 1, 0.889))],
    "combat-3": [
        (range(1, 16), (0.6, 1, 0.75)),
        ((1, 2, 3, 4, 6, 8, 10, 12, 14, 15), (0.9, 1, 0.947)),
        ((1, 2, 3, 4, 6, 8, 10, 12, 15), (0.889, 0.889, 0.889)),
    ],
}


@pytest.mark.parametrize("name", WORKED)
def test_the_recorded_lists_give_the_published_rows(name):
    shared = Path(os.environ.get("WINNOW_SHARED", Path(__file__).parents[3] / "shared"))
    file = shared / "spec" / "recorded-examples.json"
    if not file.exists():
        pytest.skip("the recorded examples are not here: set WINNOW_SHARED to the folder that holds spec/")
    recorded = json.loads(file.read_text(encoding="utf-8"))["recorded_results"]
    candidates = next(one["candidates"] for one in recorded if one["id"] == name)
    grades = {one["id"]: one["relevant"] for one in candidates}
    by_rank = {one["rank"]: one["id"] for one in candidates}
    for ranks, expected in WORKED[name]:
        values = score([by_rank[rank] for rank in ranks], grades).values
        assert tuple(round(values[key], 3) for key in ("SetP", "SetR", "SetF")) == expected
