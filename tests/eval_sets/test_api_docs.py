"""The API documentation set: what is built is up to date, references lead somewhere, queries and labels fit."""

import json
import runpy
from pathlib import Path

import networkx
import pytest

from rag_core.eval_sets.reading import load_set
from rag_core.files import read_text
from rag_core.filters.llm.reach import reach
from rag_core.types import Chunk

FOLDER = Path(__file__).parents[2] / "eval_sets" / "api-docs"
SET = load_set("api-docs")
CHUNKS = [json.loads(line) for line in read_text(FOLDER / "corpus.jsonl").splitlines()]
IDS = [chunk["id"] for chunk in CHUNKS]
REFERENCES = {chunk["id"]: chunk.get("ref_ids", []) for chunk in CHUNKS}
LOOKUP = {name: Chunk(name, ref_ids=tuple(refs)) for name, refs in REFERENCES.items()}


@pytest.fixture(scope="module")
def build():
    return runpy.run_path(str(FOLDER / "build.py"))


@pytest.fixture(scope="module")
def built(build):
    return build["chunks"]()


def test_the_set_is_as_large_as_promised():
    assert len(CHUNKS) >= 170
    assert len(SET.cases) >= 34


def test_the_corpus_is_what_documents_and_guides_give(build, built):
    assert read_text(FOLDER / "corpus.jsonl") == build["corpus"](built)


def test_the_labels_are_what_judgements_and_pool_give(build, built):
    assert read_text(FOLDER / "qrels.tsv") == build["qrels"](built, *build["read_labels"]())


def test_a_judgement_of_a_chunk_that_is_not_there_is_refused(build, built):
    with pytest.raises(SystemExit, match="Marzipan"):
        build["qrels"](built, {"q": {"Marzipan": 3}}, {})


def test_every_id_stands_once():
    assert len(set(IDS)) == len(IDS)


def test_every_reference_leads_to_a_chunk():
    assert {one for targets in REFERENCES.values() for one in targets} <= set(IDS)


def test_operations_schemas_and_guides_are_all_there():
    assert {chunk["type"] for chunk in CHUNKS} == {"operation", "schema", "guide"}


def test_some_schemas_refer_to_themselves_and_some_in_circles():
    graph = networkx.DiGraph((one, target) for one, targets in REFERENCES.items() for target in targets)
    assert networkx.number_of_selfloops(graph) >= 5
    circle = {f"sponsored-display.yaml#schema/{name}Expression" for name in ("Targeting", "AllOf", "AnyOf", "Not")}
    assert circle in list(networkx.strongly_connected_components(graph))


def test_some_operation_reaches_a_schema_five_references_away_and_no_nearer():
    start = "sponsored-display.yaml#operation/createDisplayGroup"
    assert max(one.steps for one in reach([LOOKUP[start]], 10, 1000, LOOKUP)[0]) >= 5


def test_guides_refer_to_operations_and_schemas():
    targets = {one for chunk in CHUNKS if chunk["type"] == "guide" for one in chunk.get("ref_ids", [])}
    assert any("#operation/" in one for one in targets)
    assert any("#schema/" in one for one in targets)


def test_every_query_has_an_answer_of_the_highest_grade():
    assert [case.query.id for case in SET.cases if 3 not in case.grades.values()] == []


def test_every_label_names_a_chunk_and_a_grade_from_0_to_3():
    assert {one for case in SET.cases for one in case.grades} <= set(IDS)
    assert {grade for case in SET.cases for grade in case.grades.values()} == {0, 1, 2, 3}


def test_everything_pooled_is_judged():
    pool = json.loads(read_text(FOLDER / "pool.json"))
    grades = {case.query.id: case.grades for case in SET.cases}
    assert set(pool) == set(grades)
    assert [query for query, ids in pool.items() if not set(ids) <= set(grades[query])] == []


def test_what_the_storys_answers_refer_to_is_nearly_all_relevant():
    grades = next(case.grades for case in SET.cases if case.query.id == "auth-display")
    kept = [one for one, grade in grades.items() if grade == 3]
    found = [*kept, *(one.chunk.id for one in reach([LOOKUP[name] for name in kept], 1, 50, LOOKUP)[0])]
    assert sum(grades.get(one, 0) > 0 for one in found) / len(found) >= 0.9


def test_both_halves_hold_the_kinds_of_questions():
    for half in ("dev", "test"):
        tags = {tag for case in SET.split(half).cases for tag in case.query.tags}
        assert {"authentication", "errors", "nested", "operations", "comparison"} <= tags


def test_the_query_of_the_story_is_asked_word_for_word():
    assert "How do I authenticate with sponsored-display API?" in [case.query.text for case in SET.cases]
