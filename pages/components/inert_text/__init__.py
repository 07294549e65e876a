"""Text of other people shown inertly: runs with words marked, and chips. Set as text in the browser, never as markup.

Streamlit's own text sinks show neither marks nor chips without reading markdown, and markdown in foreign text can load
pictures from anywhere. Which words are marked is for the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

FOLDER = Path(__file__).parent
STYLES = ("lead", "text", "chips", "note", "box")


@dataclass(frozen=True, slots=True)
class TextRun:
    """A stretch of text. `mark` is '' or the way it stands out: word, held, missing, plain."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A line of runs in one of STYLES: lead (large), text, chips (one chip a run), note (small), box (scrolls)."""

    style: str
    runs: tuple[TextRun, ...]


@cache
def _component() -> Any:
    return st.components.v2.component(
        "winnow_inert_text",
        html='<div class="inert"></div>',
        css=(FOLDER / "inert.css").read_text(encoding="utf-8"),
        js=(FOLDER / "inert.js").read_text(encoding="utf-8"),
    )


def show(blocks: Iterable[Block], key: str) -> None:
    """Draw the blocks, one under the other."""
    _component()(key=key, data={"blocks": [asdict(block) for block in blocks]})


def marked(text: str, spans: Iterable[tuple[int, int]], mark: str = "word") -> tuple[TextRun, ...]:
    """The text as runs, with the given parts (start, end) marked; parts that touch or overlap become one."""
    runs: list[TextRun] = []
    at = 0
    for start, end in _joined(spans, len(text)):
        if start > at:
            runs.append(TextRun(text[at:start]))
        runs.append(TextRun(text[start:end], mark))
        at = end
    if at < len(text):
        runs.append(TextRun(text[at:]))
    return tuple(runs)


def _joined(spans: Iterable[tuple[int, int]], length: int) -> Sequence[tuple[int, int]]:
    """The parts in order, inside the text, without overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((max(0, s), min(length, e)) for s, e in spans):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
