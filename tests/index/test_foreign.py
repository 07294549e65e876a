"""Chroma collections made by plain chromadb code: read from a copy, in their own space, the original untouched."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbedder
from hypothesis import given
from hypothesis import strategies as st
from plain_chroma import SPACES, checksums, make_store, rewrite

from rag_core.errors import InputError, StoreError, exit_code
from rag_core.index import foreign, foreign_place
from rag_core.index.browse import overview
from rag_core.index.chroma_server import ChromaServer
from rag_core.index.collection import folder_of, list_collections, open_collection
from rag_core.index.foreign import FIELDS, connect, has_changed, list_foreign, propose_fields
from rag_core.index.foreign_place import ForeignPlace
from rag_core.index.handles import open_index
from rag_core.index.ingest import ingest_chunks
from rag_core.index.rules import apply_rules
from rag_core.index.store import opened
from rag_core.rules.rule import Rule, read_rule
from rag_core.types import Chunk, Metric

METRICS = {None: Metric.L2, "l2": Metric.L2, "cosine": Metric.COSINE, "ip": Metric.IP}


class GivenVector(HashEmbedder):
    """An embedder that gives one vector, as it stands: what Chroma itself was asked with."""

    def __init__(self, vector, unit):
        super().__init__()
        array = np.array([vector], dtype=np.float32)
        self.given = array / np.linalg.norm(array) if unit else array

    def embed(self, texts, progress=None):
        return np.repeat(self.given, len(texts), axis=0)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign") / "store"
    return folder, make_store(folder)


@pytest.fixture(scope="module")
def one_collection(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain") / "store"
    make_store(folder, {"plain": None})
    return folder


@pytest.fixture
def own_store(one_collection, tmp_path):
    """A store of one collection that a test may change."""
    return Path(shutil.copytree(one_collection, tmp_path / "store"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, store):
    """All six collections connected."""
    place = tmp_path_factory.mktemp("workspace")
    before = checksums(store[0])
    for name in SPACES:
        connect(ForeignPlace(path=store[0]), name, name, place, model="hash-16")
    assert checksums(store[0]) == before
    return place


def test_listing_names_collections_spaces_and_sizes_and_changes_nothing(store, tmp_path):
    before = checksums(store[0])
    found = {one.name: one for one in list_foreign(ForeignPlace(path=store[0]), tmp_path)}
    assert {name: one.metric for name, one in found.items()} == {name: METRICS[s] for name, s in SPACES.items()}
    assert {(one.count, one.dimension) for one in found.values()} == {(60, 16)}
    assert checksums(store[0]) == before


@pytest.mark.parametrize("name", SPACES)
def test_distances_are_chromas_own_in_its_own_space_and_say_so(store, workspace, name):
    ids, distances, query = store[1][name]
    metric = METRICS[SPACES[name]]
    index = open_index(workspace, name, GivenVector(query, unit=metric is Metric.COSINE))
    hits = index.reader("anything").read(0, 60)
    assert index.metric is metric
    assert {hit.chunk.id: hit.distance for hit in hits} == pytest.approx(
        dict(zip(ids, distances, strict=True)), abs=1e-4
    )
    assert [hit.distance for hit in hits] == sorted(hit.distance for hit in hits)


def test_documents_and_metadata_become_chunks_and_absent_ones_are_empty(workspace):
    full, bare = open_collection(workspace, "cosine"), open_collection(workspace, "cosine-bare")
    assert (full.chunks[3].text, full.chunks[3].title) == ("text of 3", "Title 3")
    assert full.chunks[3].metadata == {"n": 3}
    assert full.chunks[3].query_must == {"contain_one_of": [["word3"]]}
    assert (bare.chunks[3].id, bare.chunks[3].text, bare.chunks[3].title) == ("d03", "", "")


def test_what_metadata_means_is_read_off_its_names_and_else_off_its_values():
    rows = [
        {
            "überschrift": f"Coffee dose of the E {n}",
            "art": ("table", "prose")[n % 2],
            "woher": f"manuals/e{n}.pdf",
            "siehe": json.dumps([f"id{(n + 1) % 12}"]),
            "regel": json.dumps({"contain": f"e {n}"}),
            "n": n,
        }
        for n in range(12)
    ]
    ids = {f"id{n}" for n in range(12)}
    own = {"title": "überschrift", "type": "art", "file": "woher", "ref_ids": "siehe", "query_must": "regel"}
    assert propose_fields(rows, ids) == own
    usual = [{"heading": "H", "category": "c", "source": "a.md", "query_must": None, "page": 3} for _ in range(3)]
    assert propose_fields(usual) == {"title": "heading", "type": "category", "file": "source"}
    assert propose_fields([{"n": 1, "score": 0.5, "long": "x" * 500}] * 9) == {}


@given(st.lists(st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.text(max_size=9), max_size=5)))
def test_any_metadata_is_read_and_no_key_stands_for_two_fields(rows):
    proposed = propose_fields(rows, {"a"})
    assert set(proposed) <= set(FIELDS)
    assert len(set(proposed.values())) == len(proposed)
    assert set(proposed.values()) <= {name for row in rows for name in row}


def test_what_was_chosen_for_the_metadata_is_kept_when_the_mirror_is_read_again(own_store, tmp_path):
    place = ForeignPlace(path=own_store)
    fields = {"type": "title", "file": "n"}
    for chosen in (fields, None):
        connect(place, "plain", "mine", tmp_path, model="hash-16", fields=chosen)
        (chunk, *_) = open_collection(tmp_path, "mine").chunks
        assert (chunk.title, chunk.type) == ("", "Title 0")
        assert set(overview(tmp_path, "mine").documents) == {str(n) for n in range(60)}
        with opened(folder_of(tmp_path, "mine")) as file:
            assert json.loads(file.meta()["origin_facts"])["fields"] == fields


def test_reading_on_excluding_and_admitting_follow_one_ranking_in_a_foreign_space(store, workspace):
    index = open_index(workspace, "plain", GivenVector(store[1]["plain"][2], unit=False))
    full = index.reader("x").read(0, 60)
    reader = index.reader("x")
    assert reader.read(0, 5) + reader.read(5, 60) == full
    without = {hit.chunk.id for hit in full[:7]}
    assert index.reader("x").read_excluding(without, 10) == full[7:17]
    admitted = index.reader("word3").read_admitted("word3 word9", "token", (), 10)
    assert {hit.chunk.id for hit in admitted} == {"d03", "d09"}
    assert all(hit in full for hit in admitted)


def test_a_mirror_is_listed_with_its_origin_and_metric(store, workspace):
    found = {one.name: one for one in list_collections(workspace)}
    assert found["inner"].metric == "ip"
    assert found["inner"].origin == f"{store[0]} · inner"


def test_an_unnamed_model_and_another_dimension_are_refused_naming_both(store, tmp_path):
    with pytest.raises(InputError, match=r"does not say which model .*16 dimensions.*--model"):
        connect(ForeignPlace(path=store[0]), "cosine", "mine", tmp_path)
    with pytest.raises(InputError, match="16 dimensions, all-MiniLM-L6-v2-int8 gives 384"):
        connect(ForeignPlace(path=store[0]), "cosine", "mine", tmp_path, model="all-MiniLM-L6-v2")
    assert list_collections(tmp_path) == []


def test_a_query_with_no_endpoint_for_the_model_names_both(workspace):
    with pytest.raises(InputError, match=r"hash-16 \(16 dimensions\).*all-MiniLM-L6-v2-int8 \(384\)"):
        open_index(workspace, "cosine")


def test_an_unknown_collection_lists_what_the_store_has(store, tmp_path):
    with pytest.raises(StoreError, match="has no collection 'nope', expected one of cosine, cosine-bare, ell-two"):
        connect(ForeignPlace(path=store[0]), "nope", "mine", tmp_path, model="hash-16")


def test_documents_do_not_go_into_a_mirror_nor_a_mirror_over_documents(store, workspace, tmp_path):
    with pytest.raises(InputError, match="collection inner mirrors"):
        ingest_chunks([Chunk("a", text="b")], "inner", workspace, HashEmbedder(), force=True)
    ingest_chunks([Chunk("a", text="b")], "own", tmp_path, HashEmbedder())
    with pytest.raises(InputError, match="own was ingested here"):
        connect(ForeignPlace(path=store[0]), "cosine", "own", tmp_path, model="hash-16")


def test_a_text_that_changed_beside_the_same_vector_is_told_and_found_by_its_new_words(own_store, tmp_path):
    workspace = tmp_path / "ws"
    found = []
    for change in (False, True):
        if change:
            rewrite(own_store, "plain", "d07", "a zeppelin")
            assert has_changed(workspace, "mine")
        connect(ForeignPlace(path=own_store), "plain", "mine", workspace, model="hash-16")
        assert not has_changed(workspace, "mine")
        index = open_index(workspace, "mine", HashEmbedder())
        found.append(([hit.chunk.id for hit in index.lexical_reader("zeppelin").read(0, 5)], index.fingerprint))
    assert [ids for ids, _ in found] == [[], ["d07"]]
    assert found[0][1] != found[1][1]


def test_rules_set_here_outlive_connecting_again_and_the_store_is_not_written(store, tmp_path):
    before = checksums(store[0])
    connect(ForeignPlace(path=store[0]), "cosine", "mine", tmp_path, model="hash-16")
    rule = read_rule({"contain_one_of": [["ours"]]})
    assert isinstance(rule, Rule)
    apply_rules(tmp_path, "mine", {"d03": rule}, "test")
    connect(ForeignPlace(path=store[0]), "cosine", "mine", tmp_path, model="hash-16")
    assert read_rule(open_collection(tmp_path, "mine").chunks[3].query_must) == rule
    assert checksums(store[0]) == before


def test_a_crash_of_the_serving_process_is_one_sentence_and_exit_code_3(store, tmp_path, monkeypatch):
    """The real server is killed by a signal between two reads of the real client."""
    described, servers = foreign.described, []
    start = ChromaServer._start

    def started(server):
        start(server)
        servers.append(server)

    monkeypatch.setattr(ChromaServer, "_start", started)

    def described_then_killed(collection):
        found = described(collection)
        os.kill(servers[0]._process.pid, signal.SIGSEGV)
        return found

    monkeypatch.setattr(foreign, "described", described_then_killed)
    with pytest.raises(StoreError, match=r"Chroma's process died \(signal 11\) while .* was read") as caught:
        connect(ForeignPlace(path=store[0]), "cosine", "mine", tmp_path, model="hash-16")
    assert "\n" not in str(caught.value)
    assert exit_code(caught.value) == 3
    assert list_collections(tmp_path) == []


@pytest.mark.parametrize("damage", ["header.bin", "data_level0.bin", "chroma.sqlite3"])
def test_a_damaged_store_is_an_error_or_read_whole_never_the_end_of_the_process(own_store, tmp_path, damage):
    for path in own_store.rglob("*"):
        if path.name == damage:
            path.write_bytes(os.urandom(path.stat().st_size))
    said = ""
    try:
        connect(ForeignPlace(path=own_store), "plain", "mine", tmp_path / "ws", model="hash-16")
    except StoreError as error:
        said = str(error)
    whole = [(one.name, one.chunks) for one in list_collections(tmp_path / "ws")]
    assert whole == ([] if said else [("mine", 60)])
    assert "\n" not in said


def test_empty_sparse_and_foreign_folders_are_refused_before_anything_starts(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    with pytest.raises(InputError, match=r"holds no chroma\.sqlite3"):
        list_foreign(ForeignPlace(path=folder), tmp_path)
    (folder / "chroma.sqlite3").touch()
    with pytest.raises(StoreError, match=r"chroma\.sqlite3 is empty"):
        list_foreign(ForeignPlace(path=folder), tmp_path)
    (folder / "chroma.sqlite3").write_bytes(b"SQLite format 3\0")
    with (folder / "link_lists.bin").open("wb") as file:
        file.truncate(2_000_000_000_000)
    with pytest.raises(StoreError, match=r"link_lists\.bin .* claims 2,000 GB and holds 0\.0"):
        list_foreign(ForeignPlace(path=folder), tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        list_foreign(ForeignPlace(path=tmp_path / "none"), tmp_path)


def test_in_place_reads_the_original_and_leaves_no_file_of_ours_there(own_store, tmp_path):
    before = set(checksums(own_store))
    done = connect(ForeignPlace(path=own_store, in_place=True), "plain", "mine", tmp_path / "ws", model="hash-16")
    assert done.chunks == 60
    assert not {name for name in checksums(own_store) if "writer" in name or "server.log" in name}
    assert before <= set(checksums(own_store))
    assert "migrates" in foreign_place.IN_PLACE_WARNING


def test_a_server_of_its_own_is_read_by_its_address(store, tmp_path):
    shutil.copytree(store[0], tmp_path / "served" / "data")
    server = ChromaServer(tmp_path / "served")
    try:
        server.client()
        url = f"http://127.0.0.1:{server.port}"
        assert {one.name for one in list_foreign(ForeignPlace(url=url), tmp_path)} == set(SPACES)
        done = connect(ForeignPlace(url=url), "inner", "remote", tmp_path / "ws", model="hash-16")
        assert (done.chunks, done.metric) == (60, Metric.IP)
    finally:
        server.stop()
    with pytest.raises(StoreError, match=r"is a Chroma server running there\?") as caught:
        list_foreign(ForeignPlace(url=url), tmp_path)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254", "ftp://example.org", "http://user:pw@127.0.0.1:8000", "http://10.0.0.1:8000"]
)
def test_addresses_that_may_not_be_asked_are_refused(url, tmp_path):
    with pytest.raises(InputError) as caught:
        list_foreign(ForeignPlace(url=url), tmp_path)
    assert "pw" not in str(caught.value)


def test_exactly_one_place_is_named():
    with pytest.raises(InputError, match="expected one of a folder, a server's address and Cloud"):
        ForeignPlace()
    with pytest.raises(InputError, match="in-place is set for a server"):
        ForeignPlace(url="http://127.0.0.1:1", in_place=True)


def test_cloud_sends_its_key_in_a_header_only(httpserver, monkeypatch, tmp_path):
    from rag_core.llm.secret import Key

    httpserver.expect_request("").respond_with_json({"error": "canary-key-123456789"}, status=401)
    monkeypatch.setattr(foreign_place, "CLOUD", httpserver.url_for("").rstrip("/"))
    place = ForeignPlace(cloud=True, tenant="team", database="db", key=Key("canary-key-123456789"))
    with pytest.raises(StoreError) as caught:
        list_foreign(place, tmp_path)
    assert "canary" not in f"{caught.value}{place!r}{place.said}"
    requests = [request for request, _ in httpserver.log]
    assert requests
    assert {request.headers.get("x-chroma-token") for request in requests} == {"canary-key-123456789"}
    assert all("canary" not in request.url for request in requests)


def test_the_origin_is_kept_as_text_without_a_key(workspace, store):

    with opened(workspace / "collections" / "cosine") as file:
        facts = json.loads(file.meta()["origin_facts"])
    assert facts["place"] == str(store[0])
    assert facts["collection"] == "cosine"
