"""Captured lists: what a source answered to a question, as rows and scores alone, kept until its source changes.

A list holds no text, metadata, rule or label: those are joined when a pipeline runs (session.py). It is kept under the
source's fingerprint (ids, texts, metadata, embedder; rules have one of their own and never search again), the search
settings and the question. A cache: whoever deletes the file searches anew.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_core.types import RANKS, Candidates, Chunk, Hit, Metric, Order, Query, Reader

FILE = "lists.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS list (
  source TEXT NOT NULL, state TEXT NOT NULL, search TEXT NOT NULL, query TEXT NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (source, state, search, query)) WITHOUT ROWID;
"""


@dataclass(frozen=True, eq=False)
class CapturedList:
    """One question's list: row numbers of the chunks in the source's order, scores by kind, ranks by fused side."""

    rows: np.ndarray[Any, np.dtype[np.int32]]
    scores: Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]  # NaN: the hit has no such score
    ranks: Mapping[str, np.ndarray[Any, np.dtype[np.int32]]]  # 0: not on that side
    metric: str
    order: str
    steps: tuple[tuple[str, Mapping[str, Any]], ...]  # stage name and facts, of the stages that searched

    @classmethod
    def of(cls, searched: Candidates, row_of: Mapping[str, int]) -> CapturedList:
        """What of a searched list is kept."""
        hits = searched.hits
        kinds = sorted({kind for hit in hits for kind in hit.scores})
        sides = sorted({side for hit in hits for side in hit.notes.get(RANKS, {})})
        scores = {kind: np.array([hit.scores.get(kind, np.nan) for hit in hits], dtype=np.float64) for kind in kinds}
        ranks = {side: np.array([hit.notes.get(RANKS, {}).get(side, 0) for hit in hits], np.int32) for side in sides}
        rows = np.array([row_of[hit.chunk.id] for hit in hits], dtype=np.int32)
        steps = tuple((step.stage, {k: v for k, v in step.facts.items() if _plain(v)}) for step in searched.steps)
        return cls(rows, scores, ranks, str(searched.metric), str(searched.order), steps)

    def joined(self, query: Query, chunks: Sequence[Chunk], depth: int | None, reader: Reader | None) -> Candidates:
        """The list with today's chunks, its first `depth` hits; a recorded list, so that no source is asked again."""
        count = len(self.rows) if depth is None else min(depth, len(self.rows))
        kinds = [(kind, values[:count].tolist()) for kind, values in self.scores.items()]
        sides = [(side, values[:count].tolist()) for side, values in self.ranks.items()]
        hits = []
        for place, row in enumerate(self.rows[:count].tolist()):
            scores = {kind: values[place] for kind, values in kinds if values[place] == values[place]}
            notes = {RANKS: {side: values[place] for side, values in sides if values[place]}} if sides else {}
            hits.append(Hit(chunks[row], place + 1, scores, notes=notes))
        return Candidates(
            query, tuple(hits), metric=Metric(self.metric), order=Order(self.order), recorded=True, reader=reader,
            searched=dict(self.steps),
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """As stored: one line of JSON, then the arrays in its order."""
        head = {
            "n": len(self.rows),
            "scores": list(self.scores),
            "ranks": list(self.ranks),
            "metric": self.metric,
            "order": self.order,
            "steps": self.steps,
        }
        arrays: list[np.ndarray[Any, Any]] = [self.rows, *self.scores.values(), *self.ranks.values()]
        return json.dumps(head).encode() + b"\n" + b"".join(array.tobytes() for array in arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> CapturedList:
        """The list as it was stored."""
        line, _, rest = data.partition(b"\n")
        head, at = json.loads(line), 0
        count = head["n"]

        def take(kind: Any) -> Any:
            nonlocal at
            array = np.frombuffer(rest, kind, count, at)
            at += array.nbytes
            return array

        rows = take(np.int32)
        scores = {kind: take(np.float64) for kind in head["scores"]}
        ranks = {side: take(np.int32) for side in head["ranks"]}
        steps = tuple((str(name), facts) for name, facts in head["steps"])
        return cls(rows, scores, ranks, head["metric"], head["order"], steps)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


class ListCache:
    """The captured lists of a workspace, by source, its state, the search and the question. Safe between processes."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / "cache" / FILE

    def _connected(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=30)
        connection.executescript(_SCHEMA)
        return connection

    def read(self, source: str, state: str, search: str, queries: Iterable[str]) -> dict[str, CapturedList]:
        """The lists of these query keys that are there."""
        if not self.path.is_file():
            return {}
        connection = self._connected()
        try:
            rows = connection.execute(
                "SELECT query, data FROM list WHERE source = ? AND state = ? AND search = ?", (source, state, search)
            )
            wanted = set(queries)
            return {query: CapturedList.from_bytes(data) for query, data in rows if query in wanted}
        finally:
            connection.close()

    def write(self, source: str, state: str, search: str, lists: Mapping[str, CapturedList]) -> None:
        """Keep lists; those of an older state of the source go."""
        connection = self._connected()
        try:
            with connection:
                connection.execute("DELETE FROM list WHERE source = ? AND state <> ?", (source, state))
                connection.executemany(
                    "INSERT OR REPLACE INTO list VALUES (?, ?, ?, ?, ?)",
                    [(source, state, search, query, one.to_bytes()) for query, one in lists.items()],
                )
        finally:
            connection.close()

    def clear(self) -> None:
        """Forget every list; a session keeps those it holds."""
        self.path.unlink(missing_ok=True)


def query_key(query: Query) -> str:
    """What of a question a source is asked: its text and what rewrites set."""
    text = json.dumps([query.text, query.dense_text, query.lexical_text], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
