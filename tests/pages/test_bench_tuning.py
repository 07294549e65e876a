"""Tuning on the Bench: what is there to gain, the plane, a trained cut; through AppTest."""

import json
import shlex
import time

import pytest

from pages import state
from pages.components import jobs
from pages.components.glossary import told
from rag_core.cli import main
from rag_core.filters.chances import SIGNALS
from rag_core.project.ledger import looks
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.records import dump_lists
from rag_core.spec import parse_pipeline
from tests import planted
from tests.pages.walking import sane

ADAPTIVE = state.encode(parse_pipeline({"name": "cut", "stages": [{"AdaptiveGap": {}}]}))


def write_set(workspace, cases, name="made"):
    folder = workspace / "eval_sets" / name
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {name}\ntitle: Made lists\nmin_grade: 1\n")
    (folder / "lists.jsonl").write_text("\n".join(dump_lists(cases)) + "\n")
    return name


@pytest.fixture
def made(workspace):
    """Forty questions with a planted gap and some wrong labels."""
    return write_set(workspace, planted.planted_gap(1, 40, noise=0.1))


@pytest.fixture
def bench(open_app, made):
    """The Bench at zoom All on them."""

    def opened(tool="", **link):
        app = sane(open_app(**{"project": made, "zoom": "all", "a": ADAPTIVE, "b": "auto", **link}))
        return below(app, tool) if tool else app

    return opened


def below(app, tool):
    return sane(app.segmented_control(key="bench.tool").set_value(tool).run(timeout=60))


def table(app, *columns):
    return next(frame.value for frame in app.dataframe if set(columns) <= set(frame.value.columns))


def press(app, key):
    app.button(key=key).click()
    return sane(app.run(timeout=60))


def finish(app):
    deadline = time.monotonic() + 120
    while jobs.under_way():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return sane(app.run(timeout=60))


def session_of(workspace, name="made"):
    return Session(open_project(name, workspace))


def a_of(app, workspace):
    return state.decode(app.session_state[state.KEY].a, session_of(workspace))


# What is there to gain


def test_the_ceilings_stand_in_their_order_and_the_command_gives_the_same(bench, workspace, capsys, words):
    app = bench("Losses")
    rows = table(app, "if", "F₁")
    assert list(rows["F₁"]) == sorted(rows["F₁"])
    assert (
        main(["headroom", "--project", "made", "-p", '["AdaptiveGap"]', "--workspace", str(workspace), "--json"]) == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert [said["fixed"], said["best_cut"], said["perfect_filter"]] == list(rows["F₁"][:3])
    assert said["verdict"] in words(app)
    signals = table(app, "score", "AUC").set_index("score")
    assert signals["AUC"]["distance"] > 0.5
    assert signals["AUC"]["gap size"] == {one["name"]: one["auc"] for one in said["signals"]}["gap size"]


def test_every_question_stands_with_its_own_ceilings(bench, workspace):
    rows = table(bench("Losses"), "limited by", "best cut")
    assert len(rows) == len(session_of(workspace).dev)
    assert (rows["perfect filter"] >= rows["best cut"] - 1e-12).all()


def test_share_has_the_command_that_seeks_every_knob(bench, workspace, capsys):
    command = next(code.value for code in bench("Share").code if "--method search" in code.value).split("\n\n")[-1]
    assert main([*shlex.split(command)[1:], "--trials", "5", "--workspace", str(workspace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["search"]["trials"] == 5


def test_without_labels_the_losses_say_so(open_app, workspace, jsonl, words):
    folder = workspace / "eval_sets" / "bare"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: bare\ntitle: Bare\n")
    rows = [{"id": f"q{n}", "query": f"question {n}", "candidates": [{"id": "a", "distance": 0.1}]} for n in range(8)]
    (folder / "lists.jsonl").write_bytes(jsonl(*rows))
    assert "No ceilings" in words(below(sane(open_app(project="bare", zoom="all", a=ADAPTIVE)), "Losses"))


# The plane


def test_the_front_of_the_plane_holds_no_setting_that_another_beats(bench):
    rows = table(bench("Plane"), "kind", "SetR")
    front = rows[rows["kind"] == "cut"]
    points = list(zip(front["SetP"], front["SetR"], strict=True))
    assert not [
        (one, other) for one in points for other in points if one != other and one[0] <= other[0] and one[1] <= other[1]
    ]
    fixed = rows[rows["kind"] == "fixed k"]
    assert list(fixed["k"]) == list(range(1, len(fixed) + 1))
    assert fixed["SetR"].is_monotonic_increasing


def test_every_column_with_a_measure_says_what_it_means(bench):
    frame = next(one for one in bench("Plane").dataframe if "SetR" in one.value.columns)
    config = json.loads(frame.proto.columns or "{}")
    measures = list(filter(told, frame.value.columns))
    assert {"SetP", "SetR", "SetF"} <= set(measures)
    assert [name for name in measures if not config.get(name, {}).get("help")] == []


# A cut's own drawer


def drawer(app, stage):
    app.session_state["bench.drawer"] = stage
    return sane(app.run(timeout=60))


def test_a_trained_cut_learns_from_dev_and_shows_what_it_weighs(bench, workspace, words):
    untrained = state.encode(parse_pipeline({"name": "learned", "stages": ["LearnedCut"]}))
    app = drawer(bench(a=untrained), 0)
    assert "Not trained yet" in words(app)
    app = finish(press(app, "bench.tune"))
    press(app, "bench.tune.take")
    (stage,) = a_of(app, workspace).stages
    assert len(stage.parameters["weights"]) == 10
    assert len(table(drawer(app, 0), "weight")) == 10


def test_a_learned_filter_says_whose_labels_it_weighs_by(bench, words):
    app = drawer(bench(a=state.encode(parse_pipeline({"name": "learned", "stages": ["LearnedFilter"]}))), 0)
    assert "Trained on no label of yours" in words(app)
    assert len(table(app, "weight")) == len(SIGNALS)


def test_the_command_of_a_drawer_finds_the_same_and_counts_its_look(bench, workspace, capsys):
    app = drawer(bench(), 0)
    command = next(code.value for code in app.code if "--method best" in code.value)
    app = finish(press(app, "bench.tune"))
    press(app, "bench.tune.take")
    assert not looks(open_project("made", workspace).state)
    assert main([*shlex.split(command)[1:], "--workspace", str(workspace), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    taken = a_of(app, workspace)
    assert parse_pipeline(said["pipeline"]).stages == taken.stages
    assert looks(open_project("made", workspace).state)


def test_calibrating_proposes_what_the_command_does_and_takes_what_is_on(bench, workspace, capsys, words):
    app = finish(press(bench(), "bench.calibrate"))
    assert "the pipeline searches no words" in words(app)
    options = ["--project", "made", "--workspace", str(workspace), "--take", "all", "--json"]
    assert main(["calibrate", "--pipeline", '["AdaptiveGap"]', *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in said["proposals"]] == ["cut"]
    press(app, "bench.calibrate.take")
    assert a_of(app, workspace).stages == parse_pipeline(said["taken"]["pipeline"]).stages


def test_what_was_proposed_before_a_label_changed_cannot_be_taken(bench, workspace, words):
    app = finish(press(bench(), "bench.calibrate"))
    case = session_of(workspace, "made").dev[0]
    hit = case.candidates.hits[0].chunk.id
    (workspace / "more.csv").write_text(f"query_id,chunk_id,grade\n{case.query.id},{hit},3\n")
    given = ["--eval-set", "made", "--workspace", str(workspace)]
    assert main(["labels", "import", str(workspace / "more.csv"), *given]) == 0
    sane(app.run(timeout=60))
    assert "bench.calibrate.take" not in [one.key for one in app.button]
    assert "have changed since it was begun" in words(app)


def test_a_knob_that_moves_nothing_says_so(workspace):
    from pages.bench.sight import knob_text
    from rag_core.project.ceilings import moving_knobs

    write_set(workspace, planted.planted_gap(1, 8), "few")
    session = session_of(workspace, "few")
    stages = [{"TopK": {"k": 1}}, {"AdaptiveGap": {}}]
    knobs = {knob.setting: moved for knob, moved in moving_knobs(session, parse_pipeline(stages))}
    assert knobs["k"] == len(session.dev)
    assert knobs["gap_threshold"] == 0
    assert "nothing" in knob_text(0, 8)
