"""Rules written back into a Chroma folder as the designs describe it, read by plain chromadb, taken back; also killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.index import foreign_place
from rag_core.index.browse import overview
from rag_core.index.chroma_server import ChromaServer
from rag_core.index.collection import open_collection
from rag_core.index.foreign import connect, has_changed, list_foreign
from rag_core.index.foreign_place import ForeignPlace
from rag_core.index.push import DONE, UNDONE, WRITING, push_rules, pushes, undo_push
from rag_core.index.rules import apply_rules
from rag_core.rules.rule import Rule, read_rule

MAKE = """
import json, sys
import chromadb, numpy as np
folder, count, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
collection = chromadb.PersistentClient(folder).create_collection("monsters")
vectors = np.random.default_rng(3).normal(size=(count, width)).astype("float32")
rows = []
for n in range(count):
    rule = {"query_must": {"contain_one_of": [[f"monster {n}", f"mon {n}"]]}}
    row = {"file_name": f"book{n % 3}.md", "chunk_type": "monster" if n % 2 else "table", "monster_name": f"Monster {n}"}
    if n % 5 == 0:
        row["query_must"] = json.dumps(rule) if n % 10 else str(rule)
    refs = [f"c{(n + 1) % count}", f"c{(n + 2) % count}"]
    row["ref_ids"] = [json.dumps(refs), str(refs), ", ".join(refs)][n % 3]
    rows.append(row)
for start in range(0, count, 500):
    part = slice(start, start + 500)
    collection.add(ids=[f"c{n}" for n in range(count)][part], embeddings=vectors[part], metadatas=rows[part],
                   documents=[f"Monster {n} is a beast of the hills." for n in range(count)][part])
"""
READ = """
import json, sys
import chromadb
got = chromadb.PersistentClient(sys.argv[1]).get_collection("monsters").get(include=["metadatas", "documents"])
print(json.dumps({i: [m, d] for i, m, d in zip(got["ids"], got["metadatas"], got["documents"])}))
"""


def python(code, *arguments):
    run = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True)
    return run.stdout


def read(folder):
    """Every record by id, as plain chromadb gives it."""
    return json.loads(python(READ, folder))


def a_rule(n):
    return Rule(contain_one_of=((f"beast {n}",),))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("designs") / "store"
    python(MAKE, folder, 60, 1536)
    return folder


@pytest.fixture
def store(made, tmp_path):
    """(the folder, its place, a workspace in which it is connected with rules of our own for ten chunks)."""
    folder = tmp_path / "store"
    subprocess.run(["cp", "-r", str(made), str(folder)], check=True)
    place, workspace = ForeignPlace(path=folder), tmp_path / "workspace"
    connect(place, "monsters", "mine", workspace, model="text-embedding-3-small")
    apply_rules(workspace, "mine", {f"c{n}": a_rule(n) for n in range(10)}, "ours")
    return folder, place, workspace


def test_a_store_as_the_designs_make_it_is_understood(made, tmp_path):
    (found,) = list_foreign(ForeignPlace(path=made), tmp_path)
    assert found.fields == {
        "title": "monster_name", "type": "chunk_type", "file": "file_name", "ref_ids": "ref_ids", "query_must": "query_must",
    }  # fmt: skip
    told = connect(ForeignPlace(path=made), "monsters", "mine", tmp_path, model="text-embedding-3-small")
    assert (told.with_rule, told.unreadable, told.dimension) == (12, 0, 1536)
    chunks = {chunk.id: chunk for chunk in open_collection(tmp_path, "mine").chunks}
    assert all(chunks[f"c{n}"].ref_ids == (f"c{(n + 1) % 60}", f"c{(n + 2) % 60}") for n in range(60))
    for n in range(0, 60, 5):
        assert read_rule(chunks[f"c{n}"].query_must) == Rule(contain_one_of=((f"monster {n}", f"mon {n}"),))
    assert overview(tmp_path, "mine").chunks == 60


def test_rules_are_pushed_read_by_plain_chroma_and_undone_to_what_was_there(store):
    folder, place, workspace = store
    before = read(folder)
    dry = push_rules(workspace, "mine", place, dry_run=True)
    assert (len(dry.changes), dry.number, read(folder) == before) == (10, 0, True)
    told = push_rules(workspace, "mine", place)
    after = read(folder)
    assert (told.state, len(told.changes), told.left) == (DONE, 10, ())
    for n in range(10):
        assert json.loads(after[f"c{n}"][0]["query_must"]) == {"query_must": a_rule(n).as_mapping()}
    others = [{key: value for key, value in after[one][0].items() if key != "query_must"} for one in after]
    assert others == [{key: value for key, value in before[one][0].items() if key != "query_must"} for one in after]
    assert all(after[f"c{n}"] == before[f"c{n}"] for n in range(10, 60))
    again = push_rules(workspace, "mine", place)
    assert (again.changes, again.unchanged) == ((), 10)
    assert undo_push(workspace, "mine", place).state == UNDONE
    assert read(folder) == before
    with pytest.raises(InputError, match="stands"):
        undo_push(workspace, "mine", place)


@pytest.fixture
def server(made, tmp_path):
    """A Chroma server of its own over the same records, and its address."""
    data = tmp_path / "served" / "data"
    data.parent.mkdir()
    subprocess.run(["cp", "-r", str(made), str(data)], check=True)
    running = ChromaServer(data.parent)
    yield running.client().get_collection("monsters"), f"http://127.0.0.1:{running.port}"
    running.stop()


@pytest.mark.parametrize("cloud", [False, True], ids=["by its address", "as Cloud is reached"])
def test_over_a_server_the_command_writes_and_takes_back_and_news_are_joined(
    server, tmp_path, capsys, monkeypatch, cloud
):
    theirs, address = server
    where = ["--chroma-url", address]
    if cloud:  # its client, tenant, database and token against a server of our own: there is no Cloud to ask
        monkeypatch.setattr(foreign_place, "CLOUD", address)
        monkeypatch.setenv("CHROMA_API_KEY", "canary-key-123456789")
        monkeypatch.setenv("CHROMA_TENANT", "default_tenant")
        monkeypatch.setenv("CHROMA_DATABASE", "default_database")
        where = ["--chroma-cloud"]
    workspace = ["--workspace", str(tmp_path / "workspace"), "--json"]

    def run(*arguments):
        assert main([*arguments, *workspace]) == 0
        return json.loads(capsys.readouterr().out)

    def values():
        got = theirs.get(include=["metadatas"])
        return dict(zip(got["ids"], got["metadatas"], strict=True))

    again = (
        "connect",
        *where,
        "--collection",
        "monsters",
        "--as",
        "mine",
        "--model",
        "text-embedding-3-small",
    )
    run(*again)
    apply_rules(tmp_path / "workspace", "mine", {f"c{n}": a_rule(n) for n in range(10)}, "ours")
    before = values()
    push = ("rules", "push", "--collection", "mine", "--to", "chroma")
    assert len(run(*push, "--dry-run")["changes"]) == 10
    assert values() == before
    assert run(*push)["state"] == DONE
    assert all(json.loads(values()[f"c{n}"]["query_must"]) == {"query_must": a_rule(n).as_mapping()} for n in range(10))
    # what somebody else did there since: a record more, a text changed; connecting again joins it, rules stay
    theirs.add(ids=["new"], embeddings=[[0.5] * 1536], documents=["a new beast"], metadatas=[{"monster_name": "New"}])
    theirs.update(ids=["c1"], documents=["a changed beast"], embeddings=[[0.25] * 1536])
    run(*again)
    chunks = {chunk.id: chunk for chunk in open_collection(tmp_path / "workspace", "mine").chunks}
    assert (chunks["new"].title, chunks["c1"].text, read_rule(chunks["c1"].query_must)) == (
        "New",
        "a changed beast",
        a_rule(1),
    )
    theirs.delete(ids=["new"])
    assert run(*push, "--undo")["state"] == UNDONE
    assert values() == before


def test_our_own_writing_is_no_news(store):
    _, place, workspace = store
    for write in (push_rules, undo_push):
        assert not has_changed(workspace, "mine")
        write(workspace, "mine", place)
    assert not has_changed(workspace, "mine")


def test_a_rule_taken_away_here_goes_there_and_comes_back(store):
    folder, place, workspace = store
    apply_rules(workspace, "mine", {"c5": None}, "none")
    before = read(folder)
    push_rules(workspace, "mine", place, form="plain")
    after = read(folder)
    assert "query_must" not in after["c5"][0]
    assert json.loads(after["c1"][0]["query_must"]) == a_rule(1).as_mapping()
    undo_push(workspace, "mine", place)
    assert read(folder) == before


def test_what_somebody_else_wrote_meanwhile_is_left_and_named(store):
    folder, place, workspace = store
    push_rules(workspace, "mine", place)
    change = "import chromadb,sys; chromadb.PersistentClient(sys.argv[1]).get_collection('monsters').update(ids=['c3'], metadatas=[{'query_must': 'theirs'}])"
    python(change, folder)
    assert has_changed(workspace, "mine")
    told = undo_push(workspace, "mine", place)
    assert told.left == ("c3",)
    assert read(folder)["c3"][0]["query_must"] == "theirs"
    assert has_changed(workspace, "mine")  # that of the other is still news


def test_what_cannot_be_pushed_is_refused(store, tmp_path):
    _, place, workspace = store
    with pytest.raises(InputError, match="form"):
        push_rules(workspace, "mine", place, form="yaml")
    with pytest.raises(InputError, match="connected from"):
        push_rules(workspace, "mine", ForeignPlace(path=tmp_path / "elsewhere"))
    connect(place, "monsters", "bare", workspace, model="text-embedding-3-small")
    with pytest.raises(InputError, match="no rule was set here"):
        push_rules(workspace, "bare", place)


def test_the_command_tells_writes_and_takes_back(store, capsys):
    _, _, workspace = store
    for options, state in ((["--dry-run"], ""), ([], DONE), (["--undo"], UNDONE)):
        assert main(["rules", "push", "--collection", "mine", "--workspace", str(workspace), "--json", *options]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["state"], len(told["changes"])) == (state, 10)
    assert main(["rules", "push", "--collection", "mine", "--workspace", str(workspace), "--undo"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


PUSH = """
import sys
from pathlib import Path
from rag_core.index.foreign_place import ForeignPlace
from rag_core.index.push import push_rules
def told(done, total):
    print(done, flush=True)
push_rules(Path(sys.argv[2]), "mine", ForeignPlace(path=Path(sys.argv[1])), progress=told)
"""


@pytest.mark.parametrize("end", ["push", pytest.param("undo", marks=pytest.mark.slow)])
def test_a_push_killed_in_the_middle_is_ended_or_undone_and_says_which(tmp_path, end):
    folder, workspace, count = tmp_path / "store", tmp_path / "workspace", 1100
    python(MAKE, folder, count, 16)
    place = ForeignPlace(path=folder)
    connect(place, "monsters", "mine", workspace, model="hash-16")
    apply_rules(workspace, "mine", {f"c{n}": a_rule(n) for n in range(count)}, "ours")
    before = read(folder)
    wanted = {f"c{n}": a_rule(n).as_mapping() for n in range(count)}
    child = subprocess.Popen(
        [sys.executable, "-c", PUSH, str(folder), str(workspace)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout.readline()  # one page of three
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    time.sleep(0.5)  # its server ends with it
    half = read(folder)
    written = sum(half[one] != before[one] for one in half)
    assert 500 <= written < count
    assert pushes(workspace, "mine")[-1].state == WRITING
    if end == "push":
        assert "was half written and is now done" in push_rules(workspace, "mine", place).ended
        after = read(folder)
        assert {one: json.loads(after[one][0]["query_must"])["query_must"] for one in after} == wanted
        undo_push(workspace, "mine", place)
    else:
        assert "half written and is undone" in undo_push(workspace, "mine", place).ended
    assert read(folder) == before
