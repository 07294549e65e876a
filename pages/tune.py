"""Tune: which setting of the cut, and can I trust it?"""

import streamlit as st

from pages.components import header, plane_chart, resources, say, tuning, tuning_more, tuning_queries, tuning_set
from pages.components.tuning_choice import draw_choice
from rag_core.errors import InputError
from rag_core.evaluate.sets import EvalSet, labels_fingerprint
from rag_core.types import Case

MARKER = "tune.marker"
BELOW = ("Queries", "Precision and recall", "Dead knobs", "Command")
CHOICES = {
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
"""


def ask() -> tuning.Ask:
    """What is swept, from the sidebar."""
    for key, value in CHOICES.items():
        st.session_state.setdefault(key, value)
    with st.sidebar:
        front = st.segmented_control(
            "In front of the cut", list(tuning.FRONTS), format_func=lambda key: tuning.FRONTS[key][0], required=True,
            key="tune.front", persist_state="session",
            help="query_must drops by rules; refill does so too and reads further down for what was dropped.",
        )  # fmt: skip
        objective = st.segmented_control(
            "Measure", tuning.MEASURES, required=True, key="tune.objective", persist_state="session"
        )
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
    return tuning.Ask(front or "none", objective or "SetF", recall, policy or "largest", min(least, most), most)


@st.cache_resource(max_entries=12, show_spinner="Computing every setting")
def study_of(key: str, asked: tuning.Ask, min_grade: int, _cases: list[Case]) -> tuning.Study:
    """The study, once for the same lists, labels and question."""
    return tuning.study(_cases, asked, min_grade)


def key_of(chosen: EvalSet, cases: list[Case]) -> str:
    """What the lists and labels are, in short."""
    sizes = [len(case.candidates.hits) if case.candidates else 0 for case in cases]
    return f"{resources.workspace()} {chosen.name} {labels_fingerprint(cases)} {sizes}"


def marker_of(key: str, study: tuning.Study) -> tuple[float, float]:
    """Where the marker stands; at the chosen setting when the question is a new one."""
    kept = st.session_state.get(MARKER)
    if kept is None or kept[0] != key:
        kept = (key, study.best)
    gap, offset = min(kept[1][0], study.gaps[-1]), min(kept[1][1], study.offsets[-1])
    st.session_state[MARKER] = (key, (gap, offset))
    return gap, offset


@st.fragment
def draw_plane(key: str, name: str, study: tuning.Study) -> None:
    """The heat map, the sliders and what changes at the marker; a move draws only this again."""

    def put(place: tuple[float, float]) -> None:
        st.session_state[MARKER] = (key, place)

    def slid() -> None:
        put((st.session_state["tune.gap"], st.session_state["tune.offset"]))

    gap, offset = marker_of(key, study)
    named = tuning.references(study)
    chart, row = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        st.session_state["tune.gap"], st.session_state["tune.offset"] = gap, offset
        st.slider(
            "Gap threshold at the marker",
            0.0,
            study.gaps[-1],
            step=0.0001,
            format="%.4f",
            key="tune.gap",
            on_change=slid,
        )
        st.slider(
            "Offset at the marker",
            0.0,
            study.offsets[-1],
            step=0.0001,
            format="%.4f",
            key="tune.offset",
            on_change=slid,
        )
        reference = st.selectbox("Held against", list(named), key="tune.reference", persist_state="session")
        st.button("To the chosen setting", on_click=put, args=(study.best,), icon=":material/my_location:")
        tuning_more.draw_save(name, study, (gap, offset))
    before = tuning.outcomes(study, named[reference])
    values = [outcome.scores.values[study.ask.objective] or 0.0 for outcome in before]
    with chart:
        plane_chart.show(study, (gap, offset), (reference, values), "tune.plane", put)
    picked = st.segmented_control(
        "Below", BELOW, default=BELOW[0], required=True, key="tune.below", label_visibility="collapsed"
    )
    if picked == "Queries":
        now = tuning.outcomes(study, study.at(gap, offset))
        tuning_queries.show(now, before, study.ask.objective, reference, study.min_grade)
    else:
        draw_rest(picked or "", key, name, study)


def draw_rest(picked: str, key: str, name: str, study: tuning.Study) -> None:
    """Front, knobs or command."""
    if picked == "Precision and recall":
        tuning_more.draw_front(key, study)
    elif picked == "Dead knobs":
        tuning_more.draw_knobs(study)
    else:
        tuning_more.draw_command(name, study)


def draw() -> None:
    header.show("Tune", "Which setting of the cut, and can I trust it?", HELP)
    chosen = tuning_set.choose()
    if chosen is None:
        return
    cases = tuning_set.cases_of(chosen)
    if cases is None:
        return
    asked = ask()
    try:
        key = key_of(chosen, cases)
        study = study_of(key, asked, chosen.min_grade, cases)
    except InputError as error:
        say.problem(
            "These lists cannot be swept as they are; label chunks on Explore, or choose another set.", str(error)
        )
        return
    whole = f"{key} {asked}"
    draw_choice(whole, study)
    try:
        draw_plane(whole, chosen.name, study)
    except InputError as error:
        say.problem("This marker cannot be shown.", str(error))
    resources.settle()


draw()
