"""Rules through AppTest: families, proposals and their verdicts, apply and undo, editing beside a query, lint."""

import json
import sys
from pathlib import Path

import pytest

from rag_core.index.collection import open_collection
from rag_core.rules.parsing import read_rule

sys.path.insert(0, str(Path(__file__).parents[1]))  # the small collection that tests share

import small_rules

LOST = {"contain": "halberd"}


def opened(open_app, collection=small_rules.NAME):
    app = open_app()
    app.query_params.clear()  # as a browser does on the way to another page
    app.session_state["choice.collection"] = collection
    app.session_state["rules.k"] = 5
    app.switch_page("pages/rules.py")
    return ran(app.run(timeout=120))


def ran(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.fixture
def rules(workspace, open_app):
    small_rules.build(workspace)
    return opened(open_app)


def view(app, name):
    return ran(app.segmented_control(key="rules.view").set_value(name).run())


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def click(app, label):
    return ran(next(one for one in app.button if one.label == label).click().run())


def labels_of(app):
    return [one.label for one in app.button]


def stored(workspace, chunk_id):
    chunks = open_collection(workspace, small_rules.NAME).chunks
    return read_rule(next(chunk.query_must for chunk in chunks if chunk.id == chunk_id))


def kept(app):
    rows = frame(app, "verdict").to_dict("records")
    return {row["title"] for row in rows if row["verdict"] == "● kept"}


def test_a_family_stands_with_its_share_of_the_places_and_its_template(rules):
    [row] = frame(rules, "family").to_dict("records")
    assert row["carry rules"] == "0 of 6"
    assert row["template"] == "combat-clerics"
    assert row["most in one"] == 5
    assert 40 < row["not relevant"] < row["places taken"] < 100


def test_every_proposal_has_its_verdict_on_every_labelled_query_before_anything_is_stored(rules, workspace):
    proposals = frame(rules, "irrelevant dropped").set_index("title")
    assert list(proposals["state"]) == ["new"] * 6
    assert proposals.loc["… Armor Class 6", "relevant kept"] == "1 of 1"
    assert proposals.loc["… Armor Class 5", "irrelevant dropped"] == "1 of 1"
    assert len(frame(rules, "because")) == 3
    assert stored(workspace, "cleric-6") is None


def test_apply_stores_the_rules_as_one_batch_and_undo_takes_them_back(rules, workspace, words, figures):
    assert figures(rules)["chunks with a rule"][0] == "0 of 8"
    click(rules, "Apply 6 rules")
    assert "Batch 1 is stored: 6 chunks" in words(rules)
    assert figures(rules)["chunks with a rule"][0] == "6 of 8"
    assert frame(rules, "family")["not relevant, with rules"][0] < 10
    assert stored(workspace, "cleric-6").contain_one_of[1] == ("armor class 6", "ac 6", "a.c. 6")
    click(rules, "Undo batch 1")
    assert figures(rules)["chunks with a rule"][0] == "0 of 8"
    assert stored(workspace, "cleric-6") is None


def test_the_effect_on_the_labelled_queries_is_shown_before_applying_and_comes_true(rules, figures):
    now, then = figures(rules)["SetP at 5"]
    click(rules, "Apply 6 rules")
    after = figures(rules)["SetP at 5"][0]
    assert then == f"{after} with these applied"
    assert float(after) > float(now)


def test_the_rules_of_a_family_can_be_taken_away_and_brought_back(rules, workspace, figures):
    click(rules, "Apply 6 rules")
    click(rules, "Take away 6 rules")
    assert figures(rules)["chunks with a rule"][0] == "0 of 8"
    view(rules, "Batches")
    assert list(frame(rules, "batch")["batch"]) == [2, 1]
    click(rules, "Undo this batch")
    assert list(frame(rules, "batch")["state"]) == ["undone", "stands"]
    assert stored(workspace, "cleric-6") is not None


def test_a_proposal_that_loses_an_answer_is_refused_with_the_reason(workspace, open_app):
    small_rules.build(workspace)
    labels = workspace / "eval_sets" / small_rules.NAME / "qrels.tsv"
    labels.write_text(labels.read_text() + "shield\tcleric-4\t1\n")
    app = opened(open_app)
    proposals = frame(app, "irrelevant dropped").set_index("title")
    assert proposals["state"].to_dict() == {
        "… Armor Class 4": "refused",
        **{f"… Armor Class {one}": "new" for one in (3, 5, 6, 7, 8)},
    }
    assert "labelled relevant: shield" in proposals.loc["… Armor Class 4", "reason"]
    click(app, "Apply 5 rules")
    assert stored(workspace, "cleric-4") is None


def test_without_an_endpoint_one_sentence_says_what_to_set(rules, words):
    assert "Set OPENAI_BASE_URL" in words(rules)
    assert rules.selectbox(key="rules.by").options == ["its template"]


def answer_with(httpserver, *rules):
    """A model that answers every call with these rules, one per chunk."""
    entries = [{"number": number, "query_must": rule} for number, rule in enumerate(rules, 1)]
    message = {"content": json.dumps({"rules": entries})}
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "model": "small-model"}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(body)


def test_a_model_writes_rules_that_are_checked_and_is_not_asked_twice(
    workspace, open_app, httpserver, monkeypatch, words
):
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    good = [
        {"contain_one_of": [["cleric", "druid", "monk"], [f"ac {armor}", f"armor class {armor}"]]}
        for armor in (3, 4, 5)
    ]
    answer_with(httpserver, *good, {"contain": "halberd"}, {"contains": "x"}, None)
    small_rules.build(workspace)
    app = opened(open_app)
    ran(app.selectbox(key="rules.by").set_value("a language model").run())
    click(app, "Ask for 6 rules (1 calls)")
    proposals = frame(app, "irrelevant dropped")
    assert list(proposals["state"]) == ["refused", "refused", "new", "new", "new"]
    assert "labelled relevant: six" in proposals["reason"][0]
    assert "'contains'" in proposals["reason"][1]
    assert "1 calls made, 0 answers were kept" in words(app)
    click(app, "Ask for 6 rules (1 calls)")
    assert "0 calls made, 1 answers were kept" in words(app)
    assert len(httpserver.log) == 1
    click(app, "Apply 3 rules")
    assert stored(workspace, "cleric-6") is None
    assert stored(workspace, "cleric-5").contain_one_of[1] == ("ac 5", "armor class 5")


def test_editing_a_rule_changes_the_list_at_once_and_stores_nothing(rules, workspace, words):
    view(rules, "Beside a query")
    before = frame(rules, "verdict")
    assert "change" not in before.columns
    choose_chunk(rules, "cleric-5")
    edit(rules, '{"contain": "halberd"}')
    after = frame(rules, "verdict").set_index("title")
    [changed] = [title for title, change in after["change"].items() if change == "now dropped"]
    assert changed.endswith("Armor Class 5")
    assert "now kept" in set(after["change"])
    assert stored(workspace, "cleric-5") is None


def choose_chunk(app, chunk_id):
    app.session_state["rules.chunk"] = chunk_id
    ran(app.run())


def edit(app, text):
    ran(app.text_area[0].set_value(text).run())


def test_a_rule_that_cannot_be_read_is_said_in_one_sentence_and_leaves_the_list(rules, words):
    view(rules, "Beside a query")
    edit(rules, '{"contains": "x"}')
    assert "This rule cannot be read" in words(rules)
    assert "'contains'" in words(rules)
    assert "change" not in frame(rules, "verdict").columns
    edit(rules, "{")
    assert "This rule cannot be read" in words(rules)


def test_a_saved_rule_is_a_batch_that_can_be_undone(rules, workspace):
    view(rules, "Beside a query")
    choose_chunk(rules, "cleric-5")
    edit(rules, '{"contain": "halberd"}')
    click(rules, "Save this rule")
    assert stored(workspace, "cleric-5").contain == "halberd"
    click(rules, "Undo batch 1")
    assert stored(workspace, "cleric-5") is None


def test_a_rule_that_drops_a_relevant_chunk_is_not_saved(rules, workspace, words):
    view(rules, "Beside a query")
    choose_chunk(rules, "cleric-6")
    edit(rules, '{"contain": "halberd"}')
    click(rules, "Save this rule")
    assert "Nothing was stored." in words(rules)
    assert "labelled relevant: six" in words(rules)
    assert stored(workspace, "cleric-6") is None


def test_lint_names_every_rule_that_drops_a_relevant_chunk_and_leads_to_its_query(workspace, open_app, words):
    small_rules.build(workspace, rule=LOST)
    app = view(opened(open_app), "Lint")
    assert "1 rules drop a chunk labelled relevant" in words(app)
    row = frame(app, "severity").to_dict("records")[0]
    assert (row["severity"], row["kind"], row["query"]) == ("✕ error", "drops relevant", "three")


def test_why_not_finds_a_chunk_outside_of_the_list(rules, workspace):
    from pages.components.why_not_box import answer
    from rag_core import workbench
    from rag_core.evaluate.why_not import why_not
    from rag_core.spec import parse_pipeline
    from rag_core.types import Candidates, Query

    index = workbench.opened(workspace, small_rules.NAME)
    pipeline = workbench.live(parse_pipeline([{"Requery": {"k": 2}}], name="t"), index)
    found = why_not(pipeline, Candidates(Query("q", "cleric hits armor class 6")), "shields")
    text = "\n".join(run.text for block in answer(found) for run in block.runs)
    assert "○ dropped by Requery" in text
    assert "would have kept it" in text
    view(rules, "Beside a query")
    ran(rules.text_input(key="rules.why_not").set_value("shields").run())


def test_a_question_of_ones_own_is_asked(rules):
    view(rules, "Beside a query")
    ran(rules.selectbox(key="rules.query").set_value("").run())
    ran(rules.text_input(key="rules.own").set_value("shield").run())
    assert frame(rules, "verdict")["title"][0].endswith("<b>Shields</b>")
    assert set(frame(rules, "verdict")["label"]) == {"? unjudged"}


def test_foreign_titles_reach_no_markdown(rules, words):
    for name in ("Families", "Beside a query", "Lint", "Batches"):
        view(rules, name)
        assert not [one for one in rules.markdown if "foreign.invalid" in one.value]


def test_without_labelled_queries_families_are_named_by_size(workspace, open_app, words):
    small_rules.build(workspace)
    app = opened(open_app)
    ran(app.selectbox(key=f"rules.eval_set.{small_rules.NAME}").set_value("").run())
    assert "places taken" not in frame(app, "family").columns
    assert "Choose an eval set above" in words(app)
    view(app, "Lint")
    assert "is not checked" in words(app)


def test_a_collection_that_cannot_be_read_is_said_and_another_can_be_chosen(rules, workspace, words):
    for file in (workspace / "collections" / small_rules.NAME).glob("*.sqlite*"):
        file.unlink() if file.suffix != ".sqlite" else file.write_bytes(b"no database" * 1000)
    ran(rules.run())
    assert "This collection cannot be shown." in words(rules)
    assert rules.selectbox(key="rules.collection").options[0] == "Demo: the rulebook"


@pytest.mark.slow
def test_the_demo_opens_with_its_rules_and_what_they_save(open_app, figures):
    app = opened(open_app, "rulebook")
    assert figures(app)["chunks with a rule"][0] == "138 of 694"
    assert figures(app)["lint errors"][0] == "0"
    assert "Nothing to apply" in labels_of(app)
