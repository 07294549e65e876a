"""Parts that are kept as they come, so that work that was stopped or whose cluster died goes on where it was."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rag_core
from rag_core.engine.cluster import Engine
from rag_core.files import write_whole

FOLDER = "parts"
Progress = Callable[[int, int], None]


def as_part(value: dict[str, Any]) -> str:
    """A part as text: equal parts are equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def in_parts(
    engine: Engine,
    work: Callable[[str], str],
    parts: Sequence[str],
    workspace: Path,
    progress: Progress | None = None,
) -> list[str]:
    """The result of every part, in order. Each is on disk in the workspace once it is there, until all are.

    Parts that are kept from an earlier call with the same parts are not done again.
    """
    text = json.dumps([rag_core.__version__, work.__name__, *parts], ensure_ascii=False)
    folder = workspace / FOLDER / hashlib.sha256(text.encode()).hexdigest()[:24]
    files = [folder / f"{number:06d}.json" for number in range(len(parts))]
    missing = [number for number, file in enumerate(files) if not file.is_file()]
    for done, (at, result) in enumerate(engine.each(work, [parts[number] for number in missing]), 1):
        write_whole(files[missing[at]], result)
        if progress is not None:
            progress(len(parts) - len(missing) + done, len(parts))
    results = [file.read_text(encoding="utf-8") for file in files]
    shutil.rmtree(folder, ignore_errors=True)
    return results


def pieces(count: int, threads: int, least: int = 1, per_thread: int = 8) -> list[tuple[int, int]]:
    """(start, stop) of pieces of `count` things: several for each thread, so that a lost one costs little."""
    size = max(least, -(-count // max(1, threads * per_thread)))
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] < least:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=False))  # of nothing there are no pieces
