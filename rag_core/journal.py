"""The program's log: one JSON object per line on stderr, each with the run it belongs to, never chunk text or a key.

A record's message is a fixed phrase; what varies goes into `extra`, of which only the fields named here are written.
What a page or a command shows people is not its business. OpenTelemetry, where it is installed and switched on, gets
spans without content.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any
from uuid import uuid4

NAME = "winnow"
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


@contextmanager
def running(name: str, **fields: Any) -> Iterator[str]:
    """A run: its id is in every line logged inside; begin, end and failure are lines of their own, and a span."""
    identity = uuid4().hex[:12]
    token = run_id.set(identity)
    log = logging.getLogger(NAME)
    try:
        with _span(name, fields):
            log.info("%s began", name, extra=fields)
            yield identity
            log.info("%s ended", name, extra=fields)
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
    with trace.get_tracer(NAME).start_as_current_span(name, attributes=kind | kept, record_exception=False):
        yield
