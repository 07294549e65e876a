"""What Explore looks at: the eval set, its labelled queries, and the one query with the list it brings or gets live.

Everything that cannot be had is said on the page in one sentence. Pure reading of a run is in reading.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from pages.components import resources, say, session, sources
from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.eval_sets.reading import EvalSet
from rag_core.types import Case

if TYPE_CHECKING:
    from pages.components.live import LiveIndex


CHROMA = "Asking Chroma; at its first question it starts and builds its graph"


@dataclass(frozen=True)
class Asked:
    """What the page shows: an eval set with its labels, one case with its list, and where it was searched."""

    chosen: EvalSet
    cases: tuple[Case, ...]
    case: Case
    live: LiveIndex | None

    @property
    def baseline(self) -> str:
        """What “was” means, in words; '' where it is the list without any filter."""
        if self.live is None:
            return ""
        from pages.components.live import BASELINE

        return f"fixed k = {BASELINE}"


def find_set() -> EvalSet | None:
    """The eval set in the view, or None with the reason shown."""
    if sources.upload_problem():
        say.problem("This file cannot be opened; nothing was changed.", sources.upload_problem())
    try:
        chosen = sources.find(session.current().eval_set)
    except InputError as error:
        say.problem("This eval set cannot be shown.", str(error))
        st.button("Open the example queries", on_click=session.start_over, icon=":material/play_arrow:")
        return None
    if not chosen.recorded and not session.current().collection:
        session.settle(collection=chosen.name)
    return chosen


def find_live(chosen: EvalSet) -> tuple[LiveIndex | None, bool]:
    """The open collection of the view, and whether the page can go on; what keeps it from that is said."""
    view = session.current()
    if not view.collection:
        return None, True
    from pages.components import live  # late: the index is a slow import that recorded lists do without

    try:
        if chosen.corpus is not None and view.collection == chosen.name and not live.is_fresh(chosen):
            working(f"Bringing the collection {chosen.name} up to date", lambda bar: live.bring_up_to_date(chosen, bar))
        return live.open_live(view.collection, view.approximate), True
    except (WinnowError, OSError) as error:
        say.problem("This collection cannot be searched.", _sentence(error))
        return None, False


def working(what: str, work: Callable[[Callable[[int, int], None]], object]) -> None:
    """Long work with its progress in sight: n of N while it runs, nothing once it is done."""
    place = st.empty()
    bar = place.progress(0.0, f"{what} …")

    def progress(done: int, total: int) -> None:
        bar.progress(min(done / max(total, 1), 1.0), f"{what}: {done:,} of {total:,}")

    try:
        work(progress)
    finally:
        place.empty()


def find_query(cases: Sequence[Case]) -> Case:
    """The query in the view; an unknown one is said, and the first is shown."""
    wanted = session.current().query_id
    found = next((case for case in cases if case.query.id == wanted), None)
    if found is None:
        if wanted:
            say.problem(
                "The link names a query that this eval set does not hold; the first one is shown.", wanted[:200]
            )
        found = cases[0]
        session.settle(query_id=found.query.id)
    return found


def find(chosen: EvalSet, live: LiveIndex | None) -> Asked | None:
    """The query of the view with its list, or None with the reason shown."""
    view = session.current()
    if live is None:
        cases = labelled(chosen, chosen.cases, None)
        return Asked(chosen, tuple(cases), find_query(cases), None)
    from pages.components.live import own_query, searched

    own = [Case(own_query(view.question))] if view.question else []
    *cases, last = labelled(chosen, [*map(live.known, chosen.cases), *own], live)
    cases, case = (cases, last) if own else ([*cases, last], None)
    try:
        wanted = case or find_query(cases)
        with st.spinner(CHROMA) if view.approximate else nullcontext():
            return Asked(chosen, tuple(cases), searched(wanted, view, live), live)
    except (WinnowError, OSError) as error:
        say.problem("This question cannot be searched as it is set.", _sentence(error))
        return None


def _sentence(error: Exception) -> str:
    """What went wrong; of the system's own errors the reason, without a path."""
    if isinstance(error, OSError) and not isinstance(error, WinnowError):
        return f"the collection’s folder cannot be used: {error.strerror or type(error).__name__}"
    return str(error)


def labelled(chosen: EvalSet, cases: Sequence[Case], live: LiveIndex | None) -> list[Case]:
    """The cases with the labels people gave laid over them; without a store there is nothing to lay."""
    if not resources.has_store():
        return list(cases)
    from pages.components import labels  # late: the database layer takes longer to import than this page

    try:
        store = resources.label_store()
        if live is not None:
            return labels.overlaid_in(store, chosen.name, cases, live.at_hand)
        return labels.overlaid(store, chosen.name, cases)
    except StoreError as error:
        say.problem("The labels given here cannot be read; the eval set’s own are shown.", str(error))
        return list(cases)
