"""The report in Chromium without any network: it asks for nothing, runs nothing, and shows what it holds."""

import json

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED

COMBAT = SHIPPED / "recorded-combat" / "lists.jsonl"
HOSTILE = '<img src="https://evil.example/x.png"><script>document.title = "run"</script>'


@pytest.fixture
def page_of(browser, tmp_path):
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.requests, page.errors = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))

    def open_report(lists):
        run, out = tmp_path / "run.json", tmp_path / "report.html"
        made = ["replay", str(lists), "--pipeline", "unfiltered", "--pipeline", "query-must", "--run-out", str(run)]
        assert main(made) == 0
        assert main(["report", str(run), "--out", str(out)]) == 0
        page.goto(out.as_uri())
        return page

    yield open_report
    context.close()


def test_it_opens_offline_and_asks_for_nothing_else(page_of):
    page = page_of(COMBAT)
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file:")
    assert page.errors == []
    assert page.locator("h2").first.inner_text() == "Means"
    assert page.locator("svg").count() >= 3
    page.locator("summary").nth(1).click()
    assert page.locator("details[open]").count() == 2


def test_hostile_chunks_and_questions_stay_text(page_of, tmp_path):
    lines = [json.loads(line) for line in COMBAT.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["query"] += HOSTILE
        line["candidates"][2]["title"] = HOSTILE
    changed = tmp_path / "lists.jsonl"
    changed.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    page = page_of(changed)
    assert len(page.requests) == 1
    assert page.title() != "run"
    assert HOSTILE in page.locator("summary").first.inner_text()


def test_a_narrow_window_scrolls_tables_not_the_page(page_of):
    page = page_of(COMBAT)
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
