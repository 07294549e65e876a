"""Questions in Chromium: pasted ones join the project in two clicks, and hostile ones stay text."""

import re

import pytest
from playwright.sync_api import expect

from pages import rail
from rag_core.eval_sets.reading import load_set
from rag_core.project.project import init_project

HOSTILE = '![x](http://evil.example/x.png) <img src=x onerror="alert(1)"> http://evil.example/y'


@pytest.fixture(scope="module")
def small_app(app, app_workspace):
    init_project(app_workspace, "mine", title=HOSTILE)
    return app, app_workspace


def test_pasted_questions_are_added_in_two_clicks_and_nothing_foreign_is_fetched(page, small_app):
    address, workspace = small_app
    foreign, dialogs = [], []
    page.on("request", lambda request: foreign.append(request.url) if "evil" in request.url else None)
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(f"{address}/questions?project=mine")
    page.get_by_label("Questions, one a line").click()
    page.keyboard.insert_text(f"How far can a knight move?\n{HOSTILE}")
    page.get_by_role("button", name="Add questions").click()
    expect(page.get_by_text("2 questions added")).to_be_visible()
    page.get_by_test_id("stButtonGroup").get_by_text("Change").click()
    page.get_by_label("Tag", exact=True).fill("movement")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Add to all").click()
    expect(page.get_by_text("Tags of 2 questions changed")).to_be_visible()
    page.get_by_test_id("stButtonGroup").get_by_text("Guidelines").click()
    page.get_by_label("Guidelines").fill(HOSTILE)
    page.get_by_role("button", name="Store the guidelines").click()
    expect(page.get_by_text("The guidelines are stored")).to_be_visible()
    assert [(case.query.text, case.query.tags) for case in load_set("mine", workspace).cases] == [
        ("How far can a knight move?", ("movement",)),
        (HOSTILE, ("movement",)),
    ]
    assert (foreign, dialogs) == ([], [])


def test_an_old_address_leads_to_the_place_with_the_project_it_named(page, small_app):
    address, _ = small_app
    page.goto(address)
    for old in ("explore", "label", "rules"):  # what becomes of each of the others is a line of the same table
        new = rail.MOVED[old]
        page.goto(f"{address}/{old}?set=skirmish-rules")
        place = "" if new == rail.FIRST else new
        expect(page).to_have_url(re.compile(f"{address}/{place}[?].*project=skirmish-rules"))
