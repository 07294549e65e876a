"""The labelling component: a queue of chunks that lives in the browser, with single keys for grades.

A press counts at once for the chunk on the screen and is kept in the browser until the server says that it is on disk
(flow.js, keep.js); text of other people is only ever set as text (readable.js). What the server does with what comes in
is intake.py; which pairs there are and in which order is pages/labels/pairs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from pages.labels.queue.intake import Unfit  # the database layer behind it: the rail of every page waits not

FOLDER = Path(__file__).parent
SCRIPTS = ("readable.js", "keep.js", "draw.js", "flow.js", "queue.js")


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A pair as the browser gets it: what is shown, and what its label is about. `id` names it within the queue.

    `others` are further chunks with this content, each {chunk_id, text_hash}; `origin` is '' unless it was asked for;
    `proposed` is the grade that `proposer`, a model, gives it, where a person is to see that.
    """

    id: str
    eval_set: str
    annotator: str
    query_id: str
    query_hash: str
    chunk_id: str
    text_hash: str
    query: str
    title: str
    text: str
    others: tuple[Mapping[str, str], ...] = ()
    why: str = ""
    origin: str = ""
    proposed: int | None = None
    proposer: str = ""


@dataclass(frozen=True, slots=True)
class QueueData:
    """All the component shows. `acks` is {stream: largest seq on disk}, `problem` why the last labels are not.

    `unfit` are entries of the last batch that never will be.
    """

    whose: str
    items: tuple[QueueItem, ...]
    total: int
    done: int
    coverage: tuple[str, ...]
    settled: str
    guidelines: str
    acks: Mapping[str, int]
    problem: str = ""
    unfit: tuple[Unfit, ...] = ()
    answers: str = ""  # the stream whose batch this answers, and which batch of it
    attempt: int = 0
    base: int | None = None  # position of the newest label event that the queue knows; every press says it


@cache
def _component() -> Any:
    return st.components.v2.component(
        "winnow_label_queue",
        html='<div class="label-queue" data-testid="label-queue"></div>',
        css=(FOLDER / "queue.css").read_text(encoding="utf-8"),
        js="\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS),
    )


@cache
def _waiting() -> Any:
    return st.components.v2.component(
        "winnow_labels_waiting",
        html='<div class="waiting" data-testid="labels-waiting" role="alert" hidden></div>',
        css=".waiting { position: fixed; bottom: 1rem; left: 1rem; z-index: 1000; padding: 0.5rem 1rem; color: #fff; "
        "background: #8a1c1c; border-radius: 6px; }",
        js="\n".join((FOLDER / name).read_text(encoding="utf-8") for name in ("keep.js", "waiting.js")),
    )


def tell_waiting() -> None:
    """On a place without the queue: labels that this browser still holds are told."""
    _waiting()(key="labels.waiting")


def sent(key: str) -> Any:
    """What the browser sent last, unchecked; None before anything came."""
    return _log(st.session_state.get(key))


def show(data: QueueData, key: str, on_sent: Callable[[], None]) -> Any:
    """Draw the queue; `on_sent` is called before the next run with new labels. Returns what the browser sent last."""
    return _log(_component()(key=key, data=asdict(data), on_log_change=on_sent))


def _log(state: Any) -> Any:
    return state.get("log") if isinstance(state, Mapping) else getattr(state, "log", None)
