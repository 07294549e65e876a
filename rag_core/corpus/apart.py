"""Untrusted documents are read in a process of its own, under a limit of memory and time: what bursts it ends there.

The child is sent what to read and under which limits as JSON on its standard input, and answers with JSON lines: each
value, and last how it ended. It gets nothing of our environment but where Python's modules are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_core import errors
from rag_core.errors import InputError

MEMORY, MEMORY_A_BYTE = 230_000_000, 8  # bytes, and more of them for each byte of the largest file
SECONDS, SECONDS_A_MEGABYTE = 60, 10  # of the processor; far above what any document takes
WATCHED_EVERY = 0.02  # seconds
_PLACES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
_ONE_THREAD = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

Reader = Callable[[Mapping[str, Any]], Iterator[Any]]


def read_apart(request: Mapping[str, Any], largest: int) -> Iterator[Any]:
    """What the reader in the child gives for a request; `largest` is the bytes of the file that takes most.

    An InputError of the reader is raised here as it was there, a MemoryError where it took more than it may.
    """
    limits = {"memory": MEMORY + largest * MEMORY_A_BYTE, "seconds": SECONDS + largest * SECONDS_A_MEGABYTE // 10**6}
    kept = {name: os.environ[name] for name in _PLACES if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "rag_core.corpus"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"},
    )
    threading.Thread(target=_watch, args=(process, limits["memory"]), daemon=True).start()
    with process:
        try:
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # it is gone: that it says nothing tells so
                    process.stdin.write(json.dumps({**limits, **request}).encode())
                    process.stdin.close()
            for line in process.stdout or ():
                kind, value = json.loads(line)
                if kind == "value":
                    yield value
                elif kind == "end":
                    return
                else:
                    raise getattr(errors, kind, RuntimeError)(value)
        finally:
            process.kill()
    raise MemoryError


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


def answer(read: Reader) -> None:
    """The child's whole life: limits, the request, the values."""
    request = json.load(sys.stdin)
    _limit(request["memory"], request["seconds"])
    out = sys.stdout
    try:
        for value in read(request):
            out.write(json.dumps(["value", value], ensure_ascii=False) + "\n")
        said = ["end", ""]
    except InputError as error:
        said = [type(error).__name__, str(error)]
    except MemoryError:
        return  # not a word more: there may be no room for it
    except Exception as error:
        said = ["", f"{type(error).__name__}: {error}"]
    out.write(json.dumps(said) + "\n")
    out.flush()


def _limit(memory: int, seconds: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # a system without them has the watch alone
        import resource

        for name, most in (("RLIMIT_CORE", 0), ("RLIMIT_CPU", seconds), ("RLIMIT_DATA", memory)):
            resource.setrlimit(getattr(resource, name), (most, most))
