"""The sweep against its plain twins: the rule as a function, and the whole pipeline."""

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES, cut, units
from rag_core.measure.experiment import run
from rag_core.measure.scores import score, summarise
from rag_core.stage import Pipeline
from rag_core.tune.arrays import View, lists_of, make_lists, whole_units
from rag_core.tune.plane import plane
from rag_core.types import Candidates, Case, Chunk, Hit, Order, Query

QUANTITIES = ("SetP", "SetR", "SetF", "kept_mean")

# Steps of 0.05 make equal gaps and gaps equal to thresholds common; the free ones make everything else.
steps = st.sampled_from([0.0, 0.05, 0.1, 0.15, 0.2]) | st.floats(0, 0.5)
lists = st.lists(st.tuples(steps, st.booleans()), max_size=12).map(
    lambda rows: (np.cumsum([0.3] + [step for step, _ in rows])[1:].tolist(), [flag for _, flag in rows])
)
captures = st.lists(st.tuples(*[lists, st.integers(0, 3)]), min_size=1, max_size=6)
values = st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.15, 0.25, 0.4, 1.0]) | st.floats(0, 1), min_size=1, max_size=5)
limits = st.tuples(st.integers(0, 14), st.integers(1, 14)).filter(lambda pair: pair[0] <= pair[1])


def scored_lists(capture):
    """The capture as Lists; None where no query would be scored."""
    totals = [sum(flags) + more or None for (_, flags), more in capture]
    if not any(totals):
        return None
    return make_lists([row for (row, _), _ in capture], [flags for (_, flags), _ in capture], totals)


def plain_means(capture, **setting):
    """The four means, one list after the other."""
    scores, kept = [], []
    for (row, flags), more in capture:
        keep = cut(row, **setting).keep
        ids = [str(at) for at in range(len(row))]
        grades = {id_: int(flag) for id_, flag in zip(ids, flags, strict=True)} or {"none": 0}
        scores.append(score(ids[:keep], grades, sum(flags) + more))
        kept.append(keep)
    means = summarise(scores).means
    return [means["SetP"], means["SetR"], means["SetF"], sum(kept) / len(kept)]


def at(found, row, column):
    return [getattr(found, quantity)[row, column] for quantity in QUANTITIES]


# ---------------------------------------------------------------- the same as the plain rule


@given(captures, values, values, limits, st.sampled_from(POLICIES), st.booleans())
def test_every_point_of_the_plane_equals_the_plain_rule(capture, thresholds, offsets, limit, policy, relative_offset):
    captured = scored_lists(capture)
    if captured is None:
        return
    found = plane(captured, thresholds, offsets, *limit, policy, relative_offset=relative_offset)
    offset_name = "relative_offset" if relative_offset else "distance_offset"
    for row, threshold in enumerate(thresholds):
        for column, offset in enumerate(offsets):
            setting = {"gap_threshold": threshold, offset_name: offset, "gap_policy": policy}
            plain = plain_means(capture, **setting, min_results=limit[0], max_results=limit[1])
            assert at(found, row, column) == pytest.approx(plain, abs=1e-12), setting


def random_capture(dice):
    queries = []
    for _ in range(dice.randint(1, 8)):
        row, distance = [], dice.random()
        for _ in range(dice.choice([0, 1, 2, 3, 10, 20])):
            distance += dice.choice([0, 0.05, 0.1, dice.random() / 5])
            row.append(distance)
        queries.append(((row, [dice.random() < 0.4 for _ in row]), dice.choice([0, 0, 2])))
    return queries


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_300_random_captures_times_200_random_settings_equal_the_plain_rule(policy):
    dice = random.Random(POLICIES.index(policy))
    compared = 0
    while compared < 300 * 200:
        capture = random_capture(dice)
        captured = scored_lists(capture)
        if captured is None:
            continue
        for _ in range(4):
            most = dice.randint(1, 22)
            least = dice.randint(0, most)
            thresholds = [dice.choice([0, 0.05, 0.1, dice.random() / 3]) for _ in range(10)]
            offsets = [dice.choice([0, 0.1, 0.4, dice.random()]) for _ in range(5)]
            found = plane(captured, thresholds, offsets, least, most, policy)
            for row, threshold in enumerate(thresholds):
                for column, offset in enumerate(offsets):
                    plain = plain_means(
                        capture,
                        gap_threshold=threshold,
                        distance_offset=offset,
                        min_results=least,
                        max_results=most,
                        gap_policy=policy,
                    )
                    assert at(found, row, column) == pytest.approx(plain, abs=1e-12)
                    compared += 1


def case_of(number, row, flags, more, order=Order.DISTANCE, bare=0):
    """A recorded case whose last `bare` hits have no distance."""
    hits = [Hit(Chunk(f"c{at}"), at + 1, {"distance": distance}) for at, distance in enumerate(row)]
    hits += [Hit(Chunk(f"b{at}"), len(row) + at + 1, {"bm25": 1.0}) for at in range(bare)]
    if order is Order.FUSED:
        hits = [Hit(hit.chunk, rank, hit.scores) for rank, hit in enumerate(hits[::-1], 1)]
    grades = {f"c{at}": int(flag) for at, flag in enumerate(flags)} | {f"b{at}": at % 2 for at in range(bare)}
    query = Query(f"q{number}", "some question")
    start = Candidates(query, tuple(hits), order=order, recorded=True)
    return Case(query, grades, start, sum(grades.values()) + more if more else None)


@given(captures, values, values, limits, st.sampled_from(POLICIES), st.sampled_from(Order), st.integers(0, 2))
def test_the_plane_equals_the_pipeline_on_recorded_lists(capture, thresholds, offsets, limit, policy, order, bare):
    bare = bare if order is Order.FUSED else 0
    cases = [  # a list without any distance is one of another score, and refused
        case_of(number, row, flags, more, order, bare if row else 0)
        for number, ((row, flags), more) in enumerate(capture)
    ]
    least, most = limit
    stage = AdaptiveGap(thresholds[0], offsets[0], least, most, policy)
    report = run(cases, Pipeline((stage,)))
    if not report.summary.queries_scored:
        with pytest.raises(InputError, match="none with a relevant label"):
            plane(lists_of([case.candidates for case in cases], cases), thresholds, offsets, least, most, policy)
        return
    found = plane(lists_of([case.candidates for case in cases], cases), thresholds, offsets, least, most, policy)
    kept = [len(outcome.result.hits) for outcome in report.outcomes]
    means = report.summary.means
    plain = [means["SetP"], means["SetR"], means["SetF"], sum(kept) / len(kept)]
    assert at(found, 0, 0) == pytest.approx(plain, abs=1e-12)


@given(captures, values, values, limits, st.sampled_from(POLICIES), st.booleans())
def test_one_setting_per_query_is_the_plain_cut_of_each_list(capture, thresholds, offsets, limit, policy, relative):
    captured = scored_lists(capture)
    if captured is None:
        return
    view = View(captured, *limit, policy)
    kept = view.kept(np.array(thresholds[:1]), np.array(offsets[:1]), relative_offset=relative)
    name = "relative_offset" if relative else "distance_offset"
    setting = {"gap_threshold": thresholds[0], name: offsets[0], "gap_policy": policy}
    plain = [cut(row, **setting, min_results=limit[0], max_results=limit[1]).keep for (row, _), _ in capture]
    assert kept[:, 0].tolist() == plain
    mean = plane(captured, thresholds[:1], offsets[:1], *limit, policy, relative_offset=relative).SetF[0, 0]
    assert next(view.worths(kept, (2,))).sum() / captured.scored.sum() == pytest.approx(mean, abs=1e-12)


@given(st.lists(st.floats(0, 3), max_size=20))
def test_units_of_an_array_are_those_of_the_plain_rule(distances):
    assert whole_units(distances).tolist() == [units(distance) for distance in distances]


# ---------------------------------------------------------------- by hand

OWLBEAR = ([0.2, 0.25, 0.5, 0.6, 0.65], [True, True, False, False, False])


def test_a_plane_by_hand():
    one = make_lists([OWLBEAR[0]], [OWLBEAR[1]], [2])
    found = plane(one, [0.2, 0.3], [0.3, 0.4], min_results=1, max_results=5)
    assert found.kept_mean.tolist() == [[2, 2], [3, 4]]  # gap 0.25 ends it after 2; offset 0.3 reaches 0.5, 0.4 0.6
    assert found.SetP.tolist() == pytest.approx(np.array([[1, 1], [2 / 3, 2 / 4]]))
    assert found.SetR.tolist() == [[1, 1], [1, 1]]


def test_a_list_without_span_has_no_gap_under_policy_relative():
    flat = make_lists([[0.3] * 5], [[True] * 5], [5])
    found = plane(flat, [0.0, 0.25], [0.0], min_results=1, policy="relative")
    assert found.kept_mean.tolist() == [[5], [5]]  # by the offset; a gap of 0 after the second would have left 2


def test_thresholds_may_come_in_any_order():
    one = make_lists([OWLBEAR[0]], [OWLBEAR[1]], [2])
    assert plane(one, [0.3, 0.2], [0.3]).SetP.tolist() == plane(one, [0.2, 0.3], [0.3]).SetP[::-1].tolist()


def test_a_query_without_relevant_counts_in_what_is_kept_and_not_in_the_measures():
    two = make_lists([OWLBEAR[0], [0.1]], [OWLBEAR[1], [False]], [2, None])
    found = plane(two, [0.2], [0.3])
    assert (found.SetF[0, 0], found.kept_mean[0, 0]) == (1, (2 + 1) / 2)


def test_small_blocks_change_nothing(monkeypatch):
    dice = random.Random(5)
    captured = scored_lists([*random_capture(dice), *random_capture(dice), (OWLBEAR, 0)])
    offsets = np.linspace(0, 1, 33)
    whole = plane(captured, [0.05, 0.1, 0.2], offsets)
    monkeypatch.setattr("rag_core.tune.plane._BLOCK_CELLS", 3)
    assert np.array_equal(plane(captured, [0.05, 0.1, 0.2], offsets).SetF, whole.SetF)


# ---------------------------------------------------------------- memory


def test_a_sweep_needs_at_most_three_times_its_input_beside_its_output():
    dice = np.random.default_rng(0)
    rows = np.sort(dice.random((2000, 200)), axis=1)
    captured = make_lists(rows, dice.random((2000, 200)) < 0.1, [30] * 2000)
    held = captured.distances.nbytes + captured.found.nbytes
    tracemalloc.start()
    plane(captured, np.linspace(0, 0.1, 40), np.linspace(0, 1, 25), 2, 200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 3 * held


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("bad", [[-0.1], [float("nan")], [float("inf")], []])
@pytest.mark.parametrize("name", ["gap_threshold", "distance_offset"])
def test_a_value_the_plain_rule_refuses_is_refused(name, bad):
    one = make_lists([OWLBEAR[0]], [OWLBEAR[1]], [2])
    with pytest.raises(InputError, match=name):
        plane(one, bad, [0.4]) if name == "gap_threshold" else plane(one, [0.1], bad)


@pytest.mark.parametrize(("limit", "policy"), [((3, 2), "largest"), ((-1, 2), "largest"), ((1, 2), "steepest")])
def test_limits_and_policies_the_plain_rule_refuses_are_refused(limit, policy):
    with pytest.raises(InputError):
        plane(make_lists([[0.1]], [[True]], [1]), [0.1], [0.4], *limit, policy)


@pytest.mark.parametrize("row", [[0.2, 0.1], [0.1, float("nan")], [float("inf")]])
def test_distances_that_descend_or_are_not_finite_are_refused(row):
    with pytest.raises(InputError, match="list 2"):
        make_lists([[0.1], row], [[True], [False] * len(row)], [1, 1])


def test_lists_without_any_relevant_label_are_refused():
    with pytest.raises(InputError, match="none with a relevant label"):
        plane(make_lists([[0.1]], [[False]], [None]), [0.1], [0.4])


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_one_search_over_all_lists_counts_as_a_search_in_each(scale):
    dice = np.random.default_rng(7)
    rows = [np.sort(dice.uniform(0, scale, int(dice.integers(0, 9)))).round(3) for _ in range(50)]
    lists = make_lists(rows, [[True] * len(row) for row in rows], [1] * 50)
    reach = whole_units([0, 0.1, 0.25, 1, 3e5, 1e12])[None, :]
    assert (lists._in_one_row is None) == (scale == 1e6)
    assert (lists.within(reach) == lists._within_each(reach)).all()
    plain = [[sum(one <= row[0] + far + 1e-10 for one in row) for far in (0, 0.1, 0.25, 1)] for row in rows if len(row)]
    assert (lists.within(reach)[[len(row) > 0 for row in rows], :4] == plain).all()
