"""Bring labels in: first say what is new, equal and conflicting, then apply it as one batch that can be undone.

Nothing is overwritten unless asked, and what was overwritten comes back when the batch is undone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from rag_core.errors import StoreError
from rag_core.store.events import BY_IMPORT, Event, Signature, now
from rag_core.store.exchange.line import LabelLine, line_of, one_grade_each
from rag_core.store.labels import LabelStore, current_events, insert, recorded_ids


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do: labels not there yet, labels there already, and (label, what stands there) pairs."""

    eval_set: str
    new: tuple[LabelLine, ...]
    equal: tuple[LabelLine, ...]
    conflicting: tuple[tuple[LabelLine, Event], ...]

    @property
    def annotators(self) -> tuple[str, ...]:
        """Whose labels these are, equal ones apart: there nothing is written."""
        return tuple(sorted({line.annotator for line in (*self.new, *(line for line, _ in self.conflicting))}))

    def to_json(self) -> dict[str, Any]:
        """The counts, and every conflict with both grades."""
        conflicts = [
            {"line": line.number, "query_id": line.query_id, "chunk_id": line.chunk_id, "annotator": line.annotator}
            | {"grade": line.grade, "stored_grade": there.grade}
            for line, there in self.conflicting
        ]
        counts = {"new": len(self.new), "equal": len(self.equal), "conflicting": len(self.conflicting)}
        return {"eval_set": self.eval_set, **counts, "conflicts": conflicts}

    def to_text(self) -> str:
        """The counts."""
        return f"{len(self.new)} new, {len(self.equal)} equal, {len(self.conflicting)} conflicting"


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did; `batch` undoes it, '' where nothing was written."""

    batch: str
    written: int
    back_up: str

    def to_text(self) -> str:
        """How many, and what undoes it."""
        return f"{self.written} written" + (f" as batch {self.batch}" if self.batch else "")


def plan_import(labels: LabelStore, eval_set: str, lines: Iterable[LabelLine], annotator: str) -> ImportPlan:
    """Compare the lines with what counts now; `annotator` is whose labels they are where a line does not say."""
    named = [line if line.annotator else replace(line, annotator=annotator) for line in lines]
    with labels.store.reading() as connection:
        return _compare(connection, eval_set, one_grade_each(named, "the labels"))


def apply_import(labels: LabelStore, plan: ImportPlan, overwrite: bool = False, by: Signature = BY_IMPORT) -> Imported:
    """Store the new labels, with `overwrite` the conflicting ones too, in one transaction after a back-up.

    `by` is who brings them in: they stay their annotators' labels, and every row says who imported it.

    If the labels changed since the plan was made, a StoreError says so and nothing is stored.
    """
    batch = f"import-{now()}-{uuid4().hex[:8]}"
    chosen = [(line, None) for line in plan.new] + (list(plan.conflicting) if overwrite else [])
    if not chosen:
        return Imported("", 0, "")
    copy = labels.store.back_up("import")
    with labels.store.writing() as connection:
        if _compare(connection, plan.eval_set, _lines(plan)) != plan:
            raise StoreError("the labels changed since the import was planned, expected them as they were: plan again")
        events = (_event(plan.eval_set, batch, seq, *pair) for seq, pair in enumerate(chosen))
        insert(connection, [_signed(event, by) for event in events])
    return Imported(batch, len(chosen), str(copy))


def _lines(plan: ImportPlan) -> list[LabelLine]:
    return [*plan.new, *plan.equal, *(line for line, _ in plan.conflicting)]


def copy_labels(labels: LabelStore, source: str, target: str, by: Signature = BY_IMPORT) -> Imported:
    """Give another eval set the labels that count now in `source`, each of its annotator, as one batch."""
    lines = [line_of(event) for event in labels.labels(source)]
    return apply_import(labels, plan_import(labels, target, lines, "copy"), by=by)


def _compare(connection: Connection, eval_set: str, lines: Iterable[LabelLine]) -> ImportPlan:
    standing = _Standing(connection, eval_set)
    pairs = [(line, standing.label_for(line)) for line in lines]
    return ImportPlan(
        eval_set,
        new=tuple(line for line, there in pairs if there is None),
        equal=tuple(line for line, there in pairs if there is not None and _same(line, there)),
        conflicting=tuple((line, there) for line, there in pairs if there is not None and not _same(line, there)),
    )


def _same(line: LabelLine, there: Event) -> bool:
    return line.grade == there.grade and line.note in ("", there.note)


class _Standing:
    """The labels that count now, found by text where both texts are known, else by id."""

    def __init__(self, connection: Connection, eval_set: str) -> None:
        ids = recorded_ids(connection, eval_set)
        self.by_text: dict[tuple[str, str, str], Event] = {}
        self.by_id: dict[tuple[str, str, str], Event] = {}
        for event in current_events(connection, eval_set):
            self.by_text[event.annotator, event.query_id, event.text_hash] = event
            for chunk_id in ids[event.query_id, event.chunk_key]:
                self.by_id[event.annotator, event.query_id, chunk_id] = event

    def label_for(self, line: LabelLine) -> Event | None:
        by_id = self.by_id.get((line.annotator, line.query_id, line.chunk_id))
        if not line.text_hash:
            return by_id
        same_text = self.by_text.get((line.annotator, line.query_id, line.text_hash))
        return same_text or (by_id if by_id and not by_id.text_hash else None)


def _event(eval_set: str, batch: str, seq: int, line: LabelLine, there: Event | None) -> Event:
    return Event(
        session=batch,
        seq=seq,
        eval_set=eval_set,
        query_id=line.query_id,
        chunk_id=line.chunk_id,
        annotator=line.annotator,
        grade=line.grade,
        note=line.note,
        query_hash=line.query_hash,
        # An overwriting label must have the key of the one it hides.
        text_hash=line.text_hash or (there.text_hash if there else ""),
        batch=batch,
        at=line.at,
        pressed_at=line.pressed_at,
        inclusion_p=line.inclusion_p,
        sampler=line.sampler,
    )


def _signed(event: Event, by: Signature) -> Event:
    """A label that says when it was pressed keeps that."""
    return replace(event, author=by.author, actor=by.actor, pressed_at=event.pressed_at or by.pressed_at)
