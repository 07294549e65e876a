"""Tune and Headroom through AppTest: plane, recommendation, counted looks, marker, knobs, saving, empty states."""

import json

import pytest

from rag_core.eval_sets.reading import load_set
from rag_core.spec import read_pipeline


def write_set(workspace, queries=12, labelled=True, name="made"):
    """A recorded set whose relevant chunks all stand before one large gap, at another length for every query."""
    folder = workspace / "eval_sets" / name
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {name}\ntitle: Made lists\nmin_grade: 1\n")
    rows = []
    for number in range(queries):
        good = 2 + number % 5
        distances = [0.1 + 0.01 * at + (0.2 if at >= good else 0.0) for at in range(12)]
        candidates = [
            {"id": f"{number}-{at}", "text": f"text {number} {at}", "distance": round(distance, 4)}
            | ({"relevant": int(at < good)} if labelled else {})
            for at, distance in enumerate(distances)
        ]
        rows.append(
            {
                "id": f"q{number}",
                "query": f"question number {number} {'abcdefghijkl'[number % 12]}",
                "candidates": candidates,
            }
        )
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def open_page(open_app, workspace):
    def opened(page="tune", eval_set="made"):
        app = open_app()
        app.query_params.clear()  # as a browser does on the way to another page
        app.session_state["choice.eval_set"] = eval_set
        app.switch_page(f"pages/{page}.py")
        return run(app)

    return opened


def run(app):
    app.run()
    assert not app.exception, [error.value for error in app.exception]
    return app


def show(app, view, page="tune"):
    app.segmented_control(key=f"{page}.below").set_value(view)
    return run(app)


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def button(app, label):
    return next(widget for widget in app.button if widget.label.startswith(label))


def test_a_planted_signal_is_recommended_and_judged_once(open_page, workspace, words):
    write_set(workspace)
    app = open_page()
    assert "SetF 1.000 vs" in words(app)
    assert "never looked at yet" in words(app)
    assert not (workspace / "held-out-looks.jsonl").exists()
    button(app, "Judge once").click()
    run(app)
    assert "Looked at the held-out set 1 time." in words(app)
    assert "held-out queries SetF 1.000" in words(app)
    assert len((workspace / "held-out-looks.jsonl").read_text().splitlines()) == 1


def test_looking_at_the_page_again_is_no_further_look(open_page, workspace, words):
    write_set(workspace)
    app = open_page()
    button(app, "Judge once").click()
    run(app)
    show(app, "Precision and recall")
    app.slider(key="tune.gap").set_value(0.05)
    run(app)
    assert len((workspace / "held-out-looks.jsonl").read_text().splitlines()) == 1


def test_another_question_has_the_looks_of_the_same_held_out_queries(open_page, workspace, words):
    write_set(workspace)
    app = open_page()
    button(app, "Judge once").click()
    run(app)
    app.segmented_control(key="tune.objective").set_value("SetP")
    run(app)
    assert "looked at 1 time before" in words(app)
    button(app, "Judge once").click()
    run(app)
    assert "Looked at the held-out set 2 times." in words(app)


def test_moving_the_marker_shows_the_queries_that_lose(open_page, workspace, words):
    write_set(workspace)
    app = open_page()
    app.selectbox(key="tune.reference").set_value("chosen setting")
    run(app)
    assert "**0 win, 0 lose" in words(app)
    app.slider(key="tune.gap").set_value(0.25)  # no gap is that large: the offset cuts
    app.slider(key="tune.offset").set_value(0.0)
    run(app)
    rows = frame(app, "change")
    assert (rows["change"] < 0).all()
    assert len(rows) > 3
    assert set(rows["kept"].str.split().str[-1]) == {"2"}


def test_the_setting_at_the_marker_is_saved_as_a_pipeline_file(open_page, workspace, words):
    write_set(workspace)
    app = open_page()
    app.slider(key="tune.gap").set_value(0.123)
    run(app)
    app.text_input(key="tune.name").set_value("my-cut")
    run(app)
    app.button(key="tune.save").click()
    run(app)
    assert "stored as pipelines/my-cut.yaml in the workspace" in words(app)
    saved = read_pipeline(str(workspace / "pipelines" / "my-cut.yaml"))
    assert saved.stages[-1].settings()["gap_threshold"] == 0.123


def test_a_recall_nothing_reaches_is_said(open_page, workspace, words):
    write_set(workspace)
    app = open_page()
    app.slider(key="tune.recall").set_value(1.0)
    app.number_input(key="tune.most").set_value(2)
    run(app)
    assert "No recommendation." in words(app)
    assert "No setting reaches SetR 1.0" in words(app)


@pytest.mark.parametrize("page", ["tune", "headroom"])
def test_a_dropped_file_is_tuned_like_an_eval_set(open_page, workspace, words, page):
    write_set(workspace)
    app = open_page(page, "recorded-combat")
    data = (workspace / "eval_sets" / "made" / "lists.jsonl").read_bytes()
    app.file_uploader(key="tuning.file").upload("mine.jsonl", data, "application/json")
    run(app)
    if page == "tune":
        assert "12 of 12 queries have a relevant label" in words(app)
        assert "tune lists.jsonl" in show(app, "Command").code[0].value
    else:
        assert "labelled dev queries" in words(app)


def test_a_dropped_file_that_cannot_be_read_is_said_and_changes_nothing(open_page, words):
    app = open_page(eval_set="recorded-combat")
    app.file_uploader(key="tuning.file").upload("mine.jsonl", b"{broken", "application/json")
    assert "The dropped file cannot be read." in words(run(app))
    assert "3 of 3 queries have a relevant label" in words(app)


def test_the_command_holds_the_same_grid(open_page, workspace):
    write_set(workspace)
    app = show(open_page(), "Command")
    assert "python -m rag_core tune --eval-set made" in app.code[0].value
    assert "gap_threshold=0:0.25:61" in app.code[0].value


def test_dead_knobs_of_the_recorded_sets(open_page):
    app = show(open_page(eval_set="recorded-combat"), "Dead knobs")
    knobs = frame(app, "knob").set_index("knob")
    assert knobs.loc["gap_threshold", "in words"] == "gap_threshold 0.05 to 0.15 changes nothing on any of 3 queries"
    app = show(open_page(eval_set="adaptive-short"), "Dead knobs")
    knobs = frame(app, "knob").set_index("knob")
    assert knobs.loc["gap_threshold", "in words"] == "gap_threshold 0.05 to 0.15 changes what is kept on 1 of 7 queries"


def test_one_labelled_query_has_a_plane_and_no_recommendation(open_page, words):
    app = open_page(eval_set="adaptive-short")
    assert "1 of 7 queries have a relevant label" in words(app)
    assert "One labelled query is none to choose on" in words(app)


@pytest.mark.parametrize("page", ["tune", "headroom"])
def test_lists_without_labels_name_the_next_step(open_page, workspace, words, page):
    write_set(workspace, labelled=False)
    assert "label chunks on Label" in words(open_page(page))


@pytest.mark.parametrize("page", ["tune", "headroom"])
def test_a_live_set_asks_for_its_capture(open_page, words, page):
    app = open_page(page, "rulebook")
    assert "no result lists yet" in words(app)
    assert button(app, "Capture 85 queries")


@pytest.mark.slow
def test_a_live_set_is_captured_once_and_tuned(open_page, words):
    app = open_page(eval_set="rulebook")
    app.session_state["tuning.capturing"] = True
    app.run(timeout=300)
    queries = len(load_set("rulebook").cases)
    assert f"of {queries} queries have a relevant label" in words(app)
    app.segmented_control(key="tune.front").set_value("rules")
    run(app)
    assert "QueryMust + fixed k" in words(app)


def test_the_front_holds_no_setting_that_another_beats_and_every_fixed_k_stands_below(open_page):
    app = show(open_page(eval_set="recorded-combat"), "Precision and recall")
    front = list(zip(*(frame(app, "gap_threshold")[name] for name in ("SetP", "SetR")), strict=True))
    assert not [
        (one, other) for one in front for other in front if one != other and one[0] <= other[0] and one[1] <= other[1]
    ]
    fixed = frame(app, "fixed k").sort_values("fixed k")
    assert list(fixed["fixed k"]) == list(range(1, 16))
    assert list(fixed["kept_mean"]) == [float(k) for k in range(1, 16)]
    assert fixed["SetR"].is_monotonic_increasing


def test_headroom_says_that_perfect_cuts_are_all_there_is_to_gain(open_page, workspace, words, figures):
    write_set(workspace)
    app = open_page("headroom")
    assert figures(app)["best cut"] == ("1.000", "mean SetF")
    assert figures(app)["lost in retrieval"][0] == "0%"
    assert "Limited by filtering" in words(app)
    assert "gap size: AUC 1.000" in words(app)
    assert set(frame(app, "limited by")["limited by"]) <= {"filter", "nothing to gain"}


RELEVANT_AND_NOT = {"recorded-combat": (17, 13), "adaptive-short": (2, 3), "made": (33, 63)}


@pytest.mark.parametrize("eval_set", RELEVANT_AND_NOT)
def test_headroom_lists_per_query_what_a_better_end_of_the_list_would_bring(open_page, workspace, eval_set):
    write_set(workspace)
    rows = frame(show(open_page("headroom", eval_set), "Per query", "headroom"), "limited by")
    (fixed,) = (name for name in rows if name.startswith("best fixed k"))
    assert (rows["best cut"] >= rows[fixed] - 1e-12).all()
    assert (rows["perfect filter"] >= rows["best cut"] - 1e-12).all()
    assert len(rows) == {"recorded-combat": 2, "adaptive-short": 1, "made": 8}[eval_set]


@pytest.mark.parametrize("eval_set", RELEVANT_AND_NOT)
def test_headroom_draws_every_judged_chunk_by_distance(open_page, workspace, eval_set):
    write_set(workspace)
    (chart,) = show(open_page("headroom", eval_set), "Distances", "headroom").get("plotly_chart")
    relevant, irrelevant = RELEVANT_AND_NOT[eval_set]
    names = {trace["name"] for trace in json.loads(chart.proto.spec)["data"]}
    assert names == {f"relevant ({relevant} chunks)", f"irrelevant ({irrelevant} chunks)"}


@pytest.mark.parametrize("eval_set", RELEVANT_AND_NOT)
def test_headrooms_curves_pool_all_chunks(open_page, workspace, words, eval_set):
    write_set(workspace)
    app = show(open_page("headroom", eval_set), "Curves", "headroom")
    queries = {"recorded-combat": "2 queries", "adaptive-short": "1 query", "made": "8 queries"}[eval_set]
    assert f"All {sum(RELEVANT_AND_NOT[eval_set])} chunks of {queries} pooled" in words(app)
    assert "Click a point of a curve" in words(app)


@pytest.mark.parametrize(
    ("eval_set", "bands"),
    [
        ("recorded-combat", "low: 17 of 30 judged chunks relevant (57% [39%, 73%])"),
        ("adaptive-short", "high: 1 of 1 judged chunks relevant (100% [21%, 100%])"),
        ("made", "high: 33 of 33 judged chunks relevant (100% [90%, 100%])"),
    ],
)
def test_headroom_holds_the_bands_against_the_labels(open_page, workspace, words, eval_set, bands):
    write_set(workspace)
    assert bands in words(show(open_page("headroom", eval_set), "Confidence bands", "headroom"))


def test_the_first_set_of_the_llm_filter_is_not_forced_on_tune(open_app):
    app = open_app()
    app.query_params.clear()  # as a browser does on the way to another page
    run(app.switch_page("pages/llm_filter.py"))
    assert app.selectbox(key="tuning.set.widget").value == "api-docs"
    app.query_params.clear()
    run(app.switch_page("pages/tune.py"))
    assert app.selectbox(key="tuning.set.widget").value == "rulebook"
