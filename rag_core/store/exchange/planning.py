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
from rag_core.store.events import BY_IMPORT, Event, Signature, now, to_row
from rag_core.store.exchange.line import LabelLine, line_of, one_grade_each
from rag_core.store.labels import LabelStore, current_events, insert, recorded_ids

AS_WRITTEN = (
    "query_id", "chunk_id", "annotator", "grade", "note", "query_hash", "at", "inclusion_p", "sampler"
)  # fmt: skip


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
    written: list[tuple[LabelLine, Event | None]] = [(line, None) for line in plan.new]
    written += plan.conflicting if overwrite else ()
    if not written:
        return Imported("", 0, "")
    events = [
        Event(
            session=batch,
            seq=seq,
            eval_set=plan.eval_set,
            # An overwriting label must have the key of the one it hides.
            text_hash=line.text_hash or (there.text_hash if there else ""),
            batch=batch,
            author=by.author,
            actor=by.actor,
            pressed_at=line.pressed_at or by.pressed_at,  # a label that says when it was pressed keeps that
            **{name: getattr(line, name) for name in AS_WRITTEN},
        )
        for seq, (line, there) in enumerate(written)
    ]
    rows = list(map(to_row, events))
    copy = labels.store.back_up("import")
    with labels.store.writing() as connection:
        lines = [*plan.new, *plan.equal, *(line for line, _ in plan.conflicting)]
        if _compare(connection, plan.eval_set, lines) != plan:
            raise StoreError("the labels changed since the import was planned, expected them as they were: plan again")
        insert(connection, rows)
    return Imported(batch, len(written), str(copy))


def copy_labels(labels: LabelStore, source: str, target: str, by: Signature = BY_IMPORT) -> Imported:
    """Give another eval set the labels that count now in `source`, each of its annotator, as one batch."""
    lines = [line_of(event) for event in labels.labels(source)]
    return apply_import(labels, plan_import(labels, target, lines, "copy"), by=by)


def _compare(connection: Connection, eval_set: str, lines: Iterable[LabelLine]) -> ImportPlan:
    """The lines beside the labels that count now, met by text where both texts are known, else by id."""
    ids = recorded_ids(connection, eval_set)
    by_text: dict[tuple[str, str, str], Event] = {}
    by_id: dict[tuple[str, str, str], Event] = {}
    for event in current_events(connection, eval_set):
        by_text[event.annotator, event.query_id, event.text_hash] = event
        for chunk_id in ids[event.query_id, event.chunk_key]:
            by_id[event.annotator, event.query_id, chunk_id] = event
    new, equal, conflicting = list[LabelLine](), list[LabelLine](), list[tuple[LabelLine, Event]]()
    for line in lines:
        there = by_id.get((line.annotator, line.query_id, line.chunk_id))
        if line.text_hash:
            same_id = there if there and not there.text_hash else None
            there = by_text.get((line.annotator, line.query_id, line.text_hash)) or same_id
        if there is None:
            new.append(line)
        elif line.grade == there.grade and line.note in ("", there.note):
            equal.append(line)
        else:
            conflicting.append((line, there))
    return ImportPlan(eval_set, tuple(new), tuple(equal), tuple(conflicting))
