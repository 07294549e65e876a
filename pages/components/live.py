"""Live lists: the index of a collection, kept open; one query searched in it; an eval set captured once per depth.

Everything is kept per revision of the collection, so that a changed collection is searched anew and a moved slider
searches nothing twice. Streamlit's own caches cannot show progress while they fill, hence dictionaries of our own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any

import streamlit as st
from cachetools import LRUCache

from pages.components import resources
from pages.components.view import MOST_READ, View, front_of
from rag_core import workbench
from rag_core.eval_sets.reading import EvalSet
from rag_core.index.collection import revision_of
from rag_core.measure.experiment import start_of
from rag_core.remember import remembered
from rag_core.retrieve.capture import captured
from rag_core.stage import Pipeline
from rag_core.store.matching import AtHand
from rag_core.types import Candidates, Case, Chunk, Query

BASELINE = 15
"""k of the fixed list that a live list is compared with."""

DEEP = 200
"""What “all queries” reads at least: enough for every shipped pipeline."""

FUSED = ("hybrid",)
"""The searches whose list is that of two rankings."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LiveIndex:
    """An open collection and what names its state."""

    index: Any
    revision: str

    @property
    def size(self) -> int:
        """How many chunks it holds."""
        return len(self.index.snapshot.chunks)

    @cached_property
    def at_hand(self) -> AtHand:
        """Its chunks as labels meet them."""
        return AtHand.of(self.index.snapshot.chunks)

    @cached_property
    def chunks(self) -> dict[str, Chunk]:
        """Every chunk by its id."""
        return {chunk.id: chunk for chunk in self.index.snapshot.chunks}

    def load_model(self) -> None:
        """Have the model loaded, so that the first question's milliseconds are those of its search."""
        self.index.embed_query(self.index.snapshot.name)

    def known(self, case: Case) -> Case:
        """The case with the labels of chunks that this collection holds; labels of others say nothing here."""
        grades = {chunk: grade for chunk, grade in case.grades.items() if chunk in self.index.rows_by_id}
        return replace(case, grades=grades, candidates=None)


@dataclass
class _Held:
    """What all sessions share."""

    lock: Lock
    fresh: set[tuple[str, ...]]
    captures: LRUCache[str, dict[str, Candidates]]


@st.cache_resource(show_spinner=False)
def _held() -> _Held:
    return _Held(Lock(), set(), LRUCache(4))


@st.cache_resource(max_entries=3, show_spinner=False)
def _open(folder: str, name: str, revision: str, approximate: bool) -> LiveIndex:
    found = LiveIndex(workbench.opened(resources.workspace(), name, approximate), revision)
    resources.freeze()
    return found


def open_live(collection: str, approximate: bool) -> LiveIndex:
    """The collection as it stands now; a WinnowError says why it cannot be searched."""
    revision = ""
    if (resources.workspace() / "collections" / collection).is_dir():
        revision = revision_of(resources.workspace(), collection)
    return _open(str(resources.workspace()), collection, revision, approximate)


def is_fresh(chosen: EvalSet) -> bool:
    """Whether the set's own collection was seen to hold its corpus."""
    return _state_of(chosen) in _held().fresh


def bring_up_to_date(chosen: EvalSet, progress: Progress) -> None:
    """Make the set's own collection hold its corpus; sessions wait for each other. A WinnowError says what failed."""
    with _held().lock:
        if not is_fresh(chosen):
            workbench.bring_up_to_date(chosen, resources.workspace(), progress)
            _held().fresh.add(_state_of(chosen))


def _state_of(chosen: EvalSet) -> tuple[str, ...]:
    """Corpus file and collection as they stand: another state is looked at again."""
    place = resources.workspace()
    changed = chosen.corpus.stat().st_mtime_ns if chosen.corpus else 0
    there = (place / "collections" / chosen.name).is_dir()
    return (str(place), chosen.name, str(changed), revision_of(place, chosen.name) if there else "")


def own_query(text: str) -> Query:
    """A question of one's own: named by its text, so that its labels are found when it is asked again."""
    return Query("own-" + hashlib.sha256(text.encode()).hexdigest()[:16], text)


def front(view: View, live: LiveIndex, depth: int) -> Pipeline:
    """The rewriting and the source of a view, ready to run. An InputError says which condition cannot be read."""
    return workbench.live(front_of(view, depth), live.index, view.eval_set)


def searched(case: Case, view: View, live: LiveIndex) -> Case:
    """The case with the list that its query gets now, and the reader of the rest for refill."""
    stage = front(view, live, view.depth)

    def search() -> Candidates:
        live.load_model()
        return stage(Candidates(case.query))

    return replace(case, candidates=remembered(case.query, stage, live.index, resources.workspace(), search))


def capture_depth(view: View, live: LiveIndex) -> int:
    """How deep “all queries” reads: as deep as the list or the refill of this view goes; a fused list as it is set."""
    if view.engine in FUSED:
        return view.depth
    refill = view.refill_k * view.max_iterations if view.refilled else 0
    return min(max(DEEP, view.depth, refill), max(live.size, 1), MOST_READ)


def capture(chosen: EvalSet, cases: Sequence[Case], view: View, live: LiveIndex, progress: Progress) -> list[Case]:
    """The cases with deep recorded lists: searched once per collection, depth and conditions, then kept."""
    depth = capture_depth(view, live)
    stage = front(view, live, depth)
    mark = workbench.capture_fingerprint(live.index, depth, cases, stage, view.eval_set)
    asked = [(case.query.id, case.query.text) for case in cases]
    state = [resources.workspace(), live.revision, mark, chosen.name]
    key = hashlib.sha256(repr([*map(str, state), asked]).encode()).hexdigest()
    held = _held()
    with held.lock:
        lists = held.captures.get(key)
    if lists is None:
        lists = {}
        for number, case in enumerate(cases, 1):
            lists[case.query.id] = start_of(captured(case, stage))
            progress(number, len(cases))
        with held.lock:
            held.captures[key] = lists
        resources.freeze()
    return [replace(case, candidates=lists[case.query.id]) for case in cases]


def cut_to(cases: Sequence[Case], view: View) -> list[Case]:
    """Captured cases as the page's filters meet them: the first `depth`, or all where refill reads on."""
    if view.refilled or view.engine in FUSED:
        return list(cases)
    return [_first(case, view.depth) for case in cases]


def _first(case: Case, depth: int) -> Case:
    start = start_of(case)
    return replace(case, candidates=replace(start, hits=start.hits[:depth]))
