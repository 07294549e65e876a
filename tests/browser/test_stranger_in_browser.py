"""A stranger's whole job on data of their own, from an empty project to a filter that runs on bare Python.

Thirty Markdown sections with two families of near-duplicates and twelve questions in CSV, all written here. Clicks are
counted, label keys apart; no screen on the way shows text of another project.
"""

import json
import re
import subprocess
import sys
import time

import pytest
from playwright.sync_api import expect

from pages import state
from pages.rail import PLACES
from rag_core.project.project import open_project
from rag_core.project.session import Session
from tests.browser.hands import IN_QUEUE, settle, shown

MODELS = (10, 20, 30, 40, 50, 60, 70)
GRAMS = {model: 6 + model // 5 for model in MODELS}
BOILERS = {model: f"{1 + model // 20} liters" for model in MODELS}
OTHERS = {
    "Descaling": "Run the descaling program every two months with citric acid, then rinse twice.",
    "Grinder burrs": "Replace the burrs after four hundred kilograms of beans.",
    "Milk wand": "Purge the wand before and after frothing; wipe it with a damp cloth.",
    "Water hardness": "Use water below eight degrees; harder water needs the cartridge.",
    "Filter cartridge": "Change the cartridge after sixty liters or when the lamp blinks.",
    "Portafilter": "Lock the portafilter firmly; a loose one leaks at nine bar.",
    "Backflushing": "Backflush with the blind basket once a week.",
    "Warranty": "The warranty is two years; opening the case ends it.",
    "Error 12": "Error 12 means that the pump runs dry: fill the tank and vent.",
    "Error 31": "Error 31 means that the thermostat is open: let it cool for an hour.",
    "Cup warmer": "The tray on top is warm after twenty minutes.",
    "Noise": "A rattling noise comes from a loose drip tray.",
    "Storage": "Empty all water before storing the machine in the cold.",
    "Cleaning the group": "Brush the group head after each session.",
    "Steam pressure": "Turn the dial left to lower the steam pressure.",
    "Recycling": "Return old machines to the shop where they were bought.",
}
QUESTIONS = (
    [f"How many grams of coffee does the model E{model} need?" for model in MODELS[:5]]
    + [f"How large is the boiler of the model E{model}?" for model in MODELS[2:6]]
    + ["What does error 12 mean?", "How often do I descale?", "When is the filter cartridge changed?"]
)
LABELS = 60
FOREIGN = re.compile(r"cleric|armor class|rulebook|skirmish|psionic", re.IGNORECASE)


def write_data(folder):
    """The manual and the questions as a stranger has them."""
    sections = [
        f"## Coffee dose of the model E{m}\n\nUse {GRAMS[m]} grams of ground coffee for a double." for m in MODELS
    ]
    sections += [f"## Boiler of the model E{m}\n\nThe boiler holds {BOILERS[m]} of water." for m in MODELS]
    sections += [f"## {title}\n\n{text}" for title, text in OTHERS.items()]
    assert len(sections) == 30
    folder.mkdir()
    (folder / "manual.md").write_text("# Espresso manual\n\n" + "\n\n".join(sections) + "\n")
    rows = "".join(f'c{at},"{text}"\n' for at, text in enumerate(QUESTIONS))
    (folder / "questions.csv").write_text("id,question\n" + rows)


def answers(question, title):
    """How the stranger grades: the section that the question is about answers it."""
    found = re.search(r"E\d+", question)
    if found:
        kind = "Coffee dose" if "grams" in question else "Boiler"
        return 3 if title.startswith(kind) and title.split()[-1] == found[0] else 0
    words = {"error 12": "Error 12", "descale": "Descaling", "cartridge": "Filter cartridge"}
    return 3 if any(key in question and title == wanted for key, wanted in words.items()) else 0


class Hands:
    """One person's hands: every press is counted, and every screen is looked at for text of another project."""

    def __init__(self, page):
        self.page, self.clicks, self.began, self.elsewhere = page, 0, time.perf_counter(), 0.0

    def click(self, locator):
        self.clicks += 1
        locator.click()
        look(self.page)

    def button(self, name):
        return self.page.get_by_role("button", name=name).first

    def link(self, name):
        return self.page.get_by_role("link", name=name).first

    def every_place(self, window, url, query=""):
        """On each place: nothing of another project, and something to do next (a link onward or the button of the place)."""
        began = time.perf_counter()
        page, stuck = window.new_page(), []
        for place in PLACES:
            page.goto(f"{url}/{place.name}?project=espresso{query}")
            page.locator(".st-key-rail [role=combobox]").wait_for()
            look(page)
            onward = page.locator(
                "[data-testid=stPageLink] a:not(.st-key-rail a), button[kind^=primary]:not([disabled])"
            )
            stuck += [place.title] * (not onward.count())
        page.close()
        assert stuck == [], "says nothing to do next"
        self.elsewhere += time.perf_counter() - began


def look(page):
    """What stands on the screen is of this project alone."""
    settle(page)
    main = page.get_by_test_id("stMain").inner_text()
    assert not FOREIGN.search(main), FOREIGN.search(main)[0]
    assert "Traceback" not in main


@pytest.mark.slow
def test_a_stranger_takes_a_filter_home(page, window, tmp_path, own_app):
    workspace, url = tmp_path / "workspace", own_app
    write_data(tmp_path / "espresso")
    page.goto(url)
    page.locator(".bench .row").first.wait_for()
    settle(page)
    hands = Hands(page)

    # New project, its documents, ingest.
    hands.click(hands.button("Use my data"))
    page.get_by_label("or a folder or file on this machine").fill(str(tmp_path / "espresso" / "manual.md"))
    page.keyboard.press("Tab")
    settle(page)
    page.get_by_label("Name", exact=True).fill("espresso")
    page.keyboard.press("Tab")
    settle(page)
    hands.click(hands.button("Ingest"))
    expect(page.get_by_text("Chunks in the collection: 30")).to_be_visible()
    hands.every_place(window, url)

    # Questions.
    hands.click(hands.link("Add questions"))
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(tmp_path / "espresso" / "questions.csv")
    expect(page.get_by_text("12 new questions")).to_be_visible()
    hands.click(hands.button("Add questions"))
    expect(page.get_by_text("12 questions added")).to_be_visible()
    hands.every_place(window, url)

    # Labels by key.
    hands.click(hands.link(re.compile("^new_label Label: |Label: ")))
    seconds = label_by_key(page, LABELS)
    look(page)
    hands.every_place(window, url)

    # Rules from slots, all families in one press.
    hands.click(hands.link(re.compile("Data")))
    hands.click(hands.button("Families").or_(page.get_by_role("radio", name="Families")).first)
    hands.click(hands.button(re.compile(r"^Apply all that lose no answer")))
    expect(hands.button("Nothing to apply")).to_be_visible()
    session = Session(open_project("espresso", workspace))
    ruled = [chunk for chunk in session.source.chunks if chunk.query_must is not None]
    assert len(ruled) >= 2 * len(MODELS), "rules of both families from their slots"
    assert sum(len(case.grades) for case in session.cases) == LABELS
    hands.every_place(window, url)

    # The cut, tuned on dev; A against its fair rival; the verdict.
    hands.click(hands.link(re.compile("Bench")))
    page.locator(".bench .row").first.wait_for()
    hands.click(hands.button("Best cut"))
    hands.click(hands.button(re.compile("^Take ")))
    expect(page.locator(".line.all")).to_contain_text("dev questions")
    assert page.locator(".line.all .delta").count(), "A against B"
    hands.click(hands.button(re.compile("^Judge on")))
    expect(page.locator(".st-key-bench-said")).to_contain_text("held-out questions")
    hands.every_place(window, url, f"&a={entry_of(page)}")

    # Home.
    hands.click(hands.link(re.compile("Ship")))
    with page.expect_download() as download:
        hands.click(page.locator(".st-key-ship-take-python button").first)
    exported = tmp_path / "filter.py"
    download.value.save_as(exported)
    kept = runs_alone(exported, session, entry_of(page))
    print(
        f"\nclicks {hands.clicks}, labels {LABELS} ({seconds / LABELS:.3f} s a key), "
        f"{time.perf_counter() - hands.began - hands.elsewhere:.1f} s, kept {kept} chunks of 12 questions"
    )
    assert hands.clicks <= 15


def entry_of(page):
    """The pipeline A in the address."""
    return re.search(r"[?&]a=([^&]+)", page.url)[1]


def label_by_key(page, count):
    """Grade so many chunks of the queue by key, as they are shown; the seconds that took."""
    queue = page.locator(".label-queue")
    expect(queue.locator(".card")).to_be_visible()
    queue.locator(".card").focus()
    began = time.perf_counter()
    for _ in range(count):
        before = shown(page)
        assert before, "a pair to label"
        text = queue.locator(".card").inner_text().strip()
        page.keyboard.press(str(answers(queue.locator(".query").inner_text(), text.splitlines()[0].lstrip("# "))))
        page.wait_for_function(f"(before) => ({IN_QUEUE})() !== before", arg=before)
    seconds = time.perf_counter() - began
    expect(queue.get_by_text("0 unsaved", exact=True)).to_be_visible()
    return seconds


def runs_alone(exported, session, entry):
    """The exported file on bare Python keeps what the workbench keeps, for every question; how many that are."""
    pipeline = state.decode(entry, session) if entry.startswith("~") else session.pipeline(entry)
    asked = []
    for case in session.cases:
        captured = session.capture(pipeline, [case])[0]
        hits = [
            {"id": hit.chunk.id, "title": hit.chunk.title, "text": hit.chunk.text, "distance": hit.distance,
             "metadata": {"query_must": hit.chunk.query_must}, "query_must": hit.chunk.query_must}
            for hit in captured.candidates.hits
        ]  # fmt: skip
        kept = [hit.chunk.id for hit in session.run(pipeline, case).result.hits]
        asked.append({"query": case.query.text, "hits": hits, "kept": kept})
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import filter as f\n"
        "for one in json.load(open(sys.argv[2])):\n"
        "    kept = [hit['id'] for hit in f.filter_chunks(one['query'], one['hits'])]\n"
        "    assert kept == one['kept'], (one['query'], kept, one['kept'])\n"
        "print('same')\n"
    )
    listed = exported.with_name("asked.json")
    listed.write_text(json.dumps(asked))
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(exported.parent), str(listed)], capture_output=True, text=True
    )
    assert run.stdout.strip() == "same", run.stderr
    return sum(len(one["kept"]) for one in asked)
