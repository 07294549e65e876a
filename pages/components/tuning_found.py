"""What a search of Tune seeks and what it found: the table, the front as a chart, one row judged and saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.components import glossary, jobs, resources, say, tuning_method, tuning_set
from rag_core.errors import InputError, StoreError
from rag_core.eval_sets.reading import EvalSet
from rag_core.settings import database_settings
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis
from rag_core.types import Case

if TYPE_CHECKING:
    from rag_core.tune.objectives import Row
    from rag_core.tune.search import Search

JUDGED = "tune.search.judged"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What is sought."""

    pipeline: Pipeline
    axes: tuple[Axis, ...]
    grid: str
    spec: str
    objectives: tuple[str, ...]
    recall: float
    sampler: str
    trials: int
    study: str

    @property
    def floor(self) -> tuple[str, float] | None:
        """The constraint as the library takes it."""
        return ("SetR", self.recall) if self.recall > 0 else None


def sought(
    dev: Sequence[Case], plan: Plan, workspace: Path, min_grade: int, progress: Progress | None, trials: int = 0
) -> Search:
    """The study of a plan with as many trials as it asks for, or as `trials` says."""
    from rag_core.resources import with_entities, with_judge
    from rag_core.tune.search import search

    return search(
        dev,
        with_judge(with_entities(plan.pipeline, workspace), workspace),
        plan.axes,
        objectives=plan.objectives,
        floor=plan.floor,
        sampler=plan.sampler,
        trials=trials or plan.trials,
        storage=_storage(workspace),
        name=plan.study,
        min_grade=min_grade,
        progress=progress,
    )


def _storage(workspace: Path) -> Any:
    """Where the studies are kept: connections to the team's database are held, a file is opened each time."""
    from rag_core.store.studies import shared_storage

    return _connected(str(workspace)) if database_settings() else shared_storage(workspace)


@st.cache_resource(max_entries=4, show_spinner=False)
def _connected(workspace: str) -> Any:
    from rag_core.store.studies import shared_storage

    return shared_storage(Path(workspace))


@st.cache_resource(max_entries=8, show_spinner="Reading the study")
def _found(study: str, trials: int, min_grade: int, workspace: str, _dev: Sequence[Case], _plan: Plan) -> Search:
    """The finished trials of a study; none is added."""
    return sought(_dev, _plan, Path(workspace), min_grade, None, trials)


def draw(key: str, chosen: EvalSet, dev: list[Case], test: list[Case], plan: Plan) -> None:
    """The finished trials of this study, whoever made them."""
    if jobs.running():
        return
    from rag_core.store.studies import has_studies
    from rag_core.tune.studies import kept_trials

    workspace = resources.workspace()
    try:
        trials = kept_trials(_storage(workspace), plan.study) if has_studies(workspace) else 0
        if not trials:
            tuning_set.quiet("This study has no finished trial yet.")
            return
        found = _found(plan.study, trials, chosen.min_grade, str(workspace), dev, plan)
    except (InputError, StoreError) as error:
        say.problem("The study cannot be read.", str(error))
        return
    able = sum(row.feasible for row in found.rows)
    st.markdown(
        f"**{trials:,} finished trials, {able:,} that keep what is asked, {len(found.front)} that no other beats.** "
        f"First the best fixed k, over {len(dev)} dev queries."
    )
    row = _draw_table(found)
    if len(plan.objectives) > 1:
        _draw_front(found)
    if row is None:
        say.problem("No trial keeps the recall that is asked; ask for less, or seek longer.")
        return
    _draw_row(key, chosen, dev, test, plan, found, row)


def _draw_table(found: Search) -> Row | None:
    """The baseline and the front; the chosen row, at first the best by the first objective."""
    from rag_core.tune.objectives import OBJECTIVES

    sign = -1 if OBJECTIVES[found.objectives[0]] == "maximize" else 1
    front = sorted(found.front, key=lambda row: sign * row.values[found.objectives[0]])
    rows = [found.baseline, *front]
    settings = list(dict.fromkeys(name for row in front for name in row.settings))
    event = st.dataframe(
        {
            "row": [row.name for row in rows],
            **{name: [row.values[name] for row in rows] for name in found.objectives},
            **{name: [_shown(row.settings.get(name)) for row in rows] for name in settings},
        },
        hide_index=True,
        key="tune.search.table",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(rows), 320),
        column_config=glossary.explained(
            found.objectives, {name: st.column_config.NumberColumn(format="%.4g") for name in found.objectives}
        ),
        alt="The best fixed k, then the trials that no other beats, with their settings",
    )
    picked = event["selection"]["rows"]
    if picked and 0 < picked[0] < len(rows):
        return rows[picked[0]]
    return front[0] if front else None


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _draw_front(found: Search) -> None:
    """Two objectives against each other: every trial, the front, the baseline."""
    from pages.components.tuning_charts import search_figure

    figure = search_figure(found)
    st.plotly_chart(
        figure,
        key="tune.search.front",
        config={"displaylogo": False},
        alt=f"{found.objectives[1]} against {found.objectives[0]}: every trial, those no other beats, best fixed k",
    )


def _draw_row(
    key: str, chosen: EvalSet, dev: list[Case], test: list[Case], plan: Plan, found: Search, row: Row
) -> None:
    """The chosen row: what it is, the look at the held-out queries, the pipeline file."""
    from rag_core.tune.judgement import sentence
    from rag_core.tune.search import choice_of, measure_of

    measure = measure_of(found.objectives)
    choice = choice_of(found, row, dev, plan.pipeline, plan.axes, chosen.min_grade)
    with st.container(border=True, key="tune.search.chosen"):
        st.markdown(
            f"**{row.name}**: {measure} {choice.value:.3f} vs {choice.baseline_value:.3f} for "
            f"{choice.baseline.label} on the dev queries it was chosen on, of {len(found.rows):,} trials. "
            "Select another row of the table to take that one."
        )
        if choice.value <= choice.baseline_value + 1e-12:
            st.markdown(f"By {measure} it does not beat {choice.baseline.label}, not even on these queries.")
        mark = f"{key} {plan.study} {row.name}"
        kept: Any = st.session_state.get(JUDGED)
        judged = kept[1] if kept is not None and kept[0] == mark else None
        if judged is not None:
            st.markdown(sentence(judged))
        arguments = (JUDGED, mark, chosen, test, measure, choice)
        look = tuning_method.Look(test, judged is not None, tuning_method.judge, arguments)
        tuning_method.draw_actions(look, chosen, choice.pipeline, f"The settings of {row.name}.", "tune.search.row")
