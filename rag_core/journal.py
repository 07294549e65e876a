"""The program's log: one JSON object per line on stderr, each with the run it belongs to, never chunk text or a key.

A record's message is a fixed phrase; what varies goes into `extra`, of which only the fields named here are written.
What a page or a command shows people is not its business: a long command keeps its lines in a file of the workspace.
OpenTelemetry, where it is installed and switched on, gets spans without content.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any
from uuid import uuid4

NAME = "winnow"
FILE, FILE_BEFORE = "journal.jsonl", "journal.before.jsonl"
LARGEST = 5_000_000  # bytes, after which the file is set aside; the one that was aside goes
FIELDS = frozenset(
    {"run", "error_id", "kind", "peer", "times", "stage", "count", "done", "total", "seconds", "engine", "collection",
     "eval_set", "status", "part", "workers", "role"}
)  # fmt: skip
"""What a record may say besides its phrase; none of these ever holds foreign text longer than LONGEST."""
LONGEST = 120
SECRET = re.compile(r"(?i)\b(sk-|ck-|bearer\s+|key-)[\w.~+/=-]{6,}|(?<=://)[^/@\s]+:[^/@\s]+(?=@)")
run_id: ContextVar[str] = ContextVar("run_id", default="")


def redacted(text: str) -> str:
    """The text on one line, without what looks like a key or a password in an address."""
    return SECRET.sub("[redacted]", " ".join(text.split()))


class JsonLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's line; an exception gives its kind and where it was raised, not its words."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage())[: LONGEST * 4],
            "run": run_id.get(),
        }
        line |= {name: _plain(value) for name, value in vars(record).items() if name in FIELDS}
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["where"] = where(record.exc_info[2])
        return json.dumps({name: value for name, value in line.items() if value != ""}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | bool | type(None)) else redacted(str(value))[:LONGEST]


def where(trace: TracebackType | None) -> list[str]:
    """file:line of every frame, outermost first; source lines and values are left out."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{trace.tb_lineno}")
        trace = trace.tb_next
    return found


def start_journal(level: int = logging.INFO) -> logging.Logger:
    """Write this program's log to stderr, once; returns its logger."""
    log = logging.getLogger(NAME)
    if not any(isinstance(handler.formatter, JsonLines) for handler in log.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        log.addHandler(handler)
        log.setLevel(level)
        log.propagate = False
    return log


class JournalFile(logging.Handler):
    """Appends to the workspace's file, from the moment the workspace is there; a full disk stops no command."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self.workspace = workspace
        self.setFormatter(JsonLines())
        self._held: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record's line, and those from before there was a workspace."""
        self._held.append(self.format(record) + "\n")
        if not self.workspace.is_dir():
            return
        path, lines = self.workspace / FILE, "".join(self._held)
        self._held.clear()
        with suppress(OSError):
            if path.is_file() and path.stat().st_size > LARGEST:
                path.replace(self.workspace / FILE_BEFORE)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(descriptor, "ab") as file:  # one write: lines of other commands stay whole
                file.write(lines.encode("utf-8", "backslashreplace"))


@contextmanager
def kept_in(workspace: Path) -> Iterator[None]:
    """Meanwhile the log goes to the workspace's file, too."""
    log, handler = logging.getLogger(NAME), JournalFile(workspace)
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]


@contextmanager
def running(name: str, **fields: Any) -> Iterator[str]:
    """A run: its id is in every line logged inside; begin, end and failure are lines of their own, and a span."""
    identity, began = uuid4().hex[:12], perf_counter()
    token = run_id.set(identity)
    log = logging.getLogger(NAME)
    try:
        with _span(name, fields):
            log.info("%s began", name, extra=fields)
            yield identity
            log.info("%s ended", name, extra=fields | {"seconds": round(perf_counter() - began, 3)})
    except BaseException as error:
        log.warning("%s failed", name, extra=fields | {"kind": type(error).__name__})
        raise
    finally:
        run_id.reset(token)


@contextmanager
def _span(name: str, fields: dict[str, Any]) -> Iterator[None]:
    """A span of OpenTelemetry where its API is installed; without a configured SDK that does nothing."""
    try:
        from opentelemetry import trace
    except ImportError:
        yield
        return
    kept = {f"winnow.{key}": _plain(value) for key, value in fields.items() if key in FIELDS and value is not None}
    kind = {"openinference.span.kind": "CHAIN", "winnow.run": run_id.get()}
    tracer = trace.get_tracer(NAME)
    # An exception that is recorded, or the status that is set for it, takes the error's words along.
    with tracer.start_as_current_span(
        name, attributes=kind | kept, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as error:
            span.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise
