"""Ship through AppTest: a pipeline in every form it can be taken in, runs that are kept, and the gate against them."""

import json

import pytest

from pages import state
from rag_core.compare.run_file import read_run
from rag_core.project.ledger import looks
from rag_core.project.project import ProjectSource, init_project, open_project
from rag_core.spec import parse_pipeline, read_pipeline
from rag_core.store.database import open_store
from rag_core.store.runs import RunStore


@pytest.fixture
def ship(app_at):
    """Ship of the recorded combat questions, with a pipeline A."""

    def opened(a="query-must", project="recorded-combat"):
        app = app_at("ship")
        app.session_state[state.KEY] = state.PageState(project=project, question="", a=a)
        return sane(app.run())

    return opened


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def runs_of(workspace):
    with open_store(workspace) as store:
        return RunStore(store).listed()


def keep(app, name=""):
    app.text_input(key="ship.name").set_value(name)
    return sane(app.button(key="ship.keep").click().run(timeout=60))


def downloads(app):
    return {one.proto.label: one.proto.disabled for one in app.get("download_button")}


def table(app, column):
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def entry_of(*stages):
    return state.encode(parse_pipeline(list(stages)))


def test_every_form_is_one_click_away_and_each_stage_says_what_becomes_of_it(ship):
    app = ship(entry_of("Dense", "QueryMust", {"TopK": {"k": 3}}))
    assert downloads(app) == {
        "Python file": False,
        "Chroma": False,
        "LangChain": False,
        "LlamaIndex": False,
        "Spec (YAML)": False,
    }
    assert [one.split()[0] for one in table(app, "why")[""]] == ["·", "✓", "✓"]


def test_a_stage_that_cannot_be_taken_home_is_said_with_its_reason_and_the_spec_still_goes(ship, words):
    app = ship(entry_of("Dense", "LLMFilter"))
    assert downloads(app) == {
        "Python file": True,
        "Chroma": True,
        "LangChain": True,
        "LlamaIndex": True,
        "Spec (YAML)": False,
    }
    assert "LLMFilter" in words(app)
    assert "model" in list(table(app, "why")["why"])[1]


def test_a_kept_run_holds_the_figures_and_is_a_look(ship, workspace):
    app = keep(ship(), "first")
    (run,) = runs_of(workspace)
    assert (run.name, run.eval_set) == ("first", "recorded-combat")
    with open_store(workspace) as store:
        found = read_run(RunStore(store).document(run.id), "it")
    assert found.intact
    assert round(found.pipeline("query-must").means["SetF"], 3) == 0.834
    held_out = table(app, "SetF")["SetF"]
    assert round(float(held_out[0]), 3) == 0.834
    assert len(looks(open_project("recorded-combat", workspace).state)) <= 1


def test_the_gate_judges_a_against_the_kept_run_and_says_how_a_build_asks_the_same(ship, workspace, words):
    rows = []
    for number in range(30):
        chunks = [{"id": f"c{at}", "distance": at / 10, "relevant": int(at < 4)} for at in range(9)]
        rows.append({"id": f"q{number}", "query": f"question {number}", "candidates": chunks})
    project = init_project(workspace, "listed", ProjectSource("lists"))
    (project.folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    app = keep(ship(entry_of({"TopK": {"k": 4}}), "listed"))
    (run,) = runs_of(workspace)
    app = sane(app.button(key="ship.gate").click().run(timeout=60))
    assert "pass" in words(app)
    assert any(f"--project listed --baseline {run.id}.json" in code.value for code in app.code)
    app.session_state[state.KEY] = state.PageState(project="listed", question="", a=entry_of({"TopK": {"k": 1}}))
    app = sane(app.run())
    assert "has changed since" in words(app)
    app = sane(app.button(key="ship.gate").click().run(timeout=60))
    assert "fail" in words(app)
    assert len(table(app, "then")) == 10


def test_notes_are_added_and_a_run_is_deleted_with_them(ship, workspace, words):
    app = keep(ship())
    app = sane(app.text_input(key="ship.note").set_value("before the new corpus").run())
    assert "before the new corpus" in words(app)
    app = sane(app.button(key="ship.delete").click().run())
    assert runs_of(workspace) == []
    assert "No run is kept yet" in words(app)


def test_runs_of_another_project_are_not_shown(ship, workspace, words):
    keep(ship())
    assert "No run is kept yet" in words(ship("unfiltered", "adaptive-short"))


def test_a_project_without_questions_says_what_is_missing_and_keeps_the_export(ship, workspace, words):
    init_project(workspace, "bare")
    app = ship(project="bare")
    assert "has none" in words(app)
    assert not downloads(app)["Python file"]


def test_the_file_that_is_offered_is_that_of_the_command(ship, workspace):
    from rag_core.export import export_filter

    app = ship()
    (button,) = [one for one in app.get("download_button") if one.proto.label == "Python file"]
    assert button.proto.url
    assert "query-must" in export_filter(read_pipeline("query-must"))
