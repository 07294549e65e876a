"""Studies that processes share: one study, several commands at once, gone on with later; in the file and in PostgreSQL."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, make_url

from rag_core.cli import main
from rag_core.errors import StoreError
from rag_core.eval_sets.reading import SHIPPED
from rag_core.settings import DATABASE
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from rag_core.store.studies import STUDIES, shared_storage
from rag_core.tune.search import kept_trials
from tests.store.cluster import free_port
from tests.store.conftest import make_event

ROOT = Path(__file__).resolve().parents[2]
LISTS = str(SHIPPED / "recorded-combat" / "lists.jsonl")
TUNE = ["tune", LISTS, "--method", "search", "--study", "team", "--json", "--trials"]


def command(workspace, trials):
    environment = {**os.environ, "WINNOW_WORKSPACE": str(workspace), "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-m", "rag_core", *TUNE, str(trials)]
    return subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.usefixtures("database")
def test_commands_at_once_share_one_study_that_is_not_there_yet(workspace):
    workspace.mkdir()
    both = [command(workspace, 12) for _ in range(2)]
    answers = [one.communicate(timeout=240) for one in both]
    assert [one.returncode for one in both] == [0, 0], answers
    documents = [json.loads(out)["search"] for out, _ in answers]
    assert all(12 <= one["trials"] <= 14 for one in documents)
    assert kept_trials(shared_storage(workspace), "team") == max(one["trials"] for one in documents)


@pytest.mark.usefixtures("database")
def test_a_study_goes_on_where_another_command_left_it(workspace, monkeypatch, capsysbinary):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(workspace))
    held = []
    for trials in ("3", "5"):
        assert main([*TUNE, trials]) == 0
        held.append(json.loads(capsysbinary.readouterr().out)["search"])
    assert [one["trials"] for one in held] == [3, 5]
    assert held[0]["study"] == held[1]["study"] == "team"


@pytest.mark.postgres
def test_the_studies_stand_beside_the_labels_and_leave_their_schema_number_alone(postgres, workspace):
    assert kept_trials(shared_storage(workspace), "team") == 0
    with open_store(workspace) as store:
        LabelStore(store).append([make_event(0)])
    shared_storage(workspace)
    with open_store(workspace) as store:
        assert LabelStore(store).current("demo") == {"q1": {"c1": 2}}
    assert not (workspace / "studies.db").exists()
    engine = create_engine(make_url(postgres).set(drivername="postgresql+psycopg"))
    own = make_url(postgres).query["options"].split("=")[1]
    found = inspect(engine)
    assert "trials" not in found.get_table_names(own)
    assert "trials" in found.get_table_names(f"{own}_studies")
    engine.dispose()


def test_a_database_that_is_away_is_one_sentence_without_the_password(workspace, monkeypatch):
    monkeypatch.setenv(DATABASE, f"postgresql://ann:s3cr3t@127.0.0.1:{free_port()}/labels")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        shared_storage(workspace)
    assert "s3cr3t" not in str(caught.value)


def test_a_file_that_holds_something_else_is_one_sentence_and_left_alone(workspace):
    workspace.mkdir()
    (workspace / STUDIES).write_text("notes of mine, not a database " * 40)
    with pytest.raises(StoreError, match=r"studies file studies\.db is not an SQLite database"):
        shared_storage(workspace)
    assert (workspace / STUDIES).read_text().startswith("notes of mine")
