"""Rows, ranges, waterfall and context of a run, by hand-checked numbers."""

from dataclasses import replace

import pytest

from pages.components import reading, trace
from pages.components.view import View, pipeline_of
from rag_core.measure.experiment import run_case
from rag_core.records import load_lists
from rag_core.types import Chunk, Hit, Metric

FUSED = (
    b'{"query": "ac 6", "order": "fused", "metric": "cosine", "candidates": ['
    b'{"id": "a", "title": "A", "text": "words", "distance": 0.5, "relevant": 2},'
    b'{"id": "b", "title": "B", "rrf": 0.1},'
    b'{"id": "c", "title": "C", "distance": 0.2, "relevant": 0, "query_must": {"contain": "ac 7"}},'
    b'{"id": "d", "title": "D", "distance": 0.3, "query_must": {"contain": "ac 6"}}]}'
)


def outcome_of(view):
    return run_case(load_lists(FUSED)[0], pipeline_of(view))


def test_rows_keep_the_order_of_the_list_and_say_label_verdict_and_reason():
    rows = reading.rows_of(outcome_of(View(rules_on=True)), min_grade=1)
    assert [row.hit.chunk.id for row in rows] == ["a", "b", "c", "d"]
    assert [row.label for row in rows] == ["relevant", "unjudged", "irrelevant", "unjudged"]
    assert [row.verdict for row in rows] == ["kept", "kept", "dropped by QueryMust", "kept"]
    assert rows[2].reason == "no word of: ac 7"


@pytest.mark.parametrize(
    ("grade", "least", "label"), [(None, 1, "unjudged"), (0, 1, "irrelevant"), (1, 2, "irrelevant"), (2, 2, "relevant")]
)
def test_relevant_means_at_least_min_grade(grade, least, label):
    assert reading.label_of(grade, least) == label


def test_what_reaches_the_adaptive_filter_is_sorted_by_distance_and_has_one():
    assert [hit.chunk.id for hit in reading.reaching(outcome_of(View(rules_on=True, adaptive_on=True)))] == ["d", "a"]
    assert [hit.chunk.id for hit in reading.reaching(outcome_of(View()))] == ["c", "d", "a"]


def test_the_chart_draws_what_has_a_distance_and_counts_the_rest():
    outcome = outcome_of(View(adaptive_on=True))
    data = reading.chart_data(outcome, reading.rows_of(outcome, 1), View(adaptive_on=True), "a")
    assert [point.id for point in data.points] == ["a", "c", "d"]
    assert data.total == 4
    assert data.kept_elsewhere == 1
    assert data.score_title == "cosine distance (lower is nearer)"


def test_axes_do_not_move_with_the_sliders():
    made = []
    for threshold, offset in ((0.1, 0.4), (0.02, 0.05), (0.3, 0.9)):
        view = View(adaptive_on=True, gap_threshold=threshold, distance_offset=offset)
        outcome = outcome_of(view)
        made.append(reading.chart_data(outcome, reading.rows_of(outcome, 1), view, ""))
    assert len({(data.score_range, data.gap_range) for data in made}) == 1


@pytest.mark.parametrize(
    ("kind", "metric", "title"),
    [
        ("distance", Metric.UNKNOWN, "distance (metric unknown)"),
        ("distance", Metric.L2, "squared L2 distance (lower is nearer)"),
        ("bm25", Metric.UNKNOWN, "BM25 score (higher is better)"),
    ],
)
def test_an_axis_names_the_kind_and_direction_of_its_score(kind, metric, title):
    assert reading.score_title(kind, metric) == title


def test_the_gap_axis_shows_the_usual_threshold_where_gaps_come_near_it():
    assert reading.gap_top([0.0266, 0.01], Metric.UNKNOWN) == pytest.approx(0.115)
    assert reading.gap_top([0.2], Metric.COSINE) == pytest.approx(0.24)
    assert reading.gap_top([0.001], Metric.COSINE) == pytest.approx(0.0012)
    assert reading.gap_top([30.0], Metric.L2) == pytest.approx(36.0)
    assert reading.gap_top([], Metric.COSINE) > 0


@pytest.mark.parametrize("distances", [[], [0.5], [0.5, 0.5], [0.1, 0.9], [1e-7, 2e-7], [10.0, 900.0]])
def test_a_slider_reaches_the_value_set_and_has_a_step(distances):
    largest, step = reading.limits_of(distances, View(gap_threshold=7.0, distance_offset=3.0))
    assert largest["gap_threshold"] >= 7.0
    assert largest["distance_offset"] >= 3.0
    assert all(value > 0 for value in step.values())


def test_the_waterfall_counts_every_stage():
    view = View(rules_on=True, adaptive_on=True, min_results=1, top_on=True, k=1)
    assert trace.waterfall(outcome_of(view)) == "4 in → query_must −1 → adaptive −0 → top-k −2 → 1 kept"


def test_tokens_are_characters_by_four_rounded_up():
    assert [reading.estimated_tokens("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_the_context_is_titles_and_texts_with_a_blank_line_between():
    assert reading.context_text(outcome_of(View()).start.hits[:2]) == "A\nwords\n\nB"


def test_what_would_have_kept_a_chunk_is_asked_of_the_filter_that_dropped_it():
    outcome = outcome_of(View(rules_on=True, top_on=True, k=2))
    told = {drop.hit.chunk.id: reading.would_keep(outcome, drop)[0].text for drop in outcome.result.drops}
    assert told == {"c": "would stay if the query held ac 7", "d": "k 3 would have kept it"}


def long_list(number, view):
    hits = ",".join(f'{{"id": "c{i}", "distance": {0.2 + 0.001 * i:.3f}}}' for i in range(number))
    record = f'{{"query": "a", "metric": "cosine", "candidates": [{hits}]}}'.encode()
    outcome = run_case(load_lists(record)[0], pipeline_of(view))
    return reading.chart_data(outcome, reading.rows_of(outcome, 1), view, "")


def test_a_list_of_a_hundred_is_drawn_whole():
    assert len(long_list(100, View()).points) == 100


def test_of_a_deeper_list_the_first_sixty_are_drawn_and_the_rest_counted():
    data = long_list(200, View())
    assert [point.id for point in data.points] == [f"c{i}" for i in range(60)]
    assert data.reaching == tuple(f"c{i}" for i in range(60))
    assert (data.total, data.kept_elsewhere) == (200, 140)


def test_of_a_deeper_list_all_that_the_adaptive_filter_looks_at_is_drawn():
    view = View(adaptive_on=True, max_results=80)
    assert len(long_list(200, view).reaching) == 81


RULED = (
    b'{"query": "ac 6", "candidates": ['
    b'{"id": "a", "distance": 0.1, "query_must": {"contain": "ac 7"}}, {"id": "b", "distance": 0.2},'
    b'{"id": "c", "distance": 0.3}]}'
)


class Ranking:
    """A ranking of five chunks to read on in: a, b, c of the list, then d and e."""

    fingerprint = "five"

    def read(self, start, stop):
        return tuple(Hit(Chunk(one), place, {"distance": place / 10}) for place, one in enumerate("abcde", 1))[
            start:stop
        ]


def refilled():
    case = load_lists(RULED)[0]
    live = replace(case, candidates=replace(case.candidates, recorded=False, reader=Ranking()))
    return run_case(live, pipeline_of(View(rules_on=True, refill_on=True, refill_k=2, max_iterations=2)))


def test_what_refill_read_beyond_the_list_has_rows_of_its_own():
    rows = reading.rows_of(refilled(), 1)
    assert [(row.hit.chunk.id, row.kept) for row in rows] == [("a", False), ("b", True), ("c", True), ("d", False)]


def test_the_trace_of_refill_says_rounds_reads_store_queries_and_why_it_stopped():
    assert trace.waterfall(refilled()) == "3 in → refill read 4, left 2 → 2 kept"
    assert trace.trace(refilled())[0].startswith("refill: 2 rounds, 4 read, 1 store query, stopped: k 2 found, ")


def test_a_match_that_is_near_is_not_weak():
    rows = reading.rows_of(outcome_of(View()), min_grade=1)
    assert [row.weak for row in rows] == [False] * 4
