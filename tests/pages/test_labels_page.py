"""Labels through AppTest: the queue at once, empty states, agreement and adjudication, import with its undo, audit."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from rag_core.project.project import COLLECTION, ProjectSource, init_project
from rag_core.store.database import open_store
from rag_core.store.events import IN_SIGHT, Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.types import Query
from tests.pages.walking import sane


@pytest.fixture
def labels_page(open_app):
    def opened(project="recorded-combat", annotator="ann", **parameters):
        return sane(open_app("labels", project=project, annotator=annotator, **parameters))

    return opened


def view(app, name):
    app.segmented_control(key="labels.view").set_value(name)
    return sane(app.run())


def said(workspace, annotator, grades, eval_set="recorded-combat", query="combat-1", **more):
    with open_store(workspace) as store:
        LabelStore(store).append(
            [
                Event(
                    session=f"{annotator} {query}", seq=seq, eval_set=eval_set, query_id=query,
                    chunk_id=chunk, annotator=annotator, grade=grade, **more,
                )
                for seq, (chunk, grade) in enumerate(grades.items())
            ]
        )  # fmt: skip


def press(app, label):
    next(button for button in app.button if label in button.label).click()
    return sane(app.run())


def queue_of(app):
    return app.session_state["labels.queue"][1]


def test_a_pool_that_is_judged_offers_a_second_opinion(labels_page, words):
    app = labels_page()
    assert "in this pool has a label" in words(app)
    app = press(app, "second opinion")
    assert app.segmented_control(key="labels.which").value == "not by me"
    assert "in this pool has a label" not in words(app)


def test_the_address_names_project_and_person(labels_page):
    app = labels_page(annotator="bob")
    assert app.query_params["project"] == "recorded-combat"
    assert app.query_params["annotator"] == "bob"
    assert app.text_input(key="label.annotator").value == "bob"


def test_agreement_needs_two_people(labels_page, words):
    assert "Agreement needs two" in words(view(labels_page(), "Agreement"))


def test_agreement_of_a_few_chunks_is_too_few_and_counts_disagreements(labels_page, workspace, words, figures):
    said(workspace, "ann", {"a": 0, "b": 2, "c": 3})
    said(workspace, "bob", {"a": 0, "b": 2, "c": 1})
    app = view(labels_page(), "Agreement")
    assert "**1 chunk is labelled differently**" in words(app)
    assert figures(app)["Agreement beyond chance (Krippendorff’s α)"][0] == "too few"


def test_agreement_of_many_has_an_interval_and_leaves_out_labels_given_in_sight(labels_page, workspace, words, figures):
    for query in range(8):
        grades = {f"c{query} {n}": (n + query) % 4 for n in range(6)}
        said(workspace, "ann", grades, query=f"q{query}")
        said(workspace, "bob", {**grades, f"c{query} 0": 3}, query=f"q{query}")
    said(workspace, "cy", {"x": 0}, sampler=IN_SIGHT)
    app = view(labels_page(), "Agreement")
    low, high = figures(app)["95 % interval"][0].split(" to ")
    assert float(low) <= float(figures(app)["Agreement beyond chance (Krippendorff’s α)"][0]) <= float(high)
    assert "1 label given on the Bench" in words(app)
    assert "cy" not in app.dataframe[0].value.to_string()


def test_an_import_says_what_is_read_and_what_meets_nothing_and_why(labels_page, figures):
    app = view(labels_page(), "Import and export")
    file = b"combat-1 0 combat-1-01 2\nx 0 y 0\ncombat-1 0 nowhere 1\n"
    app.file_uploader(key="exchange.file").upload("l.qrels", file, "text/plain")
    found = figures(sane(app.run()))
    assert (found["read"][0], found["lost"][0]) == ("3", "2")
    assert set(app.dataframe[0].value["why"]) == {"no such question here", "in no list: counts as not found"}


def test_an_import_is_shown_first_and_taken_back(labels_page, workspace, figures):
    app = view(labels_page(), "Import and export")
    app.file_uploader(key="exchange.file").upload("l.qrels", b"combat-1 0 c1 2\ncombat-1 0 c2 0\n", "text/plain")
    assert figures(sane(app.run()))["new"][0] == "2"
    assert stored_by(workspace) == []
    press(app, "Bring in 2 new")
    assert len(stored_by(workspace)) == 2
    press(app, "Take this import back")
    assert stored_by(workspace) == []


def test_a_label_file_that_cannot_be_read_is_said(labels_page, words):
    app = view(labels_page(), "Import and export")
    app.file_uploader(key="exchange.file").upload("l.qrels", b"combat-1 0 c1 9\n", "text/plain")
    assert "line 1" in words(sane(app.run()))


def stored_by(workspace, eval_set="recorded-combat"):
    with open_store(workspace) as store:
        return [event.annotator for event in LabelStore(store).labels(eval_set)]


def test_the_name_of_a_log_in_wins_over_the_one_in_the_address(workspace, monkeypatch):
    monkeypatch.setenv("WINNOW_USER_HEADER", "X-Forwarded-Email")
    workspace.mkdir()
    (workspace / "roles.yaml").write_text("annotator: [bob@example.org]\n")
    script = "import streamlit as st\nfrom pages.components import who\nst.text(who.annotator())"
    app = AppTest.from_string(script, default_timeout=30)
    app.user = {"email": "bob@example.org"}
    app.session_state["label.annotator"] = "ann"
    assert [text.value for text in sane(app.run()).text] == ["bob@example.org"]


def test_nobody_takes_the_name_of_decisions(labels_page, words):
    app = labels_page(annotator="adjudicated")
    assert "kept for decisions between people" in words(app)
    assert "annotator" not in app.query_params


def test_without_documents_or_questions_the_next_step_is_said(labels_page, workspace, words):
    init_project(workspace, "bare")
    assert "nothing to search yet" in words(labels_page("bare"))
    init_project(workspace, "asked", ProjectSource(COLLECTION, "rulebook"))
    assert "no question yet" in words(labels_page("asked"))


CHUNKS = [{"id": f"c{n}", "title": f"Entry {n}", "text": f"A cleric casts spell number {n}."} for n in range(8)]


def write_live(workspace, labelled=True):
    folder = workspace / "eval_sets" / "small"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: small\ntitle: Small and live\n")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, CHUNKS)))
    queries = [{"id": f"q{n}", "query": f"Which spell has number {n}?"} for n in range(2)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    if labelled:
        (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tc0\t3\n")


@pytest.fixture
def live_page(labels_page, workspace):
    write_live(workspace)
    return labels_page("small")


def test_the_queue_is_there_at_once_with_what_the_projects_own_pipelines_show(labels_page, workspace, words):
    write_live(workspace, labelled=False)
    queue = queue_of(labels_page("small"))
    assert {item.chunk_id for item in queue.window()} == {chunk["id"] for chunk in CHUNKS}
    assert len(queue.pairs) == 16
    assert queue.coverage(15)[0].startswith("labelled of the first 15: A ")


def test_what_is_asked_does_not_change_with_the_labels_that_are_given(live_page, labels_page, workspace):
    before = list(queue_of(live_page).pairs)
    said(workspace, "bob", {f"c{n}": 3 for n in range(8)}, "small", "q1")
    assert list(queue_of(labels_page("small")).pairs) == before


def test_better_places_are_asked_sooner_and_of_many_questions(workspace, labels_page):
    folder = workspace / "eval_sets" / "deep"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: deep\ntitle: Deep\n")
    lists = [
        {"id": f"q{q}", "query": f"Question {q}?",
         "candidates": [{"id": f"{q} {n}", "text": f"text {q} {n}", "distance": n / 100} for n in range(12)]}
        for q in range(40)
    ]  # fmt: skip
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, lists)))
    asked = queue_of(labels_page("deep")).window()[:60]
    places = [int(item.chunk_id.split()[1]) for item in asked]
    assert sum(place < 3 for place in places) > 60 * 3 / 12 * 1.5
    assert len({item.query_id for item in asked}) > 20


def test_a_pipeline_that_asks_a_model_is_pooled_without_asking(labels_page, workspace):
    write_live(workspace)
    app = labels_page("small", a="~eJxTSkxJUdJRyk0sKYlPSU1TAJKZxSWJRSVKOgoAh9QJbA")  # no pipeline: one sentence
    sane(app)
    from pages import state
    from rag_core.spec import parse_pipeline

    asking = state.encode(parse_pipeline(["QueryMust", "LLMFilter"]))
    assert len(queue_of(labels_page("small", a=asking)).pairs) == 16


def test_labels_that_know_a_chunk_by_its_id_alone_count_on_its_text(live_page, labels_page, workspace):
    """As a file in CSV, TREC or BEIR form brings them."""
    assert len(queue_of(live_page).judged) == 1
    said(workspace, "ann", {"c5": 3, "c6": 0}, "small", "q1")
    assert len(queue_of(labels_page("small")).judged) == 3


def test_labels_of_a_live_set_meet_its_chunks_and_settle_the_comparison(live_page, workspace):
    live_page.segmented_control(key="labels.order").set_value("settles A or B")
    sane(live_page.run())
    assert queue_of(live_page).settled().startswith(("Open: mean F₁ of A", "Settled"))
    items = [queue_of(live_page).item(name) for name in queue_of(live_page).pairs]
    with open_store(workspace) as store:
        events = [
            Event(
                session="s", seq=seq, eval_set="small", query_id=one.query_id, chunk_id=one.chunk_id, annotator="bob",
                grade=0, text_hash=one.text_hash,
            )
            for seq, one in enumerate(items)
        ]  # fmt: skip
        LabelStore(store).append(events)
    live_page.session_state["labels.version"] = 1
    sane(live_page.run())
    assert queue_of(live_page).settled().startswith("Settled")
    assert queue_of(live_page).coverage(15)[0].endswith("100%")


def test_a_source_that_cannot_be_read_says_so_and_works_when_mended(labels_page, workspace, words):
    write_live(workspace)
    corpus = workspace / "eval_sets" / "small" / "corpus.jsonl"
    corpus.write_text("no JSON")
    app = labels_page("small")
    assert "This cannot be shown" in words(app)
    corpus.write_text("\n".join(map(json.dumps, CHUNKS)))
    assert len(queue_of(sane(app.run())).pairs) == 16


def test_a_finding_of_the_audit_opens_the_queue_on_its_chunk(live_page):
    app = view(live_page, "Audit")
    app.session_state["audit.suspects"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    sane(app.run())
    assert app.dataframe[0].value["chunk"].tolist() == ["Entry 0"]
    next(button for button in app.button if button.key == "audit.open").click()
    sane(app.run())
    assert app.segmented_control(key="labels.view").value == "Queue"
    first = queue_of(app).window()[0]
    assert (first.query_id, first.chunk_id) == ("q0", "c0")
    assert first.why.startswith("The audit doubts its label")


def test_the_blind_sample_opens_the_queue_and_holds_no_label_given_in_sight(live_page, labels_page, workspace):
    said(workspace, "ann", {"c3": 3}, "small", "q1", sampler=IN_SIGHT)
    app = view(labels_page("small"), "Audit")
    app.segmented_control(key="audit.how").set_value("blind sample")
    sane(app.run())
    assert app.dataframe[0].value["chunk"].tolist() == ["Entry 0"]
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
    press(app, "2 relevant")
    with open_store(workspace) as store:
        LabelStore(store).append(
            [Event(session="ann", seq=1, eval_set="small", query_id=item.query_id, chunk_id=item.chunk_id,
                   annotator="ann", grade=0, text_hash=item.text_hash)]
        )  # fmt: skip
        assert LabelStore(store).current("small")[item.query_id][item.chunk_id] == 2


def test_a_question_that_joins_is_asked(labels_page, workspace):
    from rag_core.project.project import add_questions, open_project

    write_live(workspace)
    app = labels_page("small")
    add_questions(open_project("small", workspace), [Query("q9", "Who casts?")])
    assert "q9" in {pair.query.id for pair in queue_of(sane(app.run())).pairs.values()}


def test_the_hash_of_a_text_is_what_a_label_is_kept_under(live_page):
    item = queue_of(live_page).window()[0]
    assert item.text_hash == text_hash(item.text)
