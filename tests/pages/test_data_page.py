"""Data through AppTest: a new project from documents, a Chroma store or recorded lists; its chunks; what comes next."""

import json

import pytest
from werkzeug import Response

from pages import state
from pages.components import jobs
from rag_core.index import foreign_place
from rag_core.index.collection import list_collections
from rag_core.project.deeds import INGEST, Deed, log
from rag_core.roles import Person

ME = Deed(INGEST, Person("me", "admin"), "docs")
HOSTILE = "![x](http://foreign.invalid/a.png)"


@pytest.fixture
def data(app_at):
    """Data of a project that is yet to be made, as “New project…” opens it (AppTest does not follow that switch)."""
    app = app_at("data")
    app.session_state[state.BEGINNING] = True
    return sane(app.run())


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
    job = jobs.current(f"data {app.session_state[state.KEY].project}")
    assert job is not None
    assert job.over.wait(seconds)
    return sane(app.run())


def order(app, name, path):
    app.text_input(key="data.path").set_value(str(path)).run()
    app.text_input(key="data.name").set_value(name).run()
    return sane(app)


def ingest(app, name, path):
    order(app, name, path)
    button(app, "Ingest").click().run()
    return finished(app)


def show(app, view):
    app.segmented_control(key="data.section").set_value(view).run()
    return sane(app)


def test_the_demo_stands_with_its_figures(open_app, figures, words):
    app = sane(open_app("data", project="rulebook"))
    assert figures(app)["chunks"][0] == "694"
    assert figures(app)["with a rule"][0] == "138 (20%)"
    assert any("Open the Bench" in link.proto.label for link in app.get("page_link"))


def test_a_new_project_is_three_clicks_and_a_path_and_says_what_comes_next(data, folder, words, figures):
    data.text_input(key="data.path").set_value(str(folder)).run()
    assert data.text_input(key="data.name").placeholder == "documents"
    button(data, "Ingest").click().run()  # the third: the selector and its last choice were the others
    app = finished(data)
    assert app.session_state[state.KEY].project == "documents"
    assert "Chunks in the collection: 3**; from 2 documents read, 3 added" in words(app)
    assert any("Files passed over: 1" in one.label for one in app.expander)
    assert frame(app, "title")["document"].tolist() == ["one.md", "one.md", "two.md"]
    assert figures(app)["chunks"][0] == "3"
    assert any("Add questions" in link.proto.label for link in app.get("page_link"))
    assert app.query_params["project"] == "documents"


def test_while_a_project_is_made_nothing_of_another_is_shown(data, words, figures):
    assert not figures(data)
    assert "694" not in "".join(link.proto.label for link in data.get("page_link"))
    assert data.selectbox(key="rail.project").value == "New project…"


def test_a_link_begins_a_project(open_app):
    app = open_app("data", new="1")
    assert sane(app).selectbox(key="rail.project").value == "New project…"
    assert app.text_input(key="data.path")


def test_documents_are_brought_up_to_date_and_nothing_is_embedded_twice(data, folder, words):
    app = ingest(data, "mine", folder)
    show(app, "Documents")
    (folder / "two.md").write_text("## Swimming\n\nEverybody swims.\n")
    button(app, "Bring up to date").click().run()
    assert "0 added, 1 changed, 0 removed, 1 embedded" in words(finished(app))


def test_further_documents_come_beside_those_before(data, folder, tmp_path, words, figures):
    app = show(ingest(data, "mine", folder / "one.md"), "Documents")
    app.text_input(key="data.path").set_value(str(folder / "two.md")).run()
    button(app, "Ingest").click().run()
    assert figures(finished(app))["chunks"][0] == "3"
    (folder / "one.md").write_text("## Climbing\n\nOne chunk less.\n")
    button(app, "Bring up to date").click().run()
    assert figures(finished(app))["chunks"][0] == "2"


def test_work_that_was_stopped_is_resumed_with_one_click(data, folder, workspace, words, figures):
    from rag_core.errors import Cancelled
    from rag_core.project.intake import Documents, begin_project, take_in

    def stop(done, total):
        raise Cancelled("stopped")

    project = begin_project(workspace, "mine")
    with pytest.raises(Cancelled):
        take_in(project, Documents((str(folder),)), stop)
    data.run().selectbox(key="rail.project").select("mine").run()
    assert "its first ingest has not ended" in words(sane(data)) or "not here yet" in words(data)
    button(data, "Ingest now").click().run()
    assert figures(finished(data))["chunks"][0] == "3"


def test_recorded_lists_are_source_and_questions_at_once(data, jsonl, words, figures):
    data.segmented_control(key="data.kind").set_value("Recorded lists").run()
    hits = [{"id": f"c{n}", "title": f"Chunk {n}", "text": "x" * n, "distance": n / 10} for n in range(1, 4)]
    data.file_uploader[0].upload("shop.jsonl", jsonl({"query": "what?", "candidates": hits}), "application/json").run()
    app = sane(button(data, "Take these lists").click().run())
    assert app.session_state[state.KEY].project == "shop"
    assert figures(app)["chunks"][0] == "3"
    assert frame(app, "title")["title"].tolist() == ["Chunk 1", "Chunk 2", "Chunk 3"]
    app.selectbox(key="data.order.shop").set_value("longest").run()
    assert frame(sane(app), "title")["title"].tolist()[0] == "Chunk 3"
    assert any("Label chunks" in link.proto.label for link in app.get("page_link"))


def test_a_file_that_holds_no_lists_makes_no_project(data, words, workspace):
    data.segmented_control(key="data.kind").set_value("Recorded lists").run()
    data.file_uploader[0].upload("shop.jsonl", b'{"query": 1}', "application/json").run()
    data.run()
    assert "no lists yet" in words(sane(data))
    assert button(data, "Take these lists").disabled
    assert not (workspace / "eval_sets").exists()


def test_a_log_that_nobody_knows_is_read_by_the_columns_that_a_person_names(data, jsonl, words, figures):
    data.segmented_control(key="data.kind").set_value("Recorded lists").run()
    got = [{"key": f"c{n}", "meta": {"body": "x" * n, "head": f"Chunk {n}"}, "dist": n / 10} for n in (1, 2, 3)]
    log = jsonl({"turn": {"wanted": "what?"}, "got": got})
    data.file_uploader[0].upload("shop.jsonl", log, "application/json").run()
    assert button(sane(data), "Take these lists").disabled
    for label, path in {"question": "turn.wanted", "its chunks": "got", "id": "key", "title": "meta.head"}.items():
        next(one for one in data.selectbox if one.label == label).set_value(path).run()
    assert "Questions with their lists: 1" in words(sane(data))
    assert frame(data, "first chunk")["first chunk"].tolist() == ["Chunk 1"]
    app = sane(button(data, "Take these lists").click().run())
    assert figures(app)["chunks"][0] == "3"
    assert frame(app, "title")["title"].tolist() == ["Chunk 1", "Chunk 2", "Chunk 3"]


def test_chunks_are_narrowed_by_text_in_any_case_and_by_document(data, folder, words):
    ingest(data, "mine", folder)
    show(data, "Chunks")
    data.text_input(key="data.holds.mine").set_value("öl").run()
    assert frame(sane(data), "title")["title"].tolist() == ["Swimming"]
    data.text_input(key="data.holds.mine").set_value("no such word").run()
    assert "No chunk fits" in words(data)


def test_a_selected_chunk_shows_its_metadata_as_text(data, folder, words):
    ingest(data, "mine", folder)
    data.session_state["data.chunk"] = "two.md#swimming"
    show(data, "Chunks")
    assert "header: Swimming" in "\n".join(one.value for one in data.text)


def test_what_was_selected_in_one_project_is_not_looked_for_in_another(data, folder, words):
    app = ingest(data, "mine", folder)
    app.session_state["data.chunk"] = "two.md#swimming"
    assert "cannot be shown" not in words(sane(app.run()))
    app.selectbox(key="rail.project").select("rulebook").run()
    assert "cannot be shown" not in words(sane(app))
    assert "data.chunk" not in app.session_state


def test_many_chunks_are_paged(data, tmp_path, words):
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"id": f"c{n:03}", "text": f"text {n}"}) + "\n" for n in range(120)))
    ingest(data, "many", path)
    show(data, "Chunks")
    assert len(frame(data, "title")) == 50
    data.session_state["data.page"] = 3
    data.run()
    assert frame(sane(data), "title")["title"].tolist()[0] == "text 100"
    assert "101–120 of **120** chunks" in words(data)


def test_numbers_show_coverage_and_duplicates(data, tmp_path, figures, words):
    path = tmp_path / "a.jsonl"
    rule = {"contain_one_of": [["x"]]}
    rows = [{"id": "a", "text": "same"}, {"id": "b", "text": "same"}, {"id": "c", "text": "other", "query_must": rule}]
    path.write_text("\n".join(map(json.dumps, rows)))
    ingest(data, "mine", path)
    show(data, "Numbers")
    assert figures(data)["with a rule"][0] == "1 (33%)"
    assert figures(data)["repeated"][0] == "1"
    assert frame(data, "ids")["ids"].tolist() == ["a, b"]
    assert "Chunks that repeat another’s title and text: 1" in words(data)


def test_columns_of_a_table_are_proposed_and_a_preview_writes_nothing(data, tmp_path, words, workspace):
    path = tmp_path / "a.csv"
    path.write_text("doc_id,body,team\n007,first,A\n")
    order(data, "mine", path)
    button(data, "Preview").click().run()
    assert "Chunks: 1, documents: 1" in words(sane(data))
    assert frame(data, "characters")["id"].tolist() == ["007"]
    assert not (workspace / "collections" / "mine").exists()


def test_dropped_files_are_ingested(data, words, workspace):
    data.file_uploader[0].upload("My Notes.md", b"## Dropped\n\ntext", "text/markdown").run()
    button(sane(data), "Ingest").click().run()
    assert "Chunks in the collection: 1" in words(finished(data))
    assert data.session_state[state.KEY].project == "my-notes"
    assert [path.name for path in (workspace / "dropped").iterdir()] == ["my-notes"]


@pytest.mark.parametrize("name", ["../up", "rulebook", "demo", "a b"])
def test_a_name_that_cannot_be_taken_is_one_sentence(data, folder, words, name):
    order(data, name, folder)
    button(data, "Ingest").click().run()
    assert "nothing was written" in words(sane(data))
    assert jobs.current(f"data {name}") is None


def test_a_folder_that_is_not_there_is_a_sentence_and_makes_no_project(data, tmp_path, words, workspace):
    order(data, "mine", tmp_path / "none")
    button(data, "Ingest").click().run()
    assert "is not there, expected a file or folder" in words(sane(data))
    assert not (workspace / "eval_sets" / "mine").exists()


def test_a_collection_is_deleted_only_after_its_name_was_typed(data, folder, words):
    ingest(data, "mine", folder)
    show(data, "Documents")
    assert data.button(key="data.delete").disabled
    data.text_input(key="data.confirm").set_value("mine").run()
    data.button(key="data.delete").click().run()
    assert "This project has no source yet." in words(sane(data))
    assert data.text_input(key="data.path")
    assert (folder / "one.md").exists()


def test_foreign_titles_never_stand_in_markup(data, folder):
    ingest(data, "mine", folder)
    for view in ("Chunks", "Numbers", "Documents"):
        show(data, view)
        assert "foreign.invalid" not in "\n".join(str(one.value) for one in (*data.markdown, *data.caption))


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


def test_a_chroma_collection_is_found_connected_and_shown_with_its_distance(data, tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, chromadb; c = chromadb.PersistentClient(sys.argv[1]).create_collection('wear');"
        "c.add(ids=['a', 'b'], embeddings=[[1.0] * 384, [0.5] * 384], documents=['a hat', 'a boot'],"
        "metadatas=[{'label': 'Hat', 'found': 'hats.md'}, {'label': 'Boot', 'found': 'boots.md'}])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "store")], check=True)
    data.segmented_control(key="data.kind").set_value("Chroma collection").run()
    data.text_input(key="data.chroma_path").set_value(str(tmp_path / "store")).run()
    sane(button(data, "Look what is there").click().run())
    assert list(frame(data, "records")["distance"]) == ["l2"]
    app = finished(sane(button(data, "Connect").click().run()))
    assert any("Chunks in the mirror: 2" in one.value for one in app.markdown)
    assert app.session_state[state.KEY].project == "wear"
    assert frame(app, "title")["title"].tolist() == ["Hat", "Boot"]
    assert frame(app, "title")["document"].tolist() == ["hats.md", "boots.md"]
    show(app, "Documents")
    assert "l2 distances" in "\n".join(one.value for one in app.text)
    assert app.selectbox[[one.label for one in app.selectbox].index("title")].value == "label"


def test_a_folder_that_is_no_store_is_said_and_nothing_is_listed(data, tmp_path):
    data.segmented_control(key="data.kind").set_value("Chroma collection").run()
    data.text_input(key="data.chroma_path").set_value(str(tmp_path)).run()
    app = sane(button(data, "Look what is there").click().run())
    assert any("holds no chroma.sqlite3" in one.value for one in app.text)


def test_documents_are_embedded_by_an_endpoints_model_where_one_is_named(
    data, folder, httpserver, monkeypatch, words, workspace
):
    def vectors(request):
        data = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(request.get_json()["input"])]
        return Response(json.dumps({"data": data}), content_type="application/json")

    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(vectors)
    order(data, "mine", folder)
    data.text_input(key="data.model").set_value("tiny").run()
    button(sane(data), "Ingest").click().run()
    assert "no endpoint serves tiny" in words(sane(data))
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    data.number_input(key="data.dimension").set_value(2).run()
    button(sane(data), "Ingest").click().run()
    assert "3 embedded" in words(finished(data))
    assert list_collections(workspace)[0].model == "tiny"


def test_chroma_cloud_is_asked_with_the_key_of_the_environment_and_never_shows_it(data, httpserver, monkeypatch, words):
    httpserver.expect_request("").respond_with_json({"error": "canary-key-123456789"}, status=401)
    monkeypatch.setattr(foreign_place, "CLOUD", httpserver.url_for("").rstrip("/"))
    data.segmented_control(key="data.kind").set_value("Chroma collection").run()
    data.toggle(key="data.chroma_cloud").set_value(True).run()
    assert "CHROMA_API_KEY is not set" in words(sane(data))
    monkeypatch.setenv("CHROMA_API_KEY", "canary-key-123456789")
    data.run()
    button(sane(data), "Look what is there").click().run()
    assert "nothing was written" in words(sane(data))
    assert "canary" not in words(data)
    asked = [request for request, _ in httpserver.log]
    assert {request.headers.get("x-chroma-token") for request in asked} == {"canary-key-123456789"}
    data.text_input(key="data.chroma_url").set_value("http://127.0.0.1:8000").run()
    assert "several places are given" in words(sane(data))
