"""Families and rules of Data through AppTest: proposals and their verdicts, apply and undo, editing one, lint."""

import json
import sys
from pathlib import Path

import pytest

from rag_core.index.chroma_server import ChromaServer
from rag_core.index.collection import open_collection
from rag_core.index.foreign import connect
from rag_core.index.foreign_place import ForeignPlace
from rag_core.index.rules import apply_rules
from rag_core.project.intake import begin_project, take_lists
from rag_core.rules.rule import Rule, read_rule

sys.path.insert(0, str(Path(__file__).parents[1]))  # the small collection that tests share

import small_rules

LOST = {"contain": "halberd"}
HOSTILE = "![x](http://foreign.invalid/a.png)"


def opened(app_at, section="Families", project=small_rules.NAME):
    app = app_at("data", project=project, section=section)
    app.session_state["data.k"] = 5
    return ran(app.run(timeout=120))


def ran(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.fixture
def built(workspace):
    """The small collection; its questions are all dev, so that what is checked can be told by hand."""
    small_rules.build(workspace)
    declare_dev(workspace)
    return workspace


def declare_dev(workspace):
    path = workspace / "eval_sets" / small_rules.NAME / "queries.jsonl"
    rows = [{**json.loads(line), "split": "dev"} for line in path.read_text().splitlines()]
    path.write_text("\n".join(map(json.dumps, rows)))
    (path.parent / "project.yaml").write_text("version: 1\nsplit: {from: declared}\n")


@pytest.fixture
def families(built, app_at):
    return opened(app_at)


def section(app, name, key="data.section"):
    return ran(app.segmented_control(key=key).set_value(name).run())


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def click(app, label):
    return ran(next(one for one in app.button if one.label == label).click().run())


def stored(workspace, chunk_id):
    chunks = open_collection(workspace, small_rules.NAME).chunks
    return read_rule(next(chunk.query_must for chunk in chunks if chunk.id == chunk_id))


def with_rule(figures, app):
    return figures(app)["with a rule"][0]


def test_a_family_stands_with_its_slot_and_its_share_of_the_places(families):
    [row] = frame(families, "family").to_dict("records")
    assert row["carry rules"] == "0 of 6"
    assert row["differs in"] == "armor class (6)"
    assert row["proposed"] == 6
    assert 40 < row["not relevant"] < row["places taken"] < 100


def test_every_proposal_has_its_verdict_on_every_question_before_anything_is_stored(families, built):
    proposals = frame(families, "irrelevant dropped").set_index("title")
    assert list(proposals["state"]) == ["new"] * 6
    assert proposals.loc["… Armor Class 6", "relevant kept"] == "1 of 1"
    assert proposals.loc["… Armor Class 5", "irrelevant dropped"] == "1 of 1"
    assert len(frame(families, "because")) == 3
    assert stored(built, "cleric-6") is None


def test_apply_stores_the_rules_as_one_batch_and_undo_takes_them_back(families, built, words, figures):
    assert with_rule(figures, families) == "0 (0%)"
    click(families, "Apply 6 rules")
    assert "Batch 1 is stored: 6 chunks" in words(families)
    assert with_rule(figures, ran(families.run())) == "6 (75%)"
    assert frame(families, "family")["with rules"][0] < 10
    assert "ac 6" in repr(stored(built, "cleric-6")).lower() or "armor class 6" in repr(stored(built, "cleric-6"))
    click(families, "Undo batch 1")
    assert with_rule(figures, ran(families.run())) == "0 (0%)"
    assert stored(built, "cleric-6") is None


def test_all_families_are_applied_with_one_press(families, built, words):
    click(families, "Apply all that lose no answer (6 rules)")
    assert "Batch 1 is stored: 6 chunks" in words(families)
    assert stored(built, "cleric-8") is not None


def test_the_effect_on_the_questions_is_shown_before_applying_and_comes_true(families, figures):
    now, then = figures(families)["Precision at 5"]
    click(families, "Apply 6 rules")
    after = figures(families)["Precision at 5"][0]
    assert then == f"{after} with these applied"
    assert float(after) > float(now)


def test_the_rules_of_a_family_can_be_taken_away_and_brought_back(families, built):
    click(families, "Apply 6 rules")
    click(families, "Take away 6 rules")
    assert stored(built, "cleric-6") is None
    section(families, "Rules")
    assert list(frame(families, "batch")["batch"]) == [2, 1]
    click(families, "Undo this batch")
    assert list(frame(families, "batch")["state"]) == ["undone", "stands"]
    assert stored(built, "cleric-6") is not None


def test_a_proposal_that_loses_an_answer_is_not_applied_and_says_why(built, app_at):
    labels = built / "eval_sets" / small_rules.NAME / "qrels.tsv"
    labels.write_text(labels.read_text() + "shield\tcleric-4\t1\n")
    app = opened(app_at)
    proposals = frame(app, "irrelevant dropped").set_index("title")
    assert proposals["state"].to_dict() == {
        "… Armor Class 4": "not applied",
        **{f"… Armor Class {one}": "new" for one in (3, 5, 6, 7, 8)},
    }
    assert "relevant: shield" in proposals.loc["… Armor Class 4", "reason"]
    click(app, "Apply 5 rules")
    assert stored(built, "cleric-4") is None


def test_labels_of_held_out_questions_check_nothing(built, app_at):
    path = built / "eval_sets" / small_rules.NAME / "queries.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(json.dumps({**row, "split": "test" if row["id"] == "shield" else "dev"}) for row in rows))
    labels = path.with_name("qrels.tsv")
    labels.write_text(labels.read_text() + "shield\tcleric-4\t1\n")
    app = opened(app_at)
    assert set(frame(app, "irrelevant dropped")["state"]) == {"new"}
    assert len(frame(app, "because")) == 2


def edit(app, chunk_id, text, key="data.rule_chunk"):
    app.session_state[key] = chunk_id
    ran(app.run())
    ran(app.text_area[0].set_value(text).run())


def test_a_rule_is_tried_on_a_question_as_it_is_typed_and_stores_nothing(built, app_at):
    app = section(opened(app_at, "Rules"), "Edit one", "data.rules_view")
    ran(app.text_input(key="data.rule_question").set_value("a halberd").run())
    edit(app, "cleric-5", '{"contain": "halberd"}')
    assert stored(built, "cleric-5") is None
    assert app.text_area[0].value == '{"contain": "halberd"}'


def test_the_rule_of_a_chunk_in_sight_is_edited_with_one_press(built, app_at):
    app = opened(app_at, "Chunks")
    app.session_state["data.chunk"] = "cleric-5"
    click(ran(app.run()), "Edit its rule")
    assert app.selectbox(key="data.rule_chunk").value == "cleric-5"
    assert app.text_area


@pytest.mark.parametrize(
    ("chunk", "text", "said"),
    [
        ("cleric-5", '{"contains": "x"}', "'contains'"),
        ("cleric-5", "{", "JSON"),
        ("cleric-6", '{"contain": "halberd"}', "labelled relevant: six"),
        ("cleric-5", "", "the rule is the stored one already"),
    ],
)
def test_a_rule_that_cannot_be_stored_is_said_in_a_sentence(built, app_at, words, chunk, text, said):
    app = section(opened(app_at, "Rules"), "Edit one", "data.rules_view")
    edit(app, chunk, text)
    click(app, "Save this rule")
    assert "Nothing was stored." in words(app)
    assert said in words(app)
    assert stored(built, chunk) is None


def test_a_saved_rule_is_a_batch_that_can_be_undone(built, app_at):
    app = section(opened(app_at, "Rules"), "Edit one", "data.rules_view")
    edit(app, "cleric-5", '{"contain": "halberd"}')
    click(app, "Save this rule")
    assert stored(built, "cleric-5").contain == "halberd"
    click(app, "Undo batch 1")
    assert stored(built, "cleric-5") is None


def test_lint_names_every_rule_that_drops_a_relevant_chunk(workspace, app_at, words):
    small_rules.build(workspace, rule=LOST)
    declare_dev(workspace)
    app = section(opened(app_at, "Rules"), "Lint", "data.rules_view")
    assert "1 rules drop a chunk labelled relevant" in words(app)
    row = frame(app, "severity").to_dict("records")[0]
    assert (row["severity"], row["kind"], row["question"]) == ("✕ error", "drops relevant", "three")


def test_without_questions_families_are_named_by_size_and_applied(workspace, app_at, words):
    small_rules.build(workspace)
    (workspace / "eval_sets" / small_rules.NAME / "queries.jsonl").unlink()
    (workspace / "eval_sets" / small_rules.NAME / "qrels.tsv").unlink()
    app = opened(app_at)
    assert "places taken" not in frame(app, "family").columns
    click(app, "Apply 6 rules")
    assert stored(workspace, "cleric-6") is not None
    assert "is not checked" in words(section(section(app, "Rules"), "Lint", "data.rules_view"))


def test_rules_of_recorded_lists_lie_over_them(workspace, app_at, jsonl, figures):
    hits = [
        {"id": chunk.id, "title": chunk.title, "text": chunk.text, "distance": at / 10}
        for at, chunk in enumerate(small_rules.chunks(), 1)
    ]
    before = jsonl({"id": "q", "query": "a cleric hits armor class 6", "candidates": hits, "labels": {"cleric-6": 2}})
    project = take_lists(begin_project(workspace, "taken"), before, "lists.jsonl")
    app = opened(app_at, project="taken")
    click(app, "Apply all that lose no answer (6 rules)")
    assert with_rule(figures, ran(app.run())) == "6 (75%)"
    assert (project.folder / "lists.jsonl").read_bytes() == before
    click(app, "Undo batch 1")
    assert with_rule(figures, ran(app.run())) == "0 (0%)"


def test_foreign_titles_reach_no_markdown(families):
    for name in ("Families", "Rules", "Chunks"):
        section(families, name)
        assert not [one for one in families.markdown if "foreign.invalid" in one.value]


@pytest.mark.slow
def test_the_demo_opens_with_its_rules_and_what_they_save(app_at, figures):
    app = opened(app_at, project="rulebook")
    assert with_rule(figures, app) == "138 (20%)"
    assert frame(app, "family")["carry rules"][0] == "84 of 84"


def test_rules_go_back_to_the_store_after_the_change_was_seen_and_are_taken_back(workspace, app_at, tmp_path, words):
    server = ChromaServer(tmp_path / "served")
    server.folder.mkdir()
    try:
        there = server.client().create_collection("theirs", embedding_function=None)
        there.add(
            ids=["a", "b"], embeddings=[[1.0, 0.0], [0.0, 1.0]], documents=["A wolf.", "A bear."],
            metadatas=[{"title": HOSTILE, "needs": '{"contain": "wolf"}'}, {"title": "Bear"}],
        )  # fmt: skip
        place = ForeignPlace(url=f"http://127.0.0.1:{server.port}")
        fields = {"title": "title", "query_must": "needs"}
        connect(place, "theirs", "mine", workspace, model="text-embedding-3-small:2", fields=fields)
        apply_rules(workspace, "mine", {"a": Rule(contain_one_of=(("wolf", "wolves"),))}, "ours")
        before = there.get(include=["metadatas"])
        begin_project(workspace, "store")
        project = workspace / "eval_sets" / "store" / "project.yaml"
        project.write_text("version: 1\nsource: {kind: collection, name: mine}\n")
        app = click(opened(app_at, "Rules", "store"), "What would change")
        assert list(frame(app, "chunk")["there now"]) == ['{"contain": "wolf"}']
        assert there.get(include=["metadatas"]) == before
        app = click(app, "Write 1 rules there")
        assert "1 chunks written" in words(app)
        assert "wolves" in there.get(ids=["a"], include=["metadatas"])["metadatas"][0]["needs"]
        app = click(app, "Take the last writing back")
        assert there.get(include=["metadatas"]) == before
        server.stop()
        app = click(app, "What would change")
        assert "Nothing was stored." in words(app)
    finally:
        server.stop()
