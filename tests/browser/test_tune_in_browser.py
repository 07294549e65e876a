"""Tune in Chromium: the marker moves with the pointer and by keys, queries follow, the setting is saved; Headroom."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.hands import at_rest, middle, settle


@pytest.fixture
def tune(page, app):
    page.goto(f"{app}/tune")
    page.get_by_role("combobox", name=re.compile("Eval set")).click()
    page.get_by_role("option", name="Three recorded combat questions").click()
    page.locator(".plane .marker").wait_for()
    expect(status(page)).to_contain_text("macro over 2 dev queries")
    settle(page)
    return page


def status(page):
    return page.get_by_role("status").filter(has_text="marker: gap threshold")


def point_at(page, across, up):
    """The pixel of a share of the plane, from its lower left corner."""
    page.locator(".plane .area").scroll_into_view_if_needed()
    box = at_rest(page.locator(".plane .area"))
    return box["x"] + box["width"] * across, box["y"] + box["height"] * (1 - up)


def test_the_marker_moves_and_the_queries_follow_before_the_server_is_asked(tune):
    before = status(tune).text_content()
    strip = tune.locator("svg.strip")
    expect(strip).to_have_attribute("aria-label", re.compile("1 win, 0 lose, 1 stay"))
    tune.mouse.move(*point_at(tune, 0.5, 0.5))
    tune.mouse.down()
    tune.mouse.move(*point_at(tune, 0.03, 0.97), steps=8)
    expect(status(tune)).not_to_have_text(before)
    expect(strip).to_have_attribute("aria-label", re.compile("0 win, 2 lose, 0 stay"))
    expect(tune.get_by_text("1 win, 0 lose, 1 stay of 2 dev queries")).to_be_visible()  # the server’s own table
    tune.mouse.up()
    expect(tune.get_by_text("0 win, 2 lose, 0 stay of 2 dev queries")).to_be_visible()


def test_browser_and_server_agree_on_the_marker(tune):
    for across, up in ((0.2, 0.1), (0.5, 0.6), (0.9, 0.02)):
        tune.mouse.click(*point_at(tune, across, up))
        expect(tune.locator("svg.strip")).to_be_visible()
        counts = re.search(r"\d+ win, \d+ lose, \d+ stay", tune.locator("svg.strip").get_attribute("aria-label"))[0]
        expect(tune.get_by_text(f"{counts} of 2 dev queries")).to_be_visible()


def test_arrow_keys_move_the_marker(tune):
    marker = tune.locator(".plane .marker")
    marker.focus()
    was = float(marker.get_attribute("aria-valuenow"))
    tune.keyboard.press("ArrowUp")
    expect(marker).not_to_have_attribute("aria-valuenow", str(was))
    expect(marker).to_be_focused()


def test_the_setting_at_the_marker_is_saved(tune):
    tune.mouse.click(*point_at(tune, 0.5, 0.5))
    tune.get_by_role("button", name="Save as pipeline file").click()
    tune.get_by_role("textbox", name="Name").fill("from-the-marker")
    tune.get_by_role("textbox", name="Name").press("Enter")
    tune.get_by_role("button", name="Save to the workspace").click()
    expect(tune.get_by_text("stored as pipelines/from-the-marker.yaml in the workspace")).to_be_visible()


def test_a_click_on_a_curve_of_headroom_names_the_threshold(page, app):
    page.goto(f"{app}/headroom")
    page.get_by_role("combobox", name=re.compile("Eval set")).click()
    page.get_by_role("option", name="Three recorded combat questions").click()
    page.get_by_role("radio", name="Curves").or_(page.get_by_role("button", name="Curves")).click()
    plot = page.locator(".js-plotly-plot .scatterlayer .point").nth(2)
    plot.wait_for()
    plot.scroll_into_view_if_needed()
    settle(page)
    x, y = middle(plot)
    page.mouse.move(x, y)
    page.locator(".js-plotly-plot .hoverlayer .hovertext").first.wait_for()  # a click counts on a point that is hovered
    page.mouse.click(x, y)
    expect(page.get_by_text(re.compile("Keep distance ≤ 0.\\d{4}"))).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "sign"), [("tune", ".plane .marker"), ("headroom", "[data-testid=stMetric]")])
def test_axe_finds_nothing_serious(page, app, name, sign, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    page.goto(f"{app}/{name}")
    page.get_by_role("combobox", name=re.compile("Eval set")).click()
    page.get_by_role("option", name="Three recorded combat questions").click()
    page.locator(sign).first.wait_for()
    settle(page)
    found = Axe().run(page).response["violations"]
    told = [
        (one["id"], node["target"])
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert told == []
