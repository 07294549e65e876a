"""Run the steps of the Dockerfile without Docker: its packages in a bare environment, its files, its start command.

It prints each step and ends with 0 where all were done; `--without-install` takes the packages of .venv. Not checked:
the base image, users and volumes, and the images of compose.yaml, of which only keys and variables are read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]


def say(words: str) -> None:
    """A step, on stdout at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """(instruction, rest) of a Dockerfile, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    for line in joined.splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def copy_files(rest: str, place: Path) -> None:
    """A COPY instruction; a source that is not there is an error."""
    *sources, target = rest.split()
    for source in sources:
        found = ROOT / source
        if found.is_dir():
            shutil.copytree(
                found, place / target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "secrets.toml")
            )
        else:
            shutil.copy(found, place / target)


def environment_of(text: str, place: Path) -> dict[str, str]:
    """The ENV instructions, with the volume's path moved into `place`; nothing of this shell but PATH."""
    found = {"PATH": f"{place / 'venv' / 'bin'}:{os.environ['PATH']}", "HOME": str(place)}
    for word, rest in instructions(text):
        if word == "ENV":
            found |= dict(pair.split("=", 1) for pair in shlex.split(rest))
    return found | {"WINNOW_WORKSPACE": str(place / "data")}


def install(text: str, place: Path, app: Path) -> None:
    """The pip steps of RUN, in an environment that is empty before."""
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)  # noqa: S603
    pip = str(place / "venv" / "bin" / "pip")
    for word, rest in instructions(text):
        for step in rest.split("&&") if word == "RUN" else ():
            if step.split()[:1] == ["pip"]:
                say(f"  {step.strip()}")
                subprocess.run(  # noqa: S603 — the steps of our own file
                    [pip, "--quiet", "--disable-pip-version-check", *shlex.split(step)[1:]], cwd=app, check=True
                )


def start(text: str, app: Path, environment: dict[str, str]) -> tuple[subprocess.Popen[str], int]:
    """The CMD, on a free port."""
    command = json.loads(next(rest for word, rest in instructions(text) if word == "CMD"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command[command.index("8501")] = str(port)
    return subprocess.Popen(  # noqa: S603 — the command of our own file
        command, cwd=app, env=environment, stderr=subprocess.PIPE, text=True
    ), port


def check_refusal(text: str, app: Path, environment: dict[str, str]) -> None:
    """Without a log-in the start command ends with 2 and one sentence."""
    process, _ = start(text, app, environment)
    said = process.communicate(timeout=120)[1]
    if process.returncode != 2 or "winnow: server.address is 0.0.0.0" not in said:
        raise SystemExit(f"started without a log-in: code {process.returncode}, {said[-300:]}")


def check_health(text: str, app: Path, environment: dict[str, str]) -> None:
    """With a log-in it answers on the health address."""
    process, port = start(text, app, environment | {"WINNOW_USER_HEADER": "X-Forwarded-Email"})
    try:
        for _ in range(300):
            try:
                answer = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5))
                break
            except OSError:
                time.sleep(0.2)
        else:
            raise SystemExit("the health address did not answer within a minute")
        if answer["status"] != "ok":
            raise SystemExit(f"health says {answer}")
    finally:
        process.kill()
        process.communicate()


def check_compose() -> None:
    """Services, volumes and secrets that are used are there; settings are ones the program reads."""
    compose = YAML(typ="safe", pure=True).load(ROOT / "compose.yaml")
    known = "".join(path.read_text() for path in (ROOT / "rag_core").glob("*.py"))
    for name, service in compose["services"].items():
        for volume in service.get("volumes", ()):
            if volume.split(":")[0] not in compose["volumes"]:
                raise SystemExit(f"{name} uses a volume that is not declared: {volume}")
        if missing := set(service.get("secrets", ())) - set(compose["secrets"]):
            raise SystemExit(f"{name} uses secrets that are not declared: {missing}")
        for variable in service.get("environment", ()):
            if variable.startswith("WINNOW_") and variable not in known:
                raise SystemExit(f"{name} sets {variable}, which nothing reads")


def main() -> None:
    """Every step in turn."""
    text = (ROOT / "Dockerfile").read_text()
    with tempfile.TemporaryDirectory() as folder:
        place, app = Path(folder), Path(folder) / "app"
        app.mkdir()
        (place / "data").mkdir()
        for word, rest in instructions(text):
            if word == "COPY":
                say(f"  COPY {rest}")
                copy_files(rest, app)
        if "--without-install" in sys.argv:
            (place / "venv").symlink_to(ROOT / ".venv")
        else:
            install(text, place, app)
        environment = environment_of(text, place)
        check_refusal(text, app, environment)
        say("  without a log-in it refuses to start")
        check_health(text, app, environment)
        say("  with one it answers on /api/health")
    check_compose()
    json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    say("ok")


if __name__ == "__main__":
    main()
