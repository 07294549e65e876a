"""Grids over whole pipelines against the plain pipeline, one setting after the other."""

import math
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import Cancelled, InputError, SpecError
from rag_core.eval_sets.reading import load_set
from rag_core.filters.cut import POLICIES
from rag_core.measure.experiment import run
from rag_core.spec import parse_pipeline
from rag_core.tune.grid import Axis, parse_grid, pipeline_at
from rag_core.tune.plane import QUANTITIES, best_of_plane, sweep
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Order, Query

WORDS = ("owlbear", "cleric", "armor class 6", "dragon")


def case_of(dice, number, *, order=Order.DISTANCE, odd=False):
    """A recorded case with rules on some chunks; `odd` lists have what only the plain pipeline can do."""
    hits, distance = [], dice.random()
    for rank in range(1, dice.choice([0, 1, 2, 5, 12, 20]) + 1):
        distance += dice.choice([0, 0.05, 0.1, dice.random() / 5])
        rule = {"contain": dice.choice(WORDS)} if dice.random() < 0.5 else None
        scores = {"distance": distance}
        if odd and dice.random() < 0.5:
            scores["similarity"] = dice.random()
        name = dice.randint(1, rank) if odd else rank
        hits.append(
            Hit(Chunk(f"c{name}", query_must=rule), rank, scores, origin="hop 1" if odd and name < rank else "")
        )
    if order is Order.FUSED:
        hits = [Hit(hit.chunk, rank, hit.scores) for rank, hit in enumerate(dice.sample(hits, len(hits)), 1)]
    query = Query(f"q{number}", " ".join(dice.sample(WORDS, 2)))
    grades = {hit.chunk.id: int(dice.random() < 0.4) for hit in hits if dice.random() < 0.9}
    metric = dice.choice([Metric.COSINE, Metric.UNKNOWN])
    start = Candidates(query, tuple(hits), metric=metric, order=order, recorded=True)
    return Case(query, grades, start, sum(grades.values()) + dice.choice([0, 2]) if dice.random() < 0.5 else None)


STAGES = {
    "QueryMust": ["QueryMust=on|off", "QueryMust.mode=token|substring"],
    "Requery": ["Requery.k=2|6", "Requery.max_iterations=1:3:2"],
    "MinSimilarity": ["MinSimilarity.min_relevance=-0.2:0.9:4", "MinSimilarity=on|off"],
    "TopK": ["TopK.k=1|3|15"],
    "AdaptiveGap": [
        "AdaptiveGap.gap_threshold=0|0.05|0.1|0.2",
        "AdaptiveGap.distance_offset=0.0:0.6:3",
        "AdaptiveGap.relative_offset=0.2|none",
        "AdaptiveGap.min_results=0|4",
        "AdaptiveGap.max_results=3|15",
        "AdaptiveGap.jumps=1|2",
        "AdaptiveGap.worst_score=0.3|none",
        "AdaptiveGap.weak_top=0.2|none",
        f"AdaptiveGap.gap_policy={'|'.join(POLICIES)}",
        "AdaptiveGap=on|off",
    ],
}


def random_sweep(dice):
    """A chain of stages and a grid over some of their settings."""
    names = [name for name in dice.choices(list(STAGES), k=dice.randint(1, 4))]
    names = [name for at, name in enumerate(names) if name not in names[:at]]
    known = [part for name in names for part in STAGES[name]]
    parts = dice.sample(known, min(2, len(known)))
    if dice.random() < 0.6 and "AdaptiveGap" in names:
        parts = dice.sample(STAGES["AdaptiveGap"][:2], 2) + [
            part for part in parts if part not in STAGES["AdaptiveGap"]
        ]
    return parse_pipeline(names), parse_grid(",".join(parts), names[0])


def plain_means(cases, pipeline):
    """The four means, as the plain pipeline gives them."""
    report = run(cases, pipeline)
    kept = [outcome.scores.kept for outcome in report.outcomes]
    means = report.summary.means
    return [means["SetP"], means["SetR"], means["SetF"], sum(kept) / len(kept)]


def check(dice, cases):
    """Every row of a random sweep equals the plain pipeline; how many were compared."""
    pipeline, axes = random_sweep(dice)
    if not run(cases, pipeline).summary.queries_scored:
        with pytest.raises(InputError, match="none with a relevant label"):
            sweep(cases, pipeline, axes)
        return 0
    table = sweep(cases, pipeline, axes)
    for values, means in zip(product(*(axis.values for axis in axes)), table.means.reshape(4, -1).T, strict=True):
        chosen = list(zip(axes, values, strict=True))
        if math.isnan(means[0]):
            with pytest.raises(SpecError, match="min_results"):
                pipeline_at(pipeline, chosen)
        else:
            plain = plain_means(cases, pipeline_at(pipeline, chosen))
            assert means == pytest.approx(plain, abs=1e-12), (pipeline, chosen)
    return table.means[0].size


@given(st.integers(0, 10**9), st.sampled_from(Order), st.booleans())
def test_every_row_of_a_chain_equals_the_plain_pipeline(seed, order, odd):
    dice = random.Random(seed)
    check(dice, [case_of(dice, number, order=order, odd=odd) for number in range(dice.randint(1, 5))])


@pytest.mark.slow
def test_300_random_captures_times_random_chains_equal_the_plain_pipeline():
    dice, compared = random.Random(6), 0
    for _ in range(300):
        cases = [case_of(dice, number) for number in range(dice.randint(1, 6))]
        compared += sum(check(dice, cases) for _ in range(10))
    assert compared > 10_000


def ordered_cases(seed, count=8):
    dice = random.Random(seed)
    return [case_of(dice, number) for number in range(count)]


def test_a_chain_of_cutoffs_around_the_cut_needs_no_plain_run():
    pipeline = parse_pipeline(["QueryMust", "TopK", "AdaptiveGap", {"MinSimilarity": {"min_relevance": 0.1}}])
    axes = parse_grid("QueryMust=on|off,TopK.k=1:15:15,gap_threshold=0:0.3:20,distance_offset=0:1:20", "AdaptiveGap")
    table = sweep(ordered_cases(1), pipeline, axes)
    assert (table.means.shape, table.plainly) == ((4, 2, 15, 20, 20), 0)


def test_rows_are_in_product_order_with_the_names_that_were_typed():
    table = sweep(
        ordered_cases(2),
        parse_pipeline(["AdaptiveGap"]),
        parse_grid("distance_offset=0|1,gap_threshold=0.1|0.2", "AdaptiveGap"),
    )
    rows = [(row["distance_offset"], row["gap_threshold"]) for row in table.rows()]
    assert rows == [(0, 0.1), (0, 0.2), (1, 0.1), (1, 0.2)]
    assert list(next(table.rows())) == ["distance_offset", "gap_threshold", *QUANTITIES]


def test_the_best_row_is_the_first_of_equals():
    cases = load_set("recorded-combat").cases  # every k from 15 on keeps the same chunks
    table = sweep(cases, parse_pipeline(["TopK"]), parse_grid("k=20:25:6", "TopK"))
    assert table.best_at() == (20,)


def test_a_cancelled_sweep_keeps_what_is_done():
    def stop_after_two(done, total):
        if done == 2:
            raise Cancelled("stopped")

    axes = parse_grid("k=1:5:5", "TopK")
    table = sweep(ordered_cases(3), parse_pipeline(["TopK"]), axes, progress=stop_after_two)
    assert not table.complete
    assert [row["k"] for row in table.rows()] == [1, 2]


def test_the_optimum_of_a_chain_is_at_least_every_grid_row_and_its_pipeline_gives_it():
    pipeline = parse_pipeline(["QueryMust", {"TopK": {"k": 12}}, "AdaptiveGap"])
    axes = parse_grid("QueryMust=on|off,gap_threshold=0:0.3:30,distance_offset=0:1:30,max_results=5|15", "AdaptiveGap")
    for seed in range(5):
        cases = ordered_cases(seed)
        others, found = best_of_plane(cases, pipeline, axes)
        assert found.SetF >= max(row["SetF"] for row in sweep(cases, pipeline, axes).rows()) - 1e-12
        chosen = [(axis, others[axis.name]) for axis in axes if axis.name in others]
        chosen += [
            (axis, getattr(found, axis.name)) for axis in axes if axis.name in ("gap_threshold", "distance_offset")
        ]
        assert plain_means(cases, pipeline_at(pipeline, chosen))[2] == pytest.approx(found.SetF, abs=1e-12)


def test_an_optimum_with_the_threshold_held_is_at_least_every_offset():
    cases, pipeline = ordered_cases(4), parse_pipeline([{"AdaptiveGap": {"gap_threshold": 0.12}}])
    axes = parse_grid("distance_offset=0:1:300", "AdaptiveGap")
    _, found = best_of_plane(cases, pipeline, axes)
    assert found.gap_threshold == 0.12
    assert found.SetF >= sweep(cases, pipeline, axes)["SetF"].max() - 1e-12


def test_errors_of_a_stage_name_the_query():
    query = Query("odd-one", "owlbear")
    case = Case(query, {"c": 1}, Candidates(query, (Hit(Chunk("c"), 1, {"bm25": 2.0}),), recorded=True))
    with pytest.raises(InputError, match="query odd-one: AdaptiveGap has its default thresholds"):
        sweep([case], parse_pipeline(["AdaptiveGap"]), parse_grid("gap_threshold=0.1", "AdaptiveGap"))


def test_a_stage_the_pipeline_does_not_hold_is_named():
    with pytest.raises(SpecError, match="does not hold, it has TopK"):
        sweep(ordered_cases(1), parse_pipeline(["TopK"]), [Axis("x", "QueryMust", "mode", ("token",))])


def test_default_thresholds_on_another_metric_are_refused_and_thresholds_of_the_grid_are_not():
    query = Query("far", "owlbear")
    hits = tuple(Hit(Chunk(f"c{at}"), at, {"distance": at * 10.0}) for at in range(1, 6))
    case = Case(query, {"c1": 1}, Candidates(query, hits, metric=Metric.L2, recorded=True))
    with pytest.raises(SpecError, match="query far: AdaptiveGap has its default thresholds"):
        sweep([case], parse_pipeline(["AdaptiveGap"]), parse_grid("gap_threshold=5|20", "AdaptiveGap"))
    table = sweep(
        [case], parse_pipeline(["AdaptiveGap"]), parse_grid("gap_threshold=5|20,distance_offset=15", "AdaptiveGap")
    )
    assert [row["kept_mean"] for row in table.rows()] == [2, 2]
