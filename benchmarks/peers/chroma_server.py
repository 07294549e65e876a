"""A `chroma run` server of our own on loopback, and what the machine says of it: memory, processor time, disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

from benchmarks.peers.serving import free_port

GIGA = 1e9


class Server:
    """A `chroma run` process and what the machine says of it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder), "--host", "127.0.0.1"]
        environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def facts(self) -> dict[str, float]:
        """Gigabytes in memory now and at most, processor seconds so far, gigabytes on disk."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii", errors="replace")
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1]
        used = sum(int(one) for one in ticks.split()[11:13]) / os.sysconf("SC_CLK_TCK")
        memory, peak = (int(lines[name].split()[0]) * 1024 / GIGA for name in ("VmRSS", "VmHWM"))
        return {"memory": memory, "peak": peak, "processor": used, "disk": size_of(self.folder)}


def size_of(folder: Path) -> float:
    """Gigabytes that a folder's files take."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) / GIGA


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server over an empty folder, ended afterwards."""
    server = Server(folder)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait()


def client_of(port: int) -> Any:
    """Chroma's client, once the server answers."""
    import chromadb
    from chromadb.config import Settings

    from rag_core.index.chroma_server import reach_directly

    reach_directly()
    for _ in range(300):
        try:
            return chromadb.HttpClient("127.0.0.1", port, settings=Settings(anonymized_telemetry=False))
        except ValueError:
            sleep(0.2)
    raise SystemExit(f"Chroma did not answer at port {port}")
