"""Every knob at once: settings of several stages of A, sought on the dev questions in a study that resumes.

The work is a job: it goes on while other pages are read, can be cancelled, and finished trials stay in the study, which
the command line and other people share. One cut's own numbers need none of this: its drawer finds the best exactly.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages import state
from pages.components import jobs, say, who
from pages.widgets.take_along import BLUE, GREY, ORANGE, take_along
from rag_core.errors import InputError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.project.choosing import Sought, search_on_dev, searchable
from rag_core.project.deeds import SEARCH_SETTINGS
from rag_core.project.session import Session
from rag_core.spec import dump_pipeline, fingerprint
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis, parse_grid
from rag_core.tune.search import OBJECTIVES, SearchedSetting

KIND = "bench.search"
WORDS = {
    "SetF": "F₁", "SetP": "Precision", "SetR": "Recall", "kept_mean": "chunks kept", "kept_tokens": "tokens kept",
    "latency_ms": "latency, ms", "cost": "cost of model calls",
}  # fmt: skip
SAMPLERS = {"tpe": "TPE", "random": "random", "grid": "whole grid", "nsga2": "NSGA-II"}
MOST_TRIALS, MOST_POINTS = 5000, 2000


@dataclass(frozen=True)
class SearchPlan:
    """What is sought; the study's name holds all of it but how long and how, so that more of the same resumes."""

    pipeline: Pipeline
    axes: tuple[Axis, ...]
    grid: str
    objectives: tuple[str, ...]
    recall: float
    sampler: str
    trials: int
    project: str

    @property
    def study(self) -> str:
        """The name of the study in the workspace."""
        about = json.dumps([fingerprint(self.pipeline), self.grid, self.objectives, self.recall])
        return f"{self.project}-{hashlib.sha256(about.encode()).hexdigest()[:8]}"

    def command(self) -> str:
        """The same from the command line, in the same study."""
        spec = json.dumps(dump_pipeline(self.pipeline), separators=(",", ":"))
        parts = [f"winnow tune --project {shlex.quote(self.project)} --method search --pipeline {shlex.quote(spec)}"]
        first = self.axes[0].stage
        if first != AdaptiveGap.__name__:
            parts.append(f"--stage {first}")
        parts += [f"--grid {shlex.quote(self.grid)} --objective {','.join(self.objectives)}"]
        parts += [f"--constraint 'SetR>={self.recall:g}'"] if self.recall else []
        return " ".join([*parts, f"--sampler {self.sampler} --trials {self.trials} --study {shlex.quote(self.study)}"])


def show(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """What is sought, the button, and what the study holds so far."""
    try:
        parts = searchable(session, pipelines["A"])
        plan = _plan(session, pipelines["A"], parts) if parts else None
    except InputError as error:
        say.problem("This cannot be sought.", str(error), "Mend the ranges, or take other knobs.")
        return
    if not parts:
        st.markdown("No stage of A has a number or a choice that can be tried without a search or a model: add a cut.")
    if plan is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Try {plan.trials:,} settings", icon=":material/search:", type="primary", key="bench.search.start",
            on_click=_start, args=(session, plan), disabled=jobs.running() or bool(who.refusal(SEARCH_SETTINGS)),
            help="On the dev questions only. What was tried stays in the study: more trials go on from there.",
        )  # fmt: skip
        st.markdown(f":small[:gray[study {plan.study}]]")
    jobs.show(KIND)
    with st.expander("As a command; other processes may share the study"):
        st.code(plan.command(), language=None, wrap_lines=True)
    if not jobs.running():
        _results(session, plan)


def _plan(session: Session, pipeline: Pipeline, parts: Mapping[str, str]) -> SearchPlan | None:
    """The plan from the widgets, None while nothing is ticked; an InputError for ranges that cannot be."""
    last = next((stage.name for stage in reversed(pipeline.stages) if stage.is_cut), "")
    defaults = [name for name in parts if name.startswith(f"{last}.")] or list(parts)[:2]
    about = fingerprint(pipeline)
    knobs = st.multiselect(
        "Knobs", list(parts), default=defaults, key=f"bench.search.knobs.{about}", persist_state="session",
        format_func=lambda name: name.replace("_", " "), help="Numbers, choices, and filters that may be left out.",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom"):
        objectives = st.multiselect(
            "Seek (one to three)", list(WORDS), default=["SetF", "kept_mean"], max_selections=3,
            format_func=WORDS.__getitem__, key="bench.search.objectives", persist_state="session",
            help="With two or three, what remains is a front: settings that no other beats in all of them.",
        )  # fmt: skip
        recall = st.slider(
            "Keep mean recall at least", 0.0, 1.0, 0.0, 0.01, key="bench.search.recall", persist_state="session"
        )
        sampler = st.segmented_control(
            "How", list(SAMPLERS), default="tpe", required=True, format_func=SAMPLERS.__getitem__,
            key="bench.search.sampler",
            persist_state="session", help="TPE learns from the trials before; the whole grid tries every value.",
        )  # fmt: skip
        trials = st.number_input(
            "Trials in all", 1, MOST_TRIALS, 200, 50, key="bench.search.trials", persist_state="session"
        )
    if not knobs or not objectives:
        st.caption("Tick at least one knob and one thing to seek.")
        return None
    ticked = ", ".join(parts[name] for name in knobs)
    ranges = hashlib.sha256(f"{about} {ticked}".encode()).hexdigest()[:8]
    with st.expander("Ranges"):
        grid = st.text_area(
            "Ranges", ticked, key=f"bench.search.grid.{ranges}", persist_state="session",
             label_visibility="collapsed",
            help="Stage.setting=low:high:count or a|b|c; Stage=on|off leaves a stage out.",
        )  # fmt: skip
    axes = parse_grid(grid or ticked, AdaptiveGap.__name__, None)
    return SearchPlan(
        pipeline, axes, grid or ticked, tuple(objectives), float(recall), str(sampler), int(trials),
        session.project.name,
    )  # fmt: skip


def _start(session: Session, plan: SearchPlan) -> None:
    """Try settings in the background until the study holds as many trials as were asked for."""

    def work(progress: jobs.Progress) -> str:
        _sought(session, plan, plan.trials, progress)
        return plan.study

    try:
        deed = who.deed(SEARCH_SETTINGS, session.project.name)
        jobs.start(
            f"Trying {len(plan.axes)} knobs on the dev questions", work, deed, KIND, "finished", "trials",
            "opening the study …",
        )  # fmt: skip
    except InputError as error:
        st.session_state["bench.notice"] = str(error)


def _sought(session: Session, plan: SearchPlan, trials: int, progress: jobs.Progress | None) -> Sought:
    from rag_core.store.studies import shared_storage  # late: the database layer, and Optuna behind it

    return search_on_dev(
        session, plan.pipeline, plan.axes,
        objectives=plan.objectives,
        floor=("SetR", plan.recall) if plan.recall else None,
        sampler=plan.sampler,
        trials=trials,
        storage=shared_storage(session.workspace),
        name=plan.study,
        progress=progress,
    )  # fmt: skip


def _results(session: Session, plan: SearchPlan) -> None:
    """The finished trials of the study, whoever made them: the baseline, what no other beats, and one to take."""
    from rag_core.store.studies import has_studies, shared_storage
    from rag_core.tune.search import kept_trials  # late: Optuna

    job = jobs.current(KIND)
    if job is not None and job.problem:
        say.problem("The search ended with a problem; finished trials are kept.", job.problem)
    elif job is not None and job.stopped:
        st.caption(job.stopped)
    if not has_studies(session.workspace):
        return
    try:
        trials = kept_trials(shared_storage(session.workspace), plan.study)
        if not trials:
            return
        key = f"search {plan.study} {trials}"
        sought: Sought = session.remembered(key, plan.pipeline, lambda: _sought(session, plan, trials, None))
    except InputError as error:  # labels or questions changed since: the study was of others
        say.problem("What was tried before no longer applies.", str(error), "Change a range to begin a new study.")
        return
    _draw(session, sought)


def _draw(session: Session, sought: Sought) -> None:
    found = sought.found
    able = sum(row.feasible for row in found.rows)
    st.markdown(
        f"**{len(found.rows):,} finished trials, {able:,} that keep the recall asked for, {len(found.front)} that no "
        f"other beats**, over {len(sought.cases)} labelled dev questions. First the best fixed k."
    )
    sign = -1 if OBJECTIVES[found.objectives[0]] == "maximize" else 1
    rows = [found.baseline, *sorted(found.front, key=lambda row: sign * row.values[found.objectives[0]])]
    settings = list(dict.fromkeys(name for row in rows[1:] for name in row.settings))
    names = [f"best fixed k = {rows[0].settings['k']}", *(row.name for row in rows[1:])]
    columns: dict[str, Sequence[Any]] = {"row": names}
    columns |= {WORDS[name]: [row.values[name] for row in rows] for name in found.objectives}
    columns |= {name: [_shown(row.settings.get(name)) for row in rows] for name in settings}
    config = {WORDS[name]: st.column_config.NumberColumn(format="%.4g") for name in found.objectives}
    figure = (lambda: _figure(sought)) if len(found.objectives) > 1 else None
    take_along("every knob", columns, figure, "The best fixed k, then the trials that no other beats", config)
    if len(rows) == 1:
        st.markdown("No trial keeps the recall that is asked: ask for less, or try more.")
        return
    by_name = dict(zip(names, rows, strict=True))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Row", list(by_name), index=1, key="bench.search.row", width=260,
            format_func=lambda name: f"{name}: {_values(by_name[name])}",
        )  # fmt: skip
        st.button(
            "Take it as A", icon=":material/check:", key="bench.search.take", on_click=_take,
            args=(session, sought.pipeline_of(by_name[chosen])),
        )  # fmt: skip
    first = found.objectives[0]
    if first.startswith("Set") and rows[1].values[first] <= found.baseline.values[first] + 1e-9:
        st.markdown(f"By {WORDS[first]} nothing tried beats the {names[0]} on these questions.")


def _values(row: SearchedSetting) -> str:
    return " · ".join(f"{WORDS[name]} {value:.3g}" for name, value in row.values.items())


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _figure(sought: Sought) -> Any:
    import plotly.graph_objects as go  # 0.4 s, and most visits draw no figure

    found = sought.found
    first, second = found.objectives[:2]
    rest = [row for row in found.rows if row.feasible and row not in found.front][-MOST_POINTS:]
    groups = (
        (rest, "tried", GREY, "circle", 6),
        (found.front, "no other beats it", BLUE, "circle", 9),
        ((found.baseline,), "best fixed k", ORANGE, "square", 13),
    )
    drawn = go.Figure()
    for rows, name, shade, symbol, size in groups:
        drawn.add_scatter(
            x=[row.values[first] for row in rows], y=[row.values[second] for row in rows], mode="markers", name=name,
            marker={"color": shade, "symbol": symbol, "size": size}, text=[row.name for row in rows],
            hovertemplate=f"%{{text}}<br>{WORDS[first]} %{{x:.4g}}, {WORDS[second]} %{{y:.4g}}<extra></extra>",
        )  # fmt: skip
    drawn.update_layout(
        height=400, margin={"l": 60, "r": 16, "t": 20, "b": 50}, legend={"orientation": "h", "y": -0.22},
        xaxis_title=f"{WORDS[first]}, mean over dev questions", yaxis_title=f"{WORDS[second]}, mean",
    )  # fmt: skip
    return drawn


def _take(session: Session, pipeline: Pipeline) -> None:
    """Make it A, and its fair rival B."""
    try:
        state.change(a=state.encode(pipeline, session), b=state.AUTO)
    except InputError as error:
        st.session_state["bench.notice"] = str(error)
    st.session_state.pop("bench.off", None)
    st.session_state.pop("bench.drawer", None)
