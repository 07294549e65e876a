"""Label through AppTest: empty states, agreement and adjudication, import with its undo, audit."""

import pytest
from streamlit.testing.v1 import AppTest

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


def said(workspace, annotator, grades):
    with open_store(workspace) as store:
        LabelStore(store).append(
            [
                Event(
                    session=annotator, seq=seq, eval_set="recorded-combat", query_id="combat-1",
                    chunk_id=chunk, annotator=annotator, grade=grade,
                )
                for seq, (chunk, grade) in enumerate(grades.items())
            ]
        )  # fmt: skip


def test_a_pool_that_is_judged_offers_a_second_opinion(label_page, words):
    app = sane(label_page())
    assert "in this pool has a label" in words(app)
    next(button for button in app.button if "second opinion" in button.label).click()
    assert sane(app.run()).segmented_control(key="label.which").value == "I have not judged"
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
    next(button for button in app.button if button.label == "1 partly").click()
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
    next(button for button in app.button if button.label == "1 partly").click()
    sane(app.run())
    assert stored_by(workspace) == ["bob@example.org"]


def test_nobody_takes_the_name_of_decisions(label_page, words):
    app = sane(label_page(annotator="adjudicated"))
    assert "kept for decisions between people" in words(app)
    assert dict(app.query_params)["annotator"] == "me"
