"""Twelve hostile texts on every place that shows foreign text: no foreign request, no script, no dialog, no live markup.

A place is a line of PLACES: its name and what a person does there. A new page is added with one function and one line.
"""

import re

import pytest

from tests.browser.conftest import a_page, a_window, start_app
from tests.browser.hands import settle, shown, tick_row, until
from tests.browser.hostile import LIVE, RECORDED, SAVED, Watch, World, beacon, build

ROW = ".bench .row"
CARD = ".label-queue .card"
FILTERS = '["QueryMust","AdaptiveGap"]'


@pytest.fixture(scope="module")
def world(serve, tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    workspace = place / "workspace"
    with beacon() as called:
        texts = build(workspace, place, called.url)
        with serve(workspace) as url:
            yield World(url, called, workspace, place, texts)


def open_place(page, address, sign):
    page.goto(address)
    page.locator(sign).first.wait_for()
    settle(page)


def view(page, name):
    page.get_by_role("radio", name=name, exact=True).or_(
        page.get_by_role("button", name=name, exact=True)
    ).first.click()
    settle(page)


def open_list(page, label):
    """Open a pick list, so that its options are drawn, and close it."""
    page.get_by_role("combobox", name=re.compile(label)).first.click()
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Escape")


def click_row(page, row=0, table=None):
    """Tick a row of a table, the last if none is given."""
    tick_row(table or page.get_by_test_id("stDataFrame").last, row)


def fill(page, label, text):
    box = page.get_by_label(label, exact=True).last
    box.fill(text)
    box.press("Enter")
    settle(page)


def bench_chunks(page, world, numbers=(0, 5, 11)):
    open_place(page, world.link("", project=RECORDED, pipeline=FILTERS), ROW)
    for number in numbers:
        page.locator(ROW).nth(number).click()
        settle(page)
        yield
    page.get_by_text("Metadata", exact=True).click()
    yield
    for name in ("Context", "Trace", "Table", "Share"):
        view(page, name)
        yield
    page.locator(".js-plotly-plot .nsewdrag").first.hover() if page.locator(".js-plotly-plot").count() else None
    view(page, "Why not this chunk?")
    fill(page, "Why not this chunk?", world.texts[0][:300])
    yield


def bench_all(page, world):
    open_place(page, world.link("", project=RECORDED, zoom="all", lens="differences"), ".bench .question")
    yield
    open_list(page, "Project")
    page.get_by_role("combobox", name=re.compile("^A")).first.click()
    page.get_by_role("option", name=SAVED).first.click()
    settle(page)
    yield
    for name in ("Measures", "Tags", "Questions", "Losses"):
        view(page, name)
        for chart in page.locator(".js-plotly-plot .nsewdrag:visible").all()[:1]:
            chart.hover(force=True)
        yield


def bench_live(page, world):
    open_place(page, world.link("", set=LIVE, question=world.texts[0], pipeline='["Dense","Requery"]'), ROW)
    yield
    page.locator(ROW).first.click()
    settle(page)
    yield


def bench_problems(page, world):
    for wrong in ({"set": world.texts[0]}, {"pipeline": world.texts[2]}, {"a": world.texts[1]}):
        page.goto(world.link("", **wrong))
        page.get_by_text(re.compile("could not be followed|cannot be opened")).first.wait_for()
        settle(page)
        yield


def label_queue(page, world):
    address = world.link("labels", project=RECORDED, annotator=world.texts[0][:80])
    open_place(page, address, ".st-key-head")
    page.get_by_role("button", name="Settings").click()
    view(page, "not by me")
    page.locator(CARD).wait_for()
    page.get_by_text("Show distance, place and pipeline").click()
    page.keyboard.press("Escape")
    page.get_by_text("Guidelines", exact=True).click()
    settle(page)
    for number in range(14):
        page.get_by_label("text as it stands").set_checked(number % 2 == 1)
        page.locator(".label-queue .query").click()
        yield
        before = shown(page)
        page.keyboard.press("2" if number else "s")
        until(page, lambda before=before: shown(page) != before)
    page.keyboard.press("b")
    yield


def label_agreement(page, world):
    open_place(page, world.link("labels", project=RECORDED, annotator="x"), ".st-key-head")
    view(page, "Agreement")
    page.get_by_text("chunks are labelled differently").wait_for()
    settle(page)
    for row in range(8):
        click_row(page, row)
        yield
    page.get_by_text("History", exact=True).click()
    yield


def label_audit(page, world):
    open_place(page, world.link("labels", project=RECORDED, annotator="x"), ".st-key-head")
    view(page, "Audit")
    for row in range(8):
        click_row(page, row)
        yield
    view(page, "blind sample")
    click_row(page)
    yield


def label_exchange(page, world):
    open_place(page, world.link("labels", project=RECORDED, annotator="x"), ".st-key-head")
    view(page, "Import and export")
    for name in ("labels.jsonl", "wrong.qrels"):
        page.locator("input[type=file]").last.set_input_files(world.folder / name)
        page.get_by_text(re.compile("conflicting|cannot be brought in")).first.wait_for()
        settle(page)
        yield


def families(page, world):
    open_place(page, world.link("data", project=LIVE, section="Families"), "[data-testid=stMetric]")
    open_list(page, "Rules from")
    yield
    apply = page.get_by_role("button", name=re.compile("^Apply \\d+ rules"))
    if apply.count():
        apply.click()
        settle(page)
        yield
    view(page, "Rules")
    yield
    view(page, "Lint")
    for row in range(3):
        click_row(page, row)
        yield
    view(page, "Edit one")
    open_list(page, "Chunk")
    yield
    for text in world.texts[:4]:
        fill(page, "Try a question", text[:300])
        yield


def bench_tuning(page, world):
    open_place(page, world.link("", project=RECORDED, zoom="all", pipeline='["AdaptiveGap"]'), ".bench .question")
    tools = page.locator(".st-key-bench-tool")  # the lens above has a button of that name too
    tools.get_by_role("radio", name="Losses").or_(tools.get_by_role("button", name="Losses")).first.click()
    yield
    for name in ("By distance", "Curves", "Bands", "By question"):
        view(page, name)
        yield
    points = page.locator("[class*=st-key-take-ceilings-by-question-figure] .points path")
    points.first.wait_for(state="attached")
    for point in points.all()[:12]:
        point.hover(force=True)
        yield
    view(page, "Plane")
    yield


def entities(page, world):
    in_drawer(page, world, '["EntityFilter"]', "Structure, aliases and labels")
    page.get_by_role("button", name=re.compile("Open a file")).click()
    page.locator("input[type=file]").first.set_input_files(world.folder / "structure.json")
    settle(page)
    fill(page, "Query", " ".join(world.texts)[:9000])
    yield
    open_list(page, "stands for")
    yield
    page.keyboard.press("Escape")
    fill(page, "New alias", world.texts[0][:200])
    yield
    doubtful = page.get_by_text(re.compile("doubtful name"))
    if doubtful.count():
        doubtful.click()
        yield


def data_chunks(page, world):
    open_place(page, world.link("data", project=LIVE), "[data-testid=stDataFrame]")
    open_list(page, "Type")
    yield
    chunks = page.get_by_test_id("stDataFrame").filter(
        has=page.get_by_role("region", name=re.compile("chunks with title"))
    )
    for row in range(6):
        click_row(page, row, chunks.last)
        page.get_by_text("Metadata", exact=True).wait_for()
        yield
    page.get_by_text("Metadata", exact=True).click()
    fill(page, "Holds", world.texts[0][:200])
    yield
    for section in ("Numbers", "Documents"):
        view(page, section)
        yield


def data_new(page, world):
    open_place(page, world.link("data", new="1"), "[data-testid=stFileUploader]")
    fill(page, "or a folder or file on this machine", str(world.folder / "wrong"))
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("cannot be taken as it is").wait_for()
    yield
    fill(page, "or a folder or file on this machine", str(world.folder / "documents"))
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("nothing is written yet").wait_for()
    settle(page)
    yield
    for box in page.get_by_text(re.compile("Warnings|Files passed over")).all():
        box.click()
    yield
    page.get_by_role("button", name="Ingest").click()
    page.get_by_text("Chunks in the collection").wait_for()
    settle(page)
    yield


def questions(page, world):
    open_place(page, world.link("questions", project=RECORDED), "[data-testid=stDataFrame]")
    yield
    for name in ("Change", "Held out", "Guidelines", "Copy"):
        view(page, name)
        yield
    click_row(page, 0, page.get_by_test_id("stDataFrame").first)
    yield


def history(page, world):
    open_place(page, world.link("", project=LIVE), ROW)
    fill(page, "Ask a question of your own", world.texts[0])
    page.locator(ROW).first.wait_for()
    open_place(page, world.link("settings", view="history"), "[data-testid=stDataFrame]")
    click_row(page)
    page.get_by_text("What came of it").wait_for()
    yield
    page.get_by_role("button", name="Make a project of them").click()
    fill(page, "Holds", world.texts[0])
    yield


def ship(page, world):
    open_place(page, world.link("ship", project=RECORDED), "[data-testid=stDataFrame]")
    fill(page, "Name of the run", world.texts[0][:200])
    page.get_by_role("button", name="Keep a run of A").click()
    page.get_by_role("button", name="Gate A against this run").click()
    page.get_by_text(re.compile("inconclusive|pass|fail")).first.wait_for()
    yield
    fill(page, "Add a note", world.texts[0][:2000])
    yield


def in_drawer(page, world, pipeline, section):
    """The Bench with the drawer of the pipeline's only stage open, and the section that it opens below."""
    open_place(page, world.link("", project=RECORDED, pipeline=pipeline), ROW)
    page.locator(".bench .stage .drawer").last.click()
    page.get_by_text(section, exact=True).click()
    settle(page)


def judge(page, world):
    in_drawer(page, world, '[{"LLMFilter":{"min_relevance_threshold":-1}}]', "Judges on trial")
    yield
    page.get_by_label("Decides wrongly, %").fill("60")  # so that relevant chunks are thrown away and listed
    page.keyboard.press("Enter")
    page.get_by_text("thrown away").wait_for()
    yield


def status(page, world):
    open_place(page, world.link("settings"), "[data-testid=stDataFrame]")
    yield


PLACES = {
    "Bench: one question": bench_chunks,
    "Bench: every chunk": lambda page, world: bench_chunks(page, world, range(len(world.texts))),
    "Bench: all questions": bench_all,
    "Bench: a question of one's own": bench_live,
    "Bench: links that are wrong": bench_problems,
    "Labels: queue": label_queue,
    "Labels: agreement": label_agreement,
    "Labels: audit": label_audit,
    "Labels: import and export": label_exchange,
    "Data: families and rules": families,
    "Bench: ceilings, plane, search": bench_tuning,
    "Bench: entities": entities,
    "Data: chunks, numbers, documents": data_chunks,
    "Data: a new project": data_new,
    "Questions": questions,
    "History": history,
    "Ship": ship,
    "Bench: a judge": judge,
    "Settings": status,
}


QUICK = {"Bench: one question", "Labels: queue"}
"""The places that every `make test` opens, where most people are; the others are slow."""


@pytest.fixture(scope="module")
def watched_window(browser, world):
    with a_window(browser, bypass_csp=True) as window:  # what the texts become without the server's policy as well
        yield window, Watch(window, world)


@pytest.fixture
def watched(watched_window):
    """(page, watch) of a page of its own, in a window whose watch has forgotten the page before."""
    window, watch = watched_window
    watch.forget()
    with a_page(window) as page:
        yield page, watch


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "place", [place if place in QUICK else pytest.param(place, marks=pytest.mark.slow) for place in PLACES]
)
def test_hostile_text_stays_text(watched, world, place):
    page, watch = watched
    alive = []
    for _ in PLACES[place](page, world):
        alive += [one for one in watch.alive(page) if one not in alive]
    settle(page)
    assert alive == []
    assert watch.told == {"beacon": [], "foreign": [], "scripts": [], "dialogs": []}


def test_the_watch_sees_what_raw_html_does(browser, world):
    context = browser.new_context(bypass_csp=True)  # the server's own policy would stop what the watch has to see
    watch, page = Watch(context, world), context.new_page()
    page.goto(world.url)
    page.evaluate(
        """(html) => {
          document.body.innerHTML = html;
          const script = document.createElement("script");
          script.textContent = "alert(9)";
          document.body.append(script);
        }""",
        "".join(world.texts),
    )
    until(page, lambda: all(watch.told.values()))
    context.close()


NAIVE = """
import sys
from pathlib import Path

import streamlit as st

for text in Path(sys.argv[1]).read_text().split("\\x1e"):
    st.markdown(text)
"""


@pytest.mark.slow
def test_the_watch_sees_what_markdown_makes_of_the_texts(watched, world, tmp_path):
    page, watch = watched
    (tmp_path / "texts").write_text("\x1e".join(world.texts))
    (tmp_path / "naive.py").write_text(NAIVE)
    with open(tmp_path / "log", "wb") as log:
        process, url = start_app(tmp_path, log, str(tmp_path / "naive.py"), "--", str(tmp_path / "texts"))
        try:
            page.goto(url)
            page.locator(".katex").first.wait_for()
            settle(page)
            alive = " ".join(watch.alive(page))
        finally:
            process.terminate()
            process.wait(timeout=60)
    assert {kind for kind in ("img", "icon:", "formula:", "a:") if kind not in alive} == set()
    assert watch.told["beacon"]
