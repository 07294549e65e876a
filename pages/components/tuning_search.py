"""The view "Search" of Tune: Optuna over any settings of any stages, in a study that processes share and resume.

The work runs as a job: it goes on while other pages are read, can be cancelled, and what is done stays in the study.
The plane of thresholds needs none of this; its optimum is exact.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import jobs, resources, say, tuning_found, tuning_method, tuning_set, who
from pages.components.tuning_found import Plan
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.files import parse_json
from rag_core.project.deeds import SEARCH_SETTINGS
from rag_core.spec import parse_pipeline
from rag_core.tune.grid import parse_grid
from rag_core.tune.objectives import OBJECTIVES
from rag_core.types import Case

KIND = "search"
SAMPLERS = {"tpe": "TPE", "random": "random", "grid": "grid", "nsga2": "NSGA-II"}
WORDS = {
    "SetF": "SetF", "SetP": "SetP, precision", "SetR": "SetR, recall", "kept_mean": "chunks kept",
    "kept_tokens": "tokens kept", "latency_ms": "latency", "cost": "cost of model calls",
}  # fmt: skip
STAGES = {"none": "", "rules": '{"QueryMust": {}}, ', "refill": '{"Requery": {}}, '}
GRID = (
    "gap_threshold=0:0.3:61, distance_offset=0:0.6:61, min_results=1:5:5, max_results=5:50:46, "
    "gap_policy=largest|first, TopK.k=5:50:46"
)
MOST_TRIALS = 5000


def draw(key: str, chosen: EvalSet, cases: Sequence[Case], front: str) -> None:
    """What to seek, the job, and what it found."""
    split = tuning_method.split(chosen, cases)
    if split is None:
        return
    dev, test = split
    try:
        plan = _ask(key, chosen, front)
    except InputError as error:
        say.problem("This cannot be sought; mend the stages or the grid.", str(error))
        return
    if plan is None:
        return
    _draw_start(chosen, dev, plan)
    job = jobs.current(KIND)
    if job is not None and job.over.is_set() and job.problem:
        say.problem("The search ended with a problem; finished trials are kept in the study.", job.problem)
    tuning_found.draw(key, chosen, dev, test, plan)


def _ask(key: str, chosen: EvalSet, front: str) -> Plan | None:
    """The plan from the widgets; None while no objective is chosen. InputError for a spec or grid that cannot be."""
    for name, value in {"objectives": ["SetF", "kept_mean"], "sampler": "tpe", "floor": 0.0, "trials": 200}.items():
        st.session_state.setdefault(f"tune.search.{name}", value)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        objectives = st.multiselect(
            "Seek (one to three)", list(OBJECTIVES), format_func=WORDS.__getitem__, max_selections=3,
            key="tune.search.objectives", persist_state="session",
            help="Measures are made great, the others small; two or three give a front where no setting beats another.",
        )  # fmt: skip
        recall = st.slider(
            "Keep mean recall at least", 0.0, 1.0, step=0.01, key="tune.search.floor", persist_state="session"
        )
        sampler = st.segmented_control(
            "Sampler", list(SAMPLERS), format_func=SAMPLERS.__getitem__, required=True, key="tune.search.sampler",
            persist_state="session",
        ) or "tpe"  # fmt: skip
        trials = st.number_input(
            "Trials in all", 1, MOST_TRIALS, step=50, key="tune.search.trials", persist_state="session"
        )
    with st.expander("Stages and settings that are varied"):
        default = f'[{STAGES[front]}{{"AdaptiveGap": {{}}}}, {{"TopK": {{}}}}]'
        spec = st.text_area("Stages, as JSON", default, key=f"tune.search.spec.{front}", persist_state="session")
        grid = st.text_area(
            "Varied settings", GRID, key="tune.search.grid", persist_state="session",
            help="name=low:high:count or name=a|b; Stage.setting for another stage than AdaptiveGap, Stage=on|off.",
        )  # fmt: skip
    if not objectives:
        st.markdown("Choose at least one thing to seek.")
        return None
    pipeline = parse_pipeline(parse_json(spec, "the stages"))
    axes = parse_grid(grid, "AdaptiveGap", None)
    told = f"{key} {spec} {grid} {objectives} {recall}"
    study = f"{chosen.name}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    return Plan(pipeline, axes, grid, spec, tuple(objectives), recall, sampler, int(trials), study)


def _draw_start(chosen: EvalSet, dev: list[Case], plan: Plan) -> None:
    """The button, the bar, and how other processes may join."""
    job = jobs.current(KIND)
    going = job is not None and not job.over.is_set()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Search", icon=":material/search:", type="primary", key="tune.search.start", on_click=_start,
            args=(chosen, dev, plan), disabled=jobs.running() or bool(who.refusal(SEARCH_SETTINGS)),
        )  # fmt: skip
        st.markdown(":small[Study]")
        st.code(plan.study, language=None)
    if going or jobs.running():
        jobs.show()
    with st.expander("The same from the command line; other processes may share the study"):
        parts = [f"python -m rag_core tune {tuning_method.source_words(chosen)} --method search"]
        parts += ["-p", shlex.quote(plan.spec), "--grid", shlex.quote(plan.grid)]
        parts += ["--objective", ",".join(plan.objectives), "--sampler", plan.sampler, "--trials", str(plan.trials)]
        parts += ["--constraint", shlex.quote(f"SetR>={plan.recall:g}")] if plan.recall > 0 else []
        st.code(" ".join([*parts, "--study", plan.study]), language=None, wrap_lines=True)
        tuning_set.quiet("A study that was stopped goes on where it stood; finished trials are never lost.")


def _start(chosen: EvalSet, dev: list[Case], plan: Plan) -> None:
    """Seek in the background until the study holds the trials that were asked for."""
    workspace = resources.workspace()

    def work(progress: jobs.Progress) -> Any:
        return tuning_found.sought(dev, plan, workspace, chosen.min_grade, progress)

    jobs.start(
        f"Searching {len(plan.axes)} settings",
        work,
        who.deed(SEARCH_SETTINGS, chosen.name),
        kind=KIND,
        verb="finished",
        unit="trials",
        first="opening the study …",
    )
