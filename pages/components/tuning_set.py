"""The sidebar of LLM filter: which queries, and the capture that a live set needs first."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import streamlit as st

from pages.components import choice, resources, say, sources, tuning_sources, who
from rag_core.errors import InputError, WinnowError
from rag_core.eval_sets.reading import EvalSet
from rag_core.project.deeds import CAPTURE
from rag_core.text import counted
from rag_core.types import Case

SET = choice.EVAL_SET
WIDGET = "tuning.set.widget"
PREFERRED = ("rulebook", "recorded-combat")
GOING = "tuning.capturing"
FILE = "tuning.file"


def choose(preferred: Sequence[str] = PREFERRED) -> EvalSet | None:
    """The eval set in the header, that of all pages; `preferred` is shown until one is chosen."""
    titles = tuning_sources.titles()
    if not titles:
        say.problem("There is no eval set.", "The folder eval_sets of the project or of the workspace holds them.")
        return None
    choice.follow_link("set")
    shown = choice.eval_set_of(titles, preferred)
    choice.tell_link(set=shown)
    st.session_state[WIDGET] = shown
    choice.select(
        "Eval set",
        list(titles),
        format_func=lambda key: titles[key],
        key=WIDGET,
        on_change=choice.take_widget,
        args=(SET, WIDGET),
        help="Recorded lists, or a collection whose queries are asked once and kept.",
    )
    with st.sidebar:
        st.file_uploader(
            "Open my result lists (JSONL)",
            type=["jsonl"],
            key=FILE,
            on_change=_dropped,
            help="One query a line: a query and its candidates, each with a distance and, where known, its label. "
            "Read in this session only.",
        )
    if sources.upload_problem():
        say.problem("The dropped file cannot be read.", sources.upload_problem())
    try:
        return tuning_sources.eval_set(shown)
    except InputError as error:
        say.problem("This eval set cannot be opened.", str(error), choice.ANOTHER_SET)
        return None


def _dropped() -> None:
    name = sources.take_upload(FILE)
    if name:
        choice.take(SET, name)


def cases_of(chosen: EvalSet) -> list[Case] | None:
    """The set's lists; without them, what this page needs and the button that gets it."""
    try:
        found = tuning_sources.lists_of(chosen)
    except InputError as error:
        say.problem("The captured lists cannot be read; capture them again.", str(error))
        found = None
    if found is not None:
        return found
    going = st.session_state.pop(GOING, False)
    st.markdown(
        f"**This eval set has {counted(len(chosen.cases), 'query', 'queries')} and no result lists yet.** "
        f"The page needs one capture: every query is asked once, {tuning_sources.DEPTH} chunks deep, and every setting "
        "is computed from the kept lists from then on. Nothing leaves this machine."
    )
    place = st.empty()
    if going:
        _capture(chosen, place)
    place.button(
        f"Capture {counted(len(chosen.cases), 'query', 'queries')}", icon=":material/download:", on_click=_start,
        key="tuning.capture",
    )  # fmt: skip
    return None


def _start() -> None:
    st.session_state[GOING] = True


def _capture(chosen: EvalSet, place: st.delta_generator.DeltaGenerator) -> None:
    """Run the capture with a bar; Cancel starts the page anew and what is done is kept."""
    with place.container(border=True):
        bar = st.progress(0.0, text="opening the collection")
        st.button("Cancel", key="tuning.cancel", help="What is done is kept; the next capture goes on from there.")
        try:
            with who.doing(CAPTURE, chosen.name):
                tuning_sources.capture(chosen, _shown(bar, "chunks embedded"), _shown(bar, "queries asked"))
        except (WinnowError, OSError) as error:
            say.problem("The capture did not come to its end; what is done is kept.", str(error))
            return
    resources.freeze()
    st.rerun()


def _shown(bar: st.delta_generator.DeltaGenerator, what: str) -> tuning_sources.Progress:
    """Progress as n of N, rate and time left, a few times a second."""
    started, told = perf_counter(), 0.0

    def progress(done: int, total: int) -> None:
        nonlocal told
        now = perf_counter()
        if now - told < 0.2 and done < total:
            return
        told = now
        rate = done / max(now - started, 1e-9)
        left = (total - done) / rate if rate else 0
        text = f"{what}: {done:,} of {total:,} · {rate:,.1f} a second · {left:,.0f} s left"
        bar.progress(done / max(total, 1), text=text)

    return progress


def quiet(text: str) -> None:
    """A remark in our own words, smaller than the rest; a caption's grey is too faint to read in the light theme."""
    st.markdown(f":small[{text}]")
