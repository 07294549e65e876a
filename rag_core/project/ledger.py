"""The ledger: which pipeline was seen on which held-out questions, when, by whom and where. Appended, never rewritten.

Looking again at the same pipeline on the same labels and the same questions is no new look: nothing can be learned from
it. Every figure over held-out questions, on a page or by a command, goes through `look`; a file of lists that belongs
to no project keeps its looks in the workspace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rag_core.files import append_line
from rag_core.project.project import LEDGER_FILE
from rag_core.types import Case


@dataclass(frozen=True, slots=True)
class Look:
    """One look: fingerprints of pipeline, rival and labels, the split, how many questions, and who looked where."""

    pipeline: str
    labels: str
    split: str  # what decides the sides (Sides.name): more questions or labels do not change it
    questions: int
    name: str = ""  # what the pipeline was called
    by: str = ""
    place: str = ""
    at: str = ""
    rival: str = ""  # the pipeline that it was judged against
    low: float | None = None  # bounds of the difference that the look decided by
    high: float | None = None

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What makes it a look of its own."""
        return (*self.pair, self.labels, self.questions)

    @property
    def pair(self) -> tuple[str, str, str]:
        """What is judged: the pipeline, its rival, and the split."""
        return (self.split, self.pipeline, self.rival)


def key_of(cases: Sequence[Case]) -> str:
    """A short hash of held-out questions, whatever their order and labels: names the split of a file of lists."""
    rows = sorted([case.query.id, case.query.text] for case in cases)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]


def looks(folder: Path) -> list[Look]:
    """All looks kept in a folder (of a project, `Project.state`), oldest first; broken lines are passed over."""
    path = folder / LEDGER_FILE
    if not path.is_file():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(Look(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return rows


def looks_at(folder: Path, split: str) -> int:
    """How many different looks there were at a split."""
    return len({one.key for one in looks(folder) if one.split == split})


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a pair stands among all that were seen on a split: its number from 1, and its first look, if it had one."""

    pair: int
    first: Look | None

    def repeats(self, seen: Look) -> bool:
        """Whether a look is the pair's first, taken now or taken again."""
        return self.first is None or self.first.key == seen.key

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the first look decided by."""
        first = self.first
        return None if first is None or first.low is None or first.high is None else (first.low, first.high)


def standing(folder: Path, seen: Look) -> Standing:
    """Where the pair of a look stands in a folder's ledger, before the look is written down."""
    before = [one for one in looks(folder) if one.split == seen.split]
    pairs = list(dict.fromkeys(one.pair for one in before))
    first = next((one for one in before if one.pair == seen.pair), None)
    return Standing(pairs.index(seen.pair) + 1 if first else len(pairs) + 1, first)


def look(folder: Path, seen: Look) -> int:
    """Write down a look, unless the same was looked at before; how many different ones there are now on this split."""
    if seen.key not in {one.key for one in looks(folder)}:
        stamped = asdict(seen) | {"at": seen.at or datetime.now(UTC).isoformat(timespec="seconds")}
        folder.mkdir(parents=True, exist_ok=True)
        append_line(folder / LEDGER_FILE, json.dumps(stamped, ensure_ascii=False), 0o644)
    return looks_at(folder, seen.split)
