"""Bring labels in: first say what is new, equal and conflicting, then apply it as one batch that can be undone.

Nothing is overwritten unless asked, and what was overwritten comes back when the batch is undone.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from rag_core.child import Say, ask
from rag_core.errors import StoreError, SurroundingsError
from rag_core.store.database import open_store
from rag_core.store.events import BY_IMPORT, Event, Signature, now, to_row
from rag_core.store.exchange.line import LabelLine, line_of, one_grade_each
from rag_core.store.labels import LabelStore, changed_queries, current_events, insert, recorded_ids

AS_WRITTEN = (
    "query_id", "chunk_id", "annotator", "grade", "note", "query_hash", "at", "inclusion_p", "sampler"
)  # fmt: skip

WRITTEN = tuple(one.name for one in fields(LabelLine))
MANY = 5_000  # labels whose import is worth a process of its own


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do: labels not there yet, labels there already, and (label, what stands there) pairs."""

    eval_set: str
    new: tuple[LabelLine, ...]
    equal: tuple[LabelLine, ...]
    conflicting: tuple[tuple[LabelLine, Event], ...]
    position: int = field(default=0, compare=False)  # of the newest event when it was made

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
    position = labels.newest() or 0
    with labels.store.reading() as connection:
        return replace(_compare(connection, eval_set, one_grade_each(named, "the labels")), position=position)


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
        # only what was said of the same questions can have changed the plan: whoever labels waits for this transaction
        changed = changed_queries(connection, plan.eval_set, plan.position)
        before = _of_queries(plan, changed)
        if any(before) and _compare(connection, plan.eval_set, chain(*before[:2], (one for one, _ in before[2]))) != (
            replace(plan, new=before[0], equal=before[1], conflicting=before[2])
        ):
            raise StoreError("the labels changed since the import was planned, expected them as they were: plan again")
        insert(connection, rows)
    return Imported(batch, len(written), str(copy))


def _of_queries(plan: ImportPlan, queries: Container[str]) -> tuple[Any, Any, Any]:
    """What of new, equal and conflicting is about these queries."""
    return (
        tuple(line for line in plan.new if line.query_id in queries),
        tuple(line for line in plan.equal if line.query_id in queries),
        tuple(pair for pair in plan.conflicting if pair[0].query_id in queries),
    )


def apply_import_beside(
    labels: LabelStore, plan: ImportPlan, overwrite: bool = False, by: Signature = BY_IMPORT
) -> Imported:
    """The same where people wait for this process: many labels are stored by a child, which waits for nobody's thread.

    It plans anew. A SurroundingsError where it ends without a word: nothing is stored then.
    """
    lines = [*plan.new, *plan.equal, *(line for line, _ in plan.conflicting)]
    if len(lines) <= MANY:
        return apply_import(labels, plan, overwrite, by)
    request = {"workspace": str(labels.store.workspace.resolve()), "eval_set": plan.eval_set, "overwrite": overwrite,
               "by": asdict(by), "lines": [[getattr(line, name) for name in WRITTEN] for line in lines]}  # fmt: skip
    done = None
    with suppress(EOFError):
        for value in ask("rag_core.store.exchange", request, os.environ):
            done = Imported(**value)
    if done is None:
        raise SurroundingsError("the process that stores the labels ended; nothing was stored, do it again")
    return done


def import_child(request: Mapping[str, Any], say: Say) -> None:
    """The child's part: the plan of these lines, applied."""
    lines = [LabelLine(**dict(zip(WRITTEN, line, strict=True))) for line in request["lines"]]
    with open_store(Path(request["workspace"])) as store:
        labels = LabelStore(store)
        plan = plan_import(labels, request["eval_set"], lines, "")
        say(asdict(apply_import(labels, plan, request["overwrite"], Signature(**request["by"]))))


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
