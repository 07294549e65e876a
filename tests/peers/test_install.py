"""The wheel, built here and installed in bare environments, used from a folder that is not this one."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
PYTHONS = [
    name
    for name in ("python3.11", "python3.13")
    if shutil.which(name) and subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0
]
HEAVY = ("streamlit", "chromadb", "sklearn", "optuna", "pandas", "scipy", "numpy", "sqlalchemy")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
    (path,) = folder.glob("winnow-*.whl")
    return path


@pytest.fixture(scope="module", params=[(python, extra) for python in PYTHONS for extra in ("", "app", "all")])
def installed(request, wheel, tmp_path_factory):
    """(Python of a bare environment with the wheel, the extra it was installed with)."""
    python, extra = request.param
    folder = tmp_path_factory.mktemp("bare") / "env"
    subprocess.run([python, "-m", "venv", folder], check=True)
    home = folder / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([home, "-m", "pip", "install", "-q", wanted], check=True)
    return home, extra


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "WINNOW_WORKSPACE", "WINNOW_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def test_import_brings_nothing_heavy(installed, elsewhere):
    code = "import sys, rag_core; print([name for name in sys.argv[1:] if name in sys.modules], rag_core.__file__)"
    done = run(installed[0], "-c", code, *HEAVY)
    assert done.stdout.startswith("[] "), done
    assert str(ROOT) not in done.stdout


def test_the_librarys_lines_of_the_readme_run(installed, elsewhere):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[1]
    done = run(installed[0], "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 10


def test_the_command_replays_makes_a_project_evaluates_and_exports(installed, elsewhere):
    home, extra = installed
    winnow = home.with_name("winnow")
    assert "replay" in run(winnow, "--help").stdout
    lists = run(home, "-c", "from rag_core.eval_sets.reading import SHIPPED; print(SHIPPED)").stdout.strip()
    lists = Path(lists) / "recorded-combat" / "lists.jsonl"
    replayed = json.loads(run(winnow, "replay", lists, "--pipeline", "query-must", "--json").stdout)
    assert replayed["pipelines"]
    steps = [
        ("init", "mine", "--from", lists),
        ("evaluate", "--project", "mine", "-p", "query-must", "-p", "fixed-15"),
        ("export", "query-must", "--project", "mine", "--out", "filter.py"),
        ("doctor",),
    ]
    for step in steps:
        done = run(winnow, *step)
        assert done.returncode == 0, (step, done)
    assert run(home, "-I", "-S", "filter.py", "--self-test").returncode == 0
    if extra:
        Path("rules.md").write_text("# Wolves\n\nWolves hunt in packs.\n\n# Bears\n\nBears sleep.\n", encoding="utf-8")
        for step in (("init", "prose", "--from", "rules.md"), ("query", "who sleeps?", "--collection", "prose")):
            done = run(winnow, *step)
            assert done.returncode == 0, (step, done)


def test_the_app_answers_on_this_machine_alone(installed, elsewhere, free_port):
    home, extra = installed
    command = [str(home.with_name("winnow")), "app", "--no-browser", "--port", str(free_port)]
    if not extra:
        done = run(*command)
        assert (done.returncode, 'pip install "winnow[app]"' in done.stderr) == (3, True)
        return
    app = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(120):
            try:
                health = json.load(urlopen(f"http://127.0.0.1:{free_port}/api/health", timeout=2))
                break
            except (URLError, ConnectionError):
                assert app.poll() is None, app.stdout.read()
                time.sleep(0.5)
        assert health["status"] == "ok"
    finally:
        app.terminate()
        said = app.communicate(timeout=20)[0]
    assert f"127.0.0.1:{free_port}" in said
    assert "Network URL" not in said
    assert (elsewhere / ".winnow").is_dir()
