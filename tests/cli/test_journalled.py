"""Long commands keep a journal in the workspace, and are spans of OpenTelemetry; neither holds a text of anybody's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED
from rag_core.journal import FILE, FILE_BEFORE, LARGEST

ROOT = Path(__file__).resolve().parents[2]
LISTS = SHIPPED / "recorded-combat" / "lists.jsonl"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    place = tmp_path / "workspace"
    monkeypatch.setenv("WINNOW_WORKSPACE", str(place))
    return place


def journal(workspace):
    return [json.loads(line) for line in (workspace / FILE).read_text(encoding="utf-8").splitlines()]


def texts():
    """Every question, title and text of the lists."""
    for line in LISTS.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        yield case["query"] if isinstance(case["query"], str) else case["query"]["text"]
        for hit in case["candidates"]:
            yield from (hit[name] for name in ("title", "text") if hit.get(name))


def test_a_command_is_a_run_with_a_begin_an_end_and_its_seconds(workspace, capsys):
    workspace.mkdir()
    assert main(["sweep", str(LISTS), "--json"]) == 0
    assert capsys.readouterr().err == ""
    began, ended = journal(workspace)
    assert (began["message"], ended["message"]) == ("sweep began", "sweep ended")
    assert began["run"] == ended["run"]
    assert len(began["run"]) == 12
    assert ended["seconds"] > 0
    assert oct((workspace / FILE).stat().st_mode)[-3:] == "600"


def test_a_command_that_fails_says_its_kind_alone(workspace, capsys):
    workspace.mkdir()
    assert main(["tune", str(LISTS), "--objective", "canary"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert journal(workspace)[-1]["message"] == "tune failed"
    assert journal(workspace)[-1]["kind"] == "InputError"
    assert "canary" not in (workspace / FILE).read_text(encoding="utf-8")


def test_no_text_of_a_query_or_chunk_is_in_it(workspace, capsys):
    workspace.mkdir()
    evaluate = ["evaluate", "--eval-set", "recorded-combat", "-p", "fixed-15"]
    for command in (["sweep", str(LISTS)], ["tune", str(LISTS)], evaluate):
        assert main(command) == 0
    held = (workspace / FILE).read_text(encoding="utf-8")
    assert len(journal(workspace)) == 6
    assert [one for one in texts() if len(one) > 6 and one in held] == []


def test_a_workspace_that_is_not_there_is_not_made_for_it(workspace):
    assert main(["sweep", str(LISTS)]) == 0
    assert not (workspace / FILE).exists()


def test_lines_from_before_an_ingest_made_the_workspace_are_kept(workspace, tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n\n## Cats\n\nCats sleep a lot.\n")
    assert main(["ingest", str(tmp_path / "notes.md"), "--collection", "notes"]) == 0
    assert [line["message"] for line in journal(workspace)] == ["ingest began", "ingest ended"]
    assert journal(workspace)[0]["collection"] == "notes"
    assert "Cats" not in (workspace / FILE).read_text(encoding="utf-8")


def test_a_long_journal_is_set_aside_and_the_one_before_goes(workspace):
    workspace.mkdir()
    (workspace / FILE).write_bytes(b"x" * (LARGEST + 1))
    (workspace / FILE_BEFORE).write_bytes(b"older")
    assert main(["sweep", str(LISTS)]) == 0
    assert (workspace / FILE_BEFORE).stat().st_size == LARGEST + 1
    assert len(journal(workspace)) == 2


TRACED = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rag_core.cli import main
held = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(held))
trace.set_tracer_provider(provider)
code = main(sys.argv[1:])
spans = [json.loads(span.to_json()) for span in held.get_finished_spans()]
open("spans.json", "w").write(json.dumps({"code": code, "spans": spans}))
"""


def traced(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", TRACED, *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )
    return json.loads((folder / "spans.json").read_text())


def test_a_command_is_a_span_with_the_run_id_and_without_content(workspace, tmp_path):
    workspace.mkdir()
    found = traced(tmp_path, "evaluate", "--eval-set", "recorded-combat", "-p", "fixed-15")
    (span,) = found["spans"]
    assert (found["code"], span["name"]) == (0, "evaluate")
    assert span["attributes"]["openinference.span.kind"] == "CHAIN"
    assert span["attributes"]["winnow.run"] == journal(workspace)[0]["run"]
    assert [one for one in texts() if len(one) > 6 and one in json.dumps(span, ensure_ascii=False)] == []


def test_a_span_of_a_command_that_fails_says_its_kind_alone(workspace, tmp_path):
    found = traced(tmp_path, "tune", str(LISTS), "--objective", "canary")
    (span,) = found["spans"]
    assert found["code"] == 2
    assert span["status"] == {"status_code": "ERROR", "description": "InputError"}
    assert span["events"] == []
    assert "canary" not in json.dumps(span)
