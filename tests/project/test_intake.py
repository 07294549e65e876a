"""How a source comes in: what was wanted is kept, stopped work is found and resumed, dropped files keep to their folder."""

import sqlite3

import pytest

from rag_core.errors import Cancelled, InputError
from rag_core.index.collection import list_collections
from rag_core.index.store import FILE
from rag_core.project.intake import (
    Chroma,
    Documents,
    begin_project,
    intake_of,
    keep_dropped,
    own_dropped,
    proposed_name,
    seen,
    take_in,
    take_lists,
)
from rag_core.project.project import NOTHING, open_project
from rag_core.project.rules import OVERLAY, apply, batches, undo
from rag_core.project.session import Session
from rag_core.rules.rule import Rule


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "My Hand-book"
    place.mkdir()
    (place / "a.md").write_text("## One\n\nText of one.\n\n## Two\n\nText of two.\n")
    return place


def test_what_was_wanted_is_kept_and_found_again(folder, tmp_path):
    order = Documents((str(folder),), 2, True, (("title", "name"),))
    report = take_in(begin_project(tmp_path, "mine"), order)
    project = open_project("mine", tmp_path)
    assert (report.chunks, project.source.name, intake_of(project)) == (2, "mine", order)
    assert take_in(project, order).embedded == 0


def test_work_that_stopped_leaves_a_project_that_can_be_read_and_resumed(folder, tmp_path):
    def stop(done, total):
        raise Cancelled("stopped")

    order = Documents((str(folder),))
    with pytest.raises(Cancelled):
        take_in(begin_project(tmp_path, "mine"), order, stop)
    project = open_project("mine", tmp_path)
    assert Session(project).cases == ()
    assert intake_of(project) == order
    take_in(project, order)
    assert [one.chunks for one in list_collections(tmp_path)] == [2]


def test_documents_refused_for_what_they_hold_are_not_wanted_again(folder, tmp_path):
    (empty := tmp_path / "empty.jsonl").write_text("")
    project = begin_project(tmp_path, "mine")
    with pytest.raises(InputError):
        take_in(project, Documents((str(empty),)))
    project = open_project("mine", tmp_path)
    assert (intake_of(project), project.source.kind) == (None, NOTHING)
    take_in(project, order := Documents((str(folder),)))
    project = open_project("mine", tmp_path)
    empty.write_text("{")
    with pytest.raises(InputError):
        take_in(project, order.with_more(Documents((str(empty),))))
    assert intake_of(project) == order
    assert [one.chunks for one in list_collections(tmp_path)] == [2]


def test_questions_are_read_while_the_collection_has_only_been_begun(folder, tmp_path):
    project = begin_project(tmp_path, "mine")
    take_in(project, Documents((str(folder),)))
    file = tmp_path / "collections" / "mine" / FILE
    for one in file.parent.iterdir():
        one.unlink()
    sqlite3.connect(file).close()
    file.write_bytes(b"")
    assert Session(open_project("mine", tmp_path)).cases == ()


def test_further_documents_are_remembered_beside_those_before():
    both = Documents(("a",), columns=(("title", "name"),)).with_more(Documents(("b", "a"), 2, columns=(("id", "key"),)))
    assert (both.paths, both.header_level) == (("a", "b"), 2)
    assert dict(both.columns) == {"title": "name", "id": "key"}


def test_two_places_of_a_store_are_refused():
    with pytest.raises(InputError, match="several places"):
        _ = Chroma("x", path="/a", url="http://127.0.0.1:1").place


def test_a_name_is_proposed_that_is_plain_and_free(folder, tmp_path):
    assert proposed_name(str(folder), tmp_path) == "my-hand-book"
    begin_project(tmp_path, "my-hand-book")
    assert proposed_name(str(folder), tmp_path) == "my-hand-book-2"
    assert proposed_name("/data/demo.jsonl", tmp_path) != "demo"


@pytest.mark.parametrize("name", ["../a", "a/b", ".hidden", "", "a\nb"])
def test_a_dropped_file_cannot_lead_elsewhere(tmp_path, name):
    with pytest.raises(InputError, match="plain file name"):
        keep_dropped(tmp_path, "mine", [(name, b"x")])
    assert not list(tmp_path.rglob("*"))


def test_files_dropped_before_a_project_had_its_name_move_to_it(tmp_path):
    staged = keep_dropped(tmp_path, "staged-1", [("a.md", b"## A\n\nx")])
    project = begin_project(tmp_path, "mine")
    order = own_dropped(tmp_path, "staged-1", project, Documents((str(staged), "/elsewhere")))
    assert order.paths == (str((tmp_path / "dropped" / "mine").resolve()), "/elsewhere")
    assert not staged.exists()


@pytest.mark.parametrize("how", [seen, lambda at, name, order: take_in(begin_project(at, name), order)])
def test_a_dropped_file_is_named_as_its_owner_knows_it(tmp_path, how):
    kept = keep_dropped(tmp_path, "staged-1", [("latin.jsonl", b'{"text": "Gr\xfc\xdfe"}')])
    with pytest.raises(InputError) as refused:
        how(tmp_path, "mine", Documents((str(kept),)))
    assert str(refused.value) == "latin.jsonl is not UTF-8 text (byte 12), expected it saved as UTF-8"


def test_the_demo_takes_no_lists_and_two_questions_of_one_id_are_refused(tmp_path):
    with pytest.raises(InputError, match="shipped"):
        take_lists(open_project("demo", tmp_path), b"{}", "x")
    twice = b'{"id": "q", "query": "a", "candidates": []}\n' * 2
    with pytest.raises(InputError, match="unique ids"):
        take_lists(begin_project(tmp_path, "mine"), twice, "x.jsonl")


def test_rules_laid_over_lists_are_undone_batch_by_batch_and_later_changes_stay(tmp_path):
    project = open_project("recorded-combat", tmp_path)
    apply(project, {"a": Rule(contain="x"), "b": Rule(contain="x")}, "first")
    apply(project, {"b": Rule(contain="y")}, "second")
    first = undo(project, 1)
    assert (first.restored, first.changed_since) == (("a",), ("b",))
    assert undo(project).restored == ("b",)
    assert [one.undone for one in batches(project)] == [True, True]
    with pytest.raises(InputError, match="expected one of none"):
        undo(project)
    (project.state / OVERLAY).write_text("[]")
    with pytest.raises(InputError, match="version"):
        batches(project)
