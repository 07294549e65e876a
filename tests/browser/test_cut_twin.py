"""The browser's adaptive rule gives Python's answer, on a thousand random lists and at the borders of the rule."""

import random

import pytest

from pages.components.cut_chart import FOLDER
from rag_core.filters.cut import POLICIES, cut

ASK = """(cases) => cases.map(([distances, settings]) => {
  const c = cutList(distances, settings);
  return [c.keep, c.looked, c.gapIndex, c.raised, c.threshold, c.reach];
})"""


def settings(**changes):
    return {
        "gap_threshold": 0.1, "distance_offset": 0.4, "min_results": 2, "max_results": 15,
        "gap_policy": "largest", "relative_offset": None, **changes,
    }  # fmt: skip


def random_case(chance):
    digits = chance.choice([2, 4, 17])
    length = chance.randrange(0, 25)
    distances = sorted(round(chance.uniform(0, chance.choice([0.3, 2, 500])), digits) for _ in range(length))
    low = chance.randrange(0, 6)
    span = distances[-1] - distances[0] if length > 1 else 1.0
    made = settings(
        gap_threshold=round(chance.choice([chance.random(), chance.random() * span / 4]), digits),
        distance_offset=round(chance.random() * chance.choice([1, span]), digits),
        min_results=low,
        max_results=chance.randrange(max(low, 1), 25),
        gap_policy=chance.choice(POLICIES),
        relative_offset=chance.choice([None, None, round(chance.random(), 3)]),
    )
    return distances, made


def python_answer(distances, chosen):
    made = cut(distances, **chosen)
    gap = -1 if made.gap_index is None else made.gap_index
    return [made.keep, made.looked, gap, made.raised, made.gap_threshold, made.reach]


def browser_answers(page, cases):
    page.set_content("<!doctype html><title>twin</title>")
    page.add_script_tag(content=(FOLDER / "cut.js").read_text(encoding="utf-8"))
    return page.evaluate(ASK, [list(case) for case in cases])


def assert_same(page, cases):
    for (distances, chosen), answer in zip(cases, browser_answers(page, cases), strict=True):
        expected = python_answer(distances, chosen)
        if distances:
            assert answer[:4] == expected[:4], (distances, chosen)
            assert answer[4:] == pytest.approx(expected[4:], rel=1e-12, abs=1e-12)
        else:
            assert answer[:2] == [0, 0]


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_random_lists_are_cut_alike(page, seed):
    chance = random.Random(seed)
    assert_same(page, [random_case(chance) for _ in range(1000)])


def test_borders_are_cut_alike(page):
    owlbear = [0.1, 0.25, 0.35, 0.7]
    assert_same(
        page,
        [
            ([], settings()),
            ([0.3], settings()),
            ([0.3, 0.9], settings(min_results=0)),
            ([0.5] * 8, settings(gap_policy="relative", gap_threshold=0.25)),
            ([0.5] * 8, settings(gap_threshold=0)),
            (owlbear, settings(gap_threshold=0.1)),  # 0.35 − 0.25 is 0.0999…98 and counts as 0.1
            (owlbear, settings(max_results=3)),
            ([0.1, 0.2, 0.4, 0.6, 0.8], settings()),  # three equal gaps: the first stands
            ([0.1, 0.2, 0.3, 0.4, 0.6, 0.8], settings(gap_policy="first")),
        ],
    )
