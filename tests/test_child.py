"""Large documents come in by a child: the same outcome as here, its errors, its end."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rag_core.errors import Cancelled, RecordError, SurroundingsError
from rag_core.project import intake
from rag_core.project.intake import Documents, begin_project, take_in, take_in_beside


@pytest.fixture
def order(tmp_path, monkeypatch):
    """Documents that are large enough for a child."""
    monkeypatch.setattr(intake, "LARGE", 100)
    (tmp_path / "a.md").write_text("".join(f"## Part {n}\n\nWords of part {n}.\n\n" for n in range(40)))
    return Documents((str(tmp_path / "a.md"),))


def test_a_child_finds_the_package_where_an_interactive_session_does(tmp_path):
    """Its path begins with an empty entry: the folder it was started in."""
    (tmp_path / "a.md").write_text("## One\n\nWords.\n")
    program = (
        "import sys; from pathlib import Path; from rag_core.corpus.load import load\n"
        "print(len(load([Path(sys.argv[1])]).chunks))"
    )
    root = Path(__file__).resolve().parents[1]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", program, str(tmp_path / "a.md")]
    said = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert (said.stdout.strip(), said.stderr) == ("1", "")


def test_they_come_in_as_they_would_here_and_errors_are_told(tmp_path, order):
    seen = []
    there = take_in_beside(begin_project(tmp_path / "two", "mine"), order, lambda *at: seen.append(at))
    here = take_in(begin_project(tmp_path / "one", "mine"), order)
    timeless = {"seconds_embedding": 0.0, "seconds_storing": 0.0}
    assert replace(there, **timeless) == replace(here, **timeless)
    assert seen[-1] == (40, 40)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "text": "b"}\n' * 3 + "no record" * 40)
    with pytest.raises(RecordError, match="line"):
        take_in_beside(begin_project(tmp_path / "three", "mine"), Documents((str(tmp_path / "bad.jsonl"),)))


def test_cancelled_it_ends_and_done_again_it_resumes(tmp_path, order):
    def stop(done, total):
        raise Cancelled("stopped")

    project = begin_project(tmp_path / "one", "mine")
    with pytest.raises(Cancelled):
        take_in_beside(project, order, stop)
    assert take_in_beside(project, order).chunks == 40


def test_killed_it_is_one_sentence(tmp_path, order, monkeypatch):
    begun = intake.ask

    def killed(*arguments):
        return begun(*arguments, lambda process: os.kill(process.pid, signal.SIGKILL))

    monkeypatch.setattr(intake, "ask", killed)
    with pytest.raises(SurroundingsError, match="what is done is kept, do it again"):
        take_in_beside(begin_project(tmp_path / "one", "mine"), order)
