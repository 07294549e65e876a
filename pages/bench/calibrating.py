"""Calibrate A, on the Bench: what the dev questions propose for it, each with what it changes, taken or left."""

from __future__ import annotations

import streamlit as st

from pages import state
from pages.bench.taking import begin, take
from pages.components import jobs, say
from rag_core.project.calibrate import Calibration, calibrate
from rag_core.project.deeds import SEARCH_SETTINGS
from rag_core.project.session import Session
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline

KIND = "bench.calibrate"
HELP = (
    "Analyzer, floor of a judge, plurals and cut as the dev questions propose them; each is shown before it is taken."
)


def button(session: Session) -> None:
    """The button that begins it, for what A is when it is pressed."""
    st.button("Calibrate", icon=":material/instant_mix:", type="tertiary", key="bench.calibrate", on_click=_start,
              args=(session,), disabled=jobs.running(KIND), help=HELP)  # fmt: skip


def show(session: Session, pipeline: Pipeline) -> None:
    """How far it is, then the proposals, where it was begun for this pipeline."""
    of = ((session.project.name, fingerprint(pipeline)), session.state)
    made: Calibration | None = jobs.outcome(KIND, of, "Nothing is proposed.")
    if made is not None:
        _draw(made, session)


def _start(session: Session) -> None:
    pipeline = state.pipeline_of("A", session)
    if pipeline is None:
        return
    of = ((session.project.name, fingerprint(pipeline)), session.state)

    def work(progress: jobs.Progress) -> tuple[object, Calibration]:
        return of, calibrate(session, pipeline, progress)

    words = {"verb": "looked at", "unit": "levers", "first": "the search first …"}
    begin("Calibrating on the dev questions", work, SEARCH_SETTINGS, session.project.name, KIND, **words)


def _draw(made: Calibration, session: Session) -> None:
    """A toggle a proposal with what it changes, the button that takes those that are on, and what is left and why."""
    with st.container(border=True, key="bench.calibrated"):
        if not made.proposals:
            st.markdown(f"Over {made.questions} dev questions there is nothing to change.")
        for one in made.proposals:
            st.toggle(f"{one.name} {one.gain:+.3f} F₁ on dev", value=True, key=f"bench.calibrate.{one.name}")
            st.text(one.to_text())
        if made.beaten:
            st.markdown(say.plain(made.beaten.replace("SetF", "F₁")))
        with st.container(horizontal=True):
            if made.proposals:
                st.button("Take as A", icon=":material/check:", type="primary", key="bench.calibrate.take",
                          on_click=_take, args=(made, session))  # fmt: skip
            if made.rival is not None:
                st.button(f"Take the {made.rival.label}", key="bench.calibrate.rival", on_click=take,
                          type="secondary" if made.proposals else "primary", args=(made.rival, session))  # fmt: skip
            st.button("Leave it", key="bench.calibrate.leave", on_click=jobs.put_away, args=(KIND,))
        if made.left:
            st.caption("As they are: " + "; ".join(f"{name} ({say.plain(why)})" for name, why in made.left.items()))


def _take(made: Calibration, session: Session) -> None:
    """A with the proposals that are on."""
    names = [one.name for one in made.proposals if st.session_state.get(f"bench.calibrate.{one.name}", True)]
    take(made.taken(names), session)
