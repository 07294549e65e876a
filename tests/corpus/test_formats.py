"""How a file is recognised: tables by their ending, OpenAPI documents by what they say."""

import json

import pytest

from rag_core.corpus import load
from rag_core.corpus.load import columns_of
from rag_core.errors import InputError

API = {
    "openapi": "3.0.0",
    "info": {"title": "Pets"},
    "paths": {
        "/pets": {"get": {"operationId": "listPets", "responses": {"200": {"$ref": "#/components/responses/No"}}}}
    },
    "components": {"schemas": {"Pet": {"type": "object"}}},
}
YAML = "swagger: '2.0'\ninfo: {title: Pets}\npaths:\n  /pets:\n    get: {operationId: listPets, responses: {}}\n"


def write(folder, **files):
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return folder


def kinds(corpus):
    return {document.name: len(document.chunks) for document in corpus.documents}


def test_a_json_or_yaml_file_that_says_it_is_openapi_is_read_as_that(tmp_path):
    write(tmp_path, a_json=json.dumps(API), b_yaml=YAML, c_json='{"not": "an api"}', d_yml="name: x\n", e_md="## A\nx")
    corpus = load([tmp_path])
    assert kinds(corpus) == {"a.json": 2, "b.yaml": 1, "e.md": 1}
    assert [path.name for path in corpus.others] == ["c.json", "d.yml"]


def test_a_reference_that_leads_nowhere_is_a_warning_of_its_document(tmp_path):
    write(tmp_path, a_json=json.dumps(API), b_yaml=YAML)
    first, second = load([tmp_path]).documents
    (warning,) = first.warnings
    assert warning.startswith("a.json has the reference '#/components/responses/No', which ")
    assert second.warnings == ()
    assert load([tmp_path]).warnings == first.warnings


def test_documents_of_one_folder_refer_to_each_other(tmp_path):
    other = {
        "openapi": "3.0.0",
        "info": {},
        "components": {"schemas": {"Cat": {"$ref": "a.json#/components/schemas/Pet"}}},
    }
    write(tmp_path, a_json=json.dumps(API), b_json=json.dumps(other))
    cat = next(chunk for chunk in load([tmp_path]).chunks if chunk.title == "Cat")
    assert cat.ref_ids == ("a.json#schema/Pet",)


def test_openapi_asked_for_refuses_what_is_none(tmp_path):
    write(tmp_path, a_json='{"x": 1}')
    with pytest.raises(InputError, match=r"a\.json says version 'nothing', expected openapi 3\.x or swagger 2\.0"):
        load([tmp_path], format="openapi")
    with pytest.raises(
        InputError, match=r"a\.json is no OpenAPI document and no JSON list of records, expected one, or \.md, "
    ):
        load([tmp_path / "a.json"])


def test_a_format_that_is_asked_for_passes_the_others_over(tmp_path):
    write(tmp_path, a_csv="text\nx\n", b_md="x")
    assert kinds(load([tmp_path], format="csv")) == {"a.csv": 1}
    assert kinds(load([tmp_path], format="markdown")) == {"b.md": 1}


def test_tabs_separate_a_tsv(tmp_path):
    write(tmp_path, a_tsv="id\ttext\n1\tx, y\n")
    (chunk,) = load([tmp_path]).chunks
    assert (chunk.id, chunk.text) == ("1", "x, y")


RECORDS = [{"id": "a", "text": "Owls hunt"}, {"_id": 2, "text": "Bats hear"}, "Moths fly"]


def test_a_json_list_is_read_as_json_lines_are(tmp_path):
    write(tmp_path, a_json=json.dumps(RECORDS, indent=2))
    chunks = load([tmp_path / "a.json"]).chunks
    lines = "\n".join(json.dumps(one if isinstance(one, dict) else {"text": one}) for one in RECORDS)
    write(tmp_path, a_jsonl=lines)
    assert [(one.id, one.text) for one in chunks[:2]] == [("a", "Owls hunt"), ("2", "Bats hear")]
    assert [one.text for one in chunks] == [one.text for one in load([tmp_path / "a.jsonl"]).chunks]


def test_columns_of_a_json_list_are_named_and_mapped(tmp_path):
    write(tmp_path, a_json=json.dumps([{"body": "x", "n": 1}, {"body": "y", "name": "Y"}]))
    assert columns_of([tmp_path]) == ["body", "n", "name"]
    assert [one.text for one in load([tmp_path], columns={"text": "body"}).chunks] == ["x", "y"]
    with pytest.raises(InputError, match=r"a\.json record 1 has no text.*it has body, n: say which holds it"):
        load([tmp_path])
    with pytest.raises(InputError, match="no record has bodi, expected one of body, n, name"):
        load([tmp_path], columns={"text": "body", "title": "bodi"})


def test_a_json_list_beside_documents_is_passed_over(tmp_path):
    write(tmp_path, a_json="[1]", b_md="x")
    corpus = load([tmp_path])
    assert [one.name for one in corpus.documents] == ["b.md"]
    assert [path.name for path in corpus.others] == ["a.json"]


def test_what_is_no_list_of_records_is_refused_with_its_place(tmp_path):
    write(tmp_path, a_json='[{"text": "x"}, 7]')
    with pytest.raises(InputError, match=r"a\.json record 2 is a number, expected an object with a text"):
        load([tmp_path])
    write(tmp_path, a_json='{"text": "x"}')
    with pytest.raises(InputError, match=r"a\.json is an object, expected a list of records"):
        load([tmp_path], format="json")


def test_plain_text_is_a_document(tmp_path):
    write(tmp_path, a_txt="Owls hunt at night.\n\nBats hear.")
    (chunk,) = load([tmp_path]).chunks
    assert chunk.text == "Owls hunt at night.\n\nBats hear."
