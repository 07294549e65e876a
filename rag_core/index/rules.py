"""Rules of a stored collection: changed as one batch, as metadata alone, and taken back as one.

No text is embedded and no ranking changes; the collection's revision does. What was set this way outlives a later
ingest of the same chunks (`kept_rules`). Checking rules before they are stored is in rag_core.rules.check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.index.collection import fingerprints, folder_of
from rag_core.index.lock import writing
from rag_core.index.store import CollectionFile, StoredChunk, opened
from rag_core.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class RuleBatch:
    """One change of rules: its number, when (UTC), what for, how many chunks, and whether it was taken back."""

    number: int
    at: str
    about: str
    chunks: int
    undone: bool = False

    def to_text(self) -> str:
        """One line."""
        return f"{self.number}: {self.chunks} chunks, {self.at}, {self.about}{' (undone)' if self.undone else ''}"


@dataclass(frozen=True, slots=True)
class Undone:
    """A batch taken back: the chunks whose rules are as before, and those that were changed since and stay."""

    number: int
    restored: tuple[str, ...]
    changed_since: tuple[str, ...]

    def to_text(self) -> str:
        """The chunks that stay, a line each, and how many are as before."""
        lines = [f"changed since and kept: {identity}" for identity in self.changed_since]
        return "\n".join([*lines, f"batch {self.number} undone: {len(self.restored)} chunks as before"])


def apply_rules(workspace: Path, collection: str, rules: Mapping[str, Rule | None], about: str) -> RuleBatch:
    """Store rules (None takes a chunk's rule away) as one batch: all or nothing, with nothing embedded.

    An InputError names a chunk that is not in the collection. Rules equal to the stored ones are no change.
    """
    if not rules:
        raise InputError("there is no rule to store, expected at least one")
    after = {identity: None if rule is None else rule.as_mapping() for identity, rule in rules.items()}
    folder = _existing(workspace, collection)
    with writing(folder), opened(folder, write=True) as file:
        rows = list(file.rows())
        before = {row.chunk.id: row.chunk.query_must for row in rows if row.chunk.id in after}
        missing = next((identity for identity in after if identity not in before), None)
        if missing is not None:
            raise InputError(f"collection {collection} has no chunk {missing[:80]!r}, expected one of its ids")
        at = datetime.now(UTC).isoformat(timespec="seconds")
        facts = fingerprints(_with_rules(rows, after), file.meta()["model"])
        number = file.change_rules(after, facts, (at, about, before))
    return RuleBatch(number, at, about, len(after))


def undo_rules(workspace: Path, collection: str, number: int | None = None) -> Undone:
    """Take a batch back (the last one standing, without a number); chunks changed since keep what they have."""
    folder = _existing(workspace, collection)
    with writing(folder), opened(folder, write=True) as file:
        standing = [batch for batch in file.rule_batches() if not batch[-1]]
        chosen = [batch for batch in standing if number in (None, batch[0])]
        if not chosen:
            numbers = ", ".join(str(batch[0]) for batch in standing) or "none"
            raise InputError(f"there is no batch of rules {number or ''} to undo, expected one of {numbers}")
        found, _, _, before, after, _ = chosen[-1]
        rows = list(file.rows())
        now = {row.chunk.id: row.chunk.query_must for row in rows if row.chunk.id in before}
        restored = {identity: before[identity] for identity, rule in now.items() if rule == after[identity]}
        file.change_rules(restored, fingerprints(_with_rules(rows, restored), file.meta()["model"]), found)
    return Undone(found, tuple(restored), tuple(identity for identity in now if identity not in restored))


def rule_batches(workspace: Path, collection: str) -> tuple[RuleBatch, ...]:
    """Every batch of rules of a collection, oldest first."""
    with opened(_existing(workspace, collection)) as file:
        return tuple(
            RuleBatch(number, at, about, len(after), undone)
            for number, at, about, _, after, undone in file.rule_batches()
        )


def kept_rules(file: CollectionFile, rows: Sequence[StoredChunk]) -> list[StoredChunk]:
    """Rows about to be stored, with the rules that batches gave their chunks in place of the document's own."""
    chosen: dict[str, Any] = {}
    for *_, after, undone in file.rule_batches():
        if not undone:
            chosen |= after
    return _with_rules(rows, chosen)


def _existing(workspace: Path, collection: str) -> Path:
    """The folder of a collection that is there; opening it for reading says so where it is not."""
    folder = folder_of(workspace, collection)
    with opened(folder):
        return folder


def _with_rules(rows: Sequence[StoredChunk], rules: Mapping[str, Any]) -> list[StoredChunk]:
    return [
        replace(row, chunk=replace(row.chunk, query_must=rules[row.chunk.id])) if row.chunk.id in rules else row
        for row in rows
    ]
