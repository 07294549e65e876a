"""What a collection's word lists are worth: one search with and without both rewrites on an eval set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.components import glossary, resources, say
from pages.components.tuning_set import quiet
from rag_core.errors import WinnowError
from rag_core.evaluate.compare import Cell, TableRow, table
from rag_core.evaluate.compare_words import verdict_words
from rag_core.evaluate.rewrites import MEASURES, SEARCHES
from rag_core.evaluate.sets import folders
from rag_core.index.collection import revision_of
from rag_core.wording import Listed

MEASURED, PROBLEM = "corpus.words.measured", "corpus.words.measure_problem"


def show(name: str, lists: Mapping[str, Listed], drafts: Mapping[str, str]) -> None:
    """The choice, the button, and the figures as long as they are those of what is chosen."""
    st.markdown("**Measure on an eval set**: the same search without and with both rewrites")
    known = sorted(folders(resources.workspace()), key=lambda one: one != name)  # the collection's own first
    with st.container(horizontal=True, vertical_alignment="bottom"):
        eval_set = st.selectbox("Eval set", known, key=f"corpus.words.set.{name}", width=260)
        search = st.segmented_control(
            "Search", [one.capitalize() for one in SEARCHES], default="Hybrid", required=True, key="corpus.words.search"
        )
        pressed = st.button("Measure", icon=":material/play_arrow:", key="corpus.words.measure")
    if any(drafts[kind] != one.text for kind, one in lists.items()):
        quiet("Measured are the lists as they are saved; what you typed since counts once it is saved.")
    key = (name, revision_of(resources.workspace(), name), eval_set, search, *(one.text for one in lists.values()))
    if pressed:
        _measure(name, str(eval_set), str(search).lower(), key)
    if st.session_state.get(PROBLEM):
        say.problem("This cannot be measured.", st.session_state[PROBLEM])
    kept, rows = st.session_state.get(MEASURED, (None, []))
    if kept == key:
        _figures(rows)


def _measure(name: str, eval_set: str, search: str, key: tuple[Any, ...]) -> None:
    from rag_core.workbench import measure_words

    st.session_state[PROBLEM] = ""
    bar = st.progress(0.0, "Asking …")
    total = len(resources.eval_set(eval_set).cases) if eval_set in resources.live_sets() else 0

    def tell(done: int) -> None:
        bar.progress(min(1.0, done / total) if total else 0.0, f"{done:,} queries asked both ways")

    try:
        rows = table(measure_words(resources.workspace(), name, eval_set, search, tell), MEASURES)
        st.session_state[MEASURED] = (key, rows)
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)
    bar.empty()


def _figures(rows: list[TableRow]) -> None:
    """Means with intervals, their difference, and the verdicts in words."""
    before, after = rows
    st.markdown(
        f"**Means**, macro over {before.queries_scored} of {before.queries_total} queries, with 95 % intervals; the "
        "difference is paired, query by query"
    )
    against = {measure: after.cells[measure].against for measure in MEASURES}
    st.dataframe(
        {
            "measure": list(MEASURES),
            before.name: [_cell(before.cells[measure]) for measure in MEASURES],
            after.name: [_cell(after.cells[measure]) for measure in MEASURES],
            "difference": [_signed(one.delta, one.low, one.high) if one else "" for one in against.values()],
            "wins": [one.wins if one else 0 for one in against.values()],
            "ties": [one.ties if one else 0 for one in against.values()],
            "losses": [one.losses if one else 0 for one in against.values()],
        },
        hide_index=True,
        key="corpus.words.effect",
        column_config=glossary.explained(("difference", "wins", "ties", "losses")),
        alt="Per measure: mean as asked and rewritten, paired difference with interval, wins, ties and losses",
    )
    first = against[MEASURES[0]]
    if first is not None:
        st.text(verdict_words(first))
    quiet("Neither list is cut, so only ranks differ. Lists that were written with these very questions in view look "
          "better here than on new ones.")  # fmt: skip


def _cell(cell: Cell) -> str:
    one = cell.estimate
    if one.mean is None:
        return "–"
    return f"{one.mean:.3f}" + ("" if one.low is None else f" [{one.low:.3f}, {one.high:.3f}]")


def _signed(delta: float | None, low: float | None, high: float | None) -> str:
    if delta is None:
        return "–"
    return f"{delta:+.3f}" + ("" if low is None else f" [{low:+.3f}, {high:+.3f}]")
