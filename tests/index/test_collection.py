"""The list of collections, names, deletion."""

import pytest
from fakes import HashEmbedder

from rag_core.errors import InputError, StoreError
from rag_core.index.collection import delete_collection, list_collections, open_collection, revision_of
from rag_core.index.ingest import ingest_chunks
from rag_core.types import Chunk

CHUNKS = [
    Chunk("b", "B", "words", "rule", {"contain": "x"}, ("a",), {"page": 7, "tags": ["x"]}),
    Chunk("a", text="other"),
]


def test_a_collection_comes_back_as_it_was_stored_in_the_order_of_ids(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path, HashEmbedder())
    assert open_collection(tmp_path, "one").chunks == (CHUNKS[1], CHUNKS[0])


def test_collections_are_listed_with_their_counts_and_a_damaged_one_with_its_problem(tmp_path):
    assert list_collections(tmp_path) == []
    ingest_chunks(CHUNKS, "one", tmp_path, HashEmbedder())
    ingest_chunks(CHUNKS, "two", tmp_path, HashEmbedder())
    (tmp_path / "collections/two/collection.sqlite").write_bytes(b"x" * 5000)
    one, two = list_collections(tmp_path)
    assert (one.name, one.chunks, one.with_rule, one.model, one.dimension) == ("one", 2, 1, "hash-16", 16)
    assert one.problem == ""
    assert "cannot be read" in two.problem


def test_the_title_is_embedded_with_the_text_unless_the_text_begins_with_it(tmp_path):
    embedder = HashEmbedder()
    chunks = [Chunk("1", "Owlbear", "A beast."), Chunk("2", "Owlbear", "## Owlbear\nA beast."), Chunk("3", "", "x")]
    ingest_chunks(chunks, "one", tmp_path, embedder)
    assert embedder.embedded == ["Owlbear\nA beast.", "## Owlbear\nA beast.", "x"]


def test_the_revision_is_that_of_the_snapshot(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path, HashEmbedder())
    assert revision_of(tmp_path, "one") == open_collection(tmp_path, "one").revision


def test_the_fingerprint_depends_on_the_content_not_on_the_order_or_place(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path / "x", HashEmbedder())
    ingest_chunks(CHUNKS[::-1], "two", tmp_path / "y", HashEmbedder())
    one, two = open_collection(tmp_path / "x", "one"), open_collection(tmp_path / "y", "two")
    assert one.fingerprint == two.fingerprint
    assert one.revision == two.revision


def test_a_missing_collection_is_a_store_error_that_names_it(tmp_path):
    with pytest.raises(StoreError, match="collection nothere is not there"):
        open_collection(tmp_path, "nothere")
    with pytest.raises(StoreError, match="not there"):
        delete_collection(tmp_path, "nothere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 65, "é"])
def test_a_name_that_is_none_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="collection's name"):
        open_collection(tmp_path, name)


def test_a_deleted_collection_is_gone(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path, HashEmbedder())
    delete_collection(tmp_path, "one")
    assert list_collections(tmp_path) == []
    assert not (tmp_path / "collections/one").exists()


def test_rules_that_cannot_be_read_are_counted_beside_those_that_can_with_the_first_reason(tmp_path):
    wrapped = {"query_must": {"contain_one_of": [["owlbear"]]}}
    stored = {
        "good": {"contain": "x"},
        "wrapped": wrapped,
        "text": str(wrapped),
        "bad": {"contains": "x"},
        "worse": "{",
    }
    chunks = [Chunk(name, text=name, query_must=rule) for name, rule in stored.items()]
    ingest_chunks(chunks, "one", tmp_path, HashEmbedder())
    (one,) = list_collections(tmp_path)
    assert (one.chunks, one.with_rule, one.unreadable) == (5, 3, 2)
    assert one.rule_problem.startswith("chunk bad: 'contains' is an unknown key")
