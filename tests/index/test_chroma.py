"""Approximate search through a real Chroma server process: agreement, rebuilding, crashes."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from fakes import HashEmbedder

from rag_core.errors import StoreError
from rag_core.index import chroma_server
from rag_core.index.chroma import ChromaIndex
from rag_core.index.collection import open_collection
from rag_core.index.ingest import ingest_chunks
from rag_core.index.search import CollectionIndex
from rag_core.types import Chunk

ROWS = 400


def make_snapshot(workspace, note=""):
    chunks = [Chunk(f"c{row:04}", text=f"text {note}{row}", metadata={"half": row % 2}) for row in range(ROWS)]
    ingest_chunks(chunks, "books", workspace, HashEmbedder())
    return open_collection(workspace, "books")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def index(workspace):
    index = ChromaIndex(make_snapshot(workspace), workspace, HashEmbedder())
    yield index
    index.close()


@pytest.fixture(scope="module")
def exact(index):
    return CollectionIndex(index.snapshot, HashEmbedder())


def ids(hits):
    return [hit.chunk.id for hit in hits]


def test_few_vectors_and_a_wide_search_miss_little_of_brute_force(index, exact):
    """400 continuous vectors, ef 1,000: misses of the true 50 over 20 queries are counted and are at most 1 %."""
    misses = 0
    for number in range(20):
        true = set(ids(exact.reader(f"q{number}").read(0, 50)))
        misses += len(true - set(ids(index.reader(f"q{number}").read(0, 50))))
    assert misses <= 10


def test_distances_are_those_of_exact_search_and_ascend(index, exact):
    known = {hit.chunk.id: hit.distance for hit in exact.reader("q").read(0, ROWS)}
    hits = index.reader("q").read(0, 60)
    assert [hit.distance for hit in hits] == [known[hit.chunk.id] for hit in hits]
    assert [hit.distance for hit in hits] == sorted(hit.distance for hit in hits)
    assert [hit.rank for hit in hits] == list(range(1, 61))


def test_excluding_equals_deepening_and_returns_nothing_excluded(index):
    differing = 0
    for number in range(10):
        deeper, excluder = index.reader(f"q{number}"), index.reader(f"q{number}")
        seen = []
        for _ in range(3):
            more = ids(excluder.read_excluding(seen, 15))
            assert not set(more) & set(seen)
            assert len(set(more)) == 15
            seen += more
        differing += len(set(ids(deeper.read(0, 45))) - set(seen))
    assert differing <= 4  # of 450


def test_reading_on_keeps_what_was_read_and_repeats_nothing(index):
    reader = index.reader("q")
    first = reader.read(0, 10)
    rest = reader.read(10, 100)
    assert reader.read(0, 100) == first + rest
    assert len(set(ids(first + rest))) == 100


def test_conditions_fill_the_list_from_further_down(index, exact):
    hits = index.reader("q", where={"half": 1}).read(0, 50)
    assert len(hits) == 50
    assert all(hit.chunk.metadata["half"] == 1 for hit in hits)
    true = ids(exact.reader("q", where={"half": 1}).read(0, 50))
    assert len(set(ids(hits)) & set(true)) >= 49


def test_more_exclusions_than_chroma_takes_are_refused(index):
    with pytest.raises(StoreError, match="16,001"):
        index.found(np.ones(16, dtype=np.float32), 1, [str(n) for n in range(16_001)])


def test_a_second_server_over_the_folder_is_refused(index, workspace):
    index.reader("q").read(0, 1)
    with pytest.raises(StoreError, match=f"being written by process {os.getpid()} on"):
        chroma_server.ChromaServer(index._server.folder).client()


def test_two_indexes_of_one_process_share_the_server(index, workspace):
    other = ChromaIndex(index.snapshot, workspace, HashEmbedder())
    assert ids(other.reader("q").read(0, 20)) == ids(index.reader("q").read(0, 20))
    assert other._server is index._server


def test_a_killed_server_is_an_error_or_a_restart_never_the_end(index, exact):
    index.reader("q").read(0, 5)
    process = index._server._process
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(index.reader("q").read(0, 5)) == 5
    assert index._server._process.pid != process.pid


def test_a_server_that_dies_while_asked_is_one_sentence(index, monkeypatch):
    index.reader("q").read(0, 5)
    process = index._server._process
    process.kill()
    process.wait()
    client = index._server._client
    monkeypatch.setattr(index._server, "client", lambda: client)
    with pytest.raises(StoreError, match="Chroma failed to answer a query") as caught:
        index.reader("q").read(0, 5)
    assert "\n" not in str(caught.value)


def test_a_server_that_hangs_is_one_sentence(index, monkeypatch):
    monkeypatch.setattr(chroma_server, "ANSWER_SECONDS", 1.0)
    index.close()
    index.reader("q").read(0, 5)
    process = index._server._process
    process.send_signal(signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)  # all its threads stand still from here on
        with pytest.raises(StoreError, match="Chroma failed to answer a query"):
            index.reader("q").read(0, 5)
    finally:
        index.close()


def test_a_deleted_folder_is_rebuilt_from_our_copy(index, exact):
    assert index._collection().count() == ROWS
    index.close()
    shutil.rmtree(index._server.folder / "data")
    assert index._collection().count() == ROWS
    found, true = ids(index.reader("q").read(0, 50)), ids(exact.reader("q").read(0, 50))
    assert len(set(found) & set(true)) >= 49


@pytest.mark.slow
def test_a_changed_collection_is_not_searched_through_the_old_index(tmp_path):
    old = ChromaIndex(make_snapshot(tmp_path), tmp_path, HashEmbedder())
    old.reader("q").read(0, 5)
    old.close()
    new = ChromaIndex(make_snapshot(tmp_path, "new "), tmp_path, HashEmbedder())
    try:
        exact = CollectionIndex(new.snapshot, HashEmbedder())
        assert len(set(ids(new.reader("q").read(0, 50))) & set(ids(exact.reader("q").read(0, 50)))) >= 49
    finally:
        new.close()


@pytest.mark.slow
def test_the_server_ends_with_the_process_that_started_it(tmp_path):
    code = (
        "import sys, os; from pathlib import Path; from rag_core.index.chroma_server import ChromaServer\n"
        "server = ChromaServer(Path(sys.argv[1])); server.client(); print(server._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "chroma")], stdout=subprocess.PIPE, text=True)
    child = int(run.stdout)
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
