"""A stranger's whole job on data of their own, from an empty project to a filter that runs on bare Python.

Thirty Markdown sections with two families of near-duplicates and twelve questions in CSV, all written here. Clicks are
counted, label keys apart; no screen on the way shows text of another project.
"""

import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

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
        self.page, self.clicks = page, 0

    def click(self, locator):
        self.clicks += 1
        locator.click()
        self.look()

    def look(self):
        settle(self.page)
        main = self.page.get_by_test_id("stMain").inner_text()
        assert not FOREIGN.search(main), FOREIGN.search(main)[0]

    def button(self, name):
        return self.page.get_by_role("button", name=name).first

    def link(self, name):
        return self.page.get_by_test_id("stMain").get_by_role("link", name=name).first


@pytest.mark.slow
def test_a_stranger_takes_a_filter_home(page, tmp_path, own_app):
    workspace, url = tmp_path / "workspace", own_app
    write_data(tmp_path / "espresso")
    hands = Hands(page)
    page.goto(url)
    settle(page)

    # New project, its documents, ingest.
    hands.clicks += 2  # the list of projects, and "New project…" in it
    page.locator(".st-key-rail [role=combobox]").first.click()
    page.get_by_role("option", name="New project…").click()
    hands.look()
    page.get_by_label("or a folder or file on this machine").fill(str(tmp_path / "espresso" / "manual.md"))
    page.keyboard.press("Tab")
    settle(page)
    hands.click(hands.button("Ingest"))
    expect(page.get_by_text("30 chunks").first).to_be_visible()

    # Questions.
    hands.click(hands.link(re.compile("question", re.IGNORECASE)))
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(
        str(tmp_path / "espresso" / "questions.csv")
    )
    settle(page)
    hands.click(hands.button("Add questions"))
    expect(page.get_by_text("12").first).to_be_visible()

    # Labels by key.
    hands.click(page.get_by_role("link", name=re.compile("^Label|Labels")).first)
    labelled = label_by_key(page, 60)
    assert labelled == 60
    hands.look()

    # Rules from slots, applied.
    hands.click(page.get_by_role("link", name=re.compile("^Data")).first)
    hands.click(page.get_by_role("radio", name="Families").or_(hands.button("Families")).first)
    session = Session(open_project(project_of(page), workspace))
    for _ in range(2):
        apply = page.get_by_role("button", name=re.compile(r"^Apply \d+ rules"))
        if apply.count():
            hands.click(apply.first)
    ruled = [chunk for chunk in session.source.chunks if chunk.query_must is not None]
    assert len(ruled) >= 7, "rules of a family from its slots"

    # The cut, tuned on dev; A against its fair rival; home.
    hands.click(page.get_by_role("link", name=re.compile("^Bench")).first)
    expect(page.get_by_test_id("bench")).to_be_visible()
    hands.click(hands.button("Add a cut"))
    hands.click(hands.button("Find the best on dev"))
    take = page.get_by_role("button", name=re.compile("^Take"))
    expect(take.first).to_be_visible()
    hands.click(take.first)
    hands.click(page.get_by_role("link", name=re.compile("^Ship")).first)
    with page.expect_download() as download:
        hands.clicks += 1
        page.get_by_test_id("stDownloadButton").get_by_role("button").first.click()
    exported = tmp_path / "filter.py"
    download.value.save_as(exported)
    runs_alone(exported, session, page)
    assert hands.clicks <= 15, hands.clicks


def project_of(page):
    """The project in the address."""
    return re.search(r"[?&]project=([^&]+)", page.url)[1]


def label_by_key(page, count):
    """Grade so many chunks of the queue by key, as they are shown."""
    queue = page.locator(".label-queue")
    expect(queue.locator(".card")).to_be_visible()
    queue.locator(".card").focus()
    for done in range(count):
        before = shown(page)
        if not before:
            return done
        text = queue.locator(".card").inner_text().strip()
        page.keyboard.press(str(answers(queue.locator(".query").inner_text(), text.splitlines()[0].lstrip("# "))))
        page.wait_for_function(f"(before) => ({IN_QUEUE})() !== before", arg=before)
    return count


def runs_alone(exported, session, page):
    """The exported file on bare Python keeps what the workbench keeps, for every question."""
    from pages import state

    entry = re.search(r"[?&]a=([^&]+)", page.url)[1]
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
