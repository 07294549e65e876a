"""Work in a process of its own: its memory goes with it, and it can be limited or give way to whoever waits.

The child is sent what to do as JSON on its standard input, and answers with JSON lines: each value, and last how it
ended. Nothing is unpickled.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_core import errors
from rag_core.errors import WinnowError

Begun = Callable[["subprocess.Popen[bytes]"], None]
Say = Callable[[Any], None]


def ask(
    module: str, request: Mapping[str, Any], environment: Mapping[str, str], begun: Begun = lambda _: None
) -> Iterator[Any]:
    """What a module that calls `answer` says to a request, value by value; `begun` is told of the process.

    A WinnowError or MemoryError of the child is raised here; an EOFError where it ended without a word. Whoever stops
    asking ends it.
    """
    # an interactive session finds this package by the empty entry of its path, which is not handed on
    places = [*filter(None, sys.path), str(Path(__file__).resolve().parents[1])]
    process = subprocess.Popen(  # noqa: S603 — our own interpreter and a module of ours
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**environment, "PYTHONPATH": os.pathsep.join(places), "PYTHONUTF8": "1"},
    )
    begun(process)
    with process:
        try:
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # it is gone: that it says nothing tells so
                    process.stdin.write(json.dumps(request).encode())
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
    raise EOFError


def give_back() -> None:
    """What a large piece of work in this process has freed goes back to the system: glibc keeps it for more work."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def answer(work: Callable[[dict[str, Any], Say], None]) -> None:
    """The child's whole life: the request, the values that `work` says, how it ended."""
    request, out = json.load(sys.stdin), sys.stdout
    sys.stdout = sys.stderr  # whatever prints does not speak between

    def say(value: Any) -> None:
        out.write(json.dumps(["value", value], ensure_ascii=False) + "\n")
        out.flush()

    try:
        work(request, say)
        said = ["end", ""]
    except WinnowError as error:
        said = [type(error).__name__, str(error)]
    except MemoryError:
        return  # not a word more: there may be no room for it
    except Exception as error:
        said = ["", f"{type(error).__name__}: {error}"]
    out.write(json.dumps(said) + "\n")
    out.flush()
