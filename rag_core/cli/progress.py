"""Progress of long commands: one line on stderr, drawn a few times a second and only where a person watches."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

EVERY = 0.2


class ProgressLine:
    """The line that is drawn over and over, and ended by the last step."""

    def __init__(self) -> None:
        self.drawn = 0.0

    def due(self, done: int, total: int) -> bool:
        """Whether this step is worth drawing."""
        now = perf_counter()
        if not sys.stderr.isatty() or (now - self.drawn < EVERY and done < total):
            return False
        self.drawn = now
        return True

    def draw(self, text: str, ended: bool) -> None:
        """Over what stood there."""
        sys.stderr.write(f"\r{text}   " + ("\n" if ended else ""))
        sys.stderr.flush()


class ProgressBar:
    """n of N, the rate and the time left."""

    def __init__(self, what: str) -> None:
        self.what, self.started, self.line = what, perf_counter(), ProgressLine()

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        if not self.line.due(done, total):
            return
        rate = done / max(perf_counter() - self.started, 1e-9)
        left = (total - done) / rate if rate else 0
        text = f"{self.what} {done:,} of {total:,} · {rate:,.1f} a second · {left:,.0f} s left"
        self.line.draw(text, done >= total)


class AskingBar:
    """The same for a run that asks a model: with what it has cost."""

    def __init__(self) -> None:
        self.line = ProgressLine()

    def __call__(self, progress: Any) -> None:
        """Show how far the run is."""
        if not self.line.due(progress.done, progress.total):
            return
        spend = "cost unknown" if progress.spent is None else f"spent {progress.spent:.4f}"
        left = "" if progress.remaining_seconds is None else f" · {progress.remaining_seconds:,.0f} s left"
        text = f"{progress.done:,} of {progress.total:,} · {progress.rate:.1f} a second{left} · {spend}"
        self.line.draw(text, progress.done >= progress.total)
