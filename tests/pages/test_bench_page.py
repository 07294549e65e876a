"""The Bench: the page is the pipeline, and its figures are those that the session computes."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from pages import state
from pages.bench import payload, sight
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.project.ledger import looks
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.spec import STAGES, dump_pipeline, dump_stages, make_stage, parse_pipeline
from rag_core.stage import Pipeline
from rag_core.tune.steps import cheap_knobs, step_function
from tests.any_pipeline import pipelines
from tests.pages.walking import sane


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    session = Session(open_project("demo", tmp_path_factory.mktemp("workspace")))
    session.refresh()
    return session


def bench(app, **link):
    app.query_params.clear()
    for name, value in link.items():
        app.query_params[name] = value
    return sane(app.switch_page("pages/bench/page.py").run(timeout=120))


def seen(session, a="query-must-refill", b="fixed-15", question="combat-1", **changes):
    pipelines = {"A": session.pipeline(a) if isinstance(a, str) else a, "B": session.pipeline(b)}
    looked = sight.look(session, pipelines, question)
    stages = sight.listed_stages(pipelines["A"], ())
    return sight.payload_of(looked, stages, {}, version=1, zoom="one", lens="threshold", **changes)


def test_the_first_sight_is_fifteen_chunks_of_which_two_stay(demo):
    first = seen(demo)
    assert (first.one.a.kept, first.one.b.kept) == (2, 15)
    assert (round(first.one.b.precision, 3), round(first.one.a.precision, 3)) == (0.067, 0.5)
    assert [row.id for row in first.rows if row.a and row.a.kept and row.relevant] == [
        hit.chunk.id for hit in demo.run(demo.pipeline("query-must-refill"), demo.case("combat-1")).result.hits[:1]
    ]
    assert all(row.a.reason for row in first.rows if row.a and not row.a.kept)


def test_a_project_opens_on_a_question_that_has_labels(tmp_path):
    folder = tmp_path / "eval_sets" / "own"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\n")
    rows = [
        {"id": f"q{number}", "query": f"question {number}", "candidates": [{"id": "a", "distance": 0.2, **label}]}
        for number, label in enumerate([{}, {}, {"relevant": 1}, {}, {"relevant": 1}])
    ]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    session = Session(open_project("own", tmp_path))
    walked = [case.query.id for case in sight.walked(session)]
    opened = sight.question_in_sight(session, "").query.id
    assert opened == next((name for name in walked if name in ("q2", "q4")), walked[0])
    assert sight.question_in_sight(session, "q1").query.id == "q1"


def test_examples_are_in_no_mean(demo):
    whole = seen(demo)
    ids = {question.id for question in whole.questions}
    assert not ids & {"combat-1", "combat-strength", "combat-2", "combat-3"}
    assert not ids & set(demo.split.held_out)
    assert whole.all.questions == len(ids) == 40


def test_the_line_of_all_is_the_measured_mean(demo):
    whole = seen(demo, a="demo-tuned")
    (tally,) = demo.measure([demo.pipeline("demo-tuned")], demo.dev)
    assert whole.all.a.f == tally.summary.means["SetF"]
    better, worse, same = whole.all.counts
    assert better + worse + same == tally.summary.queries_scored


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_can_be_on_the_bench(demo, name):
    stage = make_stage(name)
    front = [] if stage.kind in ("source", "rewrite") else ["Dense"]
    pipeline = parse_pipeline([*front, stage])
    drawn = seen(demo, a=pipeline)
    entry = drawn.stages[-1]
    assert entry.name == name
    assert entry.title
    assert entry.meaning
    assert payload.pack(drawn)


def test_a_stage_that_is_off_keeps_its_place_and_its_settings():
    pipeline = parse_pipeline(["Dense", {"AdaptiveGap": {"gap_threshold": 0.2}}, {"TopK": {"k": 7}}])
    off = [(1, pipeline.stages[1])]
    rest = parse_pipeline(["Dense", {"TopK": {"k": 7}}])
    listed = sight.listed_stages(rest, off)
    assert [(entry.stage.name, entry.on) for entry in listed] == [
        ("Dense", True),
        ("AdaptiveGap", False),
        ("TopK", True),
    ]
    assert dump_stages(sight.pipeline_from(listed)) == dump_stages(rest)
    assert listed[1].stage == AdaptiveGap(gap_threshold=0.2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pipelines())
def test_any_pipeline_goes_from_the_list_on_the_left_to_the_address_and_back(pipeline):
    listed = sight.listed_stages(pipeline, ())
    again = state.decode(state.encode(sight.pipeline_from(listed)))
    assert dump_stages(again) == dump_stages(pipeline)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pipelines(most=4))
def test_any_pipeline_of_an_address_is_shown_and_stands_in_the_address_after(demo_app, pipeline):
    entry = state.encode(pipeline)
    app = bench(demo_app, project="rulebook", a=entry, b="fixed-15")
    assert app.session_state[state.KEY].a == entry
    shown = state.decode(app.query_params["a"][0] if isinstance(app.query_params["a"], list) else app.query_params["a"])
    assert dump_pipeline(shown) == dump_pipeline(pipeline)


@pytest.fixture(scope="module")
def demo_app(demo):
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    from tests.pages.conftest import ROOT

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_WORKSPACE", str(demo.workspace))
        st.cache_resource.clear()
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        yield app.run()


def test_with_a_stage_off_the_dashed_lines_and_losses_name_the_cut_where_it_is_listed(demo):
    whole = demo.pipeline("demo-tuned")
    (cut,) = [at for at, stage in enumerate(whole.stages) if stage.is_cut]
    off = [(1, whole.stages[1])]
    pipeline = parse_pipeline([stage for at, stage in enumerate(whole.stages) if at != 1])
    looked = sight.look(demo, {"A": pipeline, "B": demo.pipeline("fixed-15")}, "combat-2")
    listed = sight.listed_stages(pipeline, off)
    drawn = sight.payload_of(looked, listed, {}, version=1, zoom="one", lens="losses")
    assert drawn.curve.cut_stage == cut
    assert {line.stage for line in drawn.curve.lines} == {cut}
    assert [loss.stage for loss in drawn.losses[1:]] == [cut]
    lost = [row for row in drawn.rows if row.relevant and not row.a.kept]
    assert drawn.losses[1].lost == len(lost)
    reaching = [drawn.rows[at].a.place for at in drawn.curve.reaching]
    assert reaching == list(range(len(reaching)))  # a gap of the chart is one between neighbours


def test_what_a_knob_shows_is_what_the_plain_pipeline_gives(demo):
    pipeline = demo.pipeline("demo-tuned")
    ready, captures = demo.ready(pipeline), demo.captures(pipeline, demo.dev)
    knobs = [knob for knob in cheap_knobs(captures, ready, searched=True) if not knob.dear]
    assert {knob.setting for knob in knobs} >= {"gap_threshold", "distance_offset", "min_results", "max_results"}
    for knob in knobs:
        function = step_function(captures, ready, knob.stage, knob.setting, knob.positions)
        at = list(knob.positions).index(knob.value)
        (tally,) = demo.measure([pipeline], demo.dev)
        assert function.means[2, at] == pytest.approx(tally.summary.means["SetF"], abs=1e-12)


def test_judging_is_a_look_and_looking_at_the_same_again_is_none(demo_app, demo):
    app = bench(demo_app, project="rulebook", a="demo-tuned", b="fixed-15")
    judge = next(button for button in app.button if button.label.startswith("Judge on"))
    before = len(looks(demo.project.state))  # the tests of this module share a project, in any order
    said = "never yet" if not before else f"{before} look"
    assert said in "\n".join(str(one.value) for one in app.markdown)
    sane(judge.click().run(timeout=60))
    assert {look.name for look in looks(demo.project.state)[before:]} == {"demo-tuned"}
    count = len(looks(demo.project.state))
    judge = next(button for button in app.button if button.label.startswith("Judge on"))
    sane(judge.click().run(timeout=60))
    assert len(looks(demo.project.state)) == count


def test_what_is_judged_is_what_a_is_when_the_button_is_pressed(demo_app, demo):
    """The Bench repaints itself alone after a number was let go: the buttons below it stand as they were drawn."""
    app = bench(demo_app, project="rulebook", a="hybrid", b="fixed-15")
    judge = next(button for button in app.button if button.label.startswith("Judge on"))
    app.session_state[state.KEY] = replace(app.session_state[state.KEY], a="adaptive-default")
    before = len(looks(demo.project.state))
    sane(judge.click().run(timeout=60))
    assert [look.name for look in looks(demo.project.state)[before:]] == ["adaptive-default"]
    assert app.session_state["bench.verdict"].a == "adaptive-default"


def test_a_held_out_question_in_sight_is_a_look_and_a_dev_question_is_none(demo_app, demo):
    held_out, dev = demo.split.held_out[0], demo.dev[0].query.id
    before = len(looks(demo.project.state))
    bench(demo_app, project="rulebook", a="hybrid", b="fixed-15", q=dev)
    assert len(looks(demo.project.state)) == before
    app = bench(demo_app, project="rulebook", a="hybrid", b="fixed-15", q=held_out)
    seen = looks(demo.project.state)[before:]
    assert {look.place for look in seen} == {"Bench, one question"}
    assert {look.questions for look in seen} == {1}
    sane(app.run(timeout=60))
    assert looks(demo.project.state)[before:] == seen
    bench(demo_app, project="rulebook", q=dev)  # as it was, for the tests that share it


def test_a_project_without_rules_says_that_they_dropped_nothing(tmp_path):
    session = Session(open_project("skirmish-rules", tmp_path))
    session.refresh()
    pipeline = session.pipeline("query-must")
    looked = sight.look(session, {"A": pipeline, "B": session.pipeline("fixed-15")}, "")
    rules = next(stage for stage in sight.payload_of(
        looked, sight.listed_stages(pipeline, ()), {}, version=1, zoom="one", lens="threshold"
    ).stages if stage.name == "QueryMust")  # fmt: skip
    assert rules.did == "−0"
    assert "no chunk carries a rule" in rules.note


@pytest.mark.parametrize("metric", ["cosine", "rerank"])
def test_a_reranked_list_has_the_lines_of_its_cut_only_where_the_rows_show_that_score(metric, tmp_path):
    folder = tmp_path / "eval_sets" / "mine"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: mine\n")
    scores = [0.9, 0.85, 0.3, 0.2] if metric == "rerank" else [0.3, 0.9, 0.2, 0.85]
    hits = [{"id": f"c{at}", "distance": at / 10, "rerank": one, "relevant": 1} for at, one in enumerate(scores)]
    line = {"id": "q", "query": "what", "metric": metric, "split": "dev", "candidates": hits}
    (folder / "lists.jsonl").write_text(json.dumps(line) + "\n")
    cut = AdaptiveGap(gap_threshold=0.5, distance_offset=0.25, min_results=1, score_kind="rerank")
    front = () if metric == "rerank" else (make_stage("Rerank"),)
    drawn = seen(Session(open_project("mine", tmp_path)), a=Pipeline((*front, cut)), question="q")
    assert drawn.one.a.kept == 2
    shown = (drawn.curve.score_name, len(drawn.curve.lines))
    assert shown == (("reranker's score", 2) if metric == "rerank" else ("cosine distance", 0))
