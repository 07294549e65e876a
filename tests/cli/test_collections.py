"""`collections`: a Chroma collection made by plain chromadb code is queried, captured, evaluated and given rules."""

import json
import subprocess
import sys

import numpy as np
import pytest

from rag_core.cli import main
from rag_core.index.embed import BundledEmbedder

TEXTS = {
    "hat": "A bowler is a hard round hat of felt.",
    "boot": "A wellington is a boot of rubber for rain.",
    "scarf": "A scarf is a long cloth worn around the neck.",
}
CODE = """
import json, sys
import numpy as np
import chromadb
texts, vectors = json.loads(sys.argv[2]), np.load(sys.argv[3])
made = chromadb.PersistentClient(sys.argv[1]).create_collection("wear")
made.add(ids=list(texts), documents=list(texts.values()), embeddings=vectors, metadatas=[{"title": one} for one in texts])
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    np.save(folder / "vectors.npy", BundledEmbedder().embed(list(TEXTS.values())))
    arguments = [str(folder / "store"), json.dumps(TEXTS), str(folder / "vectors.npy")]
    subprocess.run([sys.executable, "-c", CODE, *arguments], check=True)
    return folder / "store"


@pytest.fixture
def run(tmp_path, capsysbinary):
    def called(*arguments, code=0):
        assert main([*map(str, arguments), "--workspace", str(tmp_path / "ws"), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else (out, err.decode())

    return called


def test_a_connected_collection_is_used_by_every_command(run, store, tmp_path):
    (found,) = run("collections", "found", "--chroma-path", store)["collections"]
    assert (found["name"], found["count"], found["metric"], found["model"]) == ("wear", 3, "l2", "default")
    said = ("--chroma-path", store, "--collection", "wear", "--as", "clothes", "--map", "type=kind,rule=needs")
    done = run("connect", *said)
    assert done["fields"] == {"type": "kind", "query_must": "needs"}
    assert (done["chunks"], done["metric"], done["model"]) == (3, "l2", "all-MiniLM-L6-v2-int8")
    (listed,) = run("collections")["collections"]
    assert (listed["name"], listed["metric"]) == ("clothes", "l2")
    (asked,) = run("query", "footwear for wet days", "--collection", "clothes")["pipelines"][0]["queries"]
    assert asked["metric"] == "l2"
    assert asked["kept"][0]["id"] == "boot"
    own = tmp_path / "set"
    own.mkdir()
    (own / "meta.yaml").write_text("version: 1\nname: wear\n")
    (own / "queries.jsonl").write_text('{"id": "q1", "query": "a hard round hat"}\n')
    (own / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\that\t2\n")
    out = tmp_path / "lists.jsonl"
    run("capture", "--eval-set", own, "--collection", "clothes", "--out", out)
    assert json.loads(out.read_text())["metric"] == "l2"
    measured = run("evaluate", "--eval-set", own, "--collection", "clothes", "-p", '[{"TopK": {"k": 1}}]')
    assert measured["pipelines"][0]["means"]["SetP"] == 1.0


def test_an_adaptive_cut_made_for_cosine_refuses_another_space(run, store):
    run("collections", "connect", "--chroma-path", store, "--collection", "wear")
    _, said = run("query", "hat", "--collection", "wear", "-p", '["AdaptiveGap"]', code=2)
    assert "l2" in said


def test_approximate_search_of_another_space_is_refused(run, store):
    run("collections", "connect", "--chroma-path", store, "--collection", "wear")
    _, said = run("query", "hat", "--collection", "wear", "--approximate", code=2)
    assert "l2 distances, expected a cosine one" in said


def test_in_place_warns_before_it_reads(run, store, tmp_path, capsysbinary):
    import shutil

    shutil.copytree(store, tmp_path / "mine")
    arguments = ["--chroma-path", tmp_path / "mine", "--in-place", "--collection", "wear"]
    main(["collections", "connect", *map(str, arguments), "--workspace", str(tmp_path / "ws")])
    out, err = capsysbinary.readouterr()
    assert b"Chroma rewrites files" in err
    assert b"3 chunks" in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--chroma-path", "/nowhere/at/all"], 2, "is not a folder"),
        ([], 2, "expected one of a folder, a server's address and Cloud"),
        (["--chroma-url", "http://127.0.0.1:9"], 3, "is a Chroma server running there?"),
        (["--chroma-cloud"], 2, "CHROMA_API_KEY is not set"),
    ],
)
def test_a_place_that_cannot_be_read_is_one_sentence(run, arguments, code, said):
    out, err = run("collections", "connect", "--collection", "wear", *arguments, code=code)
    assert said in err
    assert err.count("\n") == 1
    assert out == b""


def test_deletion_asks_for_yes_and_leaves_the_store(run, store):
    run("collections", "connect", "--chroma-path", store, "--collection", "wear")
    _, said = run("collections", "delete", "--collection", "wear", code=2)
    assert "expected --yes" in said
    run("collections", "delete", "--collection", "wear", "--yes")
    assert run("collections")["collections"] == []
    assert (store / "chroma.sqlite3").is_file()
