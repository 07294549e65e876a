"""Corpus through AppTest: build the demo, bring in one's own documents, look at chunks, delete."""

import json

import pytest
from werkzeug import Response

from pages.components import jobs
from rag_core.index import foreign_place
from rag_core.project.deeds import INGEST, Deed, log
from rag_core.roles import Person

ME = Deed(INGEST, Person("me", "admin"), "docs")

HOSTILE = "![x](http://foreign.invalid/a.png)"


@pytest.fixture
def corpus(open_app):
    app = open_app()
    app.switch_page("pages/corpus.py").run()
    assert not app.exception, [error.value for error in app.exception]
    return app


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "documents"
    place.mkdir()
    (place / "one.md").write_text(
        f"# Rules\n\n## Climbing {HOSTILE}\n\nA climb costs two moves.\n\n## Falling\n\nA fall hurts.\n"
    )
    (place / "two.md").write_text("## Swimming\n\nNobody swims in ÖL.\n")
    (place / "photo.png").write_bytes(b"x")
    return place


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def button(app, label):
    return next(widget for widget in app.button if widget.label == label)


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def finished(app, seconds=60):
    """The app once the job is over."""
    assert jobs.current() is not None
    assert jobs.current().over.wait(seconds)
    return sane(app.run())


def order(app, name, path):
    if any(control.key == "corpus.below" for control in app.segmented_control):
        app.segmented_control(key="corpus.below").set_value("Add documents").run()
    app.text_input(key="corpus.name").set_value(name)
    app.text_input(key="corpus.path").set_value(str(path)).run()
    return sane(app)


def ingest(app, name, path):
    order(app, name, path)
    button(app, "Ingest").click().run()
    return finished(app)


def show(app, view):
    app.segmented_control(key="corpus.below").set_value(view).run()
    return sane(app)


def test_a_fresh_workspace_says_what_to_do(corpus, words):
    assert "There is no collection yet." in words(corpus)
    assert button(corpus, "Bring up to date")


def test_the_demo_collection_is_built_and_then_found_up_to_date(corpus, words):
    corpus.selectbox(key="corpus.demo").set_value("rulebook").run()
    button(corpus, "Bring up to date").click().run()
    finished(corpus)
    assert "added" in words(corpus)
    assert frame(corpus, "model")["collection"].tolist() == ["rulebook"]
    button(corpus, "Bring up to date").click().run()
    assert "The collection is up to date already" in words(finished(corpus))


def test_a_folder_is_ingested_and_its_chunks_are_seen(corpus, folder, words):
    ingest(corpus, "mine", folder)
    assert "Chunks in the collection: 3**; from 2 documents read, 3 added" in words(corpus)
    assert any("Files passed over: 1" in one.label for one in corpus.expander)
    show(corpus, "Chunks")
    rows = frame(corpus, "title")
    assert rows["document"].tolist() == ["one.md", "one.md", "two.md"]
    assert frame(corpus, "model").to_dict("records")[0]["chunks"] == 3


def test_a_second_ingest_embeds_nothing_and_says_so(corpus, folder, words):
    ingest(corpus, "mine", folder)
    ingest(corpus, "mine", folder)
    assert "0 added, 0 changed, 0 removed, 0 embedded" in words(corpus)


def test_chunks_are_narrowed_by_text_in_any_case_and_by_document(corpus, folder, words):
    ingest(corpus, "mine", folder)
    show(corpus, "Chunks")
    corpus.text_input(key="corpus.holds.mine").set_value("öl").run()
    assert frame(sane(corpus), "title")["title"].tolist() == ["Swimming"]
    corpus.text_input(key="corpus.holds.mine").set_value("no such word").run()
    assert "No chunk fits" in words(corpus)


def test_a_selected_chunk_shows_its_metadata_as_text(corpus, folder, words):
    ingest(corpus, "mine", folder)
    corpus.session_state["corpus.chunk"] = "two.md#swimming"
    show(corpus, "Chunks")
    assert "header: Swimming" in "\n".join(one.value for one in corpus.text)


def test_many_chunks_are_paged(corpus, tmp_path, words):
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"id": f"c{n:03}", "text": f"text {n}"}) + "\n" for n in range(120)))
    ingest(corpus, "many", path)
    show(corpus, "Chunks")
    assert len(frame(corpus, "title")) == 50
    corpus.session_state["corpus.page"] = 3
    corpus.run()
    assert frame(sane(corpus), "title")["id"].tolist()[0] == "c100"
    assert "101–120 of **120** chunks" in words(corpus)


def test_numbers_show_coverage_and_duplicates(corpus, tmp_path, figures, words):
    path = tmp_path / "a.jsonl"
    rule = {"contain_one_of": [["x"]]}
    rows = [{"id": "a", "text": "same"}, {"id": "b", "text": "same"}, {"id": "c", "text": "other", "query_must": rule}]
    path.write_text("\n".join(map(json.dumps, rows)))
    ingest(corpus, "mine", path)
    show(corpus, "Numbers")
    assert figures(corpus)["with a rule"][0] == "1 (33%)"
    assert figures(corpus)["repeated"][0] == "1"
    assert frame(corpus, "ids")["ids"].tolist() == ["a, b"]
    assert "Chunks that repeat another’s title and text: 1" in words(corpus)


def test_columns_of_a_table_are_proposed_and_a_preview_writes_nothing(corpus, tmp_path, words, workspace):
    path = tmp_path / "a.csv"
    path.write_text("doc_id,body,team\n007,first,A\n")
    order(corpus, "mine", path)
    button(corpus, "Preview").click().run()
    assert "Chunks: 1, documents: 1" in words(sane(corpus))
    assert frame(corpus, "characters")["id"].tolist() == ["007"]
    assert not (workspace / "collections").exists()


def test_dropped_files_are_ingested(corpus, words):
    corpus.text_input(key="corpus.name").set_value("drops").run()
    corpus.file_uploader[0].upload("a.md", b"## Dropped\n\ntext", "text/markdown").run()
    button(sane(corpus), "Ingest").click().run()
    assert "Chunks in the collection: 1" in words(finished(corpus))


@pytest.mark.parametrize(
    ("name", "said"), [("", "the collection's name is ''"), ("../up", "the collection's name is '../up'")]
)
def test_a_name_that_is_none_is_one_sentence(corpus, folder, words, name, said):
    order(corpus, name, folder)
    button(corpus, "Ingest").click().run()
    assert said in words(sane(corpus))
    assert jobs.current() is None


def test_a_folder_that_is_not_there_ends_in_a_sentence(corpus, tmp_path, words):
    ingest(corpus, "mine", tmp_path / "none")
    assert "The work ended with a problem" in words(corpus)
    assert "is not there, expected a file or folder" in words(corpus)


def test_a_collection_is_deleted_only_after_its_name_was_typed(corpus, folder, words):
    ingest(corpus, "mine", folder)
    show(corpus, "Numbers")
    assert corpus.button(key="corpus.delete").disabled
    corpus.text_input(key="corpus.confirm").set_value("mine").run()
    corpus.button(key="corpus.delete").click().run()
    assert "There is no collection yet." in words(sane(corpus))
    assert (folder / "one.md").exists()


def test_foreign_titles_never_stand_in_markup(corpus, folder):
    ingest(corpus, "mine", folder)
    for view in ("Chunks", "Numbers", "Add documents"):
        show(corpus, view)
        assert "foreign.invalid" not in "\n".join(str(one.value) for one in (*corpus.markdown, *corpus.caption))


def test_a_job_that_is_stopped_keeps_what_was_done_and_says_so(folder):
    job = jobs.Job("x", ME, folder.parent)
    job.stop.set()

    def work(progress):
        progress(4, 8)

    job.run(work)
    assert job.over.is_set()
    assert job.stopped == "stopped after 4 of 8 texts; do it again, it resumes"
    assert log(folder.parent)[-1]["outcome"] == "cancelled"


def test_a_fault_in_a_job_still_ends_it(folder):
    job = jobs.Job("x", ME, folder.parent)
    with pytest.raises(ZeroDivisionError):
        job.run(lambda progress: 1 / 0)
    assert job.over.is_set()
    assert job.problem == "internal error, ZeroDivisionError"
    assert (log(folder.parent)[-1]["outcome"], log(folder.parent)[-1]["error"]) == ("failed", "ZeroDivisionError")


def test_a_chroma_collection_is_found_connected_and_shown_with_its_distance(corpus, tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, chromadb; c = chromadb.PersistentClient(sys.argv[1]).create_collection('wear');"
        "c.add(ids=['a', 'b'], embeddings=[[1.0] * 384, [0.5] * 384], documents=['a hat', 'a boot'])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "store")], check=True)
    corpus.segmented_control(key="corpus.way").set_value("Connect Chroma").run()
    corpus.text_input(key="corpus.chroma_path").set_value(str(tmp_path / "store")).run()
    sane(button(corpus, "Look what is there").click().run())
    assert list(frame(corpus, "records")["distance"]) == ["l2"]
    app = finished(sane(button(corpus, "Connect").click().run()))
    assert any("Chunks in the mirror: 2" in one.value for one in app.markdown)
    assert list(frame(app, "MB")["distance"]) == ["l2"]


def test_a_folder_that_is_no_store_is_said_and_nothing_is_listed(corpus, tmp_path):
    corpus.segmented_control(key="corpus.way").set_value("Connect Chroma").run()
    corpus.text_input(key="corpus.chroma_path").set_value(str(tmp_path)).run()
    app = sane(button(corpus, "Look what is there").click().run())
    assert any("holds no chroma.sqlite3" in one.value for one in app.text)


def test_a_look_at_another_header_level_says_where_labels_go_and_cutting_does_it(corpus, folder, workspace, words):
    from rag_core.index.collection import open_collection
    from rag_core.store.database import open_store
    from rag_core.store.events import Event
    from rag_core.store.keys import text_hash
    from rag_core.store.labels import LabelStore

    (folder / "one.md").write_text(
        "## Climbing\nA climb costs the climber two moves.\n\n### Ropes\nA rope halves it all.\n"
    )
    app = ingest(corpus, "mine", folder)
    (chunk,) = [one for one in open_collection(workspace, "mine").chunks if one.title == "Ropes"]
    label = Event(
        session="s", seq=1, eval_set="e", query_id="q", chunk_id=chunk.id, annotator="me", grade=2,
        text_hash=text_hash(chunk.text),
    )  # fmt: skip
    with open_store(workspace) as store:
        LabelStore(store).append([label])
    app.segmented_control(key="corpus.below").set_value("Numbers").run()
    app.segmented_control(key="corpus.recut_level").set_value(2).run()
    sane(button(app, "Look first").click().run())
    assert "**Chunks: 3 would be 2**" in words(app)
    assert list(frame(app, "become")["become"]) == ["split"]
    finished(sane(button(app, "Cut anew").click().run()))
    assert "**Chunks: 3 are 2**" in words(app)
    assert len(open_collection(workspace, "mine").chunks) == 2


def test_a_link_opens_collection_and_view(corpus, folder, open_app):
    ingest(corpus, "mine", folder)
    ingest(corpus, "other", folder)
    app = open_app()
    app.query_params["collection"] = "other"
    app.query_params["view"] = "Numbers"
    app.switch_page("pages/corpus.py").run()
    assert app.session_state["corpus.choice"] == "other"
    assert app.segmented_control(key="corpus.below").value == "Numbers"
    app.segmented_control(key="corpus.below").set_value("Chunks").run()
    assert sane(app).query_params["view"] == "Chunks"


def test_documents_are_embedded_by_an_endpoints_model_where_one_is_named(
    corpus, folder, httpserver, monkeypatch, words
):
    def vectors(request):
        data = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(request.get_json()["input"])]
        return Response(json.dumps({"data": data}), content_type="application/json")

    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(vectors)
    order(corpus, "mine", folder)
    corpus.text_input(key="corpus.model").set_value("tiny").run()
    button(sane(corpus), "Ingest").click().run()
    assert "no endpoint serves tiny" in words(sane(corpus))
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    corpus.number_input(key="corpus.dimension").set_value(2).run()
    button(sane(corpus), "Ingest").click().run()
    assert "3 embedded" in words(finished(corpus))
    assert frame(corpus, "model")["model"].tolist() == ["tiny"]


def test_chroma_cloud_is_asked_with_the_key_of_the_environment_and_never_shows_it(
    corpus, httpserver, monkeypatch, words
):
    httpserver.expect_request("").respond_with_json({"error": "canary-key-123456789"}, status=401)
    monkeypatch.setattr(foreign_place, "CLOUD", httpserver.url_for("").rstrip("/"))
    corpus.segmented_control(key="corpus.way").set_value("Connect Chroma").run()
    corpus.toggle(key="corpus.chroma_cloud").set_value(True).run()
    assert "CHROMA_API_KEY is not set" in words(sane(corpus))
    monkeypatch.setenv("CHROMA_API_KEY", "canary-key-123456789")
    corpus.run()
    button(sane(corpus), "Look what is there").click().run()
    assert "This store cannot be used" in words(sane(corpus))
    assert "canary" not in words(corpus)
    asked = [request for request, _ in httpserver.log]
    assert {request.headers.get("x-chroma-token") for request in asked} == {"canary-key-123456789"}
    corpus.text_input(key="corpus.chroma_url").set_value("http://127.0.0.1:8000").run()
    assert "several places are given" in words(sane(corpus))
