"""A workspace that is restored, moved or deleted under its writers: nothing acknowledged goes elsewhere."""

import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from rag_core.backup import make, restore
from rag_core.errors import StoreError
from rag_core.project.deeds import CHANGE_RULES, command
from rag_core.store import holding
from rag_core.store.database import FILE, open_store
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event
from tests.test_asgi import ROOT

LABELLER = """
import sys, time, random
from pathlib import Path
from rag_core.errors import StoreError
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event
workspace, n = Path(sys.argv[1]), 0
rng = random.Random(1)
while True:
    try:
        with open_store(workspace, create=False) as store:
            for _ in range(rng.randrange(1, 100)):
                LabelStore(store).append([make_event(n, session="races", chunk_id=f"c{n}")])
                print(f"{n} {time.monotonic()}", flush=True)
                n += 1
    except StoreError as error:
        print(f"refused {error}", flush=True)
        n += 1
    time.sleep(rng.random() * 0.004)
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.delenv("WINNOW_DATABASE_URL", raising=False)
    with open_store(tmp_path / "team") as store:
        LabelStore(store).append([make_event(0, session="before")])
    return tmp_path / "team"


def seqs(folder):
    """The labels of the races in a folder's file, read past the store: asking must hold nothing up."""
    with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as connection:
        return {seq for (seq,) in connection.execute("SELECT seq FROM label_event WHERE session = 'races'")}


def races(workspace, scratch, number):
    """Restore, move or delete the workspace of a labelling process again and again.

    Returns (how often each was done, refusals of a restore, what the labeller said, labels not where the workspace was
    when they were acknowledged, the labeller's process).
    """
    copy, pristine, rng = scratch / "copy.zip", scratch / "pristine", random.Random(7)
    make(workspace, copy)
    shutil.copytree(workspace, pristine)
    environment = {name: value for name, value in os.environ.items() if name != "WINNOW_DATABASE_URL"}
    with (scratch / "said").open("w") as said:
        labeller = subprocess.Popen(
            [sys.executable, "-c", LABELLER, str(workspace)], cwd=ROOT, env=environment, stdout=said
        )
    done, refused, stood = {"restore": 0, "move": 0, "delete": 0}, [], []
    since = [0.0, 0.0]
    try:
        while not (scratch / "said").read_text():
            time.sleep(0.02)
        for turn in range(number):
            time.sleep(rng.random() * 0.2)
            what, begun = ("restore", "move", "delete")[turn % 3], time.monotonic()
            try:
                if what == "restore":
                    aside = Path(restore(copy, workspace, force=True).aside)
                else:
                    aside = workspace.rename(workspace.with_name(f"{what}d-{turn}"))
                    time.sleep(rng.random() * 0.01)
                    shutil.copytree(pristine, fresh := scratch / "fresh")
                    fresh.rename(workspace)
            except StoreError as error:
                refused.append(str(error))
                continue
            over = time.monotonic()
            time.sleep(0.02)  # a label that is committed and not acknowledged in the old folder may still come
            stood.append((since, [begun, over], seqs(aside)))
            since = [begun, over]
            done[what] += 1
            if what == "delete":
                shutil.rmtree(aside)
        time.sleep(0.3)
    finally:
        labeller.kill()
        labeller.wait()
    stood.append((since, [math.inf, math.inf], seqs(workspace)))
    said = [line.split(" ", 1) for line in (scratch / "said").read_text().splitlines()]
    outside = []
    for n, at in ((int(word), float(rest)) for word, rest in said if word.isdecimal()):
        # between beginning and end of a change both the old and the new folder are the workspace's
        if not any(n in there for (first, _), (_, last), there in stood if first <= at <= last):
            outside.append(n)
    return done, refused, said, outside, labeller.pid


@pytest.mark.parametrize("number", [9, pytest.param(100, marks=pytest.mark.slow)])
def test_no_label_is_acknowledged_outside_a_workspace_that_is_restored_moved_or_deleted(workspace, tmp_path, number):
    done, refused, said, outside, pid = races(workspace, tmp_path, number)
    named = [rest for word, rest in said if word == "refused"]
    print({**done, "restores refused": len(refused), "labels": len(said) - len(named), "labels refused": len(named)})
    assert outside == []
    assert sum(done.values()) + len(refused) == number
    assert all(f"in use by process {pid}" in one or "in use by another process" in one for one in refused)
    assert len(said) - len(named) > number
    assert {one for one in named if "workspace" not in one and "label store" not in one} == set()


def test_a_writer_whose_workspace_was_moved_is_refused_until_it_is_back(workspace, tmp_path):
    with open_store(workspace) as store:
        workspace.rename(tmp_path / "elsewhere")
        for again in (False, True):
            if again:  # another one in its place
                shutil.copytree(tmp_path / "elsewhere", workspace)
            with pytest.raises(StoreError, match="moved, deleted or replaced"):
                LabelStore(store).append([make_event(1)])
        shutil.rmtree(workspace)
        (tmp_path / "elsewhere").rename(workspace)
        LabelStore(store).append([make_event(1)])


def test_what_is_moved_in_the_middle_of_a_write_is_not_acknowledged(workspace, tmp_path):
    moved = pytest.raises(StoreError, match="moved, deleted or replaced")
    with open_store(workspace) as store, moved, store.writing():
        workspace.rename(tmp_path / "elsewhere")


def test_a_restore_needs_the_workspace_alone_and_names_who_uses_it(workspace, tmp_path):
    make(workspace, copy := tmp_path / "copy.zip")
    before = sorted(path.name for path in tmp_path.iterdir())
    with open_store(workspace), pytest.raises(StoreError, match=rf"in use by process {os.getpid()} \(this one\)"):
        restore(copy, workspace, force=True)
    with command(CHANGE_RULES, "rules", workspace), pytest.raises(StoreError, match="in use by process"):
        restore(copy, workspace, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert restore(copy, workspace, force=True).aside


def test_nobody_makes_an_empty_workspace_where_a_restore_is_about_to_put_one(workspace, tmp_path):
    workspace.rename(workspace.with_name("team" + holding.RESTORING))
    for write in (lambda: open_store(workspace), lambda: command(CHANGE_RULES, "rules", workspace).__enter__()):
        with pytest.raises(StoreError, match="once its restore is done"):
            write()
    assert not workspace.exists()
