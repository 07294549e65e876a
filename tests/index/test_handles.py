"""Opening a collection for search, and the check of all collections."""

import sqlite3

import pytest
from fakes import HashEmbedder

from rag_core.errors import InputError, StoreError
from rag_core.index.embed import BundledEmbedder
from rag_core.index.handles import check_collections, open_index
from rag_core.index.ingest import ingest_chunks
from rag_core.types import Chunk

CHUNKS = [Chunk("heal", text="regaining lost health after a wound"), Chunk("tax", text="income tax forms")]


def test_a_collection_of_the_bundled_model_is_searched_with_it(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path, BundledEmbedder())
    hits = open_index(tmp_path, "one").reader("how do I heal my soldier").read(0, 2)
    assert [hit.chunk.id for hit in hits] == ["heal", "tax"]


def test_a_collection_of_another_model_is_refused_naming_both(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path, HashEmbedder())
    with pytest.raises(InputError, match=r"built with hash-16 \(16 dimensions\).*all-MiniLM-L6-v2-int8 \(384\)"):
        open_index(tmp_path, "one")
    assert open_index(tmp_path, "one", HashEmbedder()).exact


def test_approximate_search_starts_nothing_before_it_is_asked(tmp_path):
    ingest_chunks(CHUNKS, "one", tmp_path, HashEmbedder())
    index = open_index(tmp_path, "one", HashEmbedder(), approximate=True)
    assert not index.exact
    assert not (tmp_path / "collections/one/chroma").exists()


def test_a_missing_collection_is_a_store_error(tmp_path):
    with pytest.raises(StoreError, match="collection none is not there"):
        open_index(tmp_path, "none")


def test_the_check_finds_missing_vectors_and_damaged_files(tmp_path):
    for name in ("whole", "lacking", "damaged"):
        ingest_chunks(CHUNKS, name, tmp_path, HashEmbedder())
    with sqlite3.connect(tmp_path / "collections/lacking/collection.sqlite") as file:
        file.execute("DELETE FROM vector")
    (tmp_path / "collections/damaged/collection.sqlite").write_bytes(b"x" * 9000)
    found = check_collections(tmp_path)
    assert found["whole"] == ""
    assert "lacks vectors" in found["lacking"]
    assert "cannot be read" in found["damaged"]
