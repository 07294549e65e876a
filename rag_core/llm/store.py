"""Answers of models, kept in a file of the workspace: what was paid for once is never asked again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import time
from typing import Any

from rag_core.errors import StoreError
from rag_core.llm.answer import Answer
from rag_core.llm.prompt import Prompt
from rag_core.llm.secret import redact

FILE = "answers.sqlite"
SCORES = "reranked.sqlite"
_TABLE = """
CREATE TABLE IF NOT EXISTS answer (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, judge TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT NOT NULL,
    prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, milliseconds REAL NOT NULL, asked_at REAL NOT NULL,
    odds TEXT
) WITHOUT ROWID
"""
_GET = """
SELECT text, finish_reason, prompt_tokens, completion_tokens, cost, milliseconds, odds FROM answer WHERE key = ?
"""


def answer_key(place: str, model: str, prompt: Prompt) -> str:
    """The identity of a question: where it is asked and how (Endpoint.place), model, every message, the schema."""
    content = json.dumps([place, model, [dict(one) for one in prompt.messages], prompt.schema], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


class AnswerStore:
    """The answers of one file. Safe for several threads and processes; a fault of the file is a StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute(_TABLE)
            if not any(row[1] == "odds" for row in self._file.execute("PRAGMA table_info(answer)")):
                with suppress(sqlite3.OperationalError):  # another process added it meanwhile
                    self._file.execute("ALTER TABLE answer ADD COLUMN odds TEXT")
        except (sqlite3.Error, OSError) as error:
            raise self._broken(error) from None

    def get(self, key: str) -> Answer | None:
        """The stored answer, marked as cached, or None."""
        rows = self._run(_GET, (key,))
        if not rows:
            return None
        text, finish_reason, prompt_tokens, completion_tokens, cost, milliseconds, stored = rows[0]
        odds = tuple((int(end), float(log)) for end, log in json.loads(stored)) if stored else ()
        counts = (prompt_tokens, completion_tokens, cost)
        return Answer(text, "", finish_reason, *counts, cached=True, milliseconds=milliseconds, odds=odds)

    def put(self, key: str, model: str, judge: str, answer: Answer) -> None:
        """Store an answer that has a text; the first for a key stays."""
        counts = (answer.prompt_tokens, answer.completion_tokens, answer.cost, answer.milliseconds, time())
        text = redact(answer.text or "").encode("utf-8", "replace").decode("utf-8")
        odds = json.dumps(answer.odds) if answer.odds and text == answer.text else None
        values = (key, redact(model), redact(judge), text, answer.finish_reason, *counts, odds)
        self._run("INSERT OR IGNORE INTO answer VALUES (?,?,?,?,?,?,?,?,?,?,?)", values)

    def count(self) -> int:
        """How many answers are stored."""
        return int(self._run("SELECT count(*) FROM answer")[0][0])

    def state(self) -> str:
        """What changes when an answer is stored or forgotten; a look at the file, since pages ask at every run."""
        files = [self.path, self.path.with_name(f"{self.path.name}-wal")]
        return " ".join(f"{one.stat().st_mtime_ns} {one.stat().st_size}" for one in files if one.is_file())

    def clear(self) -> int:
        """Forget all answers; how many there were."""
        before = self.count()
        self._run("DELETE FROM answer")
        return before

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()

    def _run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> StoreError:
        return StoreError(f"the stored answers in {self.path} cannot be used ({type(error).__name__}: {error})")


def forget_answers(workspace: Path) -> int:
    """Delete the answers and rerankers' scores stored in a workspace; how many answers there were."""
    (workspace / SCORES).unlink(missing_ok=True)
    if not (workspace / FILE).is_file():
        return 0
    store = AnswerStore(workspace / FILE)
    try:
        return store.clear()
    finally:
        store.close()
