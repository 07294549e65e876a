"""What the methods of Tune share: dev and held-out queries, looking at those once, the command's source."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.components import resources, say, sources, tuning_save, tuning_set, who
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.project.deeds import JUDGE_HELD_OUT
from rag_core.project.looks import held_out_key, look, looks
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.tune import judgement
from rag_core.tune.tune import Choice, dev_and_test
from rag_core.types import Case

METHODS = ("Thresholds", "Guaranteed recall", "Learned cut", "Search")
PROBLEM = "tune.judge_problem"


def split(chosen: EvalSet, cases: Sequence[Case]) -> tuple[list[Case], list[Case]] | None:
    """The dev and the held-out queries, named on the page; None where there are too few labels for both."""
    try:
        dev, test = dev_and_test(cases, None, 0, chosen.min_grade)
    except InputError as error:
        say.problem("Too few labelled queries to choose on and to judge on; label chunks on Label.", str(error))
        return None
    tuning_set.quiet(
        f"{len(dev) + len(test)} of {len(cases)} queries have a relevant label (grade ≥ {chosen.min_grade}): "
        f"{len(dev)} dev, {len(test)} held out. Every figure below is over dev queries unless it says held out."
    )
    return dev, test


@dataclass(frozen=True)
class Look:
    """A look at the held-out queries: which, whether it was made, and what makes it."""

    test: Sequence[Case]
    made: bool
    judge: Callable[..., None]
    arguments: tuple[Any, ...]


def draw_actions(look_: Look, chosen: EvalSet, pipeline: Pipeline, what: str, key: str) -> None:
    """Look at the held-out queries, save the pipeline, open it on Explore; how often was looked before."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Judged" if look_.made else f"Judge once on the {len(look_.test)} held-out queries",
            key=f"{key}.judge",
            on_click=look_.judge,
            args=look_.arguments,
            disabled=look_.made,
            help="Every look is written down and counted; after several looks a set is no longer held out.",
        )
        tuning_save.draw(chosen, pipeline, what, key)
        times = looks(resources.workspace(), held_out_key(look_.test))
        if times:
            tuning_set.quiet(f"These held-out queries were looked at {times} time{'s' if times != 1 else ''}.")
    if st.session_state.get(PROBLEM):
        say.problem("The held-out queries could not be judged.", st.session_state[PROBLEM])


def judge(place: str, key: str, chosen: EvalSet, test: Sequence[Case], objective: str, choice: Choice) -> None:
    """Look at the held-out queries once more, and keep the judgement of a choice in the session."""
    keep_problem("")
    try:
        with who.doing(JUDGE_HELD_OUT, chosen.name):
            times = look(resources.workspace(), held_out_key(test), fingerprint(choice.pipeline))
        found = judgement.judge(test, choice, objective, looks=times, min_grade=chosen.min_grade)
    except (InputError, OSError) as error:
        keep_problem(str(error))
        return
    st.session_state[place] = (key, found)


def keep_problem(text: str) -> None:
    """Why the held-out queries could not be judged, for the next drawing; '' where they could."""
    st.session_state[PROBLEM] = text


def source_words(chosen: EvalSet) -> str:
    """What the command reads in place of this page's eval set."""
    if chosen.name.startswith(sources.PREFIX):
        return "lists.jsonl"
    return f"--eval-set {shlex.quote(chosen.name)}"
