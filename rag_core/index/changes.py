"""What an ingest changes: which stored chunks go, and what the collection holds after the switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_core.errors import InputError
from rag_core.index.store import Row


def gone(before: Mapping[str, Row], rows: Sequence[Row], roots: Sequence[Path] | None) -> list[str]:
    """The stored chunks that go: those of the given paths (or all) that are not among the new ones.

    A new chunk may take the id of one from elsewhere only where that document is gone, a moved folder; then all of that
    document goes.
    """
    new = {row.chunk.id for row in rows}
    stored = {row.document for row in before.values()}
    inside = {document for document in stored if roots is None or _under(document, roots)}
    moved: set[str] = set()
    for row in rows:
        old = before.get(row.chunk.id)
        if old is not None and old.document not in inside:
            if Path(old.document).exists():
                raise InputError(
                    f"{row.document} has the id {row.chunk.id[:80]!r} that {old.document} already has here, "
                    "expected each id once; ingest both paths together under one folder, or use another collection"
                )
            moved.add(old.document)
    return [identity for identity, row in before.items() if identity not in new and row.document in inside | moved]


def switched(before: Mapping[str, Row], rows: Sequence[Row], removed: Sequence[str]) -> list[Row]:
    """The collection's rows after the switch, in the order of their ids."""
    without = set(removed)
    kept = {identity: row for identity, row in before.items() if identity not in without}
    after = kept | {row.chunk.id: row for row in rows}
    return [after[identity] for identity in sorted(after)]


def _under(document: str, roots: Sequence[Path]) -> bool:
    return any(Path(document).is_relative_to(root) for root in roots)
