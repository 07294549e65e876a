"""axe finds nothing serious on the pages, in light and in dark."""

import pytest

from tests.browser.hands import settle

VIEWS = {
    "explore": ('/?pipeline=["QueryMust",{"AdaptiveGap":{"gap_threshold":0.02}}]', "g.point.dropped"),
    "labels": ("/labels?project=adaptive-short", ".label-queue .card .readable, .label-queue .card .many"),
    "compare": ("/compare?set=recorded-combat", "[data-testid=stDataFrame]"),
    "evaluate": ("/evaluate", "[data-testid=stDataFrame]"),
    "questions": ("/questions", "[data-testid=stDataFrame]"),
    "history": ("/settings?view=history", ":text('No question is kept yet.'), [data-testid=stDataFrame]"),
    "llm_filter": ("/llm_filter", ":text('The page needs one capture'), [data-testid=stDataFrame]"),
    "ship": ("/ship?project=recorded-combat", "[data-testid=stDataFrame]"),
    "settings": ("/settings", "[data-testid=stDataFrame]"),
}


MOST_USED = ("explore", "labels")
"""Seen in both themes on every run; the other pages in dark, where contrast is harder, and in light when slow."""


def shown():
    for name in VIEWS:
        yield name, "dark"
        yield (name, "light") if name in MOST_USED else pytest.param(name, "light", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "scheme"), shown())
def test_axe_finds_nothing_serious(page, app, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    address, sign = VIEWS[name]
    page.emulate_media(color_scheme=scheme)
    page.goto(app + address)
    page.locator(sign).first.wait_for()
    if name == "explore":
        page.locator("g.point[data-id]").first.click()
        page.get_by_text("Is it relevant to this query?").wait_for()
    settle(page)
    found = Axe().run(page).response["violations"]
    told = [
        (one["id"], node["target"])
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert told == []
