"""Corpus in Chromium: bring in a folder of two files, watch it, read its chunks; foreign text stays text."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.hands import settle, tick_row

HOSTILE = "![x](http://foreign.invalid/a.png) <img src=http://foreign.invalid/b.png>"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "documents"
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


def test_a_folder_of_two_files_is_ingested_and_its_chunks_are_read(page, own_app, folder):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(own_app + "/corpus")
    page.get_by_text("There is no collection yet.").wait_for()

    fill(page, "Collection", "mine")
    fill(page, "Folder or file on this machine", str(folder))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Chunks: 3, documents: 2")).to_be_visible()
    page.get_by_role("button", name="Ingest").click()
    expect(page.get_by_text("Chunks in the collection: 3")).to_be_visible()
    expect(page.get_by_text("3 embedded")).to_be_visible()

    expect(page.get_by_text(re.compile("1–3 of 3 chunks"))).to_be_visible()
    click_row(page, re.compile("chunks with title"), 0)
    expect(page.locator(".inert .box")).to_contain_text("A climb costs two moves.")
    fill(page, "Holds", "SWIMS")
    expect(page.get_by_text(re.compile("1–1 of 1 chunks"))).to_be_visible()
    click_row(page, re.compile("chunks with title"), 0)
    expect(page.locator(".inert .box mark")).to_have_text("swims")
    assert not [url for url in asked if "foreign.invalid" in url]


def test_a_collection_is_deleted_after_its_name_was_typed(page, own_app, folder):
    page.goto(own_app + "/corpus")
    page.get_by_text("There is no collection yet.").wait_for()
    fill(page, "Collection", "mine")
    fill(page, "Folder or file on this machine", str(folder / "two.md"))
    page.get_by_role("button", name="Ingest").click()
    expect(page.get_by_text("Chunks in the collection: 1")).to_be_visible()
    page.get_by_role("radio", name="Numbers").or_(page.get_by_role("button", name="Numbers")).first.click()
    page.get_by_role("button", name="Delete this collection").click()
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    fill(page, "Type its name to confirm", "mine")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("There is no collection yet.")).to_be_visible()
