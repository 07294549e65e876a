"""The history of questions: settings, result, hops, time and cost of each; kept for some days, and deleted for good.

Who asks appends (`remember` never stops a question from being answered). Deleting rewrites the file, so that no text is
left in it, and writers wait meanwhile: what is too old goes when nobody waits (`expire`). Back-ups made before hold
what they held. Labels are in labels.py and know nothing of this.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, func, insert, select, true

from rag_core.errors import StoreError
from rag_core.settings import history_days
from rag_core.store.database import Store, has_store, open_store, plain_errors
from rag_core.store.schema import query_history
from rag_core.types import SCORES, Candidates

SHOWN = 200
EXPIRE_SECONDS = 3600.0
_expired: dict[Path, float] = {}  # workspace → when this process last looked for what is too old


@dataclass(frozen=True)
class HistoryEntry:
    """One question as it was asked and answered; `number` is its place in the store, 0 before it is stored."""

    query: str
    collection: str
    pipeline: Sequence[Any]  # the stages with all settings
    result: Mapping[str, Any]  # kept: id, title, scores, origin; dropped: count by stage; metric, fallbacks
    hops: Sequence[Mapping[str, Any]] = ()
    milliseconds: float = 0.0
    tokens: int | None = None
    cost: float | None = None
    asked_by: str = ""
    at: str = field(default="", compare=False)
    number: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The question in one line of a list."""
        kept, asked = len(self.result.get("kept", [])), f"{self.number:>5}  {self.at[:19]}  {self.collection}"
        return f"{asked}  kept {kept}  {self.milliseconds:.0f} ms  {self.query}"

    def to_text(self) -> str:
        """Settings, what was kept with its score and how it came, what went where, and each hop."""
        lines = [self.query, f"{self.at}, {self.collection}, asked by {self.asked_by}, {self.milliseconds:.0f} ms"]
        lines.append(f"settings: {json.dumps(self.pipeline, ensure_ascii=False)}")
        kept = self.result.get("kept", [])
        kind = next((kind for kind in SCORES if any(kind in hit for hit in kept)), "")
        lines.append(
            f"kept {len(kept)}, {self.result.get('metric', 'unknown')} metric" + (f"; {kind}:" if kind else "")
        )
        for hit in kept:
            score = f"{hit[kind]:.4f}" if kind in hit else "-"
            origin = f"  ({hit['origin']})" if "origin" in hit else ""
            lines.append(f"  {score:<8} {hit.get('title') or hit['id']}{origin}")
        lines += [f"dropped by {stage}: {count}" for stage, count in self.result.get("dropped", {}).items()]
        lines += [f"fell back: {row.get('stage')}: {row.get('reason')}" for row in self.result.get("fallbacks", [])]
        for hop in self.hops:
            found = "can answer" if hop.get("can_answer") else f"misses {hop.get('missing_query', '')}"
            lines.append(f"hop {hop.get('hop', '')}: {found} ({hop.get('reasoning', '')})")
        return "\n".join(lines)


def asked_of(run: Candidates, pipeline: Sequence[Any], collection: str, asked_by: str) -> HistoryEntry:
    """What the history keeps of a run: no chunk's text, and only the titles of what stayed."""
    kept = [
        {"id": hit.chunk.id, "title": hit.chunk.title, **hit.scores, **({"origin": hit.origin} if hit.origin else {})}
        for hit in run.hits
    ]
    fallbacks = [{"stage": fallback.stage, "reason": fallback.reason} for fallback in run.fallbacks]
    noted = [step.facts.get("hops") for step in run.steps]  # of whatever stage; what is no list is passed over
    tokens, costs = (
        [step.facts[fact] for step in run.steps if isinstance(step.facts.get(fact), int | float)]
        for fact in ("tokens", "cost")
    )
    return HistoryEntry(
        run.query.text,
        collection,
        list(pipeline),
        {
            "kept": kept,
            "dropped": dict(Counter(drop.stage for drop in run.drops)),
            "metric": str(run.metric),
            "fallbacks": fallbacks,
        },
        [dict(hop) for hops in noted if isinstance(hops, list | tuple) for hop in hops if isinstance(hop, Mapping)],
        sum(step.milliseconds for step in run.steps),
        int(sum(tokens)) if tokens else None,
        float(sum(costs)) if costs else None,
        asked_by,
    )


class History:
    """The questions in an open store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def append(self, asked: HistoryEntry) -> int:
        """Store a question; its number, or 0 where the setting keeps none."""
        if not history_days():
            return 0
        row = {
            "at": asked.at or datetime.now(UTC).isoformat(timespec="milliseconds"),
            "asked_by": asked.asked_by,
            "collection": asked.collection,
            "query": asked.query,
            "pipeline": _json(list(asked.pipeline)),
            "result": _json(dict(asked.result)),
            "hops": _json([dict(hop) for hop in asked.hops]),
            "milliseconds": asked.milliseconds,
            "tokens": asked.tokens,
            "cost": asked.cost,
        }
        with self.store.writing() as connection:
            stored = insert(query_history).values(row).returning(query_history.c.position)
            return int(connection.execute(stored).scalar_one())

    def find(self, holds: str = "", limit: int = SHOWN) -> list[HistoryEntry]:
        """The newest questions that hold the text, ASCII case ignored, newest first."""
        with self.store.reading() as connection:
            chosen = select(query_history).where(_holds(holds)).order_by(query_history.c.position.desc())
            return [_asked(row) for row in connection.execute(chosen.limit(limit))]

    def count(self, holds: str = "") -> int:
        """How many questions hold the text."""
        with self.store.reading() as connection:
            chosen = select(func.count()).select_from(query_history).where(_holds(holds))
            return int(connection.execute(chosen).scalar_one())

    def get(self, number: int) -> HistoryEntry:
        """One question, or a StoreError where there is none of that number."""
        with self.store.reading() as connection:
            row = connection.execute(select(query_history).where(query_history.c.position == number)).first()
        if row is None:
            raise StoreError(f"the history has no question {number}, expected a number that it lists")
        return _asked(row)

    def delete(self, numbers: Sequence[int] | None = None) -> int:
        """Delete questions (all, without numbers) for good; how many there were. No text stays in the file."""
        return self._delete(true() if numbers is None else query_history.c.position.in_(list(numbers)))

    def prune(self, days: int, now: datetime) -> int:
        """Delete what is older than some days, for good; how many there were."""
        oldest = (now - timedelta(days=days)).isoformat(timespec="milliseconds")
        old = query_history.c.at < oldest
        with self.store.reading() as connection:
            found = connection.execute(select(query_history.c.position).where(old).limit(1)).first()
        return self._delete(old) if found else 0

    def _delete(self, which: ColumnElement[bool]) -> int:
        store = self.store
        with store.writing() as connection:
            if not store.server:  # have SQLite overwrite what is deleted with zeros
                connection.exec_driver_sql("PRAGMA secure_delete = ON")
            gone = connection.execute(delete(query_history).where(which)).rowcount
        if gone and not store.server:  # earlier moves of a row may have left copies in free pages, and in the log
            with plain_errors(store.name, store.busy_seconds), closing(store.engine.raw_connection()) as raw:
                cursor = raw.cursor()
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                cursor.fetchall()
        return int(gone)


def remember(workspace: Path, asked: HistoryEntry) -> str:
    """Append a question to the workspace's history; '' or the sentence why it could not be kept. Never raises."""
    if not history_days():
        return ""
    try:
        with open_store(workspace) as store:
            History(store).append(asked)
    except StoreError as error:
        return str(error)
    return ""


def expire(workspace: Path) -> str:
    """Delete for good what is older than the setting, at most once an hour in a process; for when nobody waits.

    '' or the sentence why it could not be done; never raises.
    """
    last = _expired.get(workspace)
    if not history_days() or not has_store(workspace) or (last is not None and monotonic() - last < EXPIRE_SECONDS):
        return ""
    _expired[workspace] = monotonic()
    try:
        with open_store(workspace) as store:
            History(store).prune(history_days(), datetime.now(UTC))
    except StoreError as error:
        return str(error)
    return ""


def _holds(text: str) -> ColumnElement[bool]:
    """Both sides are lowered by the database: SQLite lowers ASCII only, Python would lower more."""
    escaped = text.replace("/", "//").replace("%", "/%").replace("_", "/_")
    return func.lower(query_history.c.query).like(func.lower(f"%{escaped}%"), escape="/") if text else true()


def _asked(row: Row[Any]) -> HistoryEntry:
    columns = dict(row._mapping)
    documents = {name: json.loads(columns.pop(name)) for name in ("pipeline", "result", "hops")}
    return HistoryEntry(number=columns.pop("position"), **documents, **columns)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
