"""The commands of docs/server.md for many machines, typed as they stand there, in an environment with the wheel alone."""

import os
import re
import subprocess
import sys

import pytest

from tests.peers.test_install import PYTHONS, ROOT, wheel  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):  # noqa: F811
    """The folder of the programs that come with the wheel and its extras."""
    folder = tmp_path_factory.mktemp("dask") / "env"
    subprocess.run([PYTHONS[0] if PYTHONS else sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", f"{wheel}[search,dask]"], check=True)
    return folder / "bin"


def test_the_three_documented_commands_give_the_bytes_of_one_machine(programs, tmp_path, free_port):
    text = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(dask scheduler .*?)```", text, re.S)[1]
    lines = [line.replace("8786", str(free_port)).split() for line in block.splitlines()]
    assert [line[:2] for line in lines] == [["dask", "scheduler"], ["dask", "worker"], ["winnow", "capture"]]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WINNOW"))}
    surroundings = {"cwd": tmp_path, "env": {**own, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}}
    log = (tmp_path / "log").open("w")
    cluster = [
        subprocess.Popen([programs / line[0], *line[1:]], stdout=log, stderr=log, **surroundings) for line in lines[:2]
    ]
    try:
        command = [programs / lines[2][0], *lines[2][1:]]
        there = subprocess.run(command, capture_output=True, text=True, timeout=120, **surroundings)
        assert (there.returncode, there.stderr) == (0, ""), (tmp_path / "log").read_text()[-2000:]
    finally:
        for process in reversed(cluster):
            process.terminate()
            process.wait(timeout=30)
    at = command.index("--engine")
    alone = [*command[:at], *command[at + 2 :], "--workspace", "another"]  # nothing that the first captured
    alone[alone.index("lists.jsonl")] = "alone.jsonl"
    subprocess.run(alone, capture_output=True, check=True, **surroundings)
    assert (tmp_path / "lists.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    assert (tmp_path / "lists.jsonl").read_bytes().count(b"\n") == 85
