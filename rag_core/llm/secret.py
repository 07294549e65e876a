"""Keys that do not print, and redaction of every key this process knows.

Redaction is done where text leaves (error messages, logs), not where it is made: a server may echo a key in its answer.
"""

from __future__ import annotations

import logging
import re

from rag_core.errors import InputError

NO_KEY = "none"
"""What a server that wants no key is sent; the client library refuses an empty one."""

_known: set[str] = set()
_LOOKS_LIKE_A_KEY = re.compile(r"\bsk-[A-Za-z0-9_\-]{8,}|(?i:\bbearer)\s+[A-Za-z0-9_\-.=+/]{8,}")


class Key:
    """An API key: `reveal()` gives it, everything else shows `sk-…last4`. Printable ASCII without spaces."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        value = value.strip(" ") or NO_KEY
        if not re.fullmatch(r"[\x21-\x7e]{1,500}", value):
            raise InputError("the key holds a space, a line break or a character outside ASCII, expected it as issued")
        self._value = value
        if len(value) >= 8:
            _known.add(value)

    def reveal(self) -> str:
        """The key itself, for the request's header only."""
        return self._value

    def __repr__(self) -> str:
        return masked(self._value)

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a key is not stored")


def masked(value: str) -> str:
    """`sk-…` and the last four characters of a long key; short ones show nothing."""
    return f"sk-…{value[-4:]}" if len(value) >= 16 else "…"


def redact(text: str) -> str:
    """The text with every key known to this process, and all that looks like one, masked."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, masked(value))
    return _LOOKS_LIKE_A_KEY.sub("[key]", text)


class RedactingFilter(logging.Filter):
    """A logging filter for handlers: the finished message leaves without keys."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the message; never drops the record."""
        record.msg, record.args = redact(record.getMessage()), None
        return True


_LIBRARIES = ("httpx2", "httpcore2")
_LOGGERS = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
"""Those that only the first connection would make are made here, so that not even its answer is logged as it came."""
_filter = RedactingFilter()


def redact_logs_of_libraries() -> None:
    """Put the filter on every logger of the HTTP libraries: at debug they log headers, and a server may echo a key."""
    for name in {*logging.root.manager.loggerDict, *_LOGGERS}:
        if name.split(".")[0] in _LIBRARIES:
            logging.getLogger(name).addFilter(_filter)  # adding it again changes nothing
