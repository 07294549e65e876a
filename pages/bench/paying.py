"""Which lever pays, on the Bench: one line on how far each could reach, and the button that opens the one that pays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from pages import rail, state
from pages.bench import calibrating, tuning
from pages.bench.sight import SeenList
from pages.components import jobs
from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.llm.stage import LLMFilter
from rag_core.project.levers import CUT, JUDGE, LEAST, RULES, SEARCH, Levers, levers
from rag_core.project.session import Session
from rag_core.stage import Pipeline, Stage

Put = Callable[[list[SeenList]], None]
Stages = Callable[[], list[SeenList]]  # of A as they are when asked: this line stands while numbers are dragged
LABELS = Path("pages/labels/page.py")
ICONS = {
    SEARCH: ":material/search:",
    RULES: ":material/rule:",
    CUT: ":material/content_cut:",
    JUDGE: ":material/gavel:",
}
KINDS = {SEARCH: "search", RULES: "rules", CUT: "cut", JUDGE: "judge"}


def show(session: Session, pipeline: Pipeline, stages: Stages, put: Put) -> None:
    """The line; nothing is computed twice for the same search, labels and source."""
    if not session.dev:
        if not session.cases:
            rail.link("questions", "Add questions: nothing is measured without")
        return
    found = levers(session, pipeline)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="bench.levers"):
        st.markdown(_line(found), help=found.to_text())
        _buttons(found, session, stages, put)
        if found.questions:
            calibrating.button(session)
    calibrating.show(session, pipeline)


def _line(levers: Levers) -> str:
    if not levers.questions:
        return ":material/flag: :gray[Which lever pays: no dev question has a relevant label yet.]"
    # short: the line and its buttons share the window with ten rows and the verdict; the help has the sentences
    reach = " · ".join(
        f"{KINDS[one.name]} {one.gain:.2f} lost"
        if one.name == SEARCH
        else f"{KINDS[one.name]} {'≤ ' if one.bound else ''}{one.gain:+.2f}"
        for one in levers.levers
    )
    base = f"from F₁ {levers.fixed:.2f} of the best fixed k = {levers.fixed_k}:"
    return f":material/flag: **Which lever pays** :gray[{base}] {reach if levers.best else 'none'}"


def _buttons(levers: Levers, session: Session, stages: Stages, put: Put) -> None:
    """A button for each lever that pays and can be pulled here; what it opens is where the lever is."""
    if not levers.questions and LABELS.is_file():
        st.page_link(str(LABELS), label="Label some", icon=":material/new_label:", query_params=state.link())
    for lever in levers.levers:
        if lever.gain < LEAST:
            continue
        if lever.name == RULES:
            st.page_link("pages/data/page.py", label="Rules", icon=ICONS[RULES],
                         query_params={**state.link(), "section": "Families"})  # fmt: skip
        elif lever.name != CUT and any(_pulls(lever.name, entry.stage) for entry in stages()):
            st.button(KINDS[lever.name].capitalize(), icon=ICONS[lever.name], type="tertiary",
                      key=f"lever.{lever.name}", on_click=_open_lever, args=(lever.name, stages))  # fmt: skip
        elif lever.name == JUDGE:
            st.button("Try a judge", icon=ICONS[JUDGE], type="tertiary", key="lever.judge", on_click=_add_judge,
                      args=(stages, put))  # fmt: skip
    if levers.questions:  # a list without a cut keeps too much even where no cut beats the best fixed k
        st.button("Best cut", icon=ICONS[CUT], type="tertiary", key="lever.cut", on_click=_best_cut,
                  args=(session, stages, put), disabled=jobs.running(tuning.KIND),
                  help="Of every cut there is and every fixed k, on the dev questions; it is shown before it is taken.",
                  )  # fmt: skip


def _open_lever(name: str, stages: Stages) -> None:
    """The drawer of the first stage where a lever is pulled."""
    _open(next((at for at, entry in enumerate(stages()) if _pulls(name, entry.stage)), None))


def _add_judge(stages: Stages, put: Put) -> None:
    """An LLM filter at the end of A, its drawer open: it says who answers, and what that would take."""
    listed = stages()
    try:
        put([*listed, SeenList(LLMFilter())])
    except InputError as error:
        st.session_state["bench.notice"] = str(error)
        return
    _open(len(listed))


def _best_cut(session: Session, stages: Stages, put: Put) -> None:
    """Look for the best setting of A's last cut, or of an adaptive one put at its end; its drawer shows it."""
    listed = stages()
    places = [at for at, entry in enumerate(listed) if entry.on and entry.stage.is_cut]
    try:
        if not places:
            places = [len(listed)]
            listed.append(SeenList(AdaptiveGap()))
            put(listed)
        pipeline = state.pipeline_of("A", session)
    except InputError as error:
        st.session_state["bench.notice"] = str(error)
        return
    _open(places[-1])
    if pipeline is not None:
        tuning.start(session, pipeline, sum(entry.on for entry in listed[: places[-1]]), next(iter(tuning.AIMS)))


def _pulls(lever: str, stage: Stage) -> bool:
    """Whether a stage is where a lever is pulled."""
    return {SEARCH: stage.kind == "source", CUT: stage.is_cut, JUDGE: stage.drawer == "judge"}.get(lever, False)


def _open(place: int | None) -> None:
    st.session_state["bench.drawer"] = place
