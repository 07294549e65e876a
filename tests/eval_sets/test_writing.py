"""Own eval sets: made whole, copied, tagged, split, deleted; shipped ones stay as they are; ids never change."""

import json
import os

import pytest

from rag_core.errors import InputError
from rag_core.eval_sets import writing as sets
from rag_core.eval_sets.facts import CORPUS, QUERIES_ONLY, RECORDED, list_sets
from rag_core.eval_sets.reading import SHIPPED, folders, load_set
from rag_core.project.project import init_project
from rag_core.types import Query

QUESTIONS = [Query(f"q{n}", f"topic{n} thing{n} matter{n}?", tags=("even",) if n % 2 == 0 else ()) for n in range(10)]


@pytest.fixture
def made(tmp_path):
    init_project(tmp_path, "mine", title="My questions", questions=QUESTIONS)
    return tmp_path


def facts(workspace, name):
    return next(one for one in list_sets(workspace) if one.name == name)


def test_a_new_set_is_found_by_name_with_its_queries(made):
    found = load_set("mine", made)
    assert [(case.query.id, case.query.text, case.query.tags) for case in found.cases] == [
        (query.id, query.text, query.tags) for query in QUESTIONS
    ]
    assert (found.title, found.min_grade) == ("My questions", 1)
    assert facts(made, "mine").holds == QUERIES_ONLY
    assert [name for name in os.listdir(made) if name.startswith(".")] == []


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a/b", "x" * 65, "rulebook", "mine"])
def test_a_name_that_is_none_or_taken_is_refused_and_nothing_is_made(made, name):
    before = sorted(os.listdir(made / "eval_sets"))
    with pytest.raises(InputError, match=r"name|already"):
        init_project(made, name, questions=QUESTIONS)
    assert sorted(os.listdir(made / "eval_sets")) == before


def test_a_copy_that_fails_while_it_is_made_leaves_nothing(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(sets.shutil, "copyfile", full)
    with pytest.raises(OSError, match="full"):
        sets.copy_set(tmp_path, "skirmish-rules", "mine")
    assert list((tmp_path / "eval_sets").iterdir()) == []
    assert "mine" not in folders(tmp_path)


def test_a_copy_of_a_shipped_set_holds_the_same_and_can_be_changed(tmp_path):
    sets.copy_set(tmp_path, "skirmish-rules", "mine")
    copy, shipped = load_set("mine", tmp_path), load_set("skirmish-rules")
    assert copy.cases == shipped.cases
    assert copy.corpus.read_bytes() == shipped.corpus.read_bytes()
    assert copy.title == "Copy of Questions to a skirmish game's rules"
    assert sets.change_tags(tmp_path, "mine", None, add=["round-1"]) == len(copy.cases)
    assert facts(tmp_path, "mine").holds == CORPUS
    assert facts(tmp_path, "mine").labels == facts(tmp_path, "skirmish-rules").labels > 0


def test_a_copy_of_recorded_lists_can_be_tagged_and_split_and_nothing_else_changes(tmp_path):
    sets.copy_set(tmp_path, "recorded-combat", "mine")
    before = [json.loads(line) for line in (SHIPPED / "recorded-combat" / "lists.jsonl").read_text().splitlines()]
    sets.change_tags(tmp_path, "mine", None, add=["hard"])
    lines = (tmp_path / "eval_sets" / "mine" / "lists.jsonl").read_text().splitlines()
    after = [json.loads(line) for line in lines]
    assert facts(tmp_path, "mine").holds == RECORDED
    assert [{k: v for k, v in row.items() if k != "tags"} for row in after] == [
        {k: v for k, v in row.items() if k != "tags"} for row in before
    ]
    assert all("hard" in row["tags"] for row in after)


@pytest.mark.parametrize("change", [lambda w, n: sets.change_tags(w, n, None, ["x"]), sets.delete_set])
def test_a_shipped_set_is_never_changed(tmp_path, change):
    before = (SHIPPED / "rulebook" / "queries.jsonl").read_bytes()
    with pytest.raises(InputError, match="shipped"):
        change(tmp_path, "rulebook")
    assert (SHIPPED / "rulebook" / "queries.jsonl").read_bytes() == before


def test_tags_are_added_and_taken_away_for_some_queries_or_all(made):
    assert sets.change_tags(made, "mine", ["q1", "q2"], add=["far", "even"], remove=["odd"]) == 2
    assert sets.change_tags(made, "mine", None, remove=["even"]) == 6
    assert {case.query.id: case.query.tags for case in load_set("mine", made).cases if case.query.tags} == {
        "q1": ("far",),
        "q2": ("far",),
    }
    assert dict(facts(made, "mine").tags) == {"far": 2}


def test_tags_of_a_query_that_is_not_there_are_refused(made):
    with pytest.raises(InputError, match="no query 'q77'"):
        sets.change_tags(made, "mine", ["q77"], add=["x"])
    with pytest.raises(InputError, match="no query 'q77'"):
        sets.write_tags(made, "mine", {"q77": ["x"]})


def test_a_query_without_an_id_keeps_the_one_it_had_by_its_line(made):
    path = made / "eval_sets" / "mine" / "queries.jsonl"
    path.write_text('{"query": "first?"}\n\n{"query": "third line?", "note": 3}\n')
    before = [case.query.id for case in load_set("mine", made).cases]
    sets.change_tags(made, "mine", None, add=["x"])
    assert [case.query.id for case in load_set("mine", made).cases] == before == ["q1", "q3"]
    assert load_set("mine", made).cases[1].query.metadata["note"] == 3


def test_a_deleted_set_is_gone_and_only_it(made):
    sets.copy_set(made, "mine", "other")
    sets.delete_set(made, "mine")
    assert not (made / "eval_sets" / "mine").exists()
    assert len(load_set("other", made).cases) == 10
    with pytest.raises(InputError, match="expected one of: other"):
        sets.delete_set(made, "mine")


def test_guidelines_are_kept_copied_and_taken_away(made):
    sets.write_guidelines(made, "mine", "# Rules\r\n\r\n- 0 is **nothing**  \r\n")
    folder = made / "eval_sets" / "mine"
    assert sets.guidelines(folder) == "# Rules\n\n- 0 is **nothing**\n"
    assert sets.guidelines(sets.copy_set(made, "mine", "other")) == sets.guidelines(folder)
    sets.write_guidelines(made, "mine", " ")
    assert sets.guidelines(folder) == ""
    with pytest.raises(InputError, match="at most 100,000"):
        sets.write_guidelines(made, "mine", "x" * 100_001)


def test_a_set_that_cannot_be_read_is_listed_with_its_problem(made):
    (made / "eval_sets" / "mine" / "queries.jsonl").write_text("not json")
    assert "not valid JSON" in facts(made, "mine").problem
    assert len(list_sets(made)) > 1
