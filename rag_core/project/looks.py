"""How often a held-out set of queries was looked at: a line per look in the workspace, counted and never forgotten.

A set judged again after each change of mind is no longer held out, so every figure on it carries the number of looks.
Lines are appended whole, so several processes may look at once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rag_core.types import Case

FILE = "held-out-looks.jsonl"


def held_out_key(cases: Sequence[Case]) -> str:
    """A short hash of the held-out queries: the same for the same questions, whatever their order and labels."""
    rows = sorted([case.query.id, case.query.text] for case in cases)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]


def looks(folder: Path, key: str) -> int:
    """How often the set of that key was looked at in this workspace."""
    path = folder / FILE
    if not path.is_file():
        return 0
    return sum(_key_of(line) == key for line in path.read_text(encoding="utf-8").splitlines())


def _key_of(line: str) -> str:
    """The key of one line; nothing for a line that a full disk or a crash cut short."""
    try:
        return str(json.loads(line)["held_out"])
    except (ValueError, KeyError, TypeError):
        return ""


def look(folder: Path, key: str, pipeline: str) -> int:
    """Write down one more look, at what the pipeline of that fingerprint does; returns how many there are now."""
    folder.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"held_out": key, "pipeline": pipeline, "at": datetime.now(UTC).isoformat(timespec="seconds")})
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, (line + "\n").encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return looks(folder, key)
