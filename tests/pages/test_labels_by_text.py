"""Labels' view Import and export where texts name things: Ragas files, and labels after a corpus was cut anew."""

import json

import pytest

from rag_core.eval_sets.reading import load_set
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore

SET = "own"
CANDIDATES = [{"id": name, "title": name, "text": f"The text of {name}.", "distance": 0.1} for name in "abc"]


@pytest.fixture
def case(workspace):
    folder = workspace / "eval_sets" / SET
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\ntitle: Own lists\n")
    (folder / "lists.jsonl").write_text(json.dumps({"id": "q", "query": "What is it?", "candidates": CANDIDATES}))
    return load_set(SET, workspace).cases[0]


@pytest.fixture
def exchange(open_app, case):
    """The view on recorded lists."""

    def opened():
        app = open_app("labels", project=SET, annotator="ann")
        app.segmented_control(key="labels.view").set_value("Import and export")
        return sane(app.run())

    return opened


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def press(app, label):
    next(button for button in app.button if button.label == label).click()
    return sane(app.run())


def labels(workspace):
    with open_store(workspace) as store:
        return {(one.query_id, one.chunk_id): one.grade for one in LabelStore(store).labels(SET)}


def test_a_ragas_file_is_met_by_text_and_says_what_the_set_does_not_ask(exchange, workspace, case, figures, words):
    chunk = case.candidates.hits[0].chunk
    samples = [
        {"user_input": case.query.text, "reference_contexts": [chunk.text]},
        {"user_input": "Who rules the sea?", "reference_contexts": ["Nobody."]},
    ]
    app = exchange()
    app.selectbox(key="exchange.format").set_value("ragas")
    app.file_uploader(key="exchange.file").upload("r.jsonl", "\n".join(map(json.dumps, samples)).encode(), "text/plain")
    assert figures(sane(app.run()))["new"][0] == "1"
    assert "1 line asks what this project does not: left out." in words(app)
    press(app, "Bring in 1 new")
    assert labels(workspace) == {(case.query.id, chunk.id): 2}


def test_after_a_new_cut_the_labels_that_meet_nothing_are_named_and_kept(exchange, workspace, case, words):
    kept, moved, lost = (hit.chunk for hit in case.candidates.hits[:3])
    with open_store(workspace) as store:
        LabelStore(store).append(
            [
                Event(session="s", seq=seq, eval_set=SET, query_id=case.query.id, chunk_id=chunk.id,
                      annotator="ann", grade=1, text_hash=text_hash(chunk.text))
                for seq, chunk in enumerate((kept, moved, lost))
            ]
        )  # fmt: skip
    now = [CANDIDATES[0], {**CANDIDATES[1], "id": "new-id"}]
    lists = workspace / "eval_sets" / SET / "lists.jsonl"
    lists.write_text(json.dumps({"id": "q", "query": "What is it?", "candidates": now}))
    app = exchange()
    assert "1 label meets nothing now" in words(app)
    assert list(app.dataframe[-1].value["chunk"]) == [lost.id]
    assert len(labels(workspace)) == 3


def test_relevant_labels_leave_as_ragas_and_come_back_equal(exchange, workspace, case, figures, words):
    chunk = case.candidates.hits[0].chunk
    sample = {"user_input": case.query.text, "reference_contexts": [chunk.text]}
    app = exchange()
    app.selectbox(key="exchange.format").set_value("ragas")
    app.file_uploader(key="exchange.file").upload("r.jsonl", json.dumps(sample).encode(), "text/plain")
    sane(app.run())
    press(app, "Bring in 1 new")
    assert "equal" not in figures(app)  # the file is put away
    app.file_uploader(key="exchange.file.1").upload("r.jsonl", json.dumps(sample).encode(), "text/plain")
    assert figures(sane(app.run()))["equal"][0] == "1"
    app.selectbox(key="exchange.out").set_value("ragas")
    sane(app.run())
    assert "1 label of people" in words(app)
    assert any(button.label == "Download as ragas" for button in app.get("download_button"))
