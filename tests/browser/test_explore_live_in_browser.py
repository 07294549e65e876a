"""Explore live in Chromium: the demo rulebook, a question of one's own, refill, and what a reload keeps."""

import re
from itertools import pairwise
from urllib.parse import parse_qs, urlparse

from playwright.sync_api import expect

from tests.browser.hands import settle

POINT = "g.point[data-id]"
STRENGTH = f"{POINT}[data-id='rules/strength']"
QUESTION = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"


def switch(page, name):
    page.locator("label", has_text=re.compile(f"^{name}$")).first.click()


def choose(page, label, option):
    page.get_by_role("combobox", name=re.compile(label)).click()
    page.get_by_role("option", name=re.compile(option)).click()


def metric(page, label):
    return page.get_by_test_id("stMetric").filter(has=page.get_by_text(label, exact=True))


def test_refill_brings_strength_back_and_a_reload_keeps_it(page, app):
    page.goto(app)
    page.locator(POINT).first.wait_for()
    choose(page, "Eval set", "The demo rulebook")
    expect(metric(page, "SetP")).to_contain_text("as fixed k = 15")
    page.get_by_role("textbox", name="Ask your own question").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".lead").filter(has_text=QUESTION)).to_be_visible()
    expect(metric(page, "SetP")).to_contain_text("not scored")
    expect(page.locator(POINT)).to_have_count(15)
    switch(page, "query_must")
    expect(page.locator(f"{POINT}.kept")).to_have_count(1)
    expect(page.locator(STRENGTH)).to_have_count(0)

    switch(page, "refill")
    expect(page.locator(f"{STRENGTH}.kept")).to_have_count(1)
    expect(page.get_by_text("refill: 3 rounds, 45 read, 2 store queries")).to_be_visible()
    assert parse_qs(urlparse(page.url).query) == {
        "set": ["rulebook"],
        "collection": ["rulebook"],
        "question": [QUESTION],
        "pipeline": ['[{"Dense":{"depth":15}},"Requery"]'],
    }

    page.reload()
    expect(page.locator(f"{STRENGTH}.kept")).to_have_count(1)
    expect(page.locator(".lead").filter(has_text=QUESTION)).to_be_visible()
    expect(page.get_by_role("textbox", name="Ask your own question")).to_have_value(QUESTION)


def test_a_deep_list_is_drawn_to_the_sixtieth_and_told_whole(page, app):
    page.goto(f"{app}/?set=rulebook&query=combat-strength&pipeline=[%22Dense%22,%22AdaptiveGap%22]")
    expect(page.locator(POINT)).to_have_count(60)
    expect(page.get_by_text("drawn: 60 of 200, the table holds all")).to_be_visible()
    expect(metric(page, "kept")).to_contain_text("15 of 200")
    settle(page)
    markers = [one.bounding_box() for one in page.locator(f"{POINT} .marker").all()]
    assert all(right["x"] - left["x"] >= 0.7 * left["width"] for left, right in pairwise(markers))
