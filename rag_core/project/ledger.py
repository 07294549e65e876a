"""The ledger: which pipeline was seen on the held-out questions, when, by whom and where. Appended, never rewritten.

Looking again at the same pipeline on the same labels and the same questions is no new look: nothing can be learned from
it. Every figure over held-out questions, on a page or by a command, goes through `look`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rag_core.project.project import LEDGER_FILE, Project


@dataclass(frozen=True, slots=True)
class Look:
    """One look: fingerprints of pipeline, labels and held-out questions, how many those are, and who looked where."""

    pipeline: str
    labels: str
    split: str
    questions: int
    name: str = ""  # what the pipeline was called
    by: str = ""
    place: str = ""
    at: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it a look of its own."""
        return (self.pipeline, self.labels, self.split)


def looks(project: Project) -> list[Look]:
    """All looks at this project's held-out questions, oldest first; a line cut short by a crash is passed over."""
    path = project.state / LEDGER_FILE
    if not path.is_file():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(Look(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return rows


def look(project: Project, seen: Look) -> int:
    """Write down a look, unless the same was looked at before; how many different ones there are now on this split."""
    before = looks(project)
    if seen.key not in {one.key for one in before}:
        stamped = asdict(seen) | {"at": seen.at or datetime.now(UTC).isoformat(timespec="seconds")}
        _append(project.state / LEDGER_FILE, json.dumps(stamped, ensure_ascii=False) + "\n")
    return len({one.key for one in looks(project) if one.split == seen.split})


def _append(path: Path, line: str) -> None:
    """One whole line at the end, on the disk when this returns: several processes may look at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
