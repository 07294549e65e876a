"""The Bench as a person uses it: first sight, a knob let go, a label and a reload, a question of one's own, a narrow
window; figures on the screen are those that a link restores elsewhere.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.hands import at_rest, settle, until

ROW = ".bench .row"
QUESTION = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"


def open_bench(page, app, address="/"):
    page.goto(app + address)
    page.locator(ROW).first.wait_for()
    settle(page)


def figures(page, line="one"):
    return page.locator(f".line.{line} .figure").all_inner_texts()


def test_the_first_sight_is_fifteen_to_two_and_why(page, app):
    open_bench(page, app)
    expect(page.get_by_text("0.067 → 0.500")).to_be_visible()
    assert figures(page)[0] == ".500"
    assert figures(page)[-1] == "2"
    expect(page.get_by_text(re.compile("no word of: armor class")).first).to_be_visible()
    box = at_rest(page.locator(ROW).nth(5))
    assert box["y"] + box["height"] <= page.viewport_size["height"]
    page.get_by_role("button", name="Play with it").click()
    expect(page.get_by_text("0.067 → 0.500")).to_have_count(0)


def test_a_knob_by_keys_moves_the_figures_and_a_reload_keeps_them(page, app):
    open_bench(page, app, "/?project=recorded-combat&q=combat-1&a=adaptive-default&b=unfiltered")
    before = figures(page)
    page.locator("input[data-setting=max_results]").focus()
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    until(page, lambda: figures(page) != before)
    page.wait_for_url(re.compile("a=~"))
    settle(page)
    after = figures(page)
    page.reload()
    page.locator(ROW).first.wait_for()
    settle(page)
    assert figures(page) == after


def test_a_number_let_go_again_costs_few_messages(page, app):
    frames = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    open_bench(page, app, "/?project=recorded-combat&q=combat-1&a=adaptive-default&b=unfiltered")
    page.locator("input[data-setting=max_results]").press("Home")
    page.wait_for_url(re.compile("a=~"))
    expect(page.get_by_role("combobox", name="A", exact=True)).to_have_value("own settings")  # said above, once
    settle(page)
    frames.clear()
    loaded = []
    page.on("request", lambda request: loaded.append(request.url))
    before, link = figures(page), page.url
    page.locator("input[data-setting=max_results]").press("End")  # one press: on a busy machine several are several
    until(page, lambda: figures(page) != before and page.url != link)
    settle(page)
    assert 1 <= len(frames) <= 8
    # a script of the component that Streamlit loads by its address comes into the page again with every answer
    assert not page.locator("script[src*=bench]").count()
    assert not [url for url in loaded if url.endswith(".js")]


def test_a_label_in_the_row_moves_the_figures_and_stays(page, app, own_lists):
    open_bench(page, app, f"/?project={own_lists}&q=combat-1&a=query-must&b=unfiltered")
    before = figures(page)
    kept = page.locator(ROW).filter(has=page.get_by_text("kept", exact=True))
    other = next(row for row in kept.all() if row.locator(".grade[aria-pressed=true]").inner_text() == "0")
    other.locator(".grade", has_text="2").click()
    until(page, lambda: figures(page) != before)
    settle(page)
    after = figures(page)
    page.reload()
    page.locator(ROW).first.wait_for()
    settle(page)
    assert figures(page) == after


def test_a_question_of_ones_own_is_run_and_its_link_restores_it(page, app):
    open_bench(page, app)
    box = page.get_by_role("textbox", name="Ask a question of your own")
    box.fill(QUESTION)
    box.press("Enter")
    page.wait_for_url(re.compile("q=%3FWhat"))
    settle(page)
    seen = page.locator(f"{ROW}:visible")  # nodes that a longer list once needed are kept, unseen
    ids = [row.get_attribute("data-id") for row in seen.all()]
    page.goto(page.url)
    page.locator(ROW).first.wait_for()
    settle(page)
    assert [row.get_attribute("data-id") for row in seen.all()] == ids


def test_in_a_narrow_window_nothing_is_clipped(page, app):
    page.set_viewport_size({"width": 800, "height": 900})
    open_bench(page, app)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 800
    box = at_rest(page.locator(".bench"))
    assert box["x"] + box["width"] <= 801


@pytest.mark.slow  # tests/pages/test_bench_below.py follows such links
def test_a_link_of_the_first_version_shows_the_same_two_chunks(page, app):
    open_bench(page, app, '/explore?set=recorded-combat&query=combat-1&pipeline=["QueryMust"]')
    assert figures(page)[-1] == "2"
    assert "project=recorded-combat" in page.url


@pytest.mark.slow  # test_accessible.py looks at this page, tests/pages/test_bench_tuning.py has the ceilings
def test_the_ceilings_stand_below_the_losses_and_axe_finds_nothing_serious(page, app):
    from axe_playwright_python.sync_playwright import Axe

    page.goto(f"{app}/?project=rulebook&zoom=all&lens=losses&a=demo-tuned&b=auto")
    page.locator(".bench").wait_for()
    settle(page)
    tools = page.locator(".st-key-bench-tool")
    tools.get_by_role("radio", name="Losses").or_(tools.get_by_role("button", name="Losses")).click()
    expect(page.get_by_text("What is there to gain")).to_be_visible()
    curves = page.get_by_role("radio", name="Curves").or_(page.get_by_role("button", name="Curves"))
    curves.click()
    page.locator("[class*=st-key-take-curves-of-distance-figure] .js-plotly-plot").wait_for()
    settle(page)
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


def inside(page, locators):
    """How many of these stand in the window from edge to edge."""
    size = page.viewport_size
    boxes = [one.bounding_box() for one in locators]
    return sum(
        box is not None and box["x"] >= 0 and box["y"] >= 0
        and box["x"] + box["width"] <= size["width"] and box["y"] + box["height"] <= size["height"]
        for box in boxes
    )  # fmt: skip


def test_stages_both_lines_and_the_lists_are_in_the_window(page, app):
    open_bench(page, app, "/?project=rulebook&a=demo-tuned&b=fixed-15&c=adaptive-default")
    parts = [
        page.locator(".bench .stage"),
        page.locator(".bench .line"),
        page.locator(".st-key-bench-judge").first.get_by_role("button"),
    ]
    for part in parts:
        at_rest(part.first)
        assert inside(page, part.all()) == part.count() > 0
    assert inside(page, page.locator(ROW).all()) >= 6
    page.get_by_role("button", name="All", exact=True).click()
    page.locator(".bench .question").first.wait_for()
    settle(page)
    assert inside(page, page.locator(".bench .line").all()) == 2
    assert inside(page, page.locator(".bench .question").all()) >= 10
    # what the third pipeline makes worse is in the first view: its counts, and its changes among the questions
    assert re.search(r"▼\d", page.locator(".pipe-head").nth(2).inner_text())
    shown = page.locator(".bench .question .pipe:nth-of-type(4) .delta").all_inner_texts()
    assert len(shown) >= 10
    page.get_by_role("button", name="Measures").or_(page.get_by_role("radio", name="Measures")).first.click()
    table = page.get_by_test_id("stDataFrame").first
    box = at_rest(table)
    assert box["x"] + box["width"] <= 1440


FOCUS = """() => { let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node ? `${node.type ?? ''} ${node.dataset?.setting ?? ''}`.trim() : ''; }"""


def test_by_keys_alone_a_knob_questions_a_label_and_the_sides(page, own_app):
    open_bench(page, own_app, "/?project=rulebook&q=combat-1&a=demo-tuned&b=fixed-15")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUS) == "range max_results":
            break
    assert page.evaluate(FOCUS) == "range max_results"
    before = figures(page, "all")
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    until(page, lambda: figures(page, "all") != before)
    page.wait_for_url(re.compile("a=~"))
    page.keyboard.press("]")
    expect(page.locator(".line.one .line-note")).to_have_text(re.compile("^2 of"))
    page.keyboard.press("[")
    expect(page.locator(".line.one .line-note")).to_have_text(re.compile("^1 of"))
    settle(page)
    page.keyboard.press("j")
    row = page.locator(ROW).first.get_attribute("data-id")
    grade = page.locator(f"{ROW}[data-id='{row}'] .grade[aria-pressed=true]")
    other = "2" if grade.all_inner_texts() != ["2"] else "0"
    page.keyboard.press(other)
    expect(grade).to_have_text(other)
    a, b = page.locator(".side-head").all_inner_texts()
    page.keyboard.press("x")
    expect(page.locator(".side-head").last).to_contain_text(a.split()[1].rstrip(","))
    assert b.split()[1].rstrip(",") in page.locator(".side-head").first.inner_text()
    settle(page)
    page.reload()
    page.locator(ROW).first.wait_for()
    expect(grade).to_have_text(other)


@pytest.mark.slow  # tests/store: labels of several writers are ordered and none is lost
def test_two_windows_label_the_same_pair_and_the_later_press_counts(page, app, own_lists):
    address = f"/?project={own_lists}&q=combat-1&a=query-must&b=unfiltered"
    open_bench(page, app, address)
    other = page.context.new_page()
    open_bench(other, app, address)
    row = page.locator(ROW).first.get_attribute("data-id")
    grade = f"{ROW}[data-id='{row}'] .grade[aria-pressed=true]"
    for window, key in ((page, "3"), (other, "1"), (page, "2"), (other, "1")):
        window.locator(f"{ROW}[data-id='{row}']").focus()
        window.keyboard.press(key)
        expect(window.locator(grade)).to_have_text(key)
        expect(window.locator(".bench.waiting")).to_have_count(0)
    for window in (page, other):
        window.reload()
        window.locator(ROW).first.wait_for()
        expect(window.locator(grade)).to_have_text("1")
        assert window.get_by_test_id("stException").count() == 0
    other.close()
