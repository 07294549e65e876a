"""Labels of models: kept like anybody's, counted nowhere unless asked for by name, shown after the person's own."""

import pytest

from rag_core.store.events import SEEING
from rag_core.store.exchange.formats import lines_to_export
from rag_core.store.keys import chunk_key, text_hash
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import (
    model_annotator,
    models,
    peoples_grades,
    runs_of,
    store_model_labels,
)
from tests.store.conftest import make_event

MODEL = model_annotator("small one")


@pytest.fixture
def labels(store):
    kept = LabelStore(store)
    kept.append([make_event(0, query_id="q", chunk_id="a", annotator="ann", grade=1)])
    store_model_labels(kept, "demo", MODEL, [("q", "far?", "a", "", 3, "why"), ("q", "far?", "b", "", 2, "so")])
    return kept


def test_a_models_labels_do_not_count(labels):
    assert labels.current("demo") == {"q": {"a": 1}}
    assert [event.annotator for event in labels.labels("demo")] == ["ann"]
    lines, _ = lines_to_export(labels, "demo", None, "trec")
    assert [(line.chunk_id, line.grade) for line in lines] == [("a", 1)]


def test_they_are_there_when_asked_for_by_name(labels):
    assert labels.current("demo", MODEL) == {"q": {"a": 3, "b": 2}}
    assert labels.stats("demo").annotators == {"ann": 1, MODEL: 2}
    assert models(labels, "demo") == [MODEL]


def test_a_newer_label_of_a_model_does_not_hide_a_persons(labels):
    store_model_labels(labels, "demo", MODEL, [("q", "far?", "a", "", 0, "changed its mind")])
    assert labels.current("demo") == {"q": {"a": 1}}
    assert labels.current("demo", MODEL)["q"]["a"] == 0


def test_storing_the_same_again_writes_nothing(labels):
    before = len(labels.history("demo"))
    assert store_model_labels(labels, "demo", MODEL, [("q", "far?", "a", "", 3, "why")]) == 0
    assert len(labels.history("demo")) == before


def test_repeats_are_annotators_of_their_own_in_order(labels):
    for run in (2, 10):
        store_model_labels(labels, "demo", model_annotator("small one", run), [("q", "far?", "a", "", run % 4, "")])
    assert models(labels, "demo") == [MODEL]
    key = ("q", chunk_key("a", ""))
    assert [run[key] for run in runs_of(labels, "demo", MODEL)] == [3, 2, 2]


def test_peoples_grades_are_the_stores_else_the_files(labels):
    model = labels.labels("demo", MODEL)
    files = {"q": {"a": 0, "b": 3}}
    assert sorted(peoples_grades(labels, "demo", model, files).values()) == [1, 3]
    assert list(peoples_grades(labels, "demo", model, files, "ann").values()) == [1]


def test_a_label_meets_by_text_whatever_the_id(store):
    kept = LabelStore(store)
    kept.append(
        [make_event(0, query_id="q", chunk_id="old", annotator="ann", grade=2, text_hash=text_hash("same words"))]
    )
    store_model_labels(kept, "demo", MODEL, [("q", "far?", "new", "Same  words", 2, "")])
    assert peoples_grades(kept, "demo", kept.labels("demo", MODEL), {}) == {
        ("q", chunk_key("new", text_hash("same words"))): 2
    }


def test_a_label_given_with_a_proposal_in_sight_tells_nothing_of_the_model(labels):
    model = labels.labels("demo", MODEL)
    led = make_event(9, query_id="q", chunk_id="b", annotator="ann", grade=2, sampler=f"{SEEING}{MODEL}")
    labels.append([led])
    assert labels.current("demo")["q"] == {"a": 1, "b": 2}  # it counts as any label of a person
    assert list(peoples_grades(labels, "demo", model, {"q": {"b": 2}}).values()) == [1]
