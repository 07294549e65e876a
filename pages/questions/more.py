"""More questions than people brought, from slots, a model or a log; `questions make` does the same.

A model is asked when a person presses the button and at no other moment; what it takes is said before. Names of
endpoints and models, questions and reasons are foreign text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.bench.judge import CURRENCY, NOBODY_TO_ASK, answers, bar_of, known_endpoints
from pages.components import jobs, say, who
from pages.components.act import refuse
from pages.questions import change
from rag_core.errors import InputError, WinnowError
from rag_core.judged.questions import SECONDS
from rag_core.llm.judge import judge_of
from rag_core.llm.run import RunLimits, preview
from rag_core.project import made
from rag_core.project.deeds import ASK_MODEL, CHANGE_SET, Kind, perform
from rag_core.project.made import Made
from rag_core.project.project import COLLECTION
from rag_core.project.session import Session
from rag_core.sources.mapping import presets
from rag_core.text import counted

KIND = "questions"
ORIGIN, MADE, FILE, PRESET = "questions.from", "questions.made", "questions.log", "questions.preset"
ENDPOINT, BUDGET = "questions.endpoint", "questions.budget"
SLOTS, MODEL, LOG = "near-duplicate titles", "a model", "a log"
HELP = {
    SLOTS: "From what near-duplicate titles differ in (a number, a code, a list, a word); the labels come with them. "
    "They are tagged *generated*, counted apart everywhere, and never judge rules.",
    MODEL: "A model writes one for a chunk and is shown those nearest to it. The chunk is the question's label; what "
    "else is relevant to it is open. They are tagged *generated*, and never judge rules or models.",
    LOG: "The questions of a log that are not here, each once, those unlike your own first. They bring no label and "
    "are tagged *from log*.",
}


def show(session: Session) -> None:
    """What they are made from, how many, and the button."""
    if session.project.source.kind != COLLECTION:
        return
    st.markdown("**More questions**, made from")
    if st.session_state.get(ORIGIN) not in HELP:
        st.session_state[ORIGIN] = SLOTS
    st.segmented_control("From", list(HELP), required=True, key=ORIGIN, label_visibility="collapsed")
    origin = st.session_state[ORIGIN]
    say.quiet(HELP[origin])
    try:
        {SLOTS: _from_slots, MODEL: _by_model, LOG: _from_log}[origin](session)
    except (WinnowError, OSError) as error:
        say.problem("No questions can be made so.", str(error))
    told = jobs.outcome(KIND, session.project.name, "No question was added.")
    if told is not None:
        st.text(f"✓ {told}")


def _count() -> int:
    return int(st.session_state.get(MADE) or 40)


def _at_most() -> None:
    st.number_input("At most", 1, 1_000, 40, key=MADE, width=110)


def _button(on_click: Callable[[], None], label: str = "Make questions", off: bool = False) -> None:
    """The button beside the number of questions."""
    st.button(
        label, icon=":material/auto_awesome:", key="questions.make", on_click=on_click,
        disabled=off or jobs.running(KIND),
    )  # fmt: skip


def _from_slots(session: Session) -> None:
    def work() -> int:
        found = made.from_slots(session, _count())
        if not found.questions:
            raise InputError("no family of near-duplicate titles was found, expected at least three titles alike")
        return made.add(session, found)

    def make() -> None:
        change.do(work, lambda count: f"{counted(count, 'generated question', 'generated questions')} added.")

    with st.container(horizontal=True, vertical_alignment="bottom"):
        _at_most()
        _button(make)


def _by_model(session: Session) -> None:
    """Whom to ask, what it takes, and the button that pays."""
    known, problem = known_endpoints(session.workspace)
    if problem:
        say.problem("The file of endpoints cannot be read.", problem)
    if not known:
        st.caption(NOBODY_TO_ASK)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _at_most()
        name = st.selectbox(
            "Asked", list(known), format_func=lambda one: f"{one}: {known[one].model}", key=ENDPOINT, width=320
        )
        judge = judge_of(known[str(name)], answers(session.workspace))
        budget = st.number_input(
            f"Budget, {CURRENCY}", 0.0, 1e9, 0.0, 0.1, format="%.4f", key=BUDGET, disabled=judge.price is None,
            help="No call is started that may pass it. 0: no budget.", width=160,
        )  # fmt: skip
        prompts = _prompts(f"{session.project.name} {session.source.fingerprint}", _count(), session)
        limits = RunLimits(budget=budget or None, seconds_per_call=SECONDS)

        def work(job: jobs.Job) -> Made:
            return made.by_model(session, prompts, judge, limits, bar_of(job), job.stop)

        _button(lambda: _begin(session, work, ASK_MODEL, judge.model))
    st.text(preview([(judge, prompts)]).to_text())


@st.cache_resource(max_entries=4, show_spinner="Looking which chunks are alike …")
def _prompts(key: str, count: int, _session: Session) -> Any:
    return made.model_prompts(_session, count)


def _from_log(session: Session) -> None:
    """The file, as what it is read, and the button."""

    def take() -> None:
        file, count, preset = st.session_state[FILE], _count(), str(st.session_state.get(PRESET) or "auto")
        content, name = file.getvalue(), file.name
        about = session.project.name
        _begin(session, lambda job: made.from_log(session, content, name, count, preset), CHANGE_SET, about)

    st.file_uploader("A log", type=["jsonl", "json", "csv", "tsv", "parquet", "ndjson"], key=FILE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _at_most()
        st.selectbox("Read as", ["auto", *presets()], key=PRESET, width=200)
        _button(take, "Take questions", off=st.session_state.get(FILE) is None)


def _begin(session: Session, work: Any, kind: Kind, about: str) -> None:
    """Make them as a deed of that kind, and add them as one that changes the project's questions."""
    name = session.project.name
    adding = who.deed(CHANGE_SET, name)

    def all_of_it(job: jobs.Job) -> tuple[str, str]:
        found: Made = work(job)
        with perform(adding, session.workspace) as performed:
            added = made.add(session, found) if found.questions else 0
            performed.result = f"{added} questions from {found.origin}"
        return name, f"{found.to_text()}\n{added} of them are new"

    try:
        who.check(CHANGE_SET, name)  # before a call is paid
        words = {"verb": "asked", "unit": "calls", "first": "looking what is there …"}
        jobs.start("Making questions", all_of_it, who.deed(kind, about), KIND, **words)
    except WinnowError as error:
        refuse(change.DONE, str(error))
