"""axe finds nothing serious on the pages, in light and in dark."""

import pytest

from tests.browser.hands import settle

VIEWS = {
    "bench": ("/", ".bench .row"),
    "bench, all": ("/?project=rulebook&zoom=all&lens=differences", ".bench .question"),
    "data": ("/data?project=recorded-combat", "[data-testid=stDataFrame]"),
    "families": ("/data?project=rulebook&section=Families", "[data-testid=stDataFrame]"),
    "labels": ("/labels?project=adaptive-short", ".label-queue .card .readable, .label-queue .card .many"),
    "questions": ("/questions", "[data-testid=stDataFrame]"),
    "history": ("/settings?view=history", ":text('No question is kept yet.'), [data-testid=stDataFrame]"),
    "judge": ('/?project=recorded-combat&pipeline=["LLMFilter"]', ".bench .row"),
    "ship": ("/ship?project=recorded-combat", "[data-testid=stDataFrame]"),
    "settings": ("/settings", "[data-testid=stDataFrame]"),
}


SLOW = ("judge", "history", "families")
"""Seen when slow, in both themes; the others in dark on every run, where contrast is harder, and in light when slow."""


def shown():
    for name in VIEWS:
        yield pytest.param(name, "dark", marks=pytest.mark.slow) if name in SLOW else (name, "dark")
        yield pytest.param(name, "light", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "scheme"), shown())
def test_axe_finds_nothing_serious(page, app, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    address, sign = VIEWS[name]
    page.emulate_media(color_scheme=scheme)
    page.goto(app + address)
    page.locator(sign).first.wait_for()
    if name == "bench":
        page.locator(".bench .row").first.click()
        page.get_by_text("Metadata", exact=True).wait_for()
    if name == "judge":
        page.locator(".bench .stage .drawer").last.click()
        page.get_by_text("Judges on trial", exact=True).click()
        page.get_by_text("thrown away").wait_for()
    settle(page)
    found = Axe().run(page).response["violations"]
    told = [
        (one["id"], node["target"])
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert told == []
