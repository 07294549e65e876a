"""The Chroma server: a child process of ours over a folder of ours, on a free loopback port.

Started when it is first needed, again after a crash, and ended with its parent. What is asked of it is in chroma.py.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from rag_core.errors import StoreError, WinnowError
from rag_core.index.lock import writing

START_SECONDS = 60.0
ANSWER_SECONDS = 120.0

_CHILD = """
import os, sys, threading
def watch():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
from chromadb_rust_bindings import cli
cli(["chroma", *sys.argv[1:]])
"""
"""The server ends with its parent, however that ends: its standard input closes. What `chroma run` calls is called at
once: the package around it takes half a second to import, and all that it does is this call."""


class ChromaServer:
    """A `chroma run` child on a free loopback port over one folder, started when it is first needed.

    `server_for` gives the process's one server of a folder; `guard` is held by whoever starts, fills or stops it.
    """

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        """`data` is what is served, `data` in the folder unless given; log and lock are in the folder."""
        self.folder = folder
        self.data = data or folder / "data"
        self.guard = RLock()
        self.port = 0  # of the running server
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Any = None
        self._held = ExitStack()

    def client(self) -> Any:
        """Chroma's client for the running server; starts it, or starts it again after a crash."""
        with self.guard:
            if self._process is None or self._process.poll() is not None:
                self.stop()
                self._start()
            return self._client

    def stop(self) -> None:
        """End the server and free the folder."""
        with self.guard:
            process, self._process, self._client = self._process, None, None
            if process is not None:
                process.kill()
                process.wait()
                if process.stdin is not None:
                    process.stdin.close()
            self._held.close()

    def death(self) -> str:
        """How the server's process ended by itself, '' while it runs or where it was never started."""
        if self._process is None:
            return ""
        with suppress(subprocess.TimeoutExpired):  # its connection breaks a moment before it is gone
            self._process.wait(timeout=1.0)
        code = self._process.poll()
        return "" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"

    def _start(self) -> None:
        """Start the server and wait until it answers; a StoreError says why it does not."""
        self._held.enter_context(writing(self.folder))
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = int(probe.getsockname()[1])
            arguments = ["run", "--path", str(self.data.absolute()), "--host", "127.0.0.1", "--port", str(self.port)]
            with (self.folder / "server.log").open("wb") as log:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, no shell; a path alone varies
                    [sys.executable, "-c", _CHILD, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
                    cwd=self.folder,
                )
            self._client = self._connect(self.port)
        except BaseException:
            self.stop()
            raise

    def _connect(self, port: int) -> Any:
        import chromadb
        from chromadb.config import Settings

        reach_directly()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise StoreError(f"Chroma did not start over {self.folder}; its words are in server.log there")
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=0.5):
                    pass
                client = chromadb.HttpClient("127.0.0.1", port, settings=Settings(anonymized_telemetry=False))
                return bounded(client, ANSWER_SECONDS)
            except Exception:
                time.sleep(0.02)
        raise StoreError(f"Chroma did not answer at 127.0.0.1:{port} within {START_SECONDS:g} seconds")


_servers: dict[Path, ChromaServer] = {}
_servers_guard = RLock()


def server_for(folder: Path) -> ChromaServer:
    """The process's one server over a folder, shared by all that search it."""
    with _servers_guard:
        return _servers.setdefault(folder.absolute(), ChromaServer(folder))


def bounded(client: Any, seconds: float) -> Any:
    """The client with a time limit on answers: its own waits for ever, and offers no setting."""
    session = getattr(getattr(client, "_server", None), "_session", None)
    if session is not None:
        session.timeout = seconds
    return client


def reach_directly() -> None:
    """Keep Chroma's client from asking a proxy of the environment for a loopback address."""
    for name in ("NO_PROXY", "no_proxy"):
        listed = os.environ.get(name, "")
        if "127.0.0.1" not in listed:
            os.environ[name] = f"{listed},127.0.0.1".lstrip(",")


@contextmanager
def reported(what: str) -> Iterator[None]:
    """Chroma's and its connection's errors as one StoreError sentence."""
    try:
        yield
    except WinnowError:
        raise
    except Exception as error:
        raise StoreError(
            f"Chroma failed to {what} ({type(error).__name__}); search exactly, or delete the folder chroma of the "
            "collection, which is built anew"
        ) from None
