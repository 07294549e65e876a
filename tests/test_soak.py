"""The soak's own parts, and a short soak: four sessions, a few rounds, nothing wrong."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
