"""Explore in Chromium: pick, switch, drag, label, reload; a file of one's own; keyboard; foreign text stays text."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.hands import at_rest, middle, settle

POINT = "g.point[data-id]"


def open_page(page, app, address=""):
    page.goto(app + address)
    page.locator(POINT).first.wait_for()
    settle(page)


def switch(page, name):
    page.locator("label", has_text=re.compile(f"^{name}$")).first.click()


def choose(page, label, option):
    page.get_by_role("combobox", name=re.compile(label)).click()
    page.get_by_role("option", name=re.compile(option)).click()


def metric(page, label):
    return page.get_by_test_id("stMetric").filter(has=page.get_by_text(label, exact=True))


def gap_pixel(page, value):
    """The height on the screen that stands for a gap, read off the axis of the gap panel."""
    panel = page.get_by_role("group", name="Gap to the next")
    low, high = panel.locator("text.tick", has_text="0.000"), panel.locator("text.tick", has_text="0.025")
    zero, step = (middle(tick)[1] for tick in (low, high))
    return zero + (step - zero) * value / 0.025


def drag_gap_threshold(page, value, release=True):
    settle(page)
    x, y = middle(page.locator("g.limit[data-limit=gap_threshold] .grip"))
    goal = gap_pixel(page, value)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, goal, steps=12)
    if release:
        page.mouse.up()


def test_filters_drag_label_and_reload(page, app):
    open_page(page, app)
    choose(page, "Query", "^combat-2")
    expect(page.get_by_text("Query (2 of 3)")).to_be_visible()
    choose(page, "Query", "^combat-1")
    expect(page.get_by_text("Query (1 of 3)")).to_be_visible()

    switch(page, "query_must")
    expect(page.locator(f"{POINT}.kept")).to_have_count(2)
    expect(page.locator(f"{POINT}.dropped")).to_have_count(13)
    for mark in page.locator(f"{POINT}.dropped").all():
        assert re.search(r"dropped by QueryMust, no word of: ", mark.get_attribute("aria-label"))
    expect(metric(page, "kept")).to_contain_text("2 of 15")
    expect(metric(page, "SetF")).to_contain_text("0.667")

    switch(page, "query_must")
    expect(page.locator(f"{POINT}.kept")).to_have_count(15)
    switch(page, "adaptive")
    expect(page.get_by_role("slider", name="gap threshold", exact=True).first).to_be_visible()
    expect(page.locator(f"{POINT}.kept")).to_have_count(15)

    page.locator("g.limit[data-limit=gap_threshold]").scroll_into_view_if_needed()
    drag_gap_threshold(page, 0.02, release=False)
    expect(page.get_by_role("status").filter(has_text="preview: keeps 3 of 15")).to_be_visible()
    assert "gap_threshold" not in page.url
    expect(metric(page, "kept")).to_contain_text("15 of 15")
    page.mouse.up()
    expect(metric(page, "kept")).to_contain_text("3 of 15")
    expect(page.locator("text.cut-text")).to_have_text("cut after rank 3: gap 0.0266 ≥ 0.0200")
    expect(page.get_by_role("status").filter(has_text="preview")).to_have_count(0)

    page.locator(f"{POINT}[data-id='combat-1-01']").click()
    page.get_by_role("button", name="1 related").click()
    expect(metric(page, "SetP")).to_contain_text("0.667")
    page.reload()
    page.locator(POINT).first.wait_for()
    expect(page.locator("text.cut-text")).to_have_text("cut after rank 3: gap 0.0266 ≥ 0.0200")
    expect(metric(page, "SetP")).to_contain_text("0.667")
    labelled = page.locator(f"{POINT}[data-id='combat-1-01']")
    assert "relevant (grade 1)" in labelled.get_attribute("aria-label")

    labelled.click()
    page.get_by_role("button", name="Undo").click()
    expect(metric(page, "SetP")).to_contain_text("0.333")


def test_a_dropped_file_shows_its_measures(page, app, tmp_path):
    distances = [0.10, 0.12, 0.31, 0.33]
    hits = [
        {"id": f"c{i}", "title": f"Chunk {i}", "distance": d, "relevant": int(i < 2)} for i, d in enumerate(distances)
    ]
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"id": "own-1", "query": "a question of mine", "candidates": hits}))
    open_page(page, app)
    switch(page, "adaptive")
    expect(page.get_by_role("slider", name="gap threshold", exact=True).first).to_be_visible()
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(".lead").filter(has_text="a question of mine")).to_be_visible()
    expect(page.locator(POINT)).to_have_count(4)
    expect(metric(page, "SetP")).to_contain_text("1.000")
    expect(metric(page, "SetP")).to_contain_text("was 0.500")
    expect(metric(page, "SetR")).to_contain_text("1.000")
    expect(metric(page, "kept")).to_contain_text("2 of 4")


def test_arrow_keys_move_a_focused_threshold_and_the_server_follows(page, app):
    open_page(page, app, '/?pipeline=[{"AdaptiveGap":{"gap_threshold":0.03}}]')
    limit = page.locator("g.limit[data-limit=gap_threshold]")
    limit.focus()
    page.keyboard.press("PageDown")
    expect(page.get_by_role("status").filter(has_text="preview: keeps 3 of 15")).to_be_visible()
    expect(metric(page, "kept")).to_contain_text("3 of 15")
    assert limit.get_attribute("aria-valuenow") == "0.02"
    assert page.evaluate("() => document.activeElement.shadowRoot?.activeElement?.dataset.limit") == "gap_threshold"


def test_arrow_keys_walk_along_the_chunks_and_enter_selects(page, app):
    open_page(page, app)
    page.locator(POINT).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip")).to_contain_text("rank 3")
    expect(page.locator(".tip")).to_contain_text("distance 0.7153")
    page.keyboard.press("Enter")
    expect(page.locator(".lead").filter(has_text="Opponent Armor 6")).to_be_visible()
    assert page.locator(f"{POINT}[data-id='combat-1-03']").get_attribute("aria-pressed") == "true"


def test_every_chunk_of_a_long_list_can_be_clicked(page, app, tmp_path):
    hits = [{"id": f"c{i}", "title": f"Entry {i}", "distance": 0.2 + 0.001 * i} for i in range(70)]
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps({"query": "a long list", "candidates": hits}))
    open_page(page, app)
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(POINT)).to_have_count(70)
    for i in (8, 35, 69):
        settle(page)  # a click while the chart is drawn anew goes nowhere
        page.locator(f"{POINT}[data-id=c{i}]").click()
        expect(page.locator(".lead").filter(has_text=re.compile(f"^Entry {i}$"))).to_be_visible()


def test_the_offset_limit_is_dragged_into_the_list(page, app):
    open_page(page, app, '/?pipeline=["AdaptiveGap"]')
    x, y = middle(page.locator("g.limit[data-limit=distance_offset] .grip"))
    goal = at_rest(page.locator(f"{POINT}[data-id='combat-1-05'] .marker"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, goal["y"] - 4, steps=12)
    page.mouse.up()
    expect(metric(page, "kept")).to_contain_text("5 of 15")
    expect(page.locator("text.cut-text")).to_contain_text("cut after rank 5: distance ≤ 0.7")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_stacks_the_panels_inside_it(page, app, scheme):
    page.set_viewport_size({"width": 800, "height": 900})
    page.emulate_media(color_scheme=scheme)
    open_page(page, app, '/?pipeline=["AdaptiveGap"]')
    first = at_rest(page.get_by_role("group", name="Distance by rank"))
    second = at_rest(page.get_by_role("group", name="Gap to the next"))
    assert second["y"] >= first["y"] + first["height"]
    assert max(first["x"] + first["width"], second["x"] + second["width"]) <= 800


BEACON = "http://beacon.invalid/x.png"
HOSTILE = (
    f"![x]({BEACON}) <img src={BEACON}> <script>alert(1)</script> [l]({BEACON}) :material/home: {BEACON}",
    f"<svg onload=alert(1)><image href='{BEACON}'/></svg> $\\href{{{BEACON}}}{{x}}$ <b>bold</b>",
)


def hostile_file(folder):
    def chunk(i):
        text = HOSTILE[i % 2]
        return {
            "id": f"{i} {text}", "title": text, "text": f"{text}\nmore words", "type": text, "distance": 0.1 * (i + 1),
            "relevant": i % 2, "query_must": {"contain": text}, "note": text, "ref_ids": [text],
        }  # fmt: skip

    records = [
        {"id": f"{n} {HOSTILE[n]}", "query": f"{HOSTILE[n]} words", "candidates": [chunk(i) for i in range(4)]}
        for n in range(2)
    ]
    file = folder / f"![x]({BEACON.replace('/', ':')}).jsonl"
    file.write_text("\n".join(json.dumps(record) for record in records))
    return file


@pytest.mark.slow  # test_hostile_text_in_browser.py shows twelve texts in more places
def test_foreign_text_stays_text_in_every_view(page, app, tmp_path):
    foreign, dialogs = [], []
    page.on(
        "request",
        lambda request: foreign.append(request.url) if not request.url.startswith((app, "data:", "blob:")) else None,
    )
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    open_page(page, app, '/?pipeline=["QueryMust","AdaptiveGap"]')
    page.locator("input[type=file]").set_input_files(hostile_file(tmp_path))
    expect(page.locator(POINT)).to_have_count(4)
    page.locator(POINT).nth(3).hover()
    page.locator(POINT).nth(3).click()
    expect(page.get_by_text("Is it relevant to this query?")).to_be_visible()
    page.get_by_text("Metadata", exact=True).click()
    page.get_by_role("combobox", name=re.compile("Query")).click()
    expect(page.get_by_role("option")).to_have_count(2)
    page.keyboard.press("Escape")
    for view in ("Context", "All queries", "Chunks"):
        page.get_by_role("radio", name=view).click()
        settle(page)
    page.goto(f"{app}/?set={HOSTILE[0]}&query={HOSTILE[1]}".replace("#", ""))
    expect(page.get_by_text("This eval set cannot be shown.")).to_be_visible()
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps({"id": HOSTILE[0], "query": HOSTILE[0], "metric": HOSTILE[0], "candidates": []}))
    page.locator("input[type=file]").set_input_files(broken)
    expect(page.get_by_text("This file cannot be opened; nothing was changed.")).to_be_visible()
    assert foreign == []
    assert dialogs == []
