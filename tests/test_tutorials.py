"""The tutorials, typed as they stand: every block of commands runs, in order, in a fresh workspace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))


def commands(path):
    """The shell text of a document: its bash blocks, one after the other."""
    return "\n".join(re.findall(r"^```bash\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))


def test_there_are_tutorials_and_they_hold_commands():
    assert [path.name for path in TUTORIALS] == ["tutorial-demo.md", "tutorial-own-data.md"]
    assert all(commands(path).count("python -m rag_core") >= 5 for path in TUTORIALS)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_as_it_is_typed(path, tmp_path):
    # .venv/bin is what the text puts first on the PATH; where the tests run elsewhere, their own Python comes next.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
