"""Untrusted documents are read in a process of its own, under a limit of memory and time: what bursts it ends there.

The child gets nothing of our environment but where Python's modules are.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_core.child import ask

MEMORY, MEMORY_A_BYTE = 230_000_000, 8  # bytes, and more of them for each byte of the largest file
SECONDS, SECONDS_A_MEGABYTE = 60, 10  # of the processor; far above what any document takes
WATCHED_EVERY = 0.02  # seconds
_PLACES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_ONE_THREAD = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def read_apart(request: Mapping[str, Any], largest: int) -> Iterator[Any]:
    """What the reader in the child gives for a request; `largest` is the bytes of the file that takes most.

    An InputError of the reader is raised here as it was there, a MemoryError where it took more than it may.
    """
    limits = {"memory": MEMORY + largest * MEMORY_A_BYTE, "seconds": SECONDS + largest * SECONDS_A_MEGABYTE // 10**6}
    kept = {name: os.environ[name] for name in _PLACES if name in os.environ}

    def watch(process: subprocess.Popen[bytes]) -> None:
        threading.Thread(target=_watch, args=(process, limits["memory"]), daemon=True).start()

    try:
        yield from ask("rag_core.corpus", {**limits, **request}, {**kept, **_ONE_THREAD}, watch)
    except EOFError:
        raise MemoryError from None


def _watch(process: subprocess.Popen[bytes], memory: int) -> None:
    """End the process where it holds more memory than it may, shared libraries included, as far as the system tells."""
    status = Path(f"/proc/{process.pid}/statm")
    with suppress(OSError, IndexError):
        page = os.sysconf("SC_PAGE_SIZE")
        while process.poll() is None:
            if int(status.read_text().split()[1]) * page > memory:
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(WATCHED_EVERY)


def limit(memory: int, seconds: int) -> None:
    """Take these limits for the process that this is; bytes, seconds of the processor."""
    with suppress(ImportError, ValueError, OSError):  # a system without them has the watch alone
        import resource

        for name, most in (("RLIMIT_CORE", 0), ("RLIMIT_CPU", seconds), ("RLIMIT_DATA", memory)):
            resource.setrlimit(getattr(resource, name), (most, most))
