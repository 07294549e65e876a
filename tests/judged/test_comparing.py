"""Entrants beside no model and cheap filters; asking within limits."""

from dataclasses import replace

import pytest

from rag_core.judged import entrants
from rag_core.judged.entrants import answer_simulated, calls_of, limits_of
from rag_core.judged.trials import compare, simulate
from rag_core.llm.answer import Price
from rag_core.llm.run import answer_all, preview
from rag_core.workspace import resolve_workspace


def rivals_of(bench, *judges, **settings):
    return entrants.entrants_of(entrants.stages_of(["terse"], settings), judges)


def test_a_perfect_simulated_judge_keeps_all_relevant_of_the_list(bench):
    rivals = rivals_of(bench, entrants.simulated_judge(bench, 0.0, 1))
    answer_simulated(bench, rivals)
    found = compare(bench, rivals)
    (row,) = found.variants
    assert (row["SetP"], row["SetR"], row["SetF"]) == (1.0, 1.0, 1.0)  # a, c and the schema that a refers to
    assert row["kappa"] == 1.0
    assert found.baseline["SetP"] == pytest.approx(2 / 4)
    assert found.baseline["SetR"] == pytest.approx(2 / 3)


def test_kappa_is_over_labelled_chunks_alone_and_too_few_of_them_say_so(bench):
    """Fully labelled: of 4 a query the judge keeps what is relevant. Without b and d only kept ones are labelled."""
    only_relevant = [
        replace(case, grades={name: grade for name, grade in case.grades.items() if grade}) for case in bench.cases
    ]
    part = replace(bench, cases=tuple(only_relevant))
    rivals = rivals_of(part, entrants.simulated_judge(part, 0.0, 1))
    answer_simulated(part, rivals)
    (row,) = compare(part, rivals).variants
    assert row["decided"] > row["decided_labelled"]
    assert row["kappa"] is None  # one grade alone: over unlabelled chunks too it was 1
    assert (row["kappa_low"], row["kappa_high"]) == (None, None)
    assert "too few" in compare(part, rivals).to_text()


def test_what_was_not_asked_is_a_fallback_and_not_a_decision(bench):
    rivals = rivals_of(bench, entrants.simulated_judge(bench, 0.0))
    found = compare(bench, rivals)
    assert found.variants[0]["fallback_rate"] == 1.0
    assert found.variants[0]["decided"] == 0
    assert found.variants[0]["cost"] is None  # not 0: nobody was asked
    assert found.comparison == []


def test_variants_times_judges_compete_and_are_told_apart(bench):
    judges = [entrants.simulated_judge(bench, rate) for rate in (0.0, 0.2)]
    rivals = entrants.entrants_of(entrants.stages_of(["terse", "lines"], {}), judges)
    assert [one.label for one in rivals] == [
        "terse · simulated judge, error rate 0, seed 0",
        "lines · simulated judge, error rate 0, seed 0",
        "terse · simulated judge, error rate 0.2, seed 0",
        "lines · simulated judge, error rate 0.2, seed 0",
    ]


def test_a_run_is_previewed_then_paid_once_and_compared_from_what_is_stored(bench, scripted, monkeypatch):
    monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
    monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
    rivals = rivals_of(bench, entrants.endpoint_judge(resolve_workspace()))
    before = preview(calls_of(bench, rivals))
    assert (before.calls, before.stored) == (3, 0)
    assert not scripted.asked
    ran = answer_all(calls_of(bench, rivals), limits_of(rivals))
    assert ran.spent == pytest.approx(3 * 0.11)
    after = preview(calls_of(bench, rivals))
    assert (after.prompts, after.stored, after.calls, after.prompt_tokens, after.cost, after.most) == (
        3,
        3,
        0,
        0,
        0.0,
        0.0,
    )
    found = compare(bench, rivals)
    assert len(scripted.asked) == 3
    assert found.variants[0]["false_drops"] == 3  # c of each query
    assert [one["text"] for one in found.variants[0]["false_drops_listed"]] == ["Text c"] * 3


def test_a_budget_holds_over_all_entrants(bench, scripted, monkeypatch):
    monkeypatch.setenv("WINNOW_PRICE_IN", "1000")
    monkeypatch.setenv("WINNOW_PRICE_OUT", "1000")
    judges = [entrants.endpoint_judge(resolve_workspace(), model=name) for name in ("one", "two")]
    rivals = rivals_of(bench, *judges)
    budget = preview(calls_of(bench, rivals)).most / 6 + 0.12  # the largest price of a call, and a real one of 0.11
    ran = answer_all(calls_of(bench, rivals), limits_of(rivals, budget))
    assert len(scripted.asked) == 2
    assert ran.spent == pytest.approx(0.22)
    assert ran.stopped.startswith("the budget of")


def test_a_simulated_judge_without_a_price_runs_under_any_budget(bench):
    rivals = rivals_of(bench, entrants.simulated_judge(bench, 0.0))
    ran = answer_all(calls_of(bench, rivals), limits_of(rivals, 1.0))
    assert ran.done == 3


def test_cheap_filters_stand_beside_the_judges(bench):
    rivals = rivals_of(bench, entrants.simulated_judge(bench, 0.0))
    answer_all(calls_of(bench, rivals), limits_of(rivals))
    found = compare(bench, rivals, free=['[{"TopK":{"k":1}}]'])
    assert found.free[0]["SetP"] == 1.0


def test_simulated_judges_get_worse_and_cost_the_same(bench):
    (stage,) = entrants.stages_of([], {}, only_default=True)
    found = simulate(bench, stage, rates=(0.0, 1.0), seeds=1, cost=Price(1000, 1000))
    first, last = found.rows
    assert first.f1 > last.f1
    assert first.cost == last.cost > 0
