"""Tune: which setting of the cut, and can I trust it?"""

import streamlit as st

from pages.components import (
    header,
    resources,
    tuning,
    tuning_learned,
    tuning_method,
    tuning_plane,
    tuning_promise,
    tuning_search,
    tuning_set,
)
from rag_core.eval_sets.reading import EvalSet, labels_fingerprint
from rag_core.types import Case

CHOICES = {
    "tune.method": "Thresholds",
    "tune.front": "none",
    "tune.objective": "SetF",
    "tune.recall": 0.0,
    "tune.policy": "largest",
    "tune.least": 2,
    "tune.most": 15,
}

HELP = """
**Keys.** Tab reaches the marker: arrow keys move it by a cell, with Shift by five.

**SetP, SetR, SetF.** Precision, recall and F₁ of the kept list per query; the figures are means over queries (macro).

**dev / held-out.** A setting is chosen on the dev queries only. The held-out ones are scored when you ask for it, and
every such look is counted: the p of a later look is multiplied by their number.

**Best fixed k.** What anybody has without this filter: the same stages in front and the k that is best on the dev
queries. A recommendation is always held against it.

**Optimism.** The dev figure minus the held-out figure: what choosing on the dev queries promised too much.

**Thresholds** computes every gap threshold and offset. **Guaranteed recall** sets one knob so that a share of the
relevant chunks is promised (conformal risk control). **Learned cut** trains a small model of where lists end.
**Search** seeks any settings of any stages with Optuna.
"""


def ask_front() -> str:
    """The stages in front, from the sidebar; every method has them."""
    with st.sidebar:
        front = st.segmented_control(
            "In front of the cut", list(tuning.FRONTS), format_func=lambda key: tuning.FRONTS[key][0], required=True,
            key="tune.front", persist_state="session",
            help="query_must drops by rules; refill does so too and reads further down for what was dropped.",
        )  # fmt: skip
    return front or "none"


def ask_objective() -> str:
    """The measure that is made great."""
    with st.sidebar:
        objective = st.segmented_control(
            "Measure", tuning.MEASURES, required=True, key="tune.objective", persist_state="session"
        )
    return objective or "SetF"


def ask_plane(front: str) -> tuning.Ask:
    """What is swept."""
    objective = ask_objective()
    with st.sidebar:
        recall = st.slider(
            "Keep mean recall at least", 0.0, 1.0, step=0.01, key="tune.recall", persist_state="session",
            help="Only settings with at least this mean SetR may be chosen; 0 asks for nothing.",
        )  # fmt: skip
        policy = st.segmented_control(
            "Gap policy", ("largest", "first", "relative"), required=True, key="tune.policy", persist_state="session",
            help="Which gap of at least the threshold ends the list. relative: the threshold is a share of the span.",
        )  # fmt: skip
        least = st.number_input("Min results", 0, 50, step=1, key="tune.least", persist_state="session")
        most = st.number_input("Max results", 1, 200, step=1, key="tune.most", persist_state="session")
    return tuning.Ask(front, objective, recall, policy or "largest", min(least, most), most)


def key_of(chosen: EvalSet, cases: list[Case]) -> str:
    """What the lists and labels are, in short."""
    sizes = [len(case.candidates.hits) if case.candidates else 0 for case in cases]
    return f"{resources.workspace()} {chosen.name} {labels_fingerprint(cases)} {sizes}"


def draw_method(chosen: EvalSet, cases: list[Case]) -> None:
    """The chosen method's view."""
    method = st.segmented_control(
        "Method", tuning_method.METHODS, required=True, key="tune.method", persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    key, front = key_of(chosen, cases), ask_front()
    if method == "Guaranteed recall":
        tuning_promise.draw(key, chosen, cases, front)
    elif method == "Learned cut":
        tuning_learned.draw(key, chosen, cases, front, ask_objective())
    elif method == "Search":
        tuning_search.draw(key, chosen, cases, front)
    else:
        tuning_plane.draw(key, chosen, cases, ask_plane(front))


def draw() -> None:
    header.show("Tune", "Which setting of the cut, and can I trust it?", HELP)
    for key, value in CHOICES.items():
        st.session_state.setdefault(key, value)
    chosen = tuning_set.choose()
    cases = None if chosen is None else tuning_set.cases_of(chosen)
    if chosen is not None and cases is not None:
        draw_method(chosen, cases)
        resources.settle()


draw()
