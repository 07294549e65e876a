"""Questions through AppTest: paste with preview, tags, sides, guidelines, copy, reset, delete."""

import json
import re

import pytest
from werkzeug import Response

from pages import state
from pages.components import jobs
from pages.questions import more
from rag_core.eval_sets.reading import load_set
from rag_core.project.ledger import Look, look, looks
from rag_core.project.project import init_project, open_project
from rag_core.project.session import Session
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore
from rag_core.types import Query
from tests import small_rules
from tests.pages.walking import sane

QUESTIONS = [Query(f"a{n}", f"topic{n} thing{n} matter{n}?") for n in range(6)]


@pytest.fixture
def questions_page(open_app, workspace):
    def opened(name="mine", questions=QUESTIONS):
        if name == "mine":
            init_project(workspace, "mine", questions=questions)
        return sane(open_app("questions", project=name))

    return opened


def part(app, name):
    app.segmented_control(key="questions.part").set_value(name)
    return sane(app.run())


def press(app, key):
    app.button(key=key).click()
    return sane(app.run())


def texts(workspace, name="mine"):
    return [case.query.text for case in load_set(name, workspace).cases]


def test_a_project_without_questions_has_the_box_right_there(questions_page, workspace, words):
    app = questions_page(questions=())
    assert "No questions yet" in words(app)
    app.text_area(key="questions.text").set_value("How far?\nHow high?\nhow far?")
    app = sane(app.run())
    assert "3 new questions" in words(app)
    assert "1 ask what another one asks" in words(app)
    assert not texts(workspace)
    app = press(app, "questions.add")
    assert texts(workspace) == ["How far?", "How high?", "how far?"]
    assert app.text_area(key="questions.text").value == ""
    assert "decide" in words(app)


def test_one_press_takes_a_text_that_is_still_being_typed(questions_page, workspace):
    app = questions_page(questions=())
    app.text_area(key="questions.text").set_value("How far?")
    press(app, "questions.add")
    assert texts(workspace) == ["How far?"]


def test_questions_join_those_that_are_there_and_the_same_one_is_passed_over(questions_page, workspace, words):
    app = questions_page(questions=[Query("q1", "How far?"), Query("q2", "How high?")])
    app.text_area(key="questions.text").set_value("How deep?\nhow  HIGH?\nHow wide?")
    app = sane(app.run())
    assert "2 new questions" in words(app)
    assert "1 there already" in words(app)
    press(app, "questions.add")
    assert {case.query.id: case.query.text for case in load_set("mine", workspace).cases} == {
        "q1": "How far?", "q2": "How high?", "q3": "How deep?", "q4": "How wide?",
    }  # fmt: skip


@pytest.mark.parametrize("dropped", [True, False])
def test_a_table_is_read_as_one_dropped_or_pasted(questions_page, workspace, words, dropped):
    table = "question,expected_answer,tags\nHow far?,three miles,a;b\n"
    app = questions_page(questions=())
    if dropped:
        app.file_uploader(key="questions.file").upload("asked.csv", table.encode(), "text/csv")
    else:
        app.text_area(key="questions.text").set_value(table)
    app = sane(app.run())
    assert "read as CSV" in words(app)
    assert list(app.dataframe[0].value.iloc[0]) == ["How far?", "q1", "a, b", "three miles"]
    app = press(app, "questions.add")
    assert texts(workspace) == ["How far?"]
    assert "three miles" in app.dataframe[0].value.to_string()


def test_a_bad_list_is_one_sentence_with_its_line_and_nothing_is_added(questions_page, workspace, words):
    app = questions_page(questions=())
    app.text_area(key="questions.text").set_value('{"query": "a"}\n{"nothing": 1}')
    app = sane(app.run())
    assert "line 2 has no query text" in words(app)
    app = press(app, "questions.add")
    assert "Nothing was changed" in words(app)
    assert not texts(workspace)


def test_the_table_shows_sides_and_labels_given_here(questions_page, workspace, words):
    with open_store(workspace) as store:
        event = Event(session="s", seq=0, eval_set="mine", query_id="a1", chunk_id="c", annotator="x", grade=1)
        LabelStore(store).append([event])
    app = questions_page()
    table = app.dataframe[0].value.set_index("question")
    assert set(table["side"]) <= {"dev", "held-out"}
    dev, held_out = (re.search(rf"\*\*(\d+)\*\* :gray\[{side}\]", words(app)) for side in ("dev", "held-out"))
    assert int(dev[1]) + int(held_out[1]) == len(QUESTIONS)


def test_tags_go_to_the_questions_in_sight(questions_page, workspace, words):
    app = part(questions_page(), "Change")
    app.text_input(key="questions.find").set_value("topic3")
    app.text_input(key="questions.tag").set_value("far")
    app = press(sane(app.run()), "questions.tag.add")
    assert "Tags of 1 question changed" in words(app)
    tagged = {case.query.id: case.query.tags for case in load_set("mine", workspace).cases if case.query.tags}
    assert tagged == {"a3": ("far",)}


def test_an_empty_tag_is_one_sentence(questions_page, words):
    assert "the tag is empty" in words(press(part(questions_page(), "Change"), "questions.tag.add"))


def test_questions_taken_away_leave_the_others_on_their_sides(questions_page, workspace):
    app = part(questions_page(), "Change")
    before = Session(open_project("mine", workspace)).split
    app.text_input(key="questions.find").set_value("topic3")
    app = sane(app.run())
    assert app.button(key="questions.remove").disabled
    app.checkbox(key="questions.remove.meant").check()
    press(sane(app.run()), "questions.remove")
    assert len(texts(workspace)) == 5
    after = Session(open_project("mine", workspace)).split
    assert set(after.held_out) == set(before.held_out) - {"a3"}
    assert set(after.dev) == set(before.dev) - {"a3"}


def test_looks_are_counted_and_a_new_draw_keeps_the_old_ledger(questions_page, workspace, words):
    questions = [Query(f"b{n}", f"subject{n} item{n} point{n}?") for n in range(40)]
    app = questions_page(questions=questions)
    project = open_project("mine", workspace)
    before = Session(project).split
    look(project.state, Look("p", "l", before.name, len(before.held_out), name="tuned", by="ann", place="bench"))
    app = part(app, "Held out")
    assert "**1** :gray[looks at held-out]" in words(app)
    assert "tuned" in app.dataframe[1].value.to_string()
    app.checkbox(key="questions.reset.meant").check()
    app = press(sane(app.run()), "questions.reset")
    project = open_project("mine", workspace)
    assert set(Session(project).split.held_out) != set(before.held_out)
    assert len(looks(project.state)) == 1
    assert "**0** :gray[looks at held-out]" in words(app)
    assert "1 at earlier ones" in words(app)


def test_guidelines_are_stored_as_written(questions_page, workspace):
    app = part(questions_page(), "Guidelines")
    app.text_area(key="questions.guidelines.mine").set_value("- 0: nothing\n![x](http://evil.example/x.png)")
    press(sane(app.run()), "questions.guide")
    stored = (workspace / "eval_sets" / "mine" / "guidelines.md").read_text()
    assert stored == "- 0: nothing\n![x](http://evil.example/x.png)\n"


def test_a_shipped_project_is_copied_with_its_sides_and_its_examples(questions_page, workspace):
    app = questions_page("rulebook")
    assert "questions.add" not in [button.key for button in app.button]
    app = part(app, "Copy")
    app.text_input(key="questions.copy.name").set_value("my-rules")
    app = press(sane(app.run()), "questions.copy")
    assert app.session_state[state.KEY].project == "my-rules"
    sides = [Session(open_project(name, workspace)).split for name in ("rulebook", "my-rules")]
    assert sides[0] == sides[1]
    assert texts(workspace, "my-rules") == texts(workspace, "rulebook")


@pytest.mark.parametrize("name", ["../x", "rulebook", "", "demo"])
def test_a_name_that_cannot_be_is_one_sentence_and_nothing_is_made(questions_page, workspace, words, name):
    app = part(questions_page("recorded-combat"), "Copy")
    app.text_input(key="questions.copy.name").set_value(name)
    app = press(sane(app.run()), "questions.copy")
    assert "Nothing was changed" in words(app)
    assert not (workspace / "eval_sets").exists() or not list((workspace / "eval_sets").iterdir())


def test_a_shipped_project_goes_back_to_its_beginning_labels_too(questions_page, workspace):
    project = open_project("recorded-combat", workspace)
    session = Session(project)
    before = session.cases
    session.save_pipeline("mine", session.pipeline("unfiltered"))
    chunk = before[0].candidates.hits[0].chunk.id
    with open_store(workspace) as store:
        query = before[0].query.id
        event = Event(session="s", seq=0, eval_set=project.labels, query_id=query, chunk_id=chunk, annotator="x", grade=1)  # fmt: skip
        LabelStore(store).append([event])
    app = part(questions_page("recorded-combat"), "Copy")
    app.checkbox(key="questions.shipped.meant").check()
    press(sane(app.run()), "questions.shipped")
    after = Session(open_project("recorded-combat", workspace))
    assert after.cases == before
    assert after.pipeline_names() == []


def test_deleting_must_be_meant(questions_page, workspace):
    app = part(questions_page(), "Copy")
    assert app.button(key="questions.delete.mine").disabled
    app.checkbox(key="questions.delete.mine.meant").check()
    app = press(sane(app.run()), "questions.delete.mine")
    assert not (workspace / "eval_sets" / "mine").exists()
    assert app.session_state[state.KEY].project == state.DEFAULT_PROJECT


def test_a_project_that_cannot_be_read_says_why_and_can_be_deleted(questions_page, workspace, words):
    app = questions_page()
    (workspace / "eval_sets" / "mine" / "queries.jsonl").write_text("not json")
    app = sane(app.run())
    assert "not valid JSON" in words(app)
    app.checkbox(key="questions.delete.mine.meant").check()
    app = press(sane(app.run()), "questions.delete.mine")
    assert not (workspace / "eval_sets" / "mine").exists()


def test_nothing_of_another_project_is_on_the_page(questions_page, words):
    app = questions_page()
    shown = words(app) + "".join(frame.value.to_string() for frame in app.dataframe)
    assert "cleric" not in shown


def test_one_press_makes_questions_from_slots_and_counts_them_apart(open_app, workspace, words):
    small_rules.build(workspace)
    before = len(texts(workspace, small_rules.NAME))
    app = sane(open_app("questions", project=small_rules.NAME))
    app = press(app, "questions.make")
    made = [case for case in load_set(small_rules.NAME, workspace).cases if case.query.made_from]
    assert made
    assert all(case.grades for case in made)
    assert len(texts(workspace, small_rules.NAME)) == before + len(made)
    assert f"{len(made)}** :gray[generated]" in words(app)


@pytest.fixture
def scripted_model(httpserver, monkeypatch):
    """A scripted model that asks for the title of the chunk in words of its own."""

    def answer(request):
        asked = request.get_json()["messages"][1]["content"]
        title = re.search(r"ASKED (.*)\]", asked).group(1)
        said = json.dumps({"question": f"Where would somebody look up {title.split(', ')[-1]}, please?"})
        choice = {"message": {"content": said}, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice], "model": "scripted"}), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_MODEL", "scripted-questions")
    return httpserver


def made_from(app, origin):
    app.segmented_control(key="questions.from").set_value(origin)
    return sane(app.run())


def finished(app):
    job = jobs.current(more.KIND)
    assert job.over.wait(30)
    assert (job.problem, job.stopped) == ("", "")
    return sane(app.run())


def test_a_model_is_asked_for_questions_after_what_it_takes_was_said(open_app, workspace, words, scripted_model):
    small_rules.build(workspace)
    app = made_from(sane(open_app("questions", project=small_rules.NAME)), more.MODEL)
    app.number_input(key="questions.made").set_value(3)
    app = sane(app.run())
    assert "3 calls to make, 0 stored" in words(app)
    assert len(scripted_model.log) == 0
    app = finished(press(app, "questions.make"))
    assert len(scripted_model.log) == 3
    made = [case for case in load_set(small_rules.NAME, workspace).cases if case.query.made_from == "model"]
    assert made
    assert f"✓ {len(made)} question" in words(app)
    assert "0 calls to make, 3 stored" in words(app)


def test_without_an_endpoint_no_model_is_asked(open_app, workspace, words, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    small_rules.build(workspace)
    app = made_from(sane(open_app("questions", project=small_rules.NAME)), more.MODEL)
    assert "No model endpoint is set" in words(app)
    assert not [one for one in app.button if one.key == "questions.make"]


def test_a_dropped_log_brings_its_questions(open_app, workspace, words, jsonl):
    small_rules.build(workspace)
    before = texts(workspace, small_rules.NAME)
    app = made_from(sane(open_app("questions", project=small_rules.NAME)), more.LOG)
    rows = [
        {"query": text, "candidates": [{"id": "x", "distance": 0.2}]}
        for text in (before[0], "How tall is a lighthouse?")
    ]
    for number, row in enumerate(rows):
        row["id"] = f"log{number}"
    uploader = next(one for one in app.file_uploader if one.key == "questions.log")
    uploader.upload("log.jsonl", jsonl(*rows), "application/json").run()
    app = finished(press(app, "questions.make"))
    assert texts(workspace, small_rules.NAME) == [*before, "How tall is a lighthouse?"]
    assert "1 of them are new" in words(app)
