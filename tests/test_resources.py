"""The finder of entities reaches the pipelines that need it, and only those load a structure."""

import json
import os
import subprocess
import sys

import pytest

from rag_core.cli import main
from rag_core.errors import InputError, SpecError
from rag_core.resources import with_handles
from rag_core.spec import parse_pipeline
from rag_core.types import Candidates, Chunk, Hit, Query
from rag_core.workbench import live

LINE = {
    "query": "Can kommando use stikkbombs?",
    "candidates": [
        {"id": "a", "distance": 0.1, "team": "Kommandos"},
        {"id": "b", "distance": 0.2, "team": "Deathwatch"},
        {"id": "c", "distance": 0.3},
    ],
}
OWN = {"entities": {"Deathwatch": {"members": ["Zorg"]}, "Kasrkin": {"members": ["Kommando"]}}}


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path))
    return tmp_path


def asked():
    chunks = [
        Chunk(str(n), metadata={"team": team}) for n, team in enumerate(("Kommandos", "Deathwatch", "Kasrkin"), 1)
    ]
    hits = tuple(Hit(chunk, rank, {"distance": rank / 10}) for rank, chunk in enumerate(chunks, 1))
    return Candidates(Query("q", "Can kommando use stikkbombs?"), hits)


def kept(pipeline):
    return [hit.chunk.metadata["team"] for hit in pipeline(asked()).hits]


def test_without_a_structure_an_entity_filter_cannot_run(workspace):
    with pytest.raises(SpecError, match="EntityFilter has no structure"):
        parse_pipeline(["EntityFilter"])(asked())


def test_an_entity_filter_asks_the_demo_structure(workspace):
    assert kept(with_handles(parse_pipeline(["EntityFilter"]))) == ["Kommandos"]


def test_the_structure_of_the_workspace_comes_before_the_demo(workspace):
    (workspace / "structure.json").write_text(json.dumps(OWN))
    assert kept(with_handles(parse_pipeline(["EntityFilter"]))) == ["Kommandos", "Kasrkin"]


def test_a_changed_structure_is_read_again(workspace):
    path = workspace / "structure.json"
    path.write_text(json.dumps(OWN))
    assert kept(with_handles(parse_pipeline(["EntityFilter"]))) == ["Kommandos", "Kasrkin"]
    path.write_text(json.dumps({"entities": {"Deathwatch": {"members": ["Kommando"]}}}))
    os.utime(path, ns=(1, 1))
    assert kept(with_handles(parse_pipeline(["EntityFilter"]))) == ["Kommandos", "Deathwatch", "Kasrkin"]


def test_a_malformed_structure_of_the_workspace_is_named(workspace):
    (workspace / "structure.json").write_text('{"entities": {"A": {}}}')
    with pytest.raises(InputError, match=r"structure.json: entities → A has no members"):
        with_handles(parse_pipeline(["EntityFilter"]))


def test_a_live_pipeline_gets_the_finder(workspace):
    stages = live(parse_pipeline(["EntityFilter"]), index=None).stages
    assert [stage.name for stage in stages] == ["Dense", "EntityFilter"]
    assert stages[1].entities.extract_relevant_teams("kommando") == ["Kommandos"]


def test_replay_runs_an_entity_filter(workspace, tmp_path, capsysbinary):
    lists = tmp_path / "lists.jsonl"
    lists.write_text(json.dumps(LINE))
    assert main(["replay", str(lists), "--pipeline", '["EntityFilter"]', "--json"]) == 0
    (query,) = json.loads(capsysbinary.readouterr().out)["pipelines"][0]["queries"]
    assert [hit["id"] for hit in query["kept"]] == ["a", "c"]


def test_other_pipelines_do_not_import_the_entity_filter(tmp_path):
    script = (
        "import sys; from rag_core.resources import with_handles; from rag_core.spec import parse_pipeline; "
        "with_handles(parse_pipeline(['QueryMust'])); "
        "print([name for name in sys.modules if name.startswith(('rag_core.entities', 'rapidfuzz'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=".")
    assert done.stdout.strip() == "[]"
