"""Tune's marker asks each list once, from gaps found beforehand: the same lengths as the rule's own twin and as Python."""

import random

import pytest

from pages.components.cut_chart import FOLDER as CUT
from pages.components.plane_chart import FOLDER
from rag_core.filters.cut import POLICIES, cut

ASK = """(cases) => cases.map(([distances, settings]) => {
  const [list] = prepare([{ distances }], settings);
  return [keptOf(list, settings), cutList(distances, settings).keep];
})"""


def random_case(chance):
    digits = chance.choice([2, 4, 17])
    length = chance.randrange(0, 25)
    distances = sorted(round(chance.uniform(0, chance.choice([0.3, 2, 500])), digits) for _ in range(length))
    low = chance.randrange(0, 6)
    span = distances[-1] - distances[0] if length > 1 else 1.0
    return distances, {
        "gap_threshold": round(chance.choice([0, chance.random(), chance.random() * span / 4]), digits),
        "distance_offset": round(chance.random() * chance.choice([0, 1, span]), digits),
        "min_results": low,
        "max_results": chance.randrange(max(low, 1), 25),
        "gap_policy": chance.choice(POLICIES),
        "relative_offset": chance.choice([None, None, round(chance.random(), 3)]),
    }


def answers(page, cases):
    page.set_content("<!doctype html><title>twin</title>")
    for script in (CUT / "cut.js", FOLDER / "live.js"):
        page.add_script_tag(content=script.read_text(encoding="utf-8"))
    return page.evaluate(ASK, [list(case) for case in cases])


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_random_lists_are_kept_to_the_same_length(page, seed):
    chance = random.Random(seed)
    cases = [random_case(chance) for _ in range(1000)]
    for (distances, settings), (fast, twin) in zip(cases, answers(page, cases), strict=True):
        expected = cut(distances, **settings).keep if distances else 0
        assert fast == twin == expected, (distances, settings)


def test_the_first_of_equal_gaps_and_a_list_without_span(page):
    base = {
        "gap_threshold": 0.1, "distance_offset": 0.4, "min_results": 2, "max_results": 15, "gap_policy": "largest",
        "relative_offset": None,
    }  # fmt: skip
    cases = [
        ([0.1, 0.2, 0.4, 0.6, 0.8], base),
        ([0.5] * 8, {**base, "gap_policy": "relative", "gap_threshold": 0.25}),
        ([0.1, 0.25, 0.35, 0.7], base),  # 0.35 − 0.25 is 0.0999…98 and counts as 0.1
        ([0.3], base),
    ]
    assert [fast for fast, _ in answers(page, cases)] == [2, 8, 3, 1]
