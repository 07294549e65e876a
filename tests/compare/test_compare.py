from dataclasses import replace
from math import fsum

import ir_measures
import pytest
from ir_measures import SetP, SetR, nDCG

from rag_core.compare.compare import (
    compared_words,
    contrasts,
    detectable_words,
    differences,
    estimate,
    slices,
    table,
    unjudged_words,
    verdict_words,
)
from rag_core.errors import InputError
from rag_core.filters.cutoff import TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import run_all
from rag_core.measure.significance import holm
from rag_core.measure.tally import measure_all
from rag_core.measure.tally import tally as tally_of
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Query
from tests import random_pipelines as made


def case_of(number, flags, tags=()):
    query = Query(f"q{number}", f"question {number}", tags=tuple(tags))
    hits = tuple(Hit(Chunk(f"c{at}", text="word " * 8), at + 1, {"distance": at / 10}) for at in range(len(flags)))
    grades = {f"c{at}": int(flag) for at, flag in enumerate(flags) if flag is not None}
    return Case(query, grades, Candidates(query, hits, recorded=True))


# SetF of the first 1 / first 2 kept: q0 [1,0] 1 → 2/3; q1 [0,1] 0 → 2/3; q2 [1,1] 2/3 → 1; q3 [1,0,0] 1 → 2/3
CASES = [
    case_of(0, [1, 0], ["x"]),
    case_of(1, [0, 1], ["x", "y"]),
    case_of(2, [1, 1]),
    case_of(3, [1, 0, 0], ["y"]),
    case_of(4, [0, 0], ["y"]),
]
ONE, TWO = measure_all(CASES, [Pipeline((TopK(1),), label="one"), Pipeline((TopK(2),), label="two")])


def test_contrasts_by_absolute_difference_keep_the_order_of_equals_and_leave_unscored_out():
    found = contrasts(ONE, TWO)
    assert [one.query_id for one in found] == ["q1", "q0", "q2", "q3"]
    assert [one.difference for one in found] == pytest.approx([2 / 3, -1 / 3, 1 / 3, -1 / 3])


def test_regressions_come_first_on_request():
    assert [one.query_id for one in contrasts(ONE, TWO, order="regressions")] == ["q0", "q3", "q2", "q1"]
    assert [one.query_id for one in contrasts(ONE, TWO, order="improvements")][:2] == ["q1", "q2"]


def test_an_unknown_order_is_refused():
    with pytest.raises(InputError, match="order is 'worst', expected one of difference"):
        contrasts(ONE, TWO, order="worst")


def test_pipelines_of_different_queries_are_not_compared():
    (other,) = measure_all(CASES[:2], [Pipeline((), label="short")])
    with pytest.raises(InputError, match="different queries"):
        table([ONE, other])


def test_the_table_by_hand():
    first, second = table([ONE, TWO], ("SetF",))
    assert first.cells["SetF"].against is None
    assert first.cells["SetF"].estimate.mean == pytest.approx((1 + 0 + 2 / 3 + 1) / 4)
    against = second.cells["SetF"].against
    assert (against.wins, against.ties, against.losses, against.queries) == (2, 0, 2, 4)
    assert against.delta == pytest.approx(1 / 12)
    assert (second.queries_total, second.queries_scored, second.kept_mean) == (5, 4, 2.0)
    assert second.economy.tokens == 5 * 2 * 10  # 40 characters a chunk, a quarter of them


def test_any_pipeline_may_be_the_baseline():
    first, second = table([ONE, TWO], ("SetF",), baseline=1)
    assert second.cells["SetF"].against is None
    assert first.cells["SetF"].against.delta == pytest.approx(-1 / 12)


def random_tallies(seed=3, count=40):
    cases = made.random_cases(seed, count)
    return cases, measure_all(
        cases, [Pipeline((TopK(k),), label=f"top {k}") for k in (2, 5, 9)] + [Pipeline((QueryMust(),), label="rules")]
    )


def test_the_whole_table_is_corrected_together():
    _, tallies = random_tallies()
    rows = table(tallies, ("SetP", "SetF"))
    cells = [cell.against for row in rows for cell in row.cells.values() if cell.against]
    assert len(cells) == 6
    assert [cell.p_corrected for cell in cells] == holm([cell.p for cell in cells])
    for row, tally in zip(rows, tallies, strict=True):
        ours, alone = row.cells["SetF"].estimate, estimate(tally.values("SetF"))
        assert (ours.mean, ours.low, ours.high) == pytest.approx((alone.mean, alone.low, alone.high))


def test_means_equal_ir_measures():
    cases = [case for case in made.random_cases(5, 40) if case.relevant_total is None]
    tallies = measure_all(cases, [Pipeline((TopK(4),), label="four"), Pipeline((QueryMust(),), label="rules")])
    for tally in tallies:
        scored = [query for query in tally.queries if query.scores.scored]
        qrels = [ir_measures.Qrel(one.query_id, chunk, grade) for one in scored for chunk, grade in one.grades.items()]
        runs = [
            ir_measures.ScoredDoc(one.query_id, chunk, -place) for one in scored for place, chunk in enumerate(one.kept)
        ]
        theirs = ir_measures.calc_aggregate([SetP, SetR, nDCG @ 15], qrels, runs)
        row = table([tally], ("SetP", "SetR", "nDCG@15"))[0]
        for measure, name in ((SetP, "SetP"), (SetR, "SetR"), (nDCG @ 15, "nDCG@15")):
            assert row.cells[name].estimate.mean == pytest.approx(theirs[measure], abs=1e-9)


def test_contrast_order_is_a_sort_by_absolute_difference():
    _, tallies = random_tallies(9)
    found = [abs(one.difference) for one in contrasts(tallies[0], tallies[2])]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 3


def test_slices_hold_each_tag_and_the_rest():
    found = slices([ONE, TWO])
    assert [(one.tag, one.queries) for one in found] == [("y", 3), ("x", 2), ("", 1)]
    x = found[1]
    assert x.cells["one"].estimate.mean == pytest.approx(0.5)
    assert x.cells["two"].against.delta == pytest.approx(1 / 6)
    assert found[2].cells["two"].against.p is None  # one query says nothing


def test_slices_are_corrected_together():
    _, tallies = random_tallies()
    found = [cell.against for one in slices(tallies) for cell in one.cells.values() if cell.against]
    known = [one for one in found if one.p is not None]
    assert [one.p_corrected for one in known] == holm([one.p for one in known])


def test_unjudged_share_of_what_was_kept():
    (tally,) = measure_all([case_of(0, [1, None, None, 0])], [Pipeline((TopK(3),), label="three")])
    assert tally.unjudged == pytest.approx(2 / 3)
    assert unjudged_words("three", tally.unjudged) == "67% of what three kept has no label and counts as irrelevant."
    assert unjudged_words("three", 0.0) == ""


def test_differences_in_words():
    few = differences([ONE, TWO])["two"]
    assert verdict_words(few).startswith("two is 0.083 higher in SetF than one (2 wins, 0 ties, 2 losses): too few")
    _, tallies = random_tallies()
    base, _, nine = tallies[:3]
    many = differences([base, nine])["top 9"]
    words = verdict_words(many)
    assert many.word() in words
    assert "p 0.000" not in words
    assert compared_words(differences([ONE, ONE])["one"])[0].startswith("one and one have the same SetF on all 4")
    assert "more questions would decide" in verdict_words(replace(many, p_corrected=1.0))


def test_one_query_is_said_to_say_nothing():
    one = differences(measure_all(CASES[:1], [Pipeline((TopK(1),)), Pipeline((TopK(2),))]))["TopK(2)"]
    assert "too few questions" in verdict_words(one)
    assert detectable_words(one) == ""


def test_no_scored_query_gives_no_mean():
    assert estimate([None, None]).mean is None
    assert estimate([0.5]).low is None


def test_a_tally_equals_its_report():
    cases = made.random_cases(2)
    pipelines = [Pipeline((QueryMust(), TopK(3)), label="a"), Pipeline((), label="b")]
    for counted, report in zip(measure_all(cases, pipelines), run_all(cases, pipelines), strict=True):
        assert (counted.name, counted.pipeline) == (report.name, report.pipeline)
        assert counted.queries == tuple(tally_of(outcome, report.min_grade) for outcome in report.outcomes)
        assert counted.summary == report.summary
        for query, outcome in zip(counted.queries, report.outcomes, strict=True):
            gone = sum(one.relevant + one.irrelevant + one.unjudged for one in query.dropped.values())
            assert gone + len(query.kept) == query.candidates == len(outcome.start.hits)
    assert fsum(len(query.kept) for query in counted.queries) > 0
