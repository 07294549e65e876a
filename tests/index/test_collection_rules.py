"""Rules of a collection: changed as one batch without embedding anything, undone as one, kept through an ingest."""

import pytest
from fakes import HashEmbedder

from rag_core.errors import InputError, StoreError
from rag_core.index.collection import open_collection
from rag_core.index.ingest import ingest_chunks
from rag_core.index.rules import apply_rules, rule_batches, undo_rules
from rag_core.index.search import CollectionIndex
from rag_core.rules.rule import parse_rule
from rag_core.types import Chunk

CLERIC = parse_rule({"contain_one_of": [["cleric"], ["ac 6"]]}, "test")
DRUID = parse_rule({"contain": "druid"}, "test")
CHUNKS = (Chunk("a", "A", "first"), Chunk("b", "B", "second", query_must=DRUID.as_mapping()), Chunk("c", "C", "third"))


class Refusing(HashEmbedder):
    """An embedder that must not be asked again."""

    def embed(self, texts, progress=None):
        raise AssertionError("a text was embedded")


@pytest.fixture
def workspace(tmp_path):
    ingest_chunks(CHUNKS, "books", tmp_path, HashEmbedder())
    return tmp_path


def rules_of(workspace):
    return {chunk.id: chunk.query_must for chunk in open_collection(workspace, "books").chunks}


def test_a_batch_changes_rules_and_neither_vectors_nor_the_ranking(workspace):
    before = open_collection(workspace, "books")
    batch = apply_rules(workspace, "books", {"a": CLERIC, "b": None}, "trial")
    after = open_collection(workspace, "books")
    assert rules_of(workspace) == {"a": CLERIC.as_mapping(), "b": None, "c": None}
    assert (batch.number, batch.chunks, batch.about) == (1, 2, "trial")
    assert after.fingerprint == before.fingerprint
    assert after.revision != before.revision
    assert (after.vectors == before.vectors).all()
    assert [chunk.text for chunk in after.chunks] == [chunk.text for chunk in before.chunks]


def test_an_ingest_after_a_batch_embeds_nothing_and_keeps_its_rules(workspace):
    apply_rules(workspace, "books", {"a": CLERIC, "b": None}, "trial")
    report = ingest_chunks(CHUNKS, "books", workspace, Refusing())
    assert (report.embedded, report.changed) == (0, 0)
    assert rules_of(workspace) == {"a": CLERIC.as_mapping(), "b": None, "c": None}


def test_undo_restores_what_was_there_before_the_batch_and_the_revision_with_it(workspace):
    before = open_collection(workspace, "books").revision
    apply_rules(workspace, "books", {"a": CLERIC, "b": CLERIC, "c": DRUID}, "trial")
    found = undo_rules(workspace, "books")
    assert rules_of(workspace) == {"a": None, "b": DRUID.as_mapping(), "c": None}
    assert (found.number, found.restored, found.changed_since) == (1, ("a", "b", "c"), ())
    assert open_collection(workspace, "books").revision == before
    assert [batch.undone for batch in rule_batches(workspace, "books")] == [True]


def test_an_undone_batch_is_not_kept_by_a_later_ingest(workspace):
    apply_rules(workspace, "books", {"a": CLERIC}, "trial")
    undo_rules(workspace, "books")
    ingest_chunks(CHUNKS, "books", workspace, Refusing())
    assert rules_of(workspace) == {"a": None, "b": DRUID.as_mapping(), "c": None}


def test_batches_are_undone_last_first_and_by_number(workspace):
    apply_rules(workspace, "books", {"a": CLERIC}, "one")
    apply_rules(workspace, "books", {"c": DRUID}, "two")
    assert undo_rules(workspace, "books").number == 2
    assert undo_rules(workspace, "books", 1).number == 1
    assert rules_of(workspace) == {"a": None, "b": DRUID.as_mapping(), "c": None}
    with pytest.raises(InputError, match="no batch of rules 1 to undo, expected one of none"):
        undo_rules(workspace, "books", 1)


def test_undo_leaves_what_was_changed_since(workspace):
    apply_rules(workspace, "books", {"a": CLERIC, "c": CLERIC}, "one")
    apply_rules(workspace, "books", {"a": DRUID}, "two")
    found = undo_rules(workspace, "books", 1)
    assert (found.restored, found.changed_since) == (("c",), ("a",))
    assert rules_of(workspace)["a"] == DRUID.as_mapping()


def test_a_chunk_that_is_not_there_is_refused_and_nothing_of_the_batch_is_stored(workspace):
    before = rules_of(workspace)
    with pytest.raises(InputError, match=r"collection books has no chunk 'z'"):
        apply_rules(workspace, "books", {"a": CLERIC, "z": CLERIC}, "trial")
    assert rules_of(workspace) == before
    assert rule_batches(workspace, "books") == ()
    with pytest.raises(InputError, match="no rule to store"):
        apply_rules(workspace, "books", {}, "trial")
    with pytest.raises(StoreError, match="is not there"):
        apply_rules(workspace, "other", {"a": CLERIC}, "trial")


def test_an_index_over_the_collection_decides_by_the_new_rules(workspace):
    apply_rules(workspace, "books", {"a": CLERIC, "c": CLERIC}, "trial")
    index = CollectionIndex(open_collection(workspace, "books"), HashEmbedder())
    found = index.reader("q").read_admitted("a druid", "token", (), 10)
    assert {hit.chunk.id for hit in found} == {"b"}
