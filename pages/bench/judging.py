"""The verdict on the Bench: a deed that a person does, with what it costs said before and its button after."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages import state
from pages.components import say, who
from pages.components.glossary import digits
from rag_core.errors import WinnowError
from rag_core.llm.simulated import SimulatedJudge
from rag_core.project.asking import judged_places
from rag_core.project.deeds import JUDGE_HELD_OUT
from rag_core.project.ledger import looks_at
from rag_core.project.session import Session
from rag_core.project.verdict import BETTER, NAMES, OPEN, WORSE, Verdict, judge
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline

KEY, SHOWN = "bench.verdict", "bench.verdict_shown"
MARKS = {BETTER: ":material/trending_up:", WORSE: ":material/trending_down:", OPEN: ":material/help:"}


def show(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """The button, and the last verdict while it is of these two pipelines on these labels."""
    a, b = pipelines.get("A"), pipelines.get("B")
    held_out = len(session.split.held_out)
    labelled = sum(case.has_relevant(session.min_grade) for case in session.held_out)
    if a is None or b is None:
        return
    times = looks_at(session.project.state, session.split.name)
    looked = {0: "never yet", 1: "1 look so far"}.get(times, f"{times} looks so far")
    verdict: Verdict | None = st.session_state.get(KEY)
    current = verdict is not None and st.session_state.get(f"{KEY}.of") == _of(a, b, session)
    st.session_state[SHOWN] = current
    answering = session.judge
    simulated = False
    if isinstance(answering, SimulatedJudge) and any(map(judged_places, (a, b))):
        simulated = True
        looked = f"{answering.origin}: no verdict"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="bench.judge"):
        st.button(
            f"Judge on {labelled:,} held-out {'question' if labelled == 1 else 'questions'}",
            icon=":material/gavel:",
            type="secondary" if current else "primary",
            disabled=simulated or not labelled,
            help="Estimate, interval and a word, on questions nothing was chosen on. Every look is written down. "
            f"{held_out:,} are held out, {labelled:,} of them have a relevant label.",
            on_click=_judge,
            args=(session,),
        )
        missing = "no held-out question has a relevant label yet" if held_out else "no question is held out yet"
        st.markdown(f":gray[{looked if labelled else missing}]")
    failed = st.session_state.pop(f"{KEY}.problem", "")
    if failed:
        say.problem("This could not be judged.", failed)
    if verdict is not None and current:
        _draw(verdict)


def _of(a: Pipeline, b: Pipeline, session: Session) -> tuple[object, ...]:
    """What a verdict is of: another pipeline or label, and it stands no more."""
    return fingerprint(a), fingerprint(b), session.project.name, session.state


def _judge(session: Session) -> None:
    """Judge what A and B are now: a number that was let go since the button was drawn counts."""
    a, b = (state.pipeline_of(side, session) for side in ("A", "B"))
    if a is None or b is None:
        return
    try:
        with who.doing(JUDGE_HELD_OUT, session.project.name):
            verdict = judge(session, a, b, by=who.person().name, place="bench")
    except WinnowError as error:
        st.session_state[f"{KEY}.problem"] = str(error)
        return
    st.session_state[KEY] = verdict
    st.session_state[f"{KEY}.of"] = _of(a, b, session)


def _draw(verdict: Verdict) -> None:
    with st.container(border=True, key="bench.said"):
        st.markdown(
            f"{MARKS.get(verdict.word, ':material/balance:')} "
            + (f"**A is {verdict.word}.**" if verdict.word in (BETTER, WORSE) else f"**{verdict.word.capitalize()}.**")
        )
        st.text(verdict.to_text())
        parts = [f"{NAMES[name]} {digits(a)} against {digits(b)}" for name, (a, b) in verdict.means.items()]
        st.caption(" · ".join(parts) + " · kind: exact over labelled chunks; higher is better")
        if verdict.worse:
            st.button(
                f"{len(verdict.worse)} worse: show them",
                key="bench.show_worse",
                on_click=_show_worse,
                help="The matrix of the dev questions, the worst first; held-out ones stay unseen one by one.",
            )


def _show_worse() -> None:
    state.change(zoom=state.ALL, lens=state.DIFFERENCES)
    st.session_state["bench.filter"] = "worse"
