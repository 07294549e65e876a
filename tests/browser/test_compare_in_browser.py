"""Compare as a person uses it: two pipelines, the worst regression, its reason, a label that changes the figure, a link."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PATIENCE
from tests.browser.hands import at_rest, settle, tick_row

LINK = '/compare?set=recorded-combat&pipelines=["query-must","unfiltered"]&show=Queries'
DIFFERENCES = "Per chunk that one pipeline lacks"


@pytest.fixture
def compare(page, app):
    return opened(page, app)


def opened(page, address):
    page.goto(address + LINK)
    page.get_by_text("unfiltered against query-must").wait_for()
    return page


def first_row(page, name):
    """Tick the first row of the table of that name."""
    tick_row(page.get_by_test_id("stDataFrame").filter(has=page.get_by_role("region", name=re.compile(name))).first)


def columns(page):
    return page.locator(".beside .column")


def figure(page, at):
    """The line under a column's name: its SetF and how many it keeps."""
    return columns(page).nth(at).locator(".figure")


def test_from_the_worst_regression_to_a_label_and_a_link(page, browser, own_app):
    opened(page, own_app)
    first_row(page, "Per query: difference in SetF")
    columns(page).nth(1).wait_for()
    assert columns(page).count() == 2
    page.get_by_text("Why they differ").wait_for()
    before = figure(page, 1).inner_text()
    dropped = columns(page).nth(1).locator(".chunk.only.irrelevant").first
    dropped.scroll_into_view_if_needed()
    dropped.click()
    page.locator(".inert").get_by_text(re.compile("no word of")).first.wait_for()
    page.get_by_role("button", name="2 relevant").click()
    expect(figure(page, 1)).not_to_have_text(before)
    settle(page)
    after = figure(page, 1).inner_text()
    assert float(re.search(r"SetF (\d\.\d+)", after).group(1)) > float(re.search(r"SetF (\d\.\d+)", before).group(1))

    link = page.url
    other = browser.new_context(viewport={"width": 1440, "height": 900})
    second = other.new_page()
    second.set_default_timeout(PATIENCE)
    second.goto(link)
    columns(second).nth(1).wait_for()
    assert figure(second, 1).inner_text() == after
    assert second.locator(".chunk[aria-pressed=true]").first.get_attribute("data-id") == page.locator(
        ".chunk[aria-pressed=true]"
    ).first.get_attribute("data-id")
    other.close()


def test_a_chunk_is_selected_by_the_keyboard(compare):
    first_row(compare, "Per query: difference in SetF")
    chunk = columns(compare).nth(1).locator(".chunk").nth(1)
    chunk.wait_for()
    chunk.focus()
    compare.keyboard.press("Enter")
    expect(compare.get_by_text("Is it relevant to this query?")).to_be_visible()


def test_on_a_narrow_page_the_columns_stand_under_each_other_and_nothing_is_clipped(compare):
    first_row(compare, "Per query: difference in SetF")
    columns(compare).nth(1).wait_for()
    compare.set_viewport_size({"width": 420, "height": 900})
    settle(compare)
    boxes = [at_rest(columns(compare).nth(at)) for at in (0, 1)]
    assert boxes[1]["y"] > boxes[0]["y"]
    assert all(box["x"] + box["width"] <= 421 for box in boxes)


def test_without_a_link_the_page_compares_the_demo(page, app):
    page.goto(app + "/compare")
    expect(page.get_by_text("demo-tuned is 0.343 higher in SetF than fixed-15")).to_be_visible()
