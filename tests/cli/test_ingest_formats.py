"""`ingest` of tables and OpenAPI documents: mapped columns, warnings listed, a wrong option in one sentence."""

import json

import pytest

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
