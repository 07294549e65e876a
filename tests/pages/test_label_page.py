"""Label through AppTest: empty states, live sets, agreement and adjudication, import with its undo, audit."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from pages.components import jobs
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore
from tests.pages.conftest import ROOT


@pytest.fixture
def label_page(open_app):
    def opened(**parameters):
        app = open_app()
        for name, value in {"set": "recorded-combat", "annotator": "ann", **parameters}.items():
            app.query_params[name] = value
        return app.switch_page("pages/label.py").run()

    return opened


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def view(app, name):
    app.segmented_control(key="label.view").set_value(name)
    return sane(app.run())


def said(workspace, annotator, grades, eval_set="recorded-combat", query="combat-1"):
    with open_store(workspace) as store:
        LabelStore(store).append(
            [
                Event(
                    session=annotator, seq=seq, eval_set=eval_set, query_id=query,
                    chunk_id=chunk, annotator=annotator, grade=grade,
                )
                for seq, (chunk, grade) in enumerate(grades.items())
            ]
        )  # fmt: skip


def test_a_pool_that_is_judged_offers_a_second_opinion(label_page, words):
    app = sane(label_page())
    assert "in this pool has a label" in words(app)
    next(button for button in app.button if "second opinion" in button.label).click()
    assert sane(app.run()).segmented_control(key="label.which").value == "not by me"
    assert "in this pool has a label" not in words(app)


def test_the_address_names_eval_set_and_person(label_page):
    app = sane(label_page(annotator="bob"))
    assert dict(app.query_params) == {"set": "recorded-combat", "annotator": "bob"}
    assert app.text_input(key="label.annotator").value == "bob"


def test_agreement_needs_two_people(label_page, words):
    assert "Agreement needs two" in words(view(label_page(), "Agreement"))


def test_agreement_shows_alpha_and_counts_disagreements(label_page, workspace, words, figures):
    said(workspace, "ann", {"a": 0, "b": 2, "c": 3})
    said(workspace, "bob", {"a": 0, "b": 2, "c": 1})
    app = view(label_page(), "Agreement")
    assert "**1 chunks are labelled differently**" in words(app)
    assert float(figures(app)["Krippendorff’s alpha, ordinal"][0]) < 1


def test_audit_lists_labels(label_page, words):
    assert "Select a row" in words(view(label_page(), "Audit"))


def test_an_import_says_how_many_labels_meet_nothing(label_page, words):
    app = view(label_page(), "Import and export")
    app.file_uploader(key="exchange.file").upload("l.qrels", b"combat-1 0 combat-1-01 2\nx 0 y 0\n", "text/plain")
    assert "1 of an unknown query: the eval set does not have it" in words(sane(app.run()))


def test_an_import_is_shown_first_and_taken_back(label_page, workspace, figures):
    app = view(label_page(), "Import and export")
    app.file_uploader(key="exchange.file").upload("l.qrels", b"combat-1 0 c1 2\ncombat-1 0 c2 0\n", "text/plain")
    assert figures(sane(app.run()))["new"][0] == "2"
    with open_store(workspace) as store:
        assert LabelStore(store).labels("recorded-combat") == []
    next(button for button in app.button if button.label == "Bring in 2 new").click()
    sane(app.run())
    with open_store(workspace) as store:
        assert len(LabelStore(store).labels("recorded-combat")) == 2
    next(button for button in app.button if "Take this import back" in button.label).click()
    sane(app.run())
    with open_store(workspace) as store:
        assert LabelStore(store).labels("recorded-combat") == []


def test_a_label_file_that_cannot_be_read_is_said(label_page, words):
    app = view(label_page(), "Import and export")
    app.file_uploader(key="exchange.file").upload("l.qrels", b"combat-1 0 c1 9\n", "text/plain")
    assert "line 1" in words(sane(app.run()))


def stored_by(workspace, eval_set="recorded-combat"):
    with open_store(workspace) as store:
        return [event.annotator for event in LabelStore(store).labels(eval_set)]


def test_explore_labels_in_the_name_typed_on_label(label_page, workspace, words):
    app = sane(label_page(annotator="ann"))
    app.switch_page("pages/explore.py").run()
    app.session_state["explore.selected"] = "combat-1-01"
    sane(app.run())
    assert "labelling as ann" in words(app)
    next(button for button in app.button if button.label == "1 related").click()
    sane(app.run())
    assert stored_by(workspace) == ["ann"]


def test_the_name_of_a_log_in_wins_over_the_one_in_the_address(label_page, workspace, monkeypatch):
    monkeypatch.setenv("WINNOW_USER_HEADER", "X-Forwarded-Email")
    workspace.mkdir()
    (workspace / "roles.yaml").write_text("annotator: [bob@example.org]\n")
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    app.user = {"email": "bob@example.org"}
    app.query_params["annotator"] = "ann"
    app.session_state["label.annotator"] = "ann"
    app.session_state["explore.selected"] = "combat-1-01"
    sane(app.run())
    next(button for button in app.button if button.label == "1 related").click()
    sane(app.run())
    assert stored_by(workspace) == ["bob@example.org"]


def test_nobody_takes_the_name_of_decisions(label_page, words):
    app = sane(label_page(annotator="adjudicated"))
    assert "kept for decisions between people" in words(app)
    assert dict(app.query_params)["annotator"] == "me"


CHUNKS = [{"id": f"c{n}", "title": f"Entry {n}", "text": f"A cleric casts spell number {n}."} for n in range(8)]


def write_live(workspace):
    folder = workspace / "eval_sets" / "small"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: small\ntitle: Small and live\n")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, CHUNKS)))
    queries = [{"id": f"q{n}", "query": f"Which spell has number {n}?"} for n in range(2)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tc0\t3\n")


@pytest.fixture
def live_page(label_page, workspace):
    """Label on a live set once its pool is there."""
    write_live(workspace)
    app = sane(label_page(set="small"))
    job = jobs.current("label")
    assert job is not None
    assert job.over.wait(60)
    assert not job.problem
    return sane(app.run())


def queue_of(app):
    return app.session_state["label.queue"][1]


def test_a_live_set_is_searched_once_and_pooled(live_page, label_page):
    queue = queue_of(live_page)
    assert len(queue.pairs) == 16
    assert len(queue.judged) == 1
    assert queue.coverage(15)[0].startswith("Judged@15: adaptive-default ")
    assert queue.coverage(15)[0].endswith("unfiltered 6%")
    first = jobs.current("label")
    again = sane(label_page(set="small", annotator="bob"))
    assert queue_of(again).annotator == "bob"
    assert jobs.current("label") is first


def test_labels_that_know_a_chunk_by_its_id_alone_count_on_its_text(live_page, label_page, workspace):
    """As a file in CSV, TREC or BEIR form brings them."""
    assert len(queue_of(live_page).judged) == 1
    said(workspace, "ann", {"c5": 3, "c6": 0}, "small", "q1")
    assert len(queue_of(sane(label_page(set="small"))).judged) == 3


def test_a_label_from_a_file_is_ones_own_on_explore(label_page, workspace, words):
    said(workspace, "ann", {"combat-1-01": 3})
    app = sane(label_page(annotator="ann"))
    app.switch_page("pages/explore.py").run()
    app.session_state["explore.selected"] = "combat-1-01"
    assert "labelling as ann" in words(sane(app.run()))
    assert "label.undo" in [button.key for button in app.button]


def test_labels_of_a_live_set_meet_its_chunks_and_settle_the_comparison(live_page, workspace):
    live_page.segmented_control(key="label.order").set_value("settles A or B")
    live_page.pills(key="label.pipelines").set_value(["unfiltered", "adaptive-default"])
    sane(live_page.run())
    jobs.current("label").over.wait(60)
    sane(live_page.run())
    assert queue_of(live_page).settled().startswith(("Open: mean SetF of unfiltered minus adaptive-default", "Settled"))
    with open_store(workspace) as store:
        items = [queue_of(live_page).item(name) for name in queue_of(live_page).pairs]
        events = [
            Event(
                session="s", seq=seq, eval_set="small", query_id=one.query_id, chunk_id=one.chunk_id, annotator="bob",
                grade=0, text_hash=one.text_hash,
            )
            for seq, one in enumerate(items)
        ]  # fmt: skip
        LabelStore(store).append(events)
    live_page.session_state["label.version"] = 1
    sane(live_page.run())
    assert queue_of(live_page).settled().startswith("Settled")
    assert queue_of(live_page).coverage(15) == ("Judged@15: adaptive-default 100%, unfiltered 100%",)


def test_a_search_that_fails_says_so_and_is_tried_again(label_page, workspace, words):
    write_live(workspace)
    (workspace / "eval_sets" / "small" / "corpus.jsonl").write_text("no JSON")
    app = sane(label_page(set="small"))
    assert jobs.current("label").over.wait(60)
    sane(app.run())
    assert "not searched to its end" in words(app)
    (workspace / "eval_sets" / "small" / "corpus.jsonl").write_text("\n".join(map(json.dumps, CHUNKS)))
    next(button for button in app.button if button.label == "Search again").click()
    sane(app.run())
    assert jobs.current("label").over.wait(60)
    assert len(queue_of(sane(app.run())).pairs) == 16


def test_a_finding_of_the_audit_opens_the_queue_on_its_chunk(live_page):
    app = view(live_page, "Audit")
    app.session_state["audit.suspects"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    sane(app.run())
    next(button for button in app.button if button.key == "audit.open").click()
    sane(app.run())
    assert app.segmented_control(key="label.view").value == "Queue"
    first = queue_of(app).window()[0]
    assert (first.query_id, first.chunk_id) == ("q0", "c0")
    assert first.why.startswith("The audit doubts its label")


def test_the_blind_sample_opens_the_queue(live_page):
    app = view(live_page, "Audit")
    app.segmented_control(key="audit.how").set_value("blind sample")
    sane(app.run())
    next(button for button in app.button if button.key == "audit.sample").click()
    assert queue_of(sane(app.run())).window()[0].chunk_id == "c0"


def test_people_who_differ_on_a_live_set_are_adjudicated(live_page, workspace, words):
    item = queue_of(live_page).window()[0]
    with open_store(workspace) as store:
        for who, grade in (("ann", 0), ("bob", 3)):
            LabelStore(store).append(
                [Event(session=who, seq=0, eval_set="small", query_id=item.query_id, chunk_id=item.chunk_id,
                       annotator=who, grade=grade, text_hash=item.text_hash)]
            )  # fmt: skip
    app = view(live_page, "Agreement")
    app.session_state["agreement.list"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    sane(app.run())
    next(button for button in app.button if button.label == "2 relevant").click()
    sane(app.run())
    with open_store(workspace) as store:
        LabelStore(store).append(
            [Event(session="ann", seq=1, eval_set="small", query_id=item.query_id, chunk_id=item.chunk_id,
                   annotator="ann", grade=0, text_hash=item.text_hash)]
        )  # fmt: skip
        assert LabelStore(store).current("small") == {item.query_id: {item.chunk_id: 2}}
