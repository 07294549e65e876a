"""What the README and the generated pages say is what the program does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.spec import shipped_names

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_replay_in_the_readme_prints_what_stands_there(capsys):
    block = re.search(r"```console\n\$ python -m rag_core (.*?)\n(.*?)```", README, re.S)
    assert main(block[1].replace("eval_sets", str(ROOT / "eval_sets")).split()) == 0
    assert capsys.readouterr().out == block[2]


def test_the_library_example_runs():
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 10


def test_the_page_of_stages_is_the_one_the_program_writes(capsys):
    assert main(["stages", "--markdown"]) == 0
    written = (ROOT / "docs" / "stages.md").read_text(encoding="utf-8")
    assert written.endswith(capsys.readouterr().out), "run: python -m rag_core stages --markdown, into docs/stages.md"


def commands():
    rows = re.findall(r"^\| (`.*?) \|", README, re.M)
    return sorted({name.split()[0] for row in rows for name in re.findall(r"`([a-z0-9-]+)", row)})


@pytest.mark.parametrize("command", [c for c in commands() if c not in shipped_names()])
def test_every_command_of_the_readme_exists(command, capsys):
    assert main([command, "--help"]) == 0
    assert command in capsys.readouterr().out


def test_every_link_of_the_readme_leads_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_nothing_names_this_machine():
    here = str(ROOT)
    for path in [*ROOT.glob("*.md"), *ROOT.glob("*.txt"), *ROOT.glob("*.lock"), *(ROOT / "docs").glob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert here not in text, path
