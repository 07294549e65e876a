"""History, a view of Settings, through AppTest: questions are listed, opened again, become a project, are deleted."""

import threading
from urllib.parse import parse_qs

import pytest

from pages import state
from rag_core.cli import main
from rag_core.project.project import ProjectSource, open_project
from rag_core.spec import dump_stages, parse_pipeline
from rag_core.store.database import open_store
from rag_core.store.history import History, HistoryEntry

HOSTILE = "![x](http://foreign.invalid/a.png) heal?"


@pytest.fixture
def wear(workspace, tmp_path, capsys):
    (tmp_path / "hats.md").write_text("## Bowler\nA hard round hat.\n\n## Beret\nA soft flat cap.\n")
    assert main(["ingest", str(tmp_path / "hats.md"), "--collection", "wear", "--workspace", str(workspace)]) == 0
    return workspace


def append(workspace, *queries, result=None, **fields):
    row = result or {"kept": [{"id": "hats.md#beret", "title": HOSTILE, "distance": 0.25}], "dropped": {"TopK": 2}}
    with open_store(workspace) as store:
        for query in queries:
            History(store).append(
                HistoryEntry(query, "wear", [{"Dense": {"depth": 15}}, {"TopK": {"k": 1}}], row, **fields)
            )


def questions(workspace):
    with open_store(workspace) as store:
        return [one.query for one in History(store).find()]


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.fixture
def page(app_at):
    def opened():
        app = app_at("settings")
        app.session_state["settings.view"] = "History"
        return sane(app.run())

    return opened


def tick(app, *rows):
    app.session_state["history.table"] = {"selection": {"rows": list(rows), "columns": []}}
    return sane(app.run())


def table(app):
    return next(one.value for one in app.dataframe if "question" in one.value.columns)


def test_an_empty_history_says_where_questions_come_from(page, words):
    assert "No question is kept yet." in words(page())


def test_one_question_is_deleted_in_the_singular(wear, page, words):
    append(wear, "one hat")
    app = tick(page(), 0)
    assert "1 question is deleted" in words(sane(app.button(key="history.delete").click().run()))


def test_questions_are_listed_newest_first_and_filtered(wear, page):
    append(wear, "one hat", "two caps", HOSTILE)
    app = page()
    assert list(table(app)["question"]) == [HOSTILE, "two caps", "one hat"]
    app.text_input(key="history.holds").set_value("CAP").run()
    assert list(table(sane(app))["question"]) == ["two caps"]


def test_foreign_words_stand_in_cells_and_plain_text_only(wear, page):
    append(wear, HOSTILE, hops=[{"missing_query": HOSTILE}])
    app = tick(page(), 0)
    assert not any("foreign.invalid" in one.value for kind in (app.markdown, app.caption) for one in kind)
    assert any("foreign.invalid" in one.value for one in app.text)


def test_a_chunk_that_a_hop_brought_says_so(wear, page):
    kept = [{"id": "a", "title": "A", "distance": 0.25}, {"id": "b", "title": "B", "distance": 0.5, "origin": "hop 1"}]
    append(wear, "who climbs?", result={"kept": kept, "dropped": {}, "metric": "cosine"})
    app = tick(page(), 0)
    (said,) = [one.value for one in sane(app).text if one.value.startswith("who climbs?")]
    assert "hop 1" in said


def test_an_opened_link_is_no_question_and_a_question_that_is_asked_is_kept(wear, open_app):
    link = {"project": "wear", "q": "?a soft cap", "a": state.encode(parse_pipeline(["Dense", {"TopK": {"k": 1}}]))}
    sane(open_app(**link))
    for thread in threading.enumerate():
        if thread.name == "history":
            thread.join()
    assert not (wear / "winnow.db").is_file() or questions(wear) == []


def test_a_ticked_question_is_opened_on_the_bench_as_it_was(wear, page):
    append(wear, "a soft cap")
    app = tick(page(), 0)
    (link,) = [one for one in app.get("page_link") if "Open on the Bench" in one.proto.label]
    query = parse_qs(link.proto.query_string)
    assert (query["project"], query["q"]) == (["wear"], ["?a soft cap"])
    assert dump_stages(state.decode(query["a"][0]))[-1] == {"TopK": {"k": 1}}


def test_ticked_questions_become_a_project_on_their_collection(wear, page, words):
    append(wear, "one hat", "two caps", "one hat")
    app = tick(page(), 0, 1, 2)
    app.text_input(key="history.project").set_value("asked").run()
    app = sane(app.button(key="history.make").click().run())
    made = open_project("asked", wear)
    assert [case.query.text for case in made.eval_set.cases] == ["one hat", "two caps"]
    assert made.source == ProjectSource("collection", "wear")
    assert "asked holds 2 questions" in words(app)
    assert app.session_state[state.KEY].project == "asked"


def test_a_name_that_is_taken_is_said(wear, page):
    append(wear, "one hat")
    app = tick(page(), 0)
    app.text_input(key="history.project").set_value("rulebook").run()
    sane(app.button(key="history.make").click().run())
    assert any("rulebook" in one.value for one in app.text)


def test_deleting_ticked_questions_leaves_the_others_and_no_text(wear, page):
    append(wear, "one hat", "canary words")
    app = tick(page(), 0)
    sane(app.button(key="history.delete").click().run())
    assert questions(wear) == ["one hat"]
    assert not any(b"canary words" in path.read_bytes() for path in wear.glob("winnow.db*"))


def test_deleting_everything(wear, page, words):
    append(wear, "one hat", "two caps")
    app = page()
    app.button(key="history.delete_all").click().run()
    assert "No question is kept yet." in words(sane(app))
    assert questions(wear) == []
