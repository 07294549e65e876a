"""Evaluate through the page: means with their counts, single queries, and a run that is kept."""

import json

import pytest

from rag_core.evaluate.run_file import read_run
from rag_core.store.database import open_store
from rag_core.store.runs import RunStore


@pytest.fixture
def evaluate(open_app):
    """Evaluate, on the recorded set."""

    def opened(**parameters):
        app = open_app()
        app.query_params.clear()  # as a browser does on the way to another page
        app.session_state["choice.eval_set"] = "recorded-combat"
        app.switch_page("pages/evaluate.py")
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run(timeout=60)

    return opened


def table(app, *columns):
    return next(frame.value for frame in app.dataframe if set(columns) <= set(frame.value.columns))


def button(app, label):
    return next(one for one in app.button if one.label == label)


def test_the_name_of_a_pipeline_from_a_link_is_no_markup_in_the_choice_of_whose_queries_are_shown(evaluate, open_app):
    app = open_app()
    app.session_state["choice.eval_set"] = "recorded-combat"
    app.session_state["choice.pipeline"] = (
        '{"name": "![x](http://foreign.invalid/a.png)", "stages": [{"TopK": {"k": 3}}]}'
    )
    app.switch_page("pages/evaluate.py").run(timeout=60)
    app.segmented_control(key="evaluate.shown").set_value("Per query").run(timeout=60)
    assert not app.exception
    assert "xhttpforeign.invalida.png" in app.segmented_control(key="evaluate.read").options


def test_the_test_queries_of_a_split_set_are_measured_alone(evaluate, workspace):
    folder = workspace / "eval_sets" / "halved"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: halved\ntitle: Halved\n")
    rows = [
        {"id": name, "query": f"{name}?", "split": split, "candidates": [{"id": "c", "distance": 0.1, "relevant": 1}]}
        for name, split in {"a": "dev", "b": "dev", "c": "test"}.items()
    ]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    app = evaluate(set="halved")
    assert set(table(app, "scored")["scored"]) == {3}
    app.segmented_control(key="halves.split").set_value("test").run(timeout=60)
    assert set(table(app, "scored")["scored"]) == {1}


def test_an_undefined_share_is_a_dash(evaluate):
    assert set(table(evaluate(), "of these returned something")["of these returned something"]) == {"–"}


def test_brackets_are_explained_only_where_there_are_some(evaluate, words):
    app = evaluate()
    assert any("(" in cell for cell in table(app, "what it counts").iloc[:, 1]) == ("In brackets" in words(app))


def kept(app, name="first"):
    """The page after its figures were kept as a run."""
    next(one for one in app.text_input if one.label == "Name of the run").set_value(name).run()
    return button(app, "Keep as a run").click().run(timeout=60)


def runs_of(workspace):
    with open_store(workspace) as store:
        return RunStore(store).listed()


def test_every_measure_stands_with_what_it_counts_and_over_how_many_queries(evaluate, words):
    app = evaluate()
    assert not app.exception
    means = table(app, "measure", "query-must").set_index("measure")
    assert means["query-must"]["SetF"] == "0.834"
    assert means["what it counts"]["P@15"].startswith("relevant of the first 15, over 15")
    assert "macro over 3 of 3 queries" in words(app)
    assert table(app, "scored", "judged of kept")["scored"][0] == 3


def test_single_queries_can_be_read(evaluate):
    app = evaluate()
    app.session_state["evaluate.shown"] = "Per query"
    app.run(timeout=60)
    rows = table(app, "query", "relevant kept")
    assert list(rows["query"]) == ["combat-1", "combat-2", "combat-3"]
    assert rows["relevant kept"][0] == "1 of 1"


def test_a_kept_run_holds_the_figures(evaluate, workspace):
    app = kept(evaluate())
    assert not app.exception
    (run,) = runs_of(workspace)
    assert run.name == "first"
    with open_store(workspace) as store:
        found = read_run(RunStore(store).document(run.id), "it")
    assert round(found.pipeline("query-must").means["SetF"], 3) == 0.834
    assert found.intact


def test_a_name_typed_just_before_the_click_is_the_name_of_the_run(evaluate, workspace):
    app = evaluate()
    next(one for one in app.text_input if one.label == "Name of the run").set_value("typed last")
    button(app, "Keep as a run").click().run(timeout=60)
    with open_store(workspace) as store:
        assert [one.name for one in RunStore(store).listed()] == ["typed last"]
