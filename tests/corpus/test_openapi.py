"""API documents: a chunk per operation and schema, references between them, and nothing ever fetched."""

import json
import os
import socket
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.corpus.openapi import name_of, parse_document, read_openapi, references
from rag_core.errors import InputError

SHARED = Path(os.environ.get("WINNOW_SHARED", Path(__file__).parents[3] / "shared")) / "data"

ORCHARD = """
openapi: 3.0.3
info: {title: Orchard}
security: [{key: []}]
paths:
  /trees/{treeId}:
    parameters:
      - {$ref: "#/components/parameters/Tree"}
    get:
      operationId: getTree
      summary: Read a tree
      description: Says what grows.
      parameters: [{name: season, in: query, description: Which season, schema: {$ref: "#/components/schemas/Season"}}]
      responses:
        200: {description: The tree, content: {application/vnd.orchard.v3+json: {schema: {$ref: "#/components/schemas/Tree"}}}}
        404: {$ref: "#/components/responses/Missing"}
    put:
      security: []
      requestBody: {content: {application/vnd.orchard.v3+json: {schema: {$ref: "#/components/schemas/Tree"}}}}
      responses: {204: {description: Stored}}
components:
  parameters:
    Tree: {name: treeId, in: path, required: true, schema: {type: string}}
  responses:
    Missing: {description: No such tree, content: {application/json: {schema: {$ref: "#/components/schemas/Error"}}}}
  schemas:
    Tree:
      type: object
      description: A tree and its branches.
      required: [name]
      properties:
        name: {type: string, maxLength: 20, description: What people call it}
        branches: {type: array, items: {$ref: "#/components/schemas/Branch"}}
        parent: {$ref: "#/components/schemas/Tree"}
    Branch: {type: object, properties: {tree: {$ref: "#/components/schemas/Tree"}, shape: {type: object, properties: {long: {type: number}}}}}
    Season: {type: string, enum: [spring, autumn]}
    Error: {type: object, properties: {code: {type: string}}}
"""

SWAGGER = """
swagger: "2.0"
info: {title: Old orchard}
paths:
  /pears:
    post:
      operationId: plantPear
      parameters:
        - {name: pear, in: body, schema: {$ref: "#/definitions/Pear"}}
        - {name: note, in: query, type: string}
      responses:
        200: {description: Planted, schema: {$ref: "#/definitions/Pear"}}
        default: {$ref: "#/responses/Bad"}
responses:
  Bad: {description: Bad, schema: {$ref: "#/definitions/Fault"}}
definitions:
  Pear: {type: object, properties: {weight: {type: number}, graft: {$ref: "#/definitions/Pear"}}}
  Fault: {type: object}
"""


@pytest.fixture(autouse=True, scope="module")
def no_network():
    """Whatever opens a connection fails."""

    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield


def by_id(*texts, names=("api.yaml", "other.yaml")):
    chunks, _ = read_openapi(dict(zip(names, texts, strict=False)))
    return {chunk.id: chunk for chunk in chunks}


def document(schemas, **more):
    return json.dumps({"openapi": "3.0.0", "paths": {}, "components": {"schemas": schemas}, **more})


def warnings_of(reference):
    return read_openapi({"api.json": document({"A": {"properties": {"b": {"$ref": reference}}}})})[1]


def test_there_is_a_chunk_per_operation_and_per_schema():
    assert list(by_id(ORCHARD)) == [
        "api.yaml#operation/getTree",
        "api.yaml#operation/put-trees-treeid",
        "api.yaml#schema/Tree",
        "api.yaml#schema/Branch",
        "api.yaml#schema/Season",
        "api.yaml#schema/Error",
    ]


def counts_of(name, text):
    """Operations, schemas, references, references that lead nowhere."""
    chunks, warnings = read_openapi({name: text})
    kinds = Counter(chunk.type for chunk in chunks)
    found = list(references(parse_document(text, name)))
    return kinds["operation"], kinds["schema"], len(found), len(warnings)


def test_the_counts_are_those_of_the_document():
    assert counts_of("api.yaml", ORCHARD) == (2, 4, 9, 0)


def test_an_operation_reads_as_text():
    chunk = by_id(ORCHARD)["api.yaml#operation/getTree"]
    assert chunk.title == "Read a tree"
    assert chunk.text.splitlines() == [
        "GET /trees/{treeId} (getTree)",
        "Read a tree",
        "Says what grows.",
        "Authorization: key",
        "Parameters:",
        "- treeId (path, required, string)",
        "- season (query, Season): Which season",
        "Responses:",
        "- 200: The tree → Tree",
        "- 404: No such tree → Error",
    ]


def test_an_operation_without_security_and_with_a_vendor_media_type():
    text = by_id(ORCHARD)["api.yaml#operation/put-trees-treeid"].text
    assert "Authorization: none" in text
    assert "Request body (application/vnd.orchard.v3+json): Tree with the fields name, branches, parent" in text


def test_a_schema_reads_as_text_with_inline_objects_set_in():
    chunks = by_id(ORCHARD)
    assert chunks["api.yaml#schema/Tree"].text.splitlines() == [
        "Schema Tree: object",
        "A tree and its branches.",
        "Fields:",
        "- name (string, required, at most 20 characters): What people call it",
        "- branches (list of Branch)",
        "- parent (Tree)",
    ]
    assert chunks["api.yaml#schema/Branch"].text.endswith("- shape (object)\n  - long (number)")
    assert chunks["api.yaml#schema/Season"].text == "Schema Season: string: spring | autumn"


def test_an_operation_refers_through_shared_parameters_and_responses():
    refs = by_id(ORCHARD)["api.yaml#operation/getTree"].ref_ids
    assert set(refs) == {"api.yaml#schema/Season", "api.yaml#schema/Tree", "api.yaml#schema/Error"}


def test_schemas_may_refer_to_themselves_and_in_circles():
    chunks = by_id(ORCHARD)
    assert chunks["api.yaml#schema/Tree"].ref_ids == ("api.yaml#schema/Branch", "api.yaml#schema/Tree")
    assert chunks["api.yaml#schema/Branch"].ref_ids == ("api.yaml#schema/Tree",)


def test_shared_responses_that_refer_to_each_other_in_a_circle_end():
    responses = {"A": {"$ref": "#/components/responses/B"}, "B": {"$ref": "#/components/responses/A"}}
    paths = {"/x": {"get": {"responses": {"200": {"$ref": "#/components/responses/A"}}}}}
    text = json.dumps({"openapi": "3.0.0", "paths": paths, "components": {"responses": responses}})
    ((chunk,), _) = read_openapi({"api.json": text})
    assert chunk.ref_ids == ()


def test_swagger_definitions_bodies_and_shared_responses_are_understood():
    chunks = by_id(SWAGGER)
    operation = chunks["api.yaml#operation/plantPear"]
    assert operation.ref_ids == ("api.yaml#schema/Pear", "api.yaml#schema/Fault")
    assert "- note (query, string)" in operation.text
    assert "Request body: Pear with the fields weight, graft" in operation.text
    assert "- default: Bad → Fault" in operation.text
    assert chunks["api.yaml#schema/Pear"].ref_ids == ("api.yaml#schema/Pear",)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("https://example.invalid/a.yaml#/components/schemas/B", "is remote and was not fetched"),
        ("//example.invalid/a.yaml", "is remote and was not fetched"),
        ("file:///etc/passwd", "is remote and was not fetched"),
        ("../policies.yaml", "names a document that was not given"),
        ("someErrorCodes", "names a document that was not given"),
        ("#someErrorCodes", "is no JSON pointer"),
        ("#/components/schemas/Gone", "points at nothing"),
        ("#/components/schemas/A/properties/7", "points at nothing"),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_warning(reference, why):
    (warning,) = warnings_of(reference)
    assert warning == f"api.json has the reference {reference!r}, which {why}"


def test_documents_given_together_may_refer_to_each_other():
    left = document({"A": {"$ref": "shared/other.yaml#/components/schemas/B"}})
    right = document({"B": {"items": {"$ref": "../api.yaml#/components/schemas/A"}}})
    chunks = by_id(left, right, names=("api.yaml", "shared/other.yaml"))
    assert chunks["api.yaml#schema/A"].ref_ids == ("shared/other.yaml#schema/B",)
    assert chunks["shared/other.yaml#schema/B"].ref_ids == ("api.yaml#schema/A",)


def test_a_reference_into_a_schema_belongs_to_that_schema():
    text = document(
        {"A": {"$ref": "#/components/schemas/B/properties/c"}, "B": {"properties": {"c": {"type": "string"}}}}
    )
    assert by_id(text)["api.yaml#schema/A"].ref_ids == ("api.yaml#schema/B",)


def test_escaped_pointers_reach_operations_and_names_with_slashes():
    schemas = {
        "A": {"$ref": "#/paths/~1x~1{id}/get/responses/200"},
        "B": {"$ref": "#/components/schemas/C~1D%20E"},
        "C/D E": {},
    }
    text = document(
        schemas, paths={"/x/{id}": {"get": {"operationId": "x", "responses": {"200": {"description": "ok"}}}}}
    )
    chunks = by_id(text)
    assert chunks["api.yaml#schema/A"].ref_ids == ("api.yaml#operation/x",)
    assert chunks["api.yaml#schema/B"].ref_ids == ("api.yaml#schema/C/D%20E",)


def test_a_discriminators_mapping_refers_by_pointer_or_by_name():
    found = references({"discriminator": {"propertyName": "k", "mapping": {"a": "#/components/schemas/A", "b": "B"}}})
    assert list(found) == ["#/components/schemas/A", "#/components/schemas/B"]


def test_examples_defaults_and_fields_of_that_name_are_no_references():
    data = {
        "example": {"$ref": "#/x"},
        "default": {"$ref": "#/x"},
        "enum": [{"$ref": "#/x"}],
        "examples": [{"$ref": "#/x"}],
    }
    assert list(references(data)) == []
    fields = {"properties": {"$ref": {"type": "string"}, "example": {"$ref": "#/y"}}}
    assert list(references(fields)) == ["#/y"]


def test_operations_of_one_name_have_ids_of_their_own():
    paths = {"/a": {"get": {"operationId": "same"}}, "/b": {"get": {"operationId": "same"}}}
    text = json.dumps({"openapi": "3.0.0", "paths": paths})
    assert list(by_id(text)) == ["api.yaml#operation/same", "api.yaml#operation/same~2"]


def test_a_name_that_looks_numbered_does_not_collide_with_a_numbered_one():
    paths = {f"/{number}": {"get": {"operationId": name}} for number, name in enumerate(("a", "a", "a~2"))}
    found = by_id(json.dumps({"openapi": "3.0.0", "paths": paths}))
    assert [one.rsplit("/", 1)[1] for one in found] == ["a", "a~2", "a%7E2"]


def test_a_part_that_is_not_what_it_should_be_is_passed_over():
    strange = {"paths": {"/a": None, "/b": {"get": [], "post": {"parameters": {}, "responses": "none", "security": 7}}}}
    text = json.dumps({"openapi": "3.0.0", **strange, "components": {"schemas": {"A": True, "B": {"properties": [1]}}}})
    assert list(by_id(text)) == ["api.yaml#operation/post-b", "api.yaml#schema/A", "api.yaml#schema/B"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "holds no mapping"),
        ("openapi: 4.0.0", "version '4.0.0'"),
        ("swagger: '1.2'", "version '1.2'"),
        ("title: none", "version 'nothing'"),
        ("openapi: 3.0.0\npaths: &a {}\ncomponents: *a", "alias"),
        ('{"openapi": "3.0.0", "x": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
        ('{"openapi": "3.0.0", "openapi": "3.0.0"}', "stands twice"),
    ],
)
def test_what_is_no_api_document_is_refused(text, message):
    with pytest.raises(InputError, match=message) as error:
        read_openapi({"api.yaml": text})
    assert "api.yaml" in str(error.value)


def test_yaml_dates_and_numbers_read_as_text():
    text = "openapi: 3.0.0\ncomponents: {schemas: {A: {type: string, enum: [2024-01-02, 7]}}}"
    assert by_id(text)["api.yaml#schema/A"].text == "Schema A: string: 2024-01-02 | 7"


def test_the_name_of_a_reference_is_its_last_part():
    assert name_of("#/components/schemas/A~1B%20C") == "A/B C"


KEYS = [
    "type",
    "properties",
    "items",
    "allOf",
    "oneOf",
    "required",
    "description",
    "parameters",
    "responses",
    "content",
    "security",
    "enum",
    "get",
    "$ref",
]
TEXTS = st.sampled_from(["#/components/schemas/A", "#/components/schemas/A/items/0", "#/x", "http://x", "", "object"])
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers(-3, 10**12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, VALUES, VALUES)
def test_whatever_stands_in_a_document_it_is_read_and_every_reference_id_exists(schema, operation, shared):
    text = json.dumps(
        {
            "openapi": "3.1.0",
            "security": shared,
            "paths": {"/x": {"parameters": shared, "get": operation}},
            "components": {"schemas": {"A": schema, "B": {"allOf": [schema, {"$ref": "#/components/schemas/A"}]}}},
        }
    )
    chunks, _ = read_openapi({"api.json": text})
    ids = {chunk.id for chunk in chunks}
    assert {"api.json#schema/A", "api.json#schema/B"} <= ids
    assert {one for chunk in chunks for one in chunk.ref_ids} <= ids
    assert all(chunk.text for chunk in chunks)


REAL = {
    "amazon-ads-openapi/sponsored-display.json": (62, 153, 749, 0),
    "amazon-ads-openapi/sponsored-products.json": (71, 71, 543, 0),
    "amazon-ads-openapi/common-billing.json": (4, 49, 96, 1),
    "amazon-ads-openapi/common-eligibility.json": (2, 20, 27, 0),
    "amazon-ads-openapi/attribution.json": (5, 14, 25, 0),
    "amazon-ads-openapi/authorization-manager-account.json": (4, 11, 30, 0),
    "amazon-ads-openapi/common-product-meta-data.json": (1, 16, 22, 0),
    "amazon-ads-openapi/authorization-profiles.json": (3, 5, 7, 0),
    "sp-api-finances/finances_2024-06-19.json": (3, 33, 74, 0),
    "restbench-spotify/spotify_oas.json": (40, 91, 439, 1),
}


@pytest.mark.parametrize("name", REAL)
def test_real_documents_give_the_counts_their_source_states(name):
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{name} is not there; set WINNOW_SHARED to the folder that holds data/")
    text = path.read_text(encoding="utf-8")
    assert counts_of(path.name, text) == REAL[name]
    chunks, _ = read_openapi({path.name: text})
    ids = [chunk.id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert {one for chunk in chunks for one in chunk.ref_ids} <= set(ids)


def test_a_real_schema_that_refers_to_itself_does():
    path = SHARED / "sp-api-finances" / "finances_2024-06-19.json"
    if not path.is_file():
        pytest.skip("sp-api-finances is not there; set WINNOW_SHARED to the folder that holds data/")
    chunks = {chunk.title: chunk for chunk in read_openapi({"f.json": path.read_text(encoding="utf-8")})[0]}
    assert "f.json#schema/Breakdown" in chunks["Breakdown"].ref_ids
