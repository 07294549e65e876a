"""The best setting of a cut on the dev questions, in the cut's drawer: looked for on a press, taken or left.

What it finds is beside the best fixed k on the same questions, and where nothing beats that, that is what is offered.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

import streamlit as st

from pages import state
from pages.bench.sight import SeenList
from pages.bench.taking import begin, take
from pages.components import jobs
from pages.widgets.take_along import table
from rag_core.project.choosing import Best, best_on_dev
from rag_core.project.deeds import SEARCH_SETTINGS
from rag_core.project.session import Session
from rag_core.spec import dump_pipeline, fingerprint
from rag_core.stage import Pipeline, Stage
from rag_core.tune.tune import parse_floor

KIND = "bench.tune"
AIMS = {
    "F₁": ("SetF", ""),
    "F₁ with recall of at least 0.90": ("SetF", "SetR>=0.9"),
    "F₁ with recall of at least 0.95": ("SetF", "SetR>=0.95"),
    "Precision with recall of at least 0.80": ("SetP", "SetR>=0.8"),
}


def show(index: int, stages: Sequence[SeenList], session: Session) -> None:
    """Aim, button, and what was found, with the button that takes it."""
    stage = stages[index].stage
    if not stage.is_cut or not stages[index].on:
        return
    pipeline = state.pipeline_of("A", session)
    if pipeline is None:
        return
    place = sum(entry.on for entry in stages[:index])
    if stage.trained:
        _weights(stage)
    st.markdown("**Best on dev**")
    aim = st.selectbox("Aim", list(AIMS), key="bench.tune.aim", help="Chosen on the dev questions; judged on none.")
    st.button(
        "Train on dev" if stage.trained else "Find the best on dev",
        key="bench.tune",
        type="primary",
        icon=":material/tune:",
        disabled=jobs.running(KIND),
        on_click=start,
        args=(session, pipeline, place, str(aim)),
    )
    with st.expander("As a command"):
        st.code(_command(session, pipeline, stage.name, *AIMS[str(aim)]), language=None, wrap_lines=True)
    st.caption("Promise a recall instead: `--method conformal --alpha 0.1`.")
    of = ((session.project.name, fingerprint(pipeline), place), session.state)
    best: Best | None = jobs.outcome(KIND, of, "Nothing was chosen.")
    if best is not None:
        _draw(best, session)


def _command(session: Session, pipeline: Pipeline, stage: str, objective: str, floor: str) -> str:
    """What finds the same from the command line; it judges on the held-out questions too, and counts that."""
    spec = shlex.quote(json.dumps(dump_pipeline(pipeline), separators=(",", ":")))
    named = f"winnow tune --project {shlex.quote(session.project.name)} --method best --stage {stage}"
    return f"{named} --objective {objective}{f' --constraint {shlex.quote(floor)}' if floor else ''} --pipeline {spec}"


def start(session: Session, pipeline: Pipeline, place: int, aim: str) -> None:
    """Begin to look for the best setting of the cut at that place of the pipeline; `show` draws what comes of it."""
    objective, floor = AIMS[aim]
    of = ((session.project.name, fingerprint(pipeline), place), session.state)

    def work(progress: jobs.Progress) -> tuple[object, Best]:
        wanted = parse_floor(floor) if floor else None
        return of, best_on_dev(session, pipeline, place, objective=objective, floor=wanted, progress=progress)

    words = {"verb": "chose", "unit": "times", "first": "the whole of dev first …"}
    begin("Choosing on the dev questions", work, SEARCH_SETTINGS, session.project.name, KIND, **words)


def _weights(stage: Stage) -> None:
    """What a trained cut weighs, the heaviest first, and whether that is learned from labels given here."""
    rows = sorted(stage.weighs.items(), key=lambda row: -abs(row[1]))
    if not rows:
        st.caption("Not trained yet: its numbers come from the labels of the dev questions.")
        return
    if stage.settings()["parameters"] is None:
        st.caption("Trained on no label of yours: weights learned on public sets stand in.")
    with st.expander(f"What it weighs: {len(rows)} features"):
        table(
            {"feature": [name for name, _ in rows], "weight": [weight for _, weight in rows]},
            "bench.weights",
            "Features of the trained cut with their weights, the heaviest first",
        )


def _draw(best: Best, session: Session) -> None:
    st.text(best.to_text())
    numbers = {
        name: value for name, value in best.settings.items() if not isinstance(value, dict) and value is not None
    }
    st.caption(" · ".join(f"{name} {value}" for name, value in numbers.items() if value is not False))
    st.button(
        f"Take fixed k = {best.fixed_k} as A" if best.fixed_wins else "Take it as A",
        key="bench.tune.take",
        icon=":material/check:",
        on_click=take,
        args=(best.pipeline, session),
    )
