"""Back-up and restore: everything comes back, a damaged file changes nothing, nothing is overwritten unasked."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rag_core import backup
from rag_core.backup import make, restore
from rag_core.cli import main
from rag_core.errors import InputError, StoreError
from rag_core.store import holding
from rag_core.store.database import FILE, open_store
from rag_core.store.labels import LabelStore
from tests.store.conftest import database, make_event, no_server, postgres, schema  # noqa: F401 — fixtures


@pytest.fixture
def filled(tmp_path, database):  # noqa: F811
    workspace = tmp_path / "first"
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(n, n % 4, chunk_id=f"c{n}") for n in range(30)])
    (workspace / "collections" / "rules" / "chroma").mkdir(parents=True)
    (workspace / "collections" / "rules" / "chunks.bin").write_bytes(bytes(range(256)) * 5000)
    (workspace / "collections" / "rules" / "chroma" / "cache").write_text("made again")
    (workspace / "collections" / "x.lock").write_text("")
    (workspace / "roles.yaml").write_text("admin: [ann]\n")
    with sqlite3.connect(workspace / "answers.db") as connection:
        connection.execute("CREATE TABLE answer (x)")
        connection.execute("INSERT INTO answer VALUES (7)")
    return workspace


def emptied(tmp_path, database):  # noqa: F811
    """The database a new server has."""
    if database == "postgresql":
        from sqlalchemy import text

        with open_store(tmp_path / "scratch") as store, store.writing() as connection:
            connection.execute(text("DROP VIEW label_current"))
            connection.execute(text("DROP VIEW label_live"))
            for table in ("label_event", "run", "run_note", "query_history", "alembic_version"):
                connection.execute(text(f"DROP TABLE {table}"))


def labels_in(workspace):
    with open_store(workspace) as store:
        return LabelStore(store).history("demo")


def test_everything_comes_back_and_what_can_be_made_again_is_left_out(filled, tmp_path, database):  # noqa: F811
    before = labels_in(filled)
    report = make(filled, tmp_path / "copy.zip")
    assert report.rows["label_event"] == 30
    emptied(tmp_path, database)
    second = tmp_path / "second"
    restore(tmp_path / "copy.zip", second)
    assert labels_in(second) == before
    assert (second / "collections/rules/chunks.bin").read_bytes() == bytes(range(256)) * 5000
    with sqlite3.connect(second / "answers.db") as connection:
        assert connection.execute("SELECT x FROM answer").fetchall() == [(7,)]
    left = {path.relative_to(second).as_posix() for path in second.rglob("*") if path.is_file()}
    left -= {FILE, holding.FILE}
    assert left == {"collections/rules/chunks.bin", "roles.yaml", "answers.db"}


def test_a_workspace_that_is_not_empty_is_kept_unless_forced_and_then_set_aside(filled, tmp_path, database):  # noqa: F811
    make(filled, tmp_path / "copy.zip")
    with open_store(filled) as store:
        LabelStore(store).append([make_event(99, chunk_id="later")])
    with pytest.raises(StoreError, match="is not empty, expected a new one or --force"):
        restore(tmp_path / "copy.zip", filled)
    assert len(labels_in(filled)) == 31
    report = restore(tmp_path / "copy.zip", filled, force=True)
    assert len(labels_in(filled)) == 30
    assert "before-" in report.aside
    if database == "sqlite":
        assert len(labels_in(tmp_path / report.aside)) == 31
    else:
        assert [path.name.split("-")[-2:] for path in (filled / "backups").iterdir()] == [["before", "restore.jsonl"]]


@pytest.mark.postgres
def test_a_database_with_rows_is_kept_unless_forced(filled, tmp_path, database):  # noqa: F811
    make(filled, tmp_path / "copy.zip")
    if database == "sqlite":
        restore(tmp_path / "copy.zip", tmp_path / "second")
        return
    with pytest.raises(StoreError, match="holds rows already"):
        restore(tmp_path / "copy.zip", tmp_path / "second")
    assert not (tmp_path / "second").exists()
    assert len(labels_in(filled)) == 30


def placed(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.name != "scratch")


@pytest.mark.parametrize("step", [1, 2])
def test_a_folder_that_cannot_be_moved_changes_neither_rows_nor_folder(filled, tmp_path, monkeypatch, step):
    make(filled, tmp_path / "copy.zip")
    with open_store(filled) as store:
        LabelStore(store).append([make_event(99, chunk_id="later")])
    before, renames, rename = labels_in(filled), [], Path.rename

    def failing(self, target):
        if self.name.startswith("first"):
            renames.append(self)
            if len(renames) == step:
                raise OSError(28, "No space left on device")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        with pytest.raises((OSError, StoreError)):
            restore(tmp_path / "copy.zip", filled, force=True)
    assert len(renames) >= step
    assert placed(tmp_path) == ["copy.zip", "first"]
    assert (filled / "roles.yaml").is_file()
    assert labels_in(filled) == before


@pytest.mark.postgres
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_rows_that_cannot_be_committed_bring_the_old_folder_back(filled, tmp_path, database, monkeypatch):  # noqa: F811
    make(filled, tmp_path / "copy.zip")
    with open_store(filled) as store:
        LabelStore(store).append([make_event(99, chunk_id="later")])
    (filled / "newer.txt").write_text("of today")
    swap = backup._Swap.do

    def cut_off(self):
        swap(self)
        assert not (filled / "newer.txt").exists()
        ended(os.environ["WINNOW_DATABASE_URL"])

    monkeypatch.setattr(backup._Swap, "do", cut_off)
    with pytest.raises(StoreError, match=r"cut|restarted|shut down"):
        restore(tmp_path / "copy.zip", filled, force=True)
    assert (filled / "newer.txt").is_file()
    assert placed(tmp_path) == ["copy.zip", "first"]
    assert len(labels_in(filled)) == 31


def ended(url):
    """End the working connections of this test, as a restart does; those of tests beside it stay."""
    from sqlalchemy import create_engine, make_url, text

    mine = make_url(url).query["application_name"]
    admin = create_engine(
        make_url(url).set(drivername="postgresql+psycopg").difference_update_query(["application_name"])
    )
    with admin.begin() as connection:
        told = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :mine AND state != 'idle'"
        )
        assert connection.execute(text(told), {"mine": mine}).all()
    admin.dispose()


KILLED = """
import os, signal, sys
from pathlib import Path
from rag_core import backup
swap = backup._Swap.do
def do(self):
    swap(self)
    os.kill(os.getpid(), signal.SIGKILL)
backup._Swap.do = do
backup.restore(Path(sys.argv[1]), Path(sys.argv[2]), force=True)
"""


def test_a_restore_killed_between_folder_and_rows_is_finished_by_the_same_command(filled, tmp_path):
    make(filled, tmp_path / "copy.zip")
    with open_store(filled) as store:
        LabelStore(store).append([make_event(99, chunk_id="later")])
    root = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "copy.zip"), str(filled)]
    done = subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    restore(tmp_path / "copy.zip", filled, force=True)
    assert len(labels_in(filled)) == 30
    assert (filled / "roles.yaml").is_file()


def rewritten(source, target, change):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        parts = {name: old.read(name) for name in old.namelist()}
        change(parts)
        for name, data in parts.items():
            new.writestr(name, data)


def other_bytes(parts):
    parts["workspace/collections/rules/chunks.bin"] = b"x" + parts["workspace/collections/rules/chunks.bin"][1:]


def longer(parts):
    parts["workspace/roles.yaml"] += b" " * 10_000_000


def missing(parts):
    del parts["workspace/roles.yaml"]


def extra(parts):
    parts["workspace/more"] = b"x"


def outside(parts):
    manifest = json.loads(parts["manifest.json"])
    manifest["files"]["workspace/../../evil"] = manifest["files"].pop("workspace/roles.yaml")
    parts["workspace/../../evil"] = parts.pop("workspace/roles.yaml")
    parts["manifest.json"] = json.dumps(manifest).encode()


def absolute(parts):
    manifest = json.loads(parts["manifest.json"])
    manifest["files"]["/tmp/evil"] = manifest["files"].pop("workspace/roles.yaml")
    parts["/tmp/evil"] = parts.pop("workspace/roles.yaml")
    parts["manifest.json"] = json.dumps(manifest).encode()


def swollen(parts):
    """Some kilobytes that unpack to two hundred million zeros, as listed."""
    zeros = bytes(200_000_000)
    manifest = json.loads(parts["manifest.json"])
    manifest["files"]["workspace/x"] = {"sha256": hashlib.sha256(zeros).hexdigest(), "bytes": len(zeros)}
    parts["manifest.json"], parts["workspace/x"] = json.dumps(manifest).encode(), zeros


def other_kind(parts):
    parts["manifest.json"] = b'{"kind": "other"}'


@pytest.mark.parametrize("place", ["first/copy.zip", "first/collections/copy.zip", "nowhere/copy.zip"])
def test_a_copy_goes_beside_the_workspace_and_into_a_folder_that_is_there(filled, tmp_path, place):
    before = sorted(filled.rglob("*"))
    with pytest.raises(InputError, match="expected a place beside it"):
        make(filled, tmp_path / place)
    assert sorted(filled.rglob("*")) == before


def test_a_workspace_named_by_a_dot_is_the_folder_one_stands_in(filled, tmp_path, database, monkeypatch):  # noqa: F811
    make(filled, tmp_path / "copy.zip")
    emptied(tmp_path, database)
    (tmp_path / "second").mkdir()
    monkeypatch.chdir(tmp_path / "second")
    restore(tmp_path / "copy.zip", Path("."))
    assert (tmp_path / "second" / "roles.yaml").is_file()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("change", [other_bytes, longer, missing, extra, outside, absolute, swollen, other_kind])
def test_a_file_that_is_not_what_was_stored_changes_nothing(filled, tmp_path, change):
    make(filled, tmp_path / "copy.zip")
    rewritten(tmp_path / "copy.zip", tmp_path / "bad.zip", change)
    with pytest.raises(InputError):
        restore(tmp_path / "bad.zip", filled, force=True)
    assert len(labels_in(filled)) == 30
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.zip", "copy.zip", "first"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kept", [0, 100, 5000])
def test_a_file_cut_short_is_refused(filled, tmp_path, kept):
    make(filled, tmp_path / "copy.zip")
    (tmp_path / "bad.zip").write_bytes((tmp_path / "copy.zip").read_bytes()[:kept])
    with pytest.raises(InputError, match="is damaged or no back-up"):
        restore(tmp_path / "bad.zip", tmp_path / "second")
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_commands_say_in_json_what_they_did(filled, tmp_path, capfdbinary):
    copy = str(tmp_path / "copy.zip")
    assert main(["backup", copy, "--workspace", str(filled), "--json"]) == 0
    made = json.loads(capfdbinary.readouterr().out)
    assert main(["restore", copy, "--workspace", str(tmp_path / "second"), "--json"]) == 0
    back = json.loads(capfdbinary.readouterr().out)
    assert made["rows"] == back["rows"]
    assert (made["files"], back["files"]) == (4, 4)
    assert main(["restore", copy, "--workspace", str(filled)]) == 3
    assert main(["backup", copy, "--workspace", str(filled)]) == 2
    assert main(["restore", str(tmp_path / "none.zip")]) == 2
