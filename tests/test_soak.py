"""Short soaks: four browsers, a few rounds; a team of websocket clients behind nginx."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nginx import needed

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.browser
def test_a_short_soak_passes():
    if shutil.which("chromium") is None:
        assert os.environ.get("WINNOW_REQUIRE_BROWSER") != "1", "Chromium is needed"
        pytest.skip("Chromium is not on the PATH")
    command = [sys.executable, "scripts/soak.py", "--minutes", "2"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert run.stdout, run.stderr[-1000:]
    figures = json.loads(run.stdout)
    assert figures["errors"] == []
    assert figures["healthy"]
    assert figures["sessions"] == 4
    assert figures["rounds"] >= 2


@pytest.mark.slow
def test_a_short_soak_of_a_team_loses_doubles_and_renames_nothing():
    """How long an acknowledgement takes and how far memory grows is for the long soak on a quiet machine."""
    needed()
    sizes = ["--minutes", "1.5", "--people", "6", "--chunks", "500", "--labels", "6000"]
    run = subprocess.run(
        [sys.executable, "scripts/soak_team.py", *sizes], cwd=ROOT, capture_output=True, text=True, timeout=400,
        check=False,
    )  # fmt: skip
    assert run.stdout, run.stderr[-1000:]
    figures = json.loads(run.stdout)
    assert (figures["problems"], figures["errors"]) == ([], [])
    assert (figures["lost"], figures["changed"], figures["doubled"]) == (0, 0, 0)
    assert 0 < figures["pressed"] == figures["acknowledged"]
    assert figures["by_import"] == 6000
    assert figures["tuned"] > 0
