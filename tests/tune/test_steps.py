"""Step functions against the plain pipeline, position by position, to the last bit."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.coverage import Coverage
from rag_core.filters.cut import POLICIES
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.filters.learned import FEATURES, LearnedCut
from rag_core.filters.llm.stage import LLMFilter
from rag_core.filters.query_must import QueryMust
from rag_core.filters.variety import Deduplicate, Diversity
from rag_core.llm.answer import Answer
from rag_core.measure.experiment import kept_ids, run
from rag_core.measure.measures import SET_MEASURES
from rag_core.measure.tally import measure_all
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.expand import ExpandReferences
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.requery import Requery
from rag_core.retrieve.rewrite import NormaliseKeywords
from rag_core.stage import Pipeline
from rag_core.tune.steps import cheap_knobs, exact_sum, measure_kept, step_function, with_setting
from rag_core.tune.variants import Captures
from rag_core.types import RANKS, Candidates, Case, Chunk, Hit, Metric, Order, Query

WORDS = ("wolf", "forest", "spell", "what is", "armor class 3", "and", "describe")
MODEL = {
    "features": list(FEATURES),
    "metric": "cosine",
    "mean": [0.3] * len(FEATURES),
    "scale": [0.5] * len(FEATURES),
    "weights": [0.4, -1.0, 0.2, 0.3, 1.5, -0.6, -0.9, 0.1, 0.0, 0.3],
    "intercept": 0.2,
}


def random_case(dice, number, kind):
    """A recorded list that a source may give, or one with whatever lists may hold: repeats, hops, no distances."""
    order, distance, hits = dice.choice(list(Order)) if kind == "odd" else Order.DISTANCE, dice.random(), []
    for rank in range(1, dice.choice([0, 1, 2, 6, 14]) + 1):
        distance += dice.choice([0, 0, 0.05, 0.1, dice.random() / 4])
        name = dice.randint(1, rank) if kind == "odd" and dice.random() < 0.2 else rank
        rule = {"contain": dice.choice(WORDS)} if dice.random() < 0.3 else None
        body = " ".join(dice.choice(WORDS) for _ in range(dice.randint(0, 6)))
        scores, origin, notes = {"distance": distance}, "", {}
        if kind == "odd" and dice.random() < 0.3:
            scores["similarity"] = dice.random()
        if kind == "odd" and dice.random() < 0.15:
            origin = "hop 1"
        if order is Order.FUSED and dice.random() < 0.2:
            del scores["distance"]
        if kind == "hybrid":
            sides = dice.choice([("dense",), ("lexical",), ("dense", "lexical")])
            notes = {RANKS: {side: dice.randint(1, 9) for side in sides}}
        chunk = Chunk(f"c{name}", f"title {name}", body, query_must=rule, ref_ids=(f"c{rank + 1}", "c1"))
        hits.append(Hit(chunk, rank, scores, origin, notes))
    if order is Order.FUSED:
        hits = [replace(hit, rank=rank) for rank, hit in enumerate(dice.sample(hits, len(hits)), 1)]
    query = Query(f"q{number}", " ".join(dice.choice(WORDS) for _ in range(dice.randint(1, 5))))
    grades = {f"c{at}": dice.choice([0, 0, 1, 3]) for at in range(1, 18) if dice.random() < dice.choice([0, 0.5])}
    metric = dice.choice([Metric.COSINE, Metric.COSINE, Metric.UNKNOWN, Metric.L2]) if kind == "odd" else Metric.COSINE
    start = Candidates(query, tuple(hits), metric=metric, order=order, recorded=True)
    return Case(query, grades, start, dice.choice([None, None, 12]))


def random_stage(dice):
    return dice.choice(
        [
            lambda: QueryMust(),
            lambda: AdaptiveGap(
                gap_threshold=dice.choice([0.01, 0.1, 0.3]),
                distance_offset=dice.choice([0.05, 0.4]),
                min_results=dice.randint(0, 3),
                max_results=dice.randint(3, 12),
                gap_policy=dice.choice(POLICIES),
                jumps=dice.choice([1, 1, 2]),
                worst_score=dice.choice([None, None, None, 0.6]),
                weak_top=dice.choice([None, None, None, 0.4]),
                relative_offset=dice.choice([None, None, 0.3]),
                query_specific=dice.random() < 0.4,
            ),
            lambda: TopK(dice.randint(1, 12)),
            lambda: MinSimilarity(dice.choice([0.2, 0.5, 0.7])),
        ]
        * 2
        + [
            lambda: Deduplicate(dice.choice([0.3, 0.8])),
            lambda: Diversity(dice.randint(1, 10), dice.choice([0.2, 0.7])),
            lambda: Requery(k=dice.randint(1, 10), max_iterations=dice.randint(1, 3)),
            lambda: LearnedCut(MODEL, dice.randint(0, 2), dice.randint(3, 12)),
            lambda: Coverage(dice.choice([0.3, 1])),
            lambda: ExpandReferences(dice.randint(0, 2), dice.randint(0, 4)),
        ]
    )()


def random_pipeline(dice, kind):
    source = Hybrid(rrf_k=dice.choice([1, 60])) if kind == "hybrid" else Dense(depth=12)
    rewrites = (NormaliseKeywords(),) if dice.random() < 0.3 else ()
    stages = [random_stage(dice) for _ in range(dice.randint(0, 4))]
    if kind == "hybrid" and dice.random() < 0.4:
        stages = [TopK(dice.randint(1, 12)) for _ in range(dice.randint(0, 2))]
    return Pipeline((*rewrites, source, *stages))


def numbers_of(pipeline):
    """Every (place, setting, values) that may be moved, among them values that a stage refuses."""
    for place, stage in enumerate(pipeline.stages):
        for name, value in stage.settings().items():
            if isinstance(value, bool) or value is None:
                continue
            if name == "weights":
                yield place, "weights.0", [0.0, 0.5, 1.0, 2.0]
            elif isinstance(value, int):
                yield place, name, [0, 1, 2, 3, 5, 8, 30]
            elif isinstance(value, float):
                yield place, name, [0.0, 0.01, 0.05, 0.1, 0.3, 0.4, 0.55, 0.9, 1.5]


def read_to(case, depth):
    """The hits that a fusion would have if each side had been read so deep."""
    sides = [{side: rank for side, rank in hit.notes[RANKS].items() if rank <= depth} for hit in case.candidates.hits]
    return tuple(hit.noted(RANKS, ranks) for hit, ranks in zip(case.candidates.hits, sides, strict=True) if ranks)


def plain(cases, pipeline, place, setting, value, sight):
    """(means, SetF of every question, kept ids and figures of the one in sight) by the plain pipeline; None: refused."""
    if setting == "depth" and isinstance(pipeline.stages[place], Dense):
        shorter = max(int(value), *(stage.reach for stage in pipeline.stages))
        cases = [replace(one, candidates=replace(one.candidates, hits=one.candidates.hits[:shorter])) for one in cases]
    if setting == "depth" and isinstance(pipeline.stages[place], Hybrid):
        cases = [replace(one, candidates=replace(one.candidates, hits=read_to(one, value))) for one in cases]
    try:
        report = run(cases, with_setting(pipeline, place, setting, value), 1, SET_MEASURES)
    except InputError:
        return None
    kept = [outcome.scores.kept for outcome in report.outcomes]
    means = [report.summary.means[one.name] for one in SET_MEASURES]
    seen = report.outcomes[sight]
    one = [seen.scores.values[measure.name] for measure in SET_MEASURES]
    return (
        [*means, sum(kept) / len(kept)],
        [outcome.scores.values["SetF"] for outcome in report.outcomes],
        kept_ids(seen.result),
        [*one, seen.scores.kept],
    )


def numbers(values):
    return [math.nan if value is None else value for value in values]


def check(dice, kind, cases):
    """Every position of one random number of a random pipeline equals the plain pipeline."""
    pipeline = random_pipeline(dice, kind)
    place, setting, values = dice.choice(list(numbers_of(pipeline)))
    sight = dice.randrange(len(cases))
    expected = [plain(cases, pipeline, place, setting, value, sight) for value in values]
    captures = Captures(cases, 1)
    if not any(expected):
        with pytest.raises(InputError):
            step_function(captures, pipeline, place, setting, values, cases[sight].query.id)
        return
    steps = step_function(captures, pipeline, place, setting, values, cases[sight].query.id)
    for at, row in enumerate(expected):
        if row is None:
            assert np.isnan(steps.means[:, at]).all()
            assert np.isnan(steps.per_question[:, at]).all()
            assert not steps.kept[:, at].any()
            continue
        means, by_question, kept, one = row
        np.testing.assert_array_equal(steps.means[:, at], numbers(means))
        np.testing.assert_array_equal(steps.per_question[:, at], numbers(by_question))
        np.testing.assert_array_equal(steps.one[:, at], numbers(one))
        assert {row for row, stays in zip(steps.rows, steps.kept[:, at], strict=True) if stays} == set(kept)
    by_question = [{row[1][number] for row in expected if row is not None} for number in range(len(cases))]
    assert steps.moved >= sum(len(values) > 1 for values in by_question)  # a length may move where SetF does not
    assert steps.rows[: len(cases[sight].candidates.hits)] == tuple(
        hit.chunk.id for hit in cases[sight].candidates.hits
    )


@given(st.integers(0, 10**9), st.sampled_from(["plain", "odd", "hybrid"]))
def test_every_position_of_every_number_equals_the_plain_pipeline(seed, kind):
    dice = random.Random(seed)
    check(dice, kind, [random_case(dice, number, kind) for number in range(dice.randint(1, 5))])


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60)), min_size=1, max_size=400))
def test_an_exact_sum_is_that_of_fsum(pairs):
    values = [min(part, whole) / whole for part, whole in pairs]
    assert exact_sum(np.array([values]).T).tolist() == [math.fsum(values)]


class Keeper:
    """A judge that keeps chunks of even number and counts how often it is asked."""

    name, calls = "keeper", 0

    def ask(self, prompts, *, seconds, concurrency, model, cache):
        self.calls += 1
        lines = [
            "\n".join(
                f"{number} -> {'KEEP' if int(chunk.id[1:]) % 2 == 0 else 'DISCARD'}"
                for number, chunk in enumerate(prompt.chunks, 1)
            )
            for prompt in prompts
        ]
        return [Answer(text, finish_reason="stop") for text in lines]


def test_a_number_of_the_llm_filter_is_decided_on_the_answers_there_are():
    cases = [random_case(random.Random(seed), seed, "plain") for seed in range(6)]
    judge, stage = Keeper(), LLMFilter(enabled=True, oversample_multiplier=20, min_relevance_threshold=-1)
    pipeline = Pipeline((Dense(), replace(stage, judge=judge), TopK(9)))
    captures = Captures(cases, 1)
    for case in cases:
        pipeline(case.candidates)
    asked = judge.calls
    knobs = {(knob.stage, knob.setting): knob for knob in cheap_knobs(captures, pipeline)}
    assert {setting for stage, setting in knobs if stage == 1} == {
        "max_chunks", "min_relevance_threshold", "max_total_chunks",
    }  # fmt: skip
    longest = max(cases, key=lambda case: len(case.candidates.hits))
    steps = step_function(captures, pipeline, 1, "max_chunks", [1, 2, 3, 25], longest.query.id)
    even = [hit.chunk.id for hit in longest.candidates.hits if int(hit.chunk.id[1:]) % 2 == 0]
    assert steps.one[3].tolist() == [min(most, len(even)) for most in (1, 2, 3, 25)]
    step_function(captures, pipeline, 2, "k", [1, 2, 3])
    assert judge.calls == asked


def test_a_number_in_front_of_a_model_is_no_knob():
    captures = Captures([random_case(random.Random(1), 1, "plain")], 1)
    pipeline = Pipeline((TopK(3), LLMFilter(enabled=True)))
    assert {knob.stage for knob in cheap_knobs(captures, pipeline)} == {1}
    with pytest.raises(InputError, match="LLMFilter"):
        step_function(captures, pipeline, 0, "k", [1, 2])


@given(st.integers(0, 10**9), st.sampled_from(["plain", "odd", "hybrid"]))
def test_a_knob_can_stand_at_each_of_its_positions_the_current_value_among_them(seed, kind):
    dice = random.Random(seed)
    cases = [random_case(dice, number, kind) for number in range(dice.randint(1, 5))]
    pipeline, captures = random_pipeline(dice, kind), Captures(cases, 1)
    for knob in cheap_knobs(captures, pipeline, searched=kind != "odd"):
        assert knob.value in knob.positions
        assert (np.diff(knob.positions) > 0).all()
        assert knob.low == knob.positions[0]
        assert knob.positions[-1] == knob.high
        assert len(knob.positions) <= (25 if knob.dear else 161)
        for value in knob.positions:
            changed = with_setting(pipeline, knob.stage, knob.setting, value)
            assert changed.stages[knob.stage] is not pipeline.stages[knob.stage]
            assert (knob.kind == "int") <= (value == int(value))
        longest = max(len(case.candidates.hits) for case in cases)
        assert knob.setting != "depth" or knob.high <= max(knob.value, longest, 5)


def test_the_positions_of_a_threshold_are_where_its_lists_change():
    """Gaps of a thousandth and of a tenth: a slider from 0 to 0.3 would have nearly all its way where nothing moves."""
    distances = [0.2, 0.201, 0.202, 0.204, 0.207, 0.307]
    hits = tuple(Hit(Chunk(f"c{at}"), at, {"distance": one}) for at, one in enumerate(distances, 1))
    case = Case(
        Query("q", "wolf"), {"c1": 1}, Candidates(Query("q", "wolf"), hits, metric=Metric.COSINE, recorded=True)
    )
    pipeline = Pipeline((AdaptiveGap(0.05, 0.01, 1, 15, "first"),))
    knobs = {knob.setting: knob for knob in cheap_knobs(Captures([case], 1), pipeline)}
    assert knobs["gap_threshold"].positions.tolist() == [0.0, 0.001, 0.002, 0.003, 0.05, 0.1]
    assert knobs["distance_offset"].positions.tolist() == [0.0, 0.001, 0.002, 0.004, 0.007, 0.01, 0.107]
    assert knobs["max_results"].positions.tolist() == [1, 2, 3, 4, 5, 6, 15]
    assert not any(knob.dear for knob in knobs.values())


@given(st.integers(0, 10**9), st.sampled_from(["plain", "odd", "hybrid"]))
@example(7433119, "plain")  # a second refill, behind the cut
def test_what_is_kept_in_arrays_is_what_the_plain_pipelines_keep(seed, kind):
    dice = random.Random(seed)
    cases = [random_case(dice, number, kind) for number in range(dice.randint(1, 4))]
    pipelines = [random_pipeline(dice, kind) for _ in range(2)]
    try:
        plain = measure_all(cases, pipelines, 1, SET_MEASURES)
    except InputError:
        with pytest.raises(InputError):
            measure_kept(Captures(cases, 1), pipelines)
        return
    for one, other in zip(measure_kept(Captures(cases, 1), pipelines), plain, strict=True):
        assert one.name == other.name
        assert [replace(query, dropped={}) for query in one.queries] == [
            replace(query, dropped={}) for query in other.queries
        ]
