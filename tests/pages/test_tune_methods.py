"""The methods of Tune beside the plane: a promised recall, a learned cut, a search; through AppTest."""

import time

import pytest

from pages.components import jobs
from rag_core.records import dump_lists
from rag_core.spec import read_pipeline
from rag_core.tune.conformal import ASSUMPTION
from tests import planted


@pytest.fixture
def open_method(open_app, workspace):
    """Tune on forty queries with a planted gap and some wrong labels."""

    def opened(method, queries=40):
        folder = workspace / "eval_sets" / "made"
        folder.mkdir(parents=True)
        (folder / "meta.yaml").write_text("version: 1\nname: made\ntitle: Made lists\nmin_grade: 1\n")
        (folder / "lists.jsonl").write_text("\n".join(dump_lists(planted.planted_gap(1, queries, noise=0.1))) + "\n")
        app = open_app()
        app.query_params.clear()  # as a browser does on the way to another page
        app.session_state["choice.eval_set"] = "made"
        app.session_state["tune.method"] = method
        app.switch_page("pages/tune.py")
        return run(app)

    return opened


def run(app):
    app.run()
    assert not app.exception, [error.value for error in app.exception]
    return app


def press(app, key):
    app.button(key=key).click()
    return run(app)


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def saved(app, workspace, key, name):
    app.text_input(key=f"{key}.name").set_value(name)
    run(app)
    press(app, f"{key}.save")
    return read_pipeline(str(workspace / "pipelines" / f"{name}.yaml"))


def test_a_promise_states_its_assumption_and_is_judged_once(open_method, workspace, words):
    app = open_method("Guaranteed recall")
    assert ASSUMPTION in words(app)
    assert "no cut can bring them" in words(app)
    assert list(frame(app, "setting")["knob"]) == [
        "TopK.k", "MinSimilarity.min_relevance", "AdaptiveGap.distance_offset",
    ]  # fmt: skip
    press(app, "tune.promise.judge")
    assert "Realised on 12 held-out queries" in words(app)
    assert len((workspace / "held-out-looks.jsonl").read_text().splitlines()) == 1


def test_a_looser_promise_keeps_less(open_method):
    app = open_method("Guaranteed recall")
    strict = frame(app, "setting")["kept on average"]
    app.slider(key="tune.alpha").set_value(0.3)
    loose = frame(run(app), "setting")["kept on average"]
    assert (loose < strict).all()


def test_a_promised_setting_is_saved(open_method, workspace):
    app = open_method("Guaranteed recall")
    stage = saved(app, workspace, "tune.promise", "promised").stages[-1]
    assert f"{stage.distance_offset:.4f}" == frame(app, "setting")["setting"][2]


def test_what_cannot_be_promised_is_said(open_method, words):
    app = open_method("Guaranteed recall")
    app.slider(key="tune.alpha").set_value(0.01)
    assert "expected at least 99" in words(run(app))


def test_a_learned_cut_is_judged_by_models_of_other_queries_and_saved_as_numbers(open_method, workspace, words):
    app = open_method("Learned cut")
    assert "Judged by models of the other queries: better than the best fixed k" in words(app)
    assert len(frame(app, "weight")) == 10
    press(app, "tune.learned.judge")
    assert "Looked at the held-out set 1 time." in words(app)
    stage = saved(app, workspace, "tune.learned", "learned").stages[-1]
    assert len(stage.parameters["weights"]) == 10


def finish(app):
    deadline = time.monotonic() + 120
    while jobs.running():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return run(app)


def test_a_search_runs_as_a_job_and_shows_the_baseline_first(open_method, workspace, words):
    app = open_method("Search")
    assert "no finished trial yet" in words(app)
    app.number_input(key="tune.search.trials").set_value(12)
    app.segmented_control(key="tune.search.sampler").set_value("random")
    press(run(app), "tune.search.start")
    finish(app)
    assert "12 finished trials" in words(app)
    assert frame(app, "row")["row"][0].startswith("fixed k ")
    press(app, "tune.search.row.judge")
    assert "Looked at the held-out set 1 time." in words(app)
    assert saved(app, workspace, "tune.search.row", "found").stages[0].name == "AdaptiveGap"


def test_a_study_goes_on_where_it_stood(open_method, words):
    app = open_method("Search")
    for wanted in (5, 9):
        app.number_input(key="tune.search.trials").set_value(wanted)
        press(run(app), "tune.search.start")
        finish(app)
        assert f"{wanted} finished trials" in words(app)


def test_a_grid_that_cannot_be_is_said(open_method, words):
    app = open_method("Search")
    app.text_area(key="tune.search.grid").set_value("gap_thresh=1|2")
    assert "names unknown setting 'gap_thresh'" in words(run(app))
