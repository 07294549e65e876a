"""A PostgreSQL server of a test's own, which it may kill: made in a folder, run as a user without rights."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.conftest import free_port

USER = "postgres"


def programs():
    """The folder of initdb and pg_ctl, None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(p) for p in [shutil.which("initdb")] if p]
    return found[-1].parent if found else None


class Cluster:
    """Use as a context manager; `url` names an empty database."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="winnow-pg-"))
        self.port = free_port()
        if os.getuid() == 0:
            os.chown(self.folder, pwd.getpwnam(USER).pw_uid, -1)
        self._run("initdb", "-D", self.folder / "data", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C")
        self.start()
        return self

    def __exit__(self, *_):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop", check=False)
        shutil.rmtree(self.folder)

    @property
    def url(self):
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{USER}"

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", log, "-o", options, "-w", "-t", "60", "start")

    def kill(self):
        """As a power cut: every server process ends at once, nothing is flushed or said."""
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    def _run(self, program, *arguments, check=True):
        command = [str(programs() / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = ["setpriv", f"--reuid={USER}", "--clear-groups", *command]
        # The server inherits what pg_ctl is given: a pipe would stay open as long as it runs.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False, cwd="/")
        if check and done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}")
