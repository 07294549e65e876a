"""Data in Chromium: a new project from a folder of two files, its chunks read, its source deleted; foreign text stays text."""

import re
import uuid

import pytest
from playwright.sync_api import expect

from tests.browser.hands import settle, tick_row

HOSTILE = "![x](http://foreign.invalid/a.png) <img src=http://foreign.invalid/b.png>"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / f"documents-{uuid.uuid4().hex[:8]}"
    place.mkdir()
    (place / "one.md").write_text(
        f"## Climbing {HOSTILE}\n\nA climb costs two moves. {HOSTILE}\n\n## Falling\n\nA fall hurts.\n"
    )
    (place / "two.md").write_text("## Swimming\n\nNobody swims here.\n")
    return place


def fill(page, label, text):
    box = page.get_by_label(label, exact=True).last
    box.fill(text)
    box.press("Enter")
    settle(page)


def click_row(page, name, row):
    """Tick a row of the table with that name."""
    tick_row(page.get_by_test_id("stDataFrame").filter(has=page.get_by_role("region", name=name)).last, row)


def begin(page, address):
    """Two clicks: the selector of the project, and its last choice."""
    page.goto(address)
    page.get_by_role("combobox", name="Project").click()
    page.get_by_role("option", name="New project…").click()
    page.get_by_text("A new project: where do its chunks come from?").wait_for()


def test_a_project_is_made_of_a_folder_its_chunks_are_read_and_its_source_is_deleted(page, app, folder):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    begin(page, app)
    fill(page, "or a folder or file on this machine", str(folder))
    page.get_by_role("button", name="Ingest").click()
    expect(page.get_by_text("Chunks in the collection: 3")).to_be_visible()
    expect(page.get_by_role("link", name="Add questions").first).to_be_visible()
    expect(page).to_have_url(re.compile(f"project={folder.name}"))

    expect(page.get_by_text(re.compile("1–3 of 3 chunks"))).to_be_visible()
    click_row(page, re.compile("chunks with title"), 0)
    expect(page.locator(".inert .box")).to_contain_text("A climb costs two moves.")
    fill(page, "Holds", "SWIMS")
    expect(page.get_by_text(re.compile("1–1 of 1 chunks"))).to_be_visible()
    click_row(page, re.compile("chunks with title"), 0)
    expect(page.locator(".inert .box mark")).to_have_text("swims")
    assert not [url for url in asked if "foreign.invalid" in url]

    page.get_by_role("radio", name="Documents", exact=True).or_(
        page.get_by_role("button", name="Documents", exact=True)
    ).first.click()
    page.get_by_role("button", name="Delete these chunks").click()
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    fill(page, f"Type {folder.name} to confirm", folder.name)
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("This project has no source yet.")).to_be_visible()


@pytest.mark.slow
def test_a_project_that_is_not_made_after_all_leaves_the_one_before(page, app):
    begin(page, app)
    page.get_by_role("combobox", name="Project").click()
    page.get_by_role("option", name="The demo rulebook").click()
    expect(page.get_by_test_id("stMetric").filter(has_text="694")).to_be_visible()
    begin(page, app)
    page.get_by_role("link", name="Label").click()
    expect(page.get_by_role("combobox", name="Project")).to_have_value("The demo rulebook")
