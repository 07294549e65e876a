"""Tokens, time and cost of a run by hand, and the front of rows."""

from dataclasses import dataclass

import pytest

from rag_core.errors import InputError
from rag_core.spec import parse_pipeline
from rag_core.stage import Filter, Judgement, Pipeline
from rag_core.tune.search import SearchedSetting, best_row, measured, pareto_front
from rag_core.types import Candidates, Case, Chunk, Hit, Query


def row(name, precision, kept, feasible=True):
    return SearchedSetting(name, {}, {"SetP": precision, "kept_mean": kept}, feasible)


ROWS = [
    row("a", 0.5, 5),
    row("beaten", 0.4, 5),
    row("b", 0.4, 3),
    row("equal to b", 0.4, 3),
    row("not able", 1, 1, False),
]


def test_a_front_by_hand():
    assert [one.name for one in pareto_front(ROWS)] == ["a", "b", "equal to b"]


def test_the_best_row_is_able_and_the_first_of_equals():
    assert best_row(ROWS, "SetP").name == "a"
    assert best_row(ROWS, "kept_mean").name == "b"
    assert best_row(ROWS[-1:], "SetP") is None


def case(number=1):
    query = Query(f"q{number}", "x")
    hits = tuple(Hit(Chunk(f"c{at}", text="x" * 40), at, {"distance": at / 10}) for at in (1, 2, 3))
    return Case(query, {"c1": 1}, Candidates(query, hits))


def test_kept_tokens_by_hand():
    assert measured([case()], parse_pipeline([{"TopK": {"k": 2}}]), ("SetF", "kept_tokens")) == {"kept_tokens": 20}


@dataclass(frozen=True)
class Asked(Filter):
    """A filter that says what its calls took and cost, as a stage with stored answers does."""

    def judge(self, candidates):
        price = None if candidates.query.id == "q9" else 0.25 * int(candidates.query.id[1:])
        facts = {"call_milliseconds": (1500.0, 500.0), "cost_without_cache": price}
        return Judgement([None for _ in candidates.hits], facts)


def test_time_and_cost_are_those_of_the_recorded_calls():
    found = measured([case(1), case(3)], Pipeline((Asked(),)), ("latency_ms", "cost"))
    assert found == {"latency_ms": 2000, "cost": 0.5}


def test_without_any_call_nothing_is_spent():
    assert measured([case()], parse_pipeline(["TopK"]), ("cost",)) == {"cost": 0}


def test_an_unknown_price_is_refused_and_not_taken_as_nothing():
    with pytest.raises(InputError, match="q9: Asked has calls of unknown cost"):
        measured([case(1), case(9)], Pipeline((Asked(),)), ("cost",))
