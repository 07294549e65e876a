"""Which lever pays, on the Bench: one line on how far each could reach, and the button that opens the one that pays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from pages import state
from pages.bench.sight import Listed
from rag_core.project.levers import CUT, JUDGE, RULES, SEARCH, Levers, levers
from rag_core.project.session import Session
from rag_core.stage import Pipeline, Stage

LABELS = Path("pages/labels/page.py")
ICONS = {
    SEARCH: ":material/search:",
    RULES: ":material/rule:",
    CUT: ":material/content_cut:",
    JUDGE: ":material/gavel:",
}
KINDS = {SEARCH: "lost before any filter", RULES: "rules", CUT: "a perfect cut", JUDGE: "a perfect judge"}


def show(session: Session, pipeline: Pipeline, stages: Sequence[Listed]) -> None:
    """The line; nothing is computed twice for the same search, labels and source."""
    if not session.dev:
        return
    found = levers(session, pipeline)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="bench.levers"):
        st.markdown(_line(found), help=found.to_text())
        _button(found, stages)


def _line(found: Levers) -> str:
    if not found.questions:
        return ":material/flag: :gray[Which lever pays: no dev question has a relevant label yet.]"
    reach = " · ".join(
        f"{KINDS[one.name]} {'at most ' if one.bound and one.name != SEARCH else ''}{one.gain:+.2f}"
        if one.name != SEARCH
        else f"{one.gain:.2f} {KINDS[SEARCH]}"
        for one in found.levers
    )
    base = f"best fixed k = {found.fixed_k}: F₁ {found.fixed:.2f} over {found.questions} dev questions"
    return f":material/flag: **Which lever pays** :gray[from {base}:] {reach if found.best else 'none'}"


def _button(found: Levers, stages: Sequence[Listed]) -> None:
    best = found.best
    if best is None:
        if not found.questions and LABELS.is_file():
            st.page_link(str(LABELS), label="Label some", icon=":material/new_label:", query_params=state.link())
        return
    if best.name == RULES:
        st.page_link("pages/data/page.py", label="Families and rules", icon=ICONS[RULES], query_params=state.link())
        return
    place = next((at for at, entry in enumerate(stages) if _pulls(best.name, entry.stage)), None)
    st.button(
        f"Open {best.name}" if place is not None else f"Add a {best.name}",
        icon=ICONS[best.name],
        type="tertiary",
        key="bench.lever",
        on_click=_open,
        args=(-1 if place is None else place,),
    )


def _pulls(lever: str, stage: Stage) -> bool:
    """Whether a stage is where a lever is pulled."""
    return {SEARCH: stage.kind == "source", CUT: stage.is_cut, JUDGE: stage.drawer == "judge"}.get(lever, False)


def _open(place: int) -> None:
    st.session_state["bench.drawer"] = place
