"""The plane of Tune: heat map with its marker, the front beside it, what the marker does to the queries below."""

from __future__ import annotations

import streamlit as st

from pages.components import plane_chart, say, tuning, tuning_more, tuning_points, tuning_queries, tuning_save
from pages.components.tuning_choice import draw_choice, seen
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.types import Case

MARKER = "tune.marker"
BELOW = ("Queries", "Precision and recall", "Dead knobs", "Command")


@st.cache_resource(max_entries=12, show_spinner="Computing every setting")
def study_of(key: str, asked: tuning.Ask, min_grade: int, _cases: list[Case]) -> tuning.Study:
    """The study, once for the same lists, labels and question."""
    return tuning.study(_cases, asked, min_grade)


def marker_of(key: str, study: tuning.Study) -> tuning.Marker:
    """Where the marker stands; at the chosen setting when the question is a new one."""
    kept = st.session_state.get(MARKER)
    if kept is None or kept[0] != key:
        kept = (key, study.best)
    gap, offset = min(kept[1][0], study.gaps[-1]), min(kept[1][1], study.offsets[-1])
    st.session_state[MARKER] = (key, (gap, offset))
    return gap, offset


def draw(key: str, chosen: EvalSet, cases: list[Case], asked: tuning.Ask) -> None:
    """The recommendation, then the plane."""
    try:
        study = study_of(key, asked, chosen.min_grade, cases)
    except InputError as error:
        say.problem(
            "These lists cannot be swept as they are; label chunks on Label, or choose another set.", str(error)
        )
        return
    whole = f"{key} {asked}"
    draw_choice(whole, study)
    try:
        draw_plane(whole, chosen, study)
    except InputError as error:
        say.problem("This marker cannot be shown.", str(error))


@st.fragment
def draw_plane(key: str, chosen: EvalSet, study: tuning.Study) -> None:
    """The heat map, the sliders and what changes at the marker; a move draws only this again."""

    def put(place: tuning.Marker) -> None:
        st.session_state[MARKER] = (key, place)

    gap, offset = marker_of(key, study)
    named = tuning_points.references(study)
    chart = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _draw_sliders(key, study, (gap, offset))
        reference = st.selectbox("Held against", list(named), key="tune.reference", persist_state="session")
    with st.container(horizontal=True):
        st.button("To the chosen setting", on_click=put, args=(study.best,), icon=":material/my_location:")
        what = f"The setting at the marker: gap threshold {gap:.4f}, offset {offset:.4f}."
        tuning_save.draw(chosen, study.at(gap, offset), what)
    before = tuning_points.outcomes(study, named[reference])
    values = [outcome.scores.values[study.ask.objective] or 0.0 for outcome in before]
    with chart:
        plane_chart.show(study, (gap, offset), (reference, values), seen(key), "tune.plane", put)
    picked = st.segmented_control(
        "Below", BELOW, default=BELOW[0], required=True, key="tune.below", label_visibility="collapsed"
    )
    if picked == "Queries":
        now = tuning_points.outcomes(study, study.at(gap, offset))
        tuning_queries.show(now, before, study.ask.objective, reference, study.min_grade)
    else:
        _draw_rest(picked or "", chosen, study)


def _draw_sliders(key: str, study: tuning.Study, marker: tuning.Marker) -> None:
    """The marker as two sliders."""

    def slid() -> None:
        st.session_state[MARKER] = (key, (st.session_state["tune.gap"], st.session_state["tune.offset"]))

    st.session_state["tune.gap"], st.session_state["tune.offset"] = marker
    ends = (("Gap threshold", study.gaps[-1], "tune.gap"), ("Offset", study.offsets[-1], "tune.offset"))
    for name, high, widget in ends:
        st.slider(f"{name} at the marker", 0.0, high, step=0.0001, format="%.4f", key=widget, on_change=slid)


def _draw_rest(picked: str, chosen: EvalSet, study: tuning.Study) -> None:
    """Front, knobs or command."""
    if picked == "Precision and recall":
        tuning_more.draw_front(study)
    elif picked == "Dead knobs":
        tuning_more.draw_knobs(study)
    else:
        tuning_more.draw_command(chosen, study)
