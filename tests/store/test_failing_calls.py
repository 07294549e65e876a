"""Every open, write, sync and rename fails in turn while labels are stored, backed up, restored, migrated and salvaged."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "failing"
ROOT = Path(__file__).parents[2]
QUICK = {"labels": 23, "restore": 41}
"""Which calls fail on every run: each so many-th."""
WORKS = (*QUICK, "backup", "migrate", "salvage")


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """The library that makes calls fail, in front of the C library of a child."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler on Linux: nothing makes the system's calls fail")
    library = tmp_path_factory.mktemp("faults") / "fails.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, HERE / "fails.c", "-ldl"], check=True)
    return library


@pytest.mark.parametrize(
    ("work", "every"),
    [*QUICK.items(), *(pytest.param(work, 1, marks=pytest.mark.slow) for work in WORKS)],
)
def test_whatever_call_fails_nothing_acknowledged_is_lost_or_doubled(tmp_path, faults, work, every):
    run = subprocess.run(
        [sys.executable, HERE / "each_in_turn.py", work, tmp_path, str(every)],
        env={**os.environ, "LD_PRELOAD": str(faults), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["wrong"] == ""
    assert found["refused"] > 0
    assert found["calls"] > 30
