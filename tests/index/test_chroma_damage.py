"""Chroma's folder damaged in every way that was seen: this process goes on, and without it every id and vector is there again."""

import os
import shutil

import numpy as np
import pytest
from fakes import HashEmbedder

from rag_core.errors import StoreError
from rag_core.index.chroma import ChromaIndex
from rag_core.index.collection import open_collection
from rag_core.index.ingest import ingest_chunks
from rag_core.index.search import CollectionIndex
from rag_core.types import Chunk

ROWS = 300


def random_bytes(path):
    path.write_bytes(os.urandom(max(1, path.stat().st_size)))


def emptied(path):
    path.write_bytes(b"")


def cut_in_half(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def two_terabytes(path):
    """As a damaged graph was seen: terabytes that are not on disk."""
    with path.open("r+b") as file:
        file.truncate(2_390_000_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [random_bytes, emptied, cut_in_half, two_terabytes])
@pytest.mark.parametrize("part", ["chroma.sqlite3", "*.bin"])
def test_a_damaged_folder_is_an_answer_or_one_sentence_and_deleting_it_restores_all(tmp_path, damage, part):
    chunks = [Chunk(f"c{row:04}", text=f"text {row}") for row in range(ROWS)]
    ingest_chunks(chunks, "books", tmp_path, HashEmbedder())
    before = open_collection(tmp_path, "books")
    index, exact = ChromaIndex(before, tmp_path, HashEmbedder()), CollectionIndex(before, HashEmbedder())
    try:
        index.reader("q").read(0, 5)
        index.close()
        for path in (index._server.folder / "data").rglob(part):
            damage(path)
        said = ""
        try:
            assert len(index.reader("q").read(0, 5)) == 5
        except StoreError as error:
            said = str(error)
        assert "\n" not in said
        index.close()
        shutil.rmtree(index._server.folder)  # it is a copy of ours, and made again
        index = ChromaIndex(before, tmp_path, HashEmbedder())
        found = {hit.chunk.id: hit.distance for hit in index.reader("q").read(0, ROWS)}
        assert index._collection().count() == ROWS
        assert found == {hit.chunk.id: hit.distance for hit in exact.reader("q").read(0, ROWS)}
    finally:
        index.close()
    after = open_collection(tmp_path, "books")
    assert after.chunks == before.chunks
    assert np.array_equal(after.vectors, before.vectors)
