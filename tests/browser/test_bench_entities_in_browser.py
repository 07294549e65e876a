"""The section of the entities' drawer in Chromium: ask, add an alias and read what it changes; foreign names stay text."""

import json
import re

import pytest
from playwright.sync_api import expect

from pages import state
from rag_core.spec import parse_pipeline
from tests.browser.hands import settle

pytestmark = pytest.mark.slow  # tests/pages/test_bench_entities.py asks the same without a browser

ENTRY = state.encode(parse_pipeline(["EntityFilter"]))
EXAMPLE = "Can kommando orks use ere we go?"
SECTION = ".st-key-entities-section"
HOSTILE = "![x](http://foreign.invalid/a.png)"
OWN = {"name": HOSTILE, "entities": {f"Zorgon {HOSTILE}": {"members": ["Blip"], "abilities": ["Warp Dance"]}}}


def ask(page, query):
    page.get_by_label("Query", exact=True).fill(query)
    page.get_by_label("Query", exact=True).press("Enter")


def open_section(page, app):
    page.goto(f"{app}/?project=recorded-combat&q=combat-1&a={ENTRY}&b=unfiltered")
    page.locator(".bench .row").first.wait_for()
    settle(page)
    page.locator(".bench .stage .drawer").first.click()
    page.get_by_text("Structure, aliases and labels").click()
    ask(page, EXAMPLE)
    expect(page.locator(SECTION)).to_contain_text("2 of 48 entities meant")


def test_an_alias_is_added_and_the_change_is_read(page, app):
    open_section(page, app)
    expect(page.locator(f"{SECTION} .inert mark")).to_have_text(["kommando", "orks", "ere", "go"])
    expect(page.locator(f"{SECTION} .inert .chips span")).to_have_text(["Kommandos", "Wrecka Krew"])

    page.get_by_label("New alias").fill("cleric")
    page.get_by_label("New alias").press("Enter")
    page.get_by_role("combobox", name=re.compile("stands for")).click()
    page.get_by_role("option", name="Kommandos").click()
    page.keyboard.press("Escape")
    expect(page.get_by_text("questions of this project")).to_be_visible()

    page.get_by_role("button", name="Add", exact=True).click()
    ask(page, "a cleric")
    expect(page.locator(SECTION)).to_contain_text("1 of 48 entities meant")
    page.get_by_role("button", name="Back to the stored one").click()
    expect(page.locator(SECTION)).to_contain_text("0 of 48 entities meant")


def test_names_of_a_foreign_structure_load_nothing(page, app, tmp_path):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    path = tmp_path / "own.json"
    path.write_text(json.dumps(OWN))
    open_section(page, app)
    page.get_by_role("button", name=re.compile("Open a file")).click()
    page.locator("input[type=file]").first.set_input_files(path)
    expect(page.locator(SECTION)).to_contain_text("0 of 1 entities meant")
    page.keyboard.press("Escape")
    ask(page, f"warp dance {HOSTILE}")
    expect(page.locator(SECTION)).to_contain_text("1 of 1 entities meant")
    expect(page.locator(f"{SECTION} .inert .chips span")).to_have_text([f"Zorgon {HOSTILE}"])
    page.get_by_role("combobox", name=re.compile("stands for")).click()
    page.get_by_role("option").first.click()
    page.keyboard.press("Escape")
    assert not [url for url in asked if "foreign.invalid" in url]
