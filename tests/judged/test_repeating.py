"""Repeatability and position bias, against a scripted server (no model)."""

import pytest

from rag_core.judged import entrants
from rag_core.judged.entrants import calls_of, limits_of
from rag_core.judged.trials import steadiness
from rag_core.llm.run import answer_all
from rag_core.workspace import resolve_workspace


@pytest.fixture
def repeated(bench, scripted):
    """A run of three repetitions of one entrant on the scripted server."""

    def once(script, **settings):
        scripted.script = script
        stages = entrants.stages_of(["terse"], settings)
        (rival,) = entrants.entrants_of(stages, [entrants.endpoint_judge(resolve_workspace())])
        every = rival.runs(3)
        answer_all(calls_of(bench, every), limits_of(every))
        return steadiness(bench, rival, 3).to_json()

    return once


def by_text(kept):
    """A script that decides by the candidate's text, wherever it stands."""

    def script(text, count, number):
        places = {name: text.index(f"| Text {name}") for name in "abcd"}
        order = sorted(places, key=places.__getitem__)
        return [(at, "KEEP" if name in kept else "DISCARD") for at, name in enumerate(order, 1)]

    return script


def test_a_judge_that_decides_by_the_text_repeats_itself_and_has_no_position_bias(repeated, scripted):
    found = repeated(by_text("ac"))
    assert found["repeatability"] == 1.0
    assert (found["checked"], found["flips"]) == (12, 0)
    assert found["position_bias"] == 0.0
    assert len(scripted.asked) == 3 * 3 * 2  # queries, runs, orders


def test_a_judge_that_keeps_what_stands_first_has_all_the_bias_there_is(repeated):
    found = repeated(lambda text, count, number: [(at, "KEEP" if at <= 2 else "DISCARD") for at in range(1, count + 1)])
    assert found["flip_rate"] == 1.0
    assert (found["kept_early"], found["kept_late"], found["position_bias"]) == (1.0, 0.0, 1.0)
    assert found["repeatability"] == 1.0


def test_a_judge_that_says_something_else_each_time_is_not_repeatable(repeated):
    found = repeated(
        lambda text, count, number: [(at, ("KEEP", "DISCARD")[(number - 1) // 6 % 2]) for at in range(1, count + 1)],
        concurrency=1,
    )
    assert found["repeatability"] < 1.0


def test_a_repetition_that_is_stopped_goes_on_where_it_was(bench, scripted):
    stages = entrants.stages_of(["terse"], {})
    (rival,) = entrants.entrants_of(stages, [entrants.endpoint_judge(resolve_workspace())])
    every = rival.runs(2)
    ran = answer_all(calls_of(bench, every), limits_of(every, None, 5))
    assert "limit of 5 calls" in ran.stopped
    assert len(scripted.asked) == 5
    answer_all(calls_of(bench, every), limits_of(every))
    assert len(scripted.asked) == 12
