"""How commands print: a result as one JSON document with full precision, never NaN, or as text; progress on stderr."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any

import typer

from rag_core.files import JsonText, json_text

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def echo(text: str, *, err: bool = False) -> None:
    """Print text without what a terminal takes for a command: titles, names and ids are other people's."""
    typer.echo(CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), err=err)


def emit(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout, with a version, a piece at a time; an iterator is written as a list."""
    for piece in _pieces({"version": 1, **document}):
        sys.stdout.buffer.write(piece.encode("utf-8", "replace"))
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()


def _pieces(value: Any) -> Iterator[str]:
    """A value as pieces of JSON; only what comes out of an iterator is not written whole."""
    if isinstance(value, JsonText):
        yield value
    elif isinstance(value, Iterator):
        yield "["
        for number, item in enumerate(value):
            if number:
                yield ", "
            yield from _pieces(item)
        yield "]"
    elif isinstance(value, Mapping) and any(isinstance(item, Iterator) for item in value.values()):
        for number, (key, item) in enumerate(value.items()):
            yield (", " if number else "{") + json_text(str(key)) + ": "
            yield from _pieces(item)
        yield "}"
    else:
        yield json_text(value)


class ProgressBar:
    """How far a long command is: one line on stderr, a few times a second and only where a person watches."""

    EVERY = 0.2

    def __init__(self, what: str = "") -> None:
        self.what, self.started, self.drawn = what, perf_counter(), 0.0

    def __call__(self, done: int, total: int) -> None:
        """N of N, the rate and the time left."""
        if self.due(done, total):
            rate = done / max(perf_counter() - self.started, 1e-9)
            left = (total - done) / rate if rate else 0
            text = f"{self.what} {done:,} of {total:,} · {rate:,.1f} a second · {left:,.0f} s left"
            self.draw(text, done >= total)

    def due(self, done: int, total: int) -> bool:
        """Whether this step is worth drawing."""
        now = perf_counter()
        if not sys.stderr.isatty() or (now - self.drawn < self.EVERY and done < total):
            return False
        self.drawn = now
        return True

    def draw(self, text: str, ended: bool) -> None:
        """Over what stood there."""
        sys.stderr.write(f"\r{text}   " + ("\n" if ended else ""))
        sys.stderr.flush()


class AskingBar(ProgressBar):
    """The same for a run that asks a model: with what it has cost."""

    def __call__(self, progress: Any) -> None:  # type: ignore[override]  # a run tells more than two numbers
        """Show how far the run is."""
        if self.due(progress.done, progress.total):
            spend = "cost unknown" if progress.spent is None else f"spent {progress.spent:.4f}"
            left = "" if progress.remaining_seconds is None else f" · {progress.remaining_seconds:,.0f} s left"
            text = f"{progress.done:,} of {progress.total:,} · {progress.rate:.1f} a second{left} · {spend}"
            self.draw(text, progress.done >= progress.total)
