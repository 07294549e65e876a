"""Every look tells what it found; one that fails is a sentence and does not stop the others."""

import shutil
from collections import namedtuple

import pytest

from rag_core import health
from rag_core.health import checks_of
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def without_the_slow_looks(monkeypatch):
    monkeypatch.setattr(health, "_model", lambda: "answers")
    monkeypatch.setattr(health, "_eval_sets", lambda _: "read")


def found(workspace):
    return {check.name: check for check in checks_of(workspace)}


def test_a_new_workspace_is_whole(tmp_path):
    looks = found(tmp_path / "none")
    assert [name for name, check in looks.items() if not check.ok] == []
    assert {"database", "labels", "collections", "endpoint", "disk", "packages"} <= set(looks)
    assert "none yet" in looks["database"].detail


def test_the_database_is_counted(tmp_path):
    with open_store(tmp_path) as store:
        LabelStore(store).append([make_event(0), make_event(1, chunk_id="c2")])
    assert "label_event 2" in found(tmp_path)["database"].detail


def test_label_events_that_are_not_what_was_stored_are_told_with_their_places(tmp_path):
    with open_store(tmp_path) as store:
        LabelStore(store).append([make_event(n, chunk_id=f"c{n}") for n in range(9)])
    path = tmp_path / "winnow.db"
    path.write_bytes(path.read_bytes().replace(b"id:c3", b"id:c4"))  # SQLite's own check sees nothing
    look = found(tmp_path)
    assert look["database"].ok
    assert not look["labels"].ok
    assert "positions 4" in look["labels"].detail


def test_a_database_that_is_broken_is_told_and_the_rest_still_looked_at(tmp_path):
    (tmp_path / "winnow.db").write_bytes(b"these are my notes " * 100)
    looks = found(tmp_path)
    assert [name for name, check in looks.items() if not check.ok] == ["database", "labels"]
    assert "is not an SQLite database" in looks["database"].detail


def test_a_server_that_is_away_is_told_without_its_password(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_DATABASE_URL", "postgresql://ann:s3cr3t@127.0.0.1:9/labels")
    look = found(tmp_path)["database"]
    assert not look.ok
    assert "postgresql://127.0.0.1:9/labels cannot be reached" in look.detail
    assert "s3cr3t" not in look.detail


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 9, 1_000_000))
    look = found(tmp_path)["disk"]
    assert not look.ok
    assert "1 MB are free" in look.detail


def test_an_endpoint_is_named_without_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://llm.example.org/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-123456")
    look = found(tmp_path)["endpoint"]
    assert "https://llm.example.org/v1" in look.detail
    assert "canary" not in look.detail
