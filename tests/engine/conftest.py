"""A scheduler and workers as processes of their own on loopback; a test may kill a worker."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import free_port

ROOT = Path(__file__).resolve().parents[2]
if find_spec("distributed") is None:
    pytest.skip("the package distributed is not installed", allow_module_level=True)


class DaskCluster:
    def __init__(self, folder):
        self.folder, self.workers = folder, []
        self.port = free_port()
        self.address = f"dask://127.0.0.1:{self.port}"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")

    def add_worker(self):
        local = str(self.folder / f"worker-{len(self.workers)}")
        place = f"tcp://127.0.0.1:{self.port}"
        options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1", "--local-directory", local]
        self.workers.append(self._start("worker", place, *options))

    def wait_for(self, count):
        from distributed import Client

        with Client(f"tcp://127.0.0.1:{self.port}", timeout=60, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

    def kill_one(self):
        self.workers[0].kill()
        self.workers[0].wait()

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, what, *arguments):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
        log = (self.folder / f"{what}-{time.monotonic_ns()}.log").open("w")
        program = [
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler" if what == "scheduler" else "distributed.cli.dask_worker",
        ]
        return subprocess.Popen([*program, *arguments], env=environment, cwd=self.folder, stdout=log, stderr=log)


@pytest.fixture
def cluster(tmp_path):
    """Two workers of one thread each."""
    folder = tmp_path / "dask"
    folder.mkdir()
    made = DaskCluster(folder)
    made.add_worker()
    made.add_worker()
    try:
        made.wait_for(2)
        yield made
    finally:
        made.close()
