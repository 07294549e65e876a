"""What Compare shows, as one value, and its way into the address and back: a copied link restores it. Draws nothing.

A pipeline is named (shipped or saved) or stands here whole, as inline JSON; so a link carries what Explore had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_core.errors import InputError
from rag_core.files import parse_json
from rag_core.spec import read_pipeline, saved_names, shipped_names
from rag_core.stage import Pipeline

FEWEST, MOST = 2, 5
LONGEST_ADDRESS = 8000
MEASURES = ("SetF", "SetP", "SetR", "nDCG@15")
SHOWN = ("Table", "Queries", "Slices", "Heat map", "Where relevant chunks die")
ORDERS = {"regressions": "Regressions first", "improvements": "Improvements first", "difference": "Largest difference"}
FIRST = {True: ("unfiltered", "query-must"), False: ("fixed-15", "query-must-refill", "demo-tuned")}
"""The pipelines of a page that was not asked for any: for recorded lists, and for a live set."""


@dataclass(frozen=True, slots=True)
class CompareView:
    """One state of the page. `baseline` and `other` are places in `pipelines`; '' names the first eval set or query."""

    eval_set: str = ""
    pipelines: tuple[str, ...] = ()
    baseline: int = 0
    other: int = 1
    measure: str = MEASURES[0]
    shown: str = SHOWN[0]
    order: str = "regressions"
    query_id: str = ""
    chunk: str = ""

    def changed(self, **changes: Any) -> CompareView:
        """The view with some fields changed; baseline and other stay two different pipelines of the list."""
        if "eval_set" in changes:
            changes = {"query_id": "", "chunk": "", "pipelines": (), **changes}
        if "query_id" in changes:
            changes.setdefault("chunk", "")
        return settled(replace(self, **changes))


def settled(view: CompareView) -> CompareView:
    """The view with baseline and other inside the list and apart."""
    count = max(len(view.pipelines), FEWEST)
    baseline = view.baseline if 0 <= view.baseline < count else 0
    other = view.other if 0 <= view.other < count else 1
    if other == baseline:
        other = 1 if baseline == 0 else 0
    return replace(view, baseline=baseline, other=other)


def read_entry(entry: str) -> Pipeline:
    """The pipeline of one entry: a name, or inline JSON; never a path. An InputError says what is wrong with it."""
    if not entry.startswith(("{", "[")):
        known = (*shipped_names(), *saved_names())
        if entry not in known or not entry.replace("-", "").isalnum():
            raise InputError(f"pipeline {entry[:80]!r} is no name, expected one of {', '.join(known)}")
    return read_pipeline(entry)


def title_of(entry: str) -> str:
    """What an entry is called: its name."""
    if not entry.startswith(("{", "[")):
        return entry
    try:
        return read_entry(entry).label or "pipeline"
    except InputError:
        return "unreadable pipeline"


def to_address(view: CompareView) -> dict[str, str]:
    """The query parameters that restore the view; what is as at first is left out."""
    usual = CompareView()
    plain = {
        "set": view.eval_set,
        "measure": view.measure if view.measure != usual.measure else "",
        "show": view.shown if view.shown != usual.shown else "",
        "order": view.order if view.order != usual.order else "",
        "query": view.query_id,
        "chunk": view.chunk,
        "baseline": str(view.baseline) if view.baseline != usual.baseline else "",
        "other": str(view.other) if view.other != usual.other else "",
    }
    pipelines = {"pipelines": json.dumps(view.pipelines, separators=(",", ":"))} if view.pipelines else {}
    return {**{name: value for name, value in plain.items() if value}, **pipelines}


def from_address(parameters: Mapping[str, str]) -> CompareView:
    """The view a link names. An InputError says what cannot be shown."""
    if sum(map(len, parameters.values())) > LONGEST_ADDRESS:
        raise InputError(
            f"the link holds more than {LONGEST_ADDRESS} characters, expected a link copied from this page"
        )
    entries = parse_json(parameters.get("pipelines") or "[]", "the link's pipelines")
    if not isinstance(entries, list) or len(entries) > MOST or not all(isinstance(one, str) for one in entries):
        raise InputError(f"the link's pipelines are no list of at most {MOST} names, expected a link of this page")
    for entry in entries:
        read_entry(entry)
    return settled(
        CompareView(
            eval_set=parameters.get("set", ""),
            pipelines=tuple(dict.fromkeys(entries)),
            baseline=_place(parameters.get("baseline", "0")),
            other=_place(parameters.get("other", "1")),
            measure=_one_of("measure", parameters.get("measure"), MEASURES),
            shown=_one_of("show", parameters.get("show"), SHOWN),
            order=_one_of("order", parameters.get("order"), tuple(ORDERS)),
            query_id=parameters.get("query", ""),
            chunk=parameters.get("chunk", ""),
        )
    )


def _place(text: str) -> int:
    if not text.isdecimal() or len(text) > 2:
        raise InputError(f"the link names pipeline {text[:20]!r}, expected a place from 0")
    return int(text)


def _one_of(name: str, given: str | None, known: tuple[str, ...]) -> str:
    if given and given not in known:
        raise InputError(f"the link's {name} is {given[:40]!r}, expected one of {', '.join(known)}")
    return given or known[0]
