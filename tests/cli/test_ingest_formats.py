"""`ingest`: mapped columns, a look without writing, long chunks, another model; a wrong option in one sentence."""

import json

import pytest
from werkzeug import Response

from rag_core.cli import main

API = {
    "openapi": "3.0.0",
    "info": {"title": "Pets"},
    "paths": {"/pets": {"get": {"operationId": "listPets", "responses": {"200": {"$ref": "#/nowhere"}}}}},
}


@pytest.fixture
def ingest(tmp_path, capsys):
    def run(name, content, *options):
        path = tmp_path / name
        path.write_text(content)
        code = main(["ingest", str(path), "--collection", "c", "--workspace", str(tmp_path / "w"), *options])
        return code, capsys.readouterr()

    return run


def test_a_csv_is_ingested_through_a_mapping(ingest):
    code, said = ingest("a.csv", "key,body\n1,first text\n", "--column", "text=body", "--column", "id=key", "--json")
    assert code == 0
    assert (json.loads(said.out)["chunks"], json.loads(said.out)["documents"]) == (1, 1)


def test_warnings_of_an_openapi_document_are_listed(ingest):
    code, said = ingest("a.json", json.dumps(API), "--format", "openapi")
    assert code == 0
    assert "warning: a.json has the reference '#/nowhere', which " in said.out


@pytest.mark.parametrize("option", ["text", "text=", "=body"])
def test_a_mapping_that_is_none_is_one_sentence(ingest, option):
    code, said = ingest("a.csv", "body\nx\n", "--column", option)
    assert code == 2
    assert said.err == f"winnow: --column is {option!r}, expected FIELD=COLUMN, each field once\n"


def test_a_csv_without_a_text_column_says_how_to_map(ingest):
    code, said = ingest("a.csv", "body\nx\n")
    assert code == 2
    assert "has no column text but body; say which holds it, for example text=body" in said.err


LONG = "# Rules\n\n" + "\n\n".join(
    f"Paragraph {number} tells of climbing, falling and swimming." for number in range(60)
)


def test_a_long_section_is_split_unless_it_is_to_be_kept(ingest):
    assert "1 chunks are longer than the 256 tokens the model reads" in ingest("a.md", LONG, "--keep-long")[1].out
    code, said = ingest("a.md", LONG, "--json")
    report = json.loads(said.out)
    assert (code, report["too_long"]) == (0, [])
    assert report["chunks"] > 2


def test_a_dry_run_says_what_would_be_read_and_writes_nothing(ingest, tmp_path):
    (tmp_path / "beside").mkdir()
    code, said = ingest("a.jsonl", '{"id": "c1", "title": "Falls", "text": "A fall hurts."}\n', "--dry-run", "--json")
    look = json.loads(said.out)
    assert code == 0
    assert look["documents"] == [{"name": "a.jsonl", "chunks": 1}]
    assert (look["lengths"]["longest"], look["embedded_share"], look["texts_to_embed"]) == (7, 1.0, 1)
    assert look["chunks"] == [{"id": "c1", "title": "Falls", "type": "", "characters": 13}]
    assert "1 chunks in 1 documents; nothing is written" in ingest("a.md", "## A\n\ntext\n", "--dry-run")[1].out
    assert not (tmp_path / "w").exists()


def test_files_that_are_no_documents_are_named(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("## A\n\ntext\n")
    (tmp_path / "docs/photo.png").write_bytes(b"x")
    assert main(["ingest", str(tmp_path / "docs"), "--collection", "c", "--workspace", str(tmp_path / "w")]) == 0
    assert "1 files are no documents and were passed over, such as photo.png" in capsys.readouterr().out


def test_an_endpoints_model_builds_a_collection_that_is_asked_and_built_on_with_it(
    ingest, httpserver, monkeypatch, capsys, tmp_path
):
    def vectors(request):
        data = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(request.get_json()["input"])]
        return Response(json.dumps({"data": data}), content_type="application/json")

    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(vectors)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    code, said = ingest("a.jsonl", '{"text": "short"}\n{"text": "a longer text"}\n', "--model", "tiny")
    assert (code, said.err) == (
        2,
        "winnow: the dimensions of model tiny are not known, expected them as a setting\n",
    )
    text = '{"id": "s", "text": "short"}\n{"id": "l", "text": "a longer text"}\n'
    assert "2 embedded with tiny" in ingest("a.jsonl", text, "--model", "tiny", "--dimension", "2")[1].out
    assert "1 embedded with tiny" in ingest("a.jsonl", text + '{"id": "n", "text": "new"}\n')[1].out
    assert main(["query", "abcde", "--collection", "c", "--workspace", str(tmp_path / "w"), "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["pipelines"]
    assert answer["queries"][0]["kept"][0]["id"] == "s"
    code, said = ingest("a.jsonl", text, "--engine", "dask://127.0.0.1:9")
    assert said.err == "winnow: --engine is set for tiny, expected it with the bundled all-MiniLM-L6-v2-int8\n"


def test_a_model_that_no_endpoint_serves_is_one_sentence_and_writes_nothing(ingest, monkeypatch, tmp_path):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    code, said = ingest("a.md", "## A\n\ntext\n", "--model", "text-embedding-3-small")
    assert code == 2
    assert said.err.startswith("winnow: no endpoint serves text-embedding-3-small, expected OPENAI_BASE_URL or")
    assert not (tmp_path / "w" / "collections").exists()
