"""History in Chromium: foreign words stay text, a ticked question opens on the Bench, and deleted ones are gone."""

import re

import pytest
from playwright.sync_api import expect

from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest
from rag_core.store.database import open_store
from rag_core.store.history import History, HistoryEntry
from tests.browser.hands import tick_row

HOSTILE = "![x](http://foreign.invalid/a.png) <img src=http://foreign.invalid/b.png>"


@pytest.fixture
def asked(own_app, tmp_path):
    """Two questions to a collection of the app's workspace."""
    workspace = tmp_path / "workspace"
    (tmp_path / "hats.md").write_text("## Bowler\nA hard round hat.\n\n## Beret\nA soft flat cap.\n")
    ingest([tmp_path / "hats.md"], "wear", workspace, BundledEmbedder())
    with open_store(workspace) as store:
        for query in ("a soft cap", HOSTILE):
            kept = {"kept": [{"id": HOSTILE, "title": HOSTILE, "distance": 0.5}], "dropped": {"TopK": 1}}
            History(store).append(HistoryEntry(query, "wear", [{"Dense": {"depth": 15}}, {"TopK": {"k": 1}}], kept))
    return own_app


@pytest.mark.slow  # tests/pages/test_settings_history.py lists, opens and deletes without a browser
def test_foreign_words_stay_text_a_question_opens_again_and_deleted_ones_are_gone(page, asked, tmp_path):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(asked + "/history")
    expect(page.get_by_text("Questions: 2.")).to_be_visible()
    assert "/settings?view=history" in page.url  # an old address leads to where it is now
    table = page.get_by_test_id("stDataFrame").first
    tick_row(table, 0)
    expect(page.get_by_text("Kept: 1")).to_be_visible()
    tick_row(table, 0)
    tick_row(table, 1)
    page.get_by_role("link", name="Open on the Bench").click()
    expect(page.get_by_text("a soft cap").first).to_be_attached()  # a cell of the table, drawn on a canvas
    page.wait_for_url(re.compile(re.escape(asked) + r"/\?.*project=wear"))
    assert not [url for url in requests if "foreign.invalid" in url]
    page.goto(asked + "/settings?view=history")
    page.get_by_role("button", name="Delete the whole history").click()
    page.get_by_role("button", name="Delete everything").click()
    expect(page.get_by_text("No question is kept yet.")).to_be_visible()
    files = (tmp_path / "workspace").glob("winnow.db*")
    assert not any(b"a soft cap" in path.read_bytes() for path in files)
