"""The example that makes a structure from the SRD's data, run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_core.entities import TeamFilter, load_structure

ROOT = Path(__file__).parents[2]
SRD = Path(os.environ.get("WINNOW_SHARED", ROOT.parent / "shared")) / "data" / "dnd5e-srd-2014"


def run(*arguments):
    command = [sys.executable, "-m", "docs.examples.structure_from_srd", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not SRD.is_dir(), reason=f"the SRD data is not at {SRD}; set WINNOW_SHARED")
def test_the_example_writes_a_structure_that_can_be_asked(tmp_path):
    assert run(SRD, tmp_path / "srd.json").returncode == 0
    team_filter = TeamFilter(load_structure(tmp_path / "srd.json"))
    assert team_filter.extract_relevant_teams("can a barbarian rage twice") == ["Barbarian"]
    assert team_filter.extract_relevant_teams("paladn smite") == ["Paladin"]


def test_without_the_data_the_example_says_which_file_is_missing(tmp_path):
    done = run(tmp_path, tmp_path / "out.json")
    assert done.returncode == 2
    assert "5e-SRD-Classes.json is not there" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_wrong_usage_says_how(tmp_path):
    assert run(tmp_path).stderr == "usage: structure_from_srd.py FOLDER OUT.json\n"
