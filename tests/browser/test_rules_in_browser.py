"""Rules in Chromium: apply a family's rules, see the result list of a query change, undo, and follow a chunk."""

import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rag_core.index.collection import open_collection

sys.path.insert(0, str(Path(__file__).parents[1]))  # the small collection that tests share

import small_rules


@pytest.fixture(scope="module")
def small_app(serve, tmp_path_factory):
    """(address, workspace) of an app whose workspace holds the small collection and no demo."""
    workspace = tmp_path_factory.mktemp("rules")
    small_rules.build(workspace)
    with serve(workspace) as url:
        yield url, workspace


def figure(page, label):
    return page.get_by_test_id("stMetric").filter(has=page.get_by_text(label, exact=True))


def view(page, name):
    page.get_by_test_id("stButtonGroup").get_by_text(name).click()


def open_small(page, address):
    page.goto(f"{address}/rules")
    page.get_by_role("combobox", name="Collection").click()
    page.get_by_role("option", name="small (8 chunks)").click()
    expect(figure(page, "chunks with a rule")).to_contain_text("of 8")


def test_applied_rules_change_the_list_of_a_query_and_undo_brings_it_back(page, small_app):
    address, workspace = small_app
    open_small(page, address)
    expect(figure(page, "chunks with a rule")).to_contain_text("0 of 8")
    view(page, "Beside a query")
    expect(page.get_by_text("8 kept of 8 read")).to_be_visible()

    view(page, "Families")
    page.get_by_role("button", name="Apply 6 rules").click()
    expect(page.get_by_text("Batch 1 is stored: 6 chunks")).to_be_visible()
    expect(figure(page, "chunks with a rule")).to_contain_text("6 of 8")
    view(page, "Beside a query")
    expect(page.get_by_text("3 kept of 8 read")).to_be_visible()

    edit_first_rule(page)
    follow(page)
    page.get_by_role("button", name="Undo batch 1").click()
    expect(page.get_by_text("Batch 1 is undone: 6 chunks are as before")).to_be_visible()
    expect(page.get_by_text("8 kept of 8 read")).to_be_visible()
    assert not any(chunk.query_must for chunk in open_collection(workspace, small_rules.NAME).chunks)


def edit_first_rule(page):
    """A rule that asks for a word the query does not hold: its chunk leaves the list while nothing is stored."""
    rule = page.get_by_role("textbox", name="Its rule as JSON; empty: no rule")
    before = rule.input_value()
    rule.fill('{"contain": "halberd"}')
    rule.press("Control+Enter")
    expect(page.get_by_text("contains: halberd")).to_be_visible()
    expect(page.get_by_text("would stay if the query held halberd")).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    expect(rule).to_have_value(before)


def follow(page):
    box = page.get_by_role("textbox", name="Why not this chunk?")
    box.fill("cleric-4")
    box.press("Enter")
    expect(page.get_by_text("dropped by Requery")).to_be_visible()
    expect(page.get_by_text("no word of: armor class 4 / ac 4 / a.c. 4").last).to_be_visible()


@pytest.mark.slow  # test_hostile_text_in_browser.py shows twelve texts in more places
def test_foreign_text_stays_text(page, small_app):
    address, _ = small_app
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_small(page, address)
    view(page, "Beside a query")
    box = page.get_by_role("textbox", name="Why not this chunk?")
    box.fill("shields")
    box.press("Enter")
    expect(page.get_by_text(small_rules.FOREIGN).last).to_be_visible()
    assert not [url for url in asked if "foreign.invalid" in url]
