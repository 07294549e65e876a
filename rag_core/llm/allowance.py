"""How many calls of a model a person may make in a day: the client counts every one here before it is sent.

Whoever does something for a person says so with `spending`; threads that they start begin in a copy of their context.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from rag_core.errors import InputError, SurroundingsError

FOLDER = "calls"


@dataclass(frozen=True, slots=True)
class Allowance:
    """A person's calls of a day (UTC). The count is the length of a file, so that all processes share it."""

    workspace: Path
    name: str
    most: int

    def take(self) -> None:
        """Count one call, or an InputError where the day's are made; what cannot be counted is not sent."""
        day = self.workspace / FOLDER / f"{datetime.now(UTC):%Y-%m-%d}"
        try:
            day.mkdir(parents=True, exist_ok=True)
            file = day / blake2b(self.name.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, b".")
                number = os.lseek(handle, 0, os.SEEK_CUR)  # where this byte went: no two calls have one number
            finally:
                os.close(handle)
        except OSError as error:
            raise SurroundingsError(
                f"the call cannot be counted ({error.strerror}), expected a workspace to write"
            ) from None
        if number > self.most:
            raise InputError(f"the {self.most:,} calls of a day are made, expected no more until midnight UTC")


_spender: ContextVar[Allowance | None] = ContextVar("spender", default=None)


@contextmanager
def spending(allowance: Allowance | None) -> Iterator[None]:
    """Calls of the block count against this; None: they are not counted."""
    token = _spender.set(allowance)
    try:
        yield
    finally:
        _spender.reset(token)


def spend_from_here(allowance: Allowance | None) -> None:
    """Calls of this thread count against this from now on, for work that no block encloses, as the run of a page."""
    _spender.set(allowance)


def take() -> None:
    """Count a call against whoever spends here, if anybody does."""
    if (allowance := _spender.get()) is not None:
        allowance.take()
