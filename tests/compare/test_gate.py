import json
from dataclasses import replace
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from scipy import stats

from rag_core.compare.gate import (
    FAIL,
    INCONCLUSIVE,
    PASS,
    GateResult,
    GateRules,
    Regression,
    gate_json,
    gate_junit,
    gate_markdown,
    judge,
    overall,
)
from rag_core.compare.run_file import FORMAT, VERSION, read_run
from rag_core.errors import InputError


def run_of(values, labels="l", min_grade=1, reasons=None, corpus="c", kept=("good",)):
    """A run with these values of SetF, {pipeline: [value per query]}."""
    count = len(next(iter(values.values())))

    def queries(row):
        return [
            {
                "id": f"q{at}",
                "values": {"SetF": value},
                "kept": list(kept) if at == 0 else [],
                "reasons": (reasons or {}).get(at, []),
            }
            for at, value in enumerate(row)
        ]

    return read_run(
        {
            "format": FORMAT,
            "version": VERSION,
            "id": "r1",
            "at": "2026-01-01",
            "name": "run",
            "eval_set": "set",
            "min_grade": min_grade,
            "seed": 0,
            "fingerprints": {"queries": f"{count}", "labels": labels, "corpus": corpus, "code": "1"},
            "models": {},
            "platform": {},
            "queries": [],
            "labels": {"q0": {"good": 1}},
            "chunks": {},
            "pipelines": [
                {"name": name, "spec": [], "means": {"queries_fallback": 0}, "queries": queries(row)}
                for name, row in values.items()
            ],
        },
        "run",
    )


def pair(dice, count=60, drop=0.0, spread=0.2):
    """Per-query values of a baseline and of a candidate whose difference has this mean and spread, within 0 to 1."""
    before = dice.uniform(0.3, 0.9, count)
    return before, before + dice.normal(-drop, spread, count)


def judged(before, after, rules=None):
    (found,) = judge(run_of({"base": list(before)}), run_of({"new": list(after)}), rules or GateRules())
    return found


def test_a_planted_regression_fails_and_says_by_how_much():
    before, after = pair(np.random.default_rng(1), drop=0.2)
    found = judged(before, after)
    assert found.outcome == FAIL
    assert found.sentence.startswith(f"new is worse: SetF {found.comparison.delta:+.3f}")
    assert "over 60 queries" in found.sentence


def test_identical_lists_pass_at_any_number():
    found = judged([0.5, 0.25], [0.5, 0.25])
    assert (found.outcome, found.comparison.delta) == (PASS, 0)


def test_the_same_figures_from_other_lists_pass_only_where_there_are_enough():
    def over(count):
        return judge(run_of({"base": [0.5] * count}), run_of({"new": [0.5] * count}, kept=("other",)))[0]

    assert over(30).outcome == INCONCLUSIVE  # one question in twelve may be lost and not have been seen
    assert over(60).outcome == PASS


def test_an_improvement_passes():
    before, after = pair(np.random.default_rng(1), drop=-0.1)
    assert judged(before, after).outcome == PASS


def test_a_drop_within_the_margin_passes_and_the_sentence_says_what_is_accepted():
    before, after = pair(np.random.default_rng(1), drop=0.1)
    found = judged(before, after, GateRules(margin=0.2))
    assert found.outcome == PASS
    assert "a drop of 0.2 is accepted" in found.sentence


def test_want_of_evidence_is_inconclusive_and_says_how_many_questions_it_would_take():
    before, after = pair(np.random.default_rng(4), count=12, drop=0.0)
    found = judged(before, after)
    assert found.outcome == INCONCLUSIVE
    assert found.needed > 12
    assert f"{found.needed:,} questions" in found.sentence


def test_a_drop_well_beyond_the_margin_fails():
    before, after = pair(np.random.default_rng(1), drop=0.3)
    assert judged(before, after, GateRules(margin=0.15)).outcome == FAIL


def test_the_bounds_are_one_sided_and_the_one_that_passes_counts_one_loss_more():
    before, after = pair(np.random.default_rng(2), drop=0.03)
    row = np.asarray(after) - np.asarray(before)
    worst = np.append(row, -np.abs(row).max())
    low, high = judged(before, after).bounds
    assert low == pytest.approx(stats.t.interval(0.9, 60, worst.mean(), stats.sem(worst))[0])
    error = np.sqrt((np.sum((row - row.mean()) ** 2) + np.abs(row).max() ** 2 / 2) / (59 * 60))
    assert high == pytest.approx(stats.t.interval(0.9, 59, row.mean(), error)[1])


def test_another_source_is_told_and_does_not_hide_a_regression():
    before, after = pair(np.random.default_rng(1), drop=0.5)
    (found,) = judge(run_of({"base": list(before)}), run_of({"new": list(after)}, corpus="other"))
    assert found.outcome == FAIL
    assert "the source differs" in found.notices


def test_a_question_that_the_candidate_lacks_counts_0_and_one_that_the_baseline_lacks_is_left_out():
    before, after = pair(np.random.default_rng(1), drop=0.0, spread=0.0)
    lacking = judge(run_of({"base": list(before)}), run_of({"new": list(after[:40])}))[0]
    assert lacking.outcome == FAIL
    assert lacking.comparison.queries == 60
    assert {one.query_id for one in lacking.regressions} <= {f"q{at}" for at in range(40, 60)}
    more = judge(run_of({"base": list(before[:40])}), run_of({"new": list(after)}))[0]
    assert (more.outcome, more.comparison.queries, more.comparison.delta) == (PASS, 40, 0)
    assert any("q59" in notice or "more" in notice for notice in more.notices)


@pytest.mark.parametrize("change", [{"labels": "other"}, {"min_grade": 2}])
def test_a_stale_baseline_is_inconclusive(change):
    before, after = pair(np.random.default_rng(1), drop=0.5)
    (found,) = judge(run_of({"base": list(before)}), run_of({"new": list(after)}, **change))
    assert found.outcome == INCONCLUSIVE
    assert "means nothing. Make a new baseline." in found.sentence
    assert found.bounds is None


def test_too_few_queries_are_inconclusive_however_large_the_drop():
    found = judged([1.0] * 9, [0.0] * 9)
    assert found.outcome == INCONCLUSIVE
    assert found.sentence == "new: 9 scored queries are too few to tell, expected at least 10."


def test_unscored_queries_do_not_count():
    found = judged([1.0] * 9 + [None] * 5, [0.5] * 14)
    assert found.outcome == INCONCLUSIVE


def test_several_candidates_are_corrected_together():
    dice = np.random.default_rng(3)
    before, after = pair(dice, 30, drop=0.06)
    alone = judged(before, after)
    candidates = {"new": list(after), **{f"same{at}": list(before) for at in range(4)}}
    together = judge(run_of({"base": list(before)}), run_of(candidates))
    assert together[0].bounds[0] < alone.bounds[0] < alone.bounds[1] < together[0].bounds[1]


def test_the_worst_outcome_counts():
    made = [GateResult("p", "b", outcome, "") for outcome in (PASS, INCONCLUSIVE, FAIL)]
    assert overall(made) == FAIL
    assert overall(made[:2]) == INCONCLUSIVE
    assert overall(made[:1]) == PASS


def test_regressions_are_the_worst_first_with_reasons_for_lost_relevant_chunks():
    before, after = [1.0] * 12, [0.2, 1.0, 0.1, *[1.0] * 9]
    reasons = {
        0: [{"id": "good", "stage": "TopK", "reason": "position 9 > k 5"}, {"id": "x", "stage": "s", "reason": "r"}]
    }
    (found,) = judge(run_of({"base": before}), run_of({"new": after}, reasons=reasons, kept=()))
    assert [one.query_id for one in found.regressions] == ["q2", "q0"]
    assert found.regressions[1].reasons == ("good (TopK: position 9 > k 5)",)
    assert [one.more for one in found.regressions] == [(), ()]


def test_a_regression_that_lost_nothing_says_how_many_more_it_keeps():
    before, after = [1.0] * 12, [0.2, *[1.0] * 11]
    (found,) = judge(run_of({"base": before}), run_of({"new": after}, kept=("good", "x", "y")))
    assert found.regressions[0].more == ("keeps 2 more that are not known to be relevant",)
    assert "- `q0`: 1.000 → 0.200; keeps 2 more that are not known to be relevant" in gate_markdown(
        [found], GateRules()
    )
    assert "0.200 keeps 2 more" in gate_junit([replace(found, outcome=FAIL)], GateRules())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"margin": -0.1}, "margin"),
        ({"margin": 1}, "margin"),
        ({"alpha": 0}, "alpha"),
        ({"least_queries": 1}, "queries"),
    ],
)
def test_rules_that_mean_nothing_are_refused(settings, expected):
    with pytest.raises(InputError, match=expected):
        GateRules(**settings)


def test_a_measure_that_was_not_made_is_refused():
    with pytest.raises(InputError, match="has no 'RR'"):
        judged([1.0] * 10, [1.0] * 10, GateRules(measure="RR"))


def outcomes(seeds, **kind):
    return [judged(*pair(np.random.default_rng(seed), **kind)).outcome for seed in seeds]


@pytest.mark.slow
def test_a_true_drop_of_the_margin_passes_in_at_most_1_of_20():
    # 5 % of 300 is 15; the binomial's 99th percentile is 24.
    assert outcomes(range(300), drop=0.05).count(PASS) <= stats.binom.ppf(0.99, 300, 0.05)


@pytest.mark.slow
def test_no_change_fails_hardly_ever_and_a_large_drop_is_caught():
    assert outcomes(range(300), drop=0.0).count(FAIL) <= 1
    assert outcomes(range(1000, 1200), drop=0.15).count(FAIL) >= 0.9 * 200


# ---------------------------------------------------------------- telling it

HOSTILE = replace(
    GateResult("a`|b", "<script>", FAIL, "a*b* is <worse>"),
    regressions=(Regression("q`1\x07", 0.9, 0.1, ("c1 (TopK: `|x<y)",)),),
    bounds=(-0.2, -0.1),
)


def test_markdown_holds_foreign_text_in_code_spans_only():
    text = gate_markdown([HOSTILE], GateRules())
    assert "| `a'¦b` | `<script>` | - | -0.200 … -0.100 | 0.05 | - | ❌ fail |" in text
    assert r"a\*b\* is \<worse\>" in text
    assert "- `q'1\x07`: 0.900 → 0.100; lost `c1 (TopK: '¦x<y)`" in text


def test_junit_is_well_formed_and_counts():
    results = [HOSTILE, GateResult("x", "b", INCONCLUSIVE, "too few"), GateResult("y", "b", PASS, "fine")]
    root = fromstring(gate_junit(results, GateRules()))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    cases = root.findall("testsuite/testcase")
    assert cases[0].get("name") == "a`|b"
    assert cases[0].find("failure").text == "q`1�: 0.900 → 0.100 c1 (TopK: `|x<y)"
    assert cases[1].find("skipped").get("message") == "too few"
    assert cases[2].find("failure") is None


def test_json_is_plain():
    before, after = pair(np.random.default_rng(1), drop=0.3)
    found = gate_json([judged(before, after)], GateRules(), "r2", "r1")
    assert json.loads(json.dumps(found)) == found
    assert (found["outcome"], found["pipelines"][0]["outcome"], found["rules"]["measure"]) == ("fail", "fail", "SetF")
