"""The view Models on Labels: nothing before the person's own label, then grades beside each other and the agreement."""

import pytest

from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import model_annotator, store_model_labels

MODEL = model_annotator("small one")
SECRET = "![x](http://evil.example/x.png) a reason nobody may see yet"


@pytest.fixture
def model_view(open_app):
    def opened():
        app = open_app()
        app.query_params["project"] = "recorded-combat"
        app.query_params["annotator"] = "ann"
        app = app.switch_page("pages/labels/page.py").run()
        app.segmented_control(key="labels.view").set_value("Models")
        app.run()
        assert not app.exception, [error.value for error in app.exception]
        return app

    return opened


def graded(workspace, *chunks):
    with open_store(workspace) as store:
        said = [("combat-1", "asked", chunk, "", 3, SECRET) for chunk in chunks]
        store_model_labels(LabelStore(store), "recorded-combat", MODEL, said)


def own(workspace, chunk, grade):
    with open_store(workspace) as store:
        LabelStore(store).append(
            [Event(session="s", seq=0, eval_set="recorded-combat", query_id="combat-1", chunk_id=chunk,
                   annotator="ann", grade=grade)]
        )  # fmt: skip


def first_chunks():
    from rag_core.eval_sets.reading import load_set

    case = next(case for case in load_set("recorded-combat").cases if case.query.id == "combat-1")
    return [hit.chunk.id for hit in case.candidates.hits[:2]]


def title_of(chunk_id):
    from rag_core.eval_sets.reading import load_set

    hits = (hit for case in load_set("recorded-combat").cases for hit in case.candidates.hits)
    return next(hit.chunk.title for hit in hits if hit.chunk.id == chunk_id)


def test_without_a_model_the_command_is_shown(model_view, words):
    app = model_view()
    assert "No model has graded this project" in words(app)
    assert "labels judge --eval-set recorded-combat" in app.code[0].value


def test_a_models_grade_is_hidden_until_the_person_labelled_the_chunk(model_view, workspace, words):
    one, other = first_chunks()
    graded(workspace, one, other)
    app = model_view()
    assert "Chunks you and a model graded: 0" in words(app)
    assert SECRET not in str([frame.value for frame in app.dataframe])
    own(workspace, one, 0)
    app = model_view()
    assert "Chunks you and a model graded: 1**, otherwise: 1" in words(app)
    row = app.dataframe[-1].value.iloc[0]
    assert (row["chunk"], row["you"], row["model"], row["reason"]) == (title_of(one), "0", "3", SECRET)
    assert SECRET not in words(app)


def test_nobody_labels_under_the_name_of_a_model(model_view, words):
    app = model_view()
    app.text_input(key="label.annotator").set_value("model:me")
    app.run()
    assert not app.exception
    assert "you label as me" in words(app)
