"""The best cut on the dev questions: every setting of a cut's family, and always the best fixed k beside it.

A fixed k is a point of the same family, so what is recommended is never worse than it on dev; where it is no better
there, or on questions left out of the choice, fold by fold over dev, the fixed k itself is recommended. Held-out
questions are left to the verdict. Several numbers of several stages at once are sought by Optuna (`search_on_dev`), in
a study that others may share and that resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.eval_sets.split import near_duplicates
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES
from rag_core.filters.cutoff import TopK
from rag_core.filters.learned_filter import LearnedFilter
from rag_core.measure.experiment import start_of
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.learned import FEWEST_LABELS, choose_trained, labels_that_teach
from rag_core.tune.plane import Floor, fixed_k
from rag_core.tune.search import Search, SearchedSetting, choice_of, search
from rag_core.tune.steps import cheap_knobs
from rag_core.tune.tune import (
    Choice,
    CrossValidated,
    choose,
    cross_validate,
    mean_of,
    scored,
    stages_in_front,
    values_of,
)
from rag_core.types import SCORED, Case, falling

FOLDS = 5
LEAST = JUMPS = (1, 2, 3)
LADDER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200)
"""Lengths that max_results is tried at, as far as the lists go; a fixed k is tried at every length."""
SAME = 1e-9
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Best:
    """What was chosen on dev. `pipeline` is what to take: the fixed k where nothing beats it."""

    pipeline: Pipeline
    value: float
    fixed: Pipeline
    fixed_value: float
    fixed_k: int
    questions: int
    objective: str
    settings: dict[str, Any]
    crossed: CrossValidated | None

    @property
    def fixed_wins(self) -> bool:
        """Whether nothing beats the best fixed k on the dev questions."""
        return self.value <= self.fixed_value + SAME

    def to_text(self) -> str:
        """The choice in two sentences."""
        rival = f"the best fixed k = {self.fixed_k}: {self.objective} {self.fixed_value:.3f}"
        if self.fixed_wins:
            out = "" if self.crossed is None else f" by enough on questions left out ({self.crossed.gain:+.3f})"
            return f"Over {self.questions} dev questions nothing beats {rival}{out}; take that."
        said = f"Over {self.questions} dev questions {self.objective} {self.value:.3f} against {rival}."
        if self.crossed is None:
            return said
        return f"{said} On questions left out of the choice, fold by fold: {self.crossed.gain:+.3f}."

    def to_json(self) -> dict[str, Any]:
        """The choice as plain values."""
        return {
            "objective": self.objective,
            "value": self.value,
            "settings": self.settings,
            "fixed_k": self.fixed_k,
            "fixed": self.fixed_value,
            "fixed_wins": self.fixed_wins,
            "questions": self.questions,
            "cross_validated_gain": None if self.crossed is None else self.crossed.gain,
        }


def best_on_dev(
    session: Session,
    pipeline: Pipeline,
    place: int,
    *,
    objective: str = "SetF",
    floor: Floor | None = None,
    crossed: bool = True,
    progress: Progress | None = None,
) -> Best:
    """The best setting of the cut at a place, with all else as it stands, over the project's labelled dev questions.

    InputError where the stage is no cut, where fewer than two questions are labelled, or where no setting reaches the
    floor.
    """
    if not (0 <= place < len(pipeline.stages)) or not pipeline.stages[place].is_cut:
        raise InputError(f"place {place} of the pipeline is no cut, expected a stage that ends the list")
    ready, least = session.ready(pipeline), session.project.min_grade
    captured = session.capture(pipeline, session.dev)
    cases = [case for case in captured if case.has_relevant(least)]
    if len(cases) < 2:
        raise InputError(f"{len(cases)} dev questions have a relevant label, expected at least two to choose on")
    chooser = partial(best_of_family, pipeline=ready, place=place, objective=objective, floor=floor, min_grade=least)
    folds = min(FOLDS, len(near_duplicates([case.query for case in cases]))) if crossed else 0
    steps = 1 + (folds if folds > 1 else 0)
    done = 0

    def counted(some: Sequence[Case]) -> Choice:
        nonlocal done
        choice = chooser(some)
        done += 1
        if progress is not None:
            progress(done, steps)
        return choice

    choice, validated = counted(cases), None
    if folds > 1:
        try:
            validated = cross_validate(cases, counted, objective, folds=folds, min_grade=least)
        except InputError:  # a fold without what a choice needs teaches nothing
            validated = None
    front, back = pipeline.stages[:place], pipeline.stages[place + 1 :]
    said = session.chosen_on("best", cases)
    fixed = Pipeline((*front, TopK(k=choice.baseline_k), *back), f"best fixed k = {choice.baseline_k}", said)
    # on the questions it was chosen or trained on a cut is always good: what counts is what it gave on those left out;
    # that of a cut without training, by how far it is sure, since over seven sets such a cut gained .01 on average
    wins = choice.value - choice.baseline_value <= SAME
    if validated is not None:
        wins = wins or validated.gain <= (SAME if pipeline.stages[place].trained else validated.error)
    tuned = replace(pipeline.stages[place], **choice.pipeline.stages[place].settings())  # without its handles
    taken = fixed if wins else Pipeline((*front, tuned, *back), "tuned", said)
    return Best(
        taken,
        choice.baseline_value if wins else choice.value,
        fixed,
        choice.baseline_value,
        choice.baseline_k,
        len(cases),
        objective,
        {"k": choice.baseline_k} if wins else tuned.settings(),
        validated,
    )


def searchable(session: Session, pipeline: Pipeline) -> dict[str, str]:
    """What of a pipeline can be sought, as parts of a grid: `Stage.setting` → `Stage.setting=…`, in its order.

    Every cheap number over the range its lists give it, every cheap choice, and each filter on or off.
    """
    pipeline = session.whole(pipeline)
    numbers = cheap_knobs(
        session.captures(pipeline, session.dev or session.cases), session.ready(pipeline), searched=session.live
    )
    parts: dict[str, str] = {}
    for place, stage in enumerate(pipeline.stages):
        if stage.kind in ("source", "rewrite") or stage.name in [one.name for one in pipeline.stages[:place]]:
            continue  # what brings the list is searched anew; a grid names a stage once
        for knob in (one for one in numbers if one.stage == place and "." not in one.setting):
            steps = round(knob.high - knob.low) + 1 if knob.kind == "int" else STEPS
            if knob.high > knob.low:
                parts[f"{stage.name}.{knob.setting}"] = f"{knob.low:g}:{knob.high:g}:{steps}"
        for row in stage.declared():
            if row.cheap and row.choices:
                parts[f"{stage.name}.{row.name}"] = "|".join(row.choices)
        if stage.kind == "filter" and not stage.is_cut:
            parts[stage.name] = "on|off"
    return {name: f"{name}={values}" for name, values in parts.items()}


STEPS = 61
"""Values of a number in a grid; a search that is no grid takes any between the ends."""


def search_on_dev(session: Session, pipeline: Pipeline, axes: Sequence[Axis], **plan: Any) -> Sought:
    """Seek settings of a pipeline on the labelled dev questions until the study holds so many finished trials.

    `plan` and errors are those of tune.search.search. InputError where fewer than two dev questions are labelled.
    """
    pipeline = session.whole(pipeline)
    cases = scored(session.starts(pipeline, session.dev), session.min_grade)
    ready = session.ready(pipeline)
    found = search(cases, ready, axes, **plan, min_grade=session.min_grade)
    marked = replace(pipeline, chosen_on=session.chosen_on("search", cases))
    return Sought(found, marked, tuple(axes), cases, ready, session.min_grade)


@dataclass(frozen=True, eq=False)
class Sought:
    """A search over the dev questions, and how a row of it becomes a pipeline."""

    found: Search
    pipeline: Pipeline
    axes: tuple[Axis, ...]
    cases: list[Case]
    ready: Pipeline
    min_grade: int

    def pipeline_of(self, row: SearchedSetting) -> Pipeline:
        """The pipeline of a trial, without handles; of the baseline's row its fixed k."""
        if row is self.found.baseline:
            front = stages_in_front(self.pipeline, self.axes)
            return replace(self.pipeline, stages=(*front, TopK(k=int(row.settings["k"]))), label=row.name)
        at = pipeline_at(self.pipeline, [(axis, row.settings[axis.name]) for axis in self.axes])
        return replace(at, label="found")

    def choice_of(self, row: SearchedSetting) -> Choice:
        """A row as `tune.choose` gives a choice, beside the best fixed k."""
        choice = choice_of(self.found, row, self.cases, self.ready, self.axes, self.min_grade)
        return replace(choice, pipeline=self.pipeline_of(row))


def _learned(
    cases: Sequence[Case], pipeline: Pipeline, place: int, objective: str, floor: Floor | None, min_grade: int
) -> Choice:
    """The learned filter trained, or as it stands where there are too few labels; beside the best fixed k."""
    if labels_that_teach(cases, min_grade) >= FEWEST_LABELS:
        return choose_trained(cases, pipeline, objective, min_grade=min_grade)
    value = mean_of(values_of(cases, pipeline, objective, min_grade))
    return Choice(pipeline, {}, value, *fixed_k(cases, pipeline.stages[:place], objective, floor, min_grade))


def best_of_family(
    cases: Sequence[Case],
    pipeline: Pipeline,
    place: int,
    objective: str = "SetF",
    floor: Floor | None = None,
    min_grade: int = 1,
    policies: Sequence[str] = POLICIES,
) -> Choice:
    """The best of the cut's family on these cases, with the best fixed k at the same place as its baseline."""
    stage, front = pipeline.stages[place], pipeline.stages[:place]
    longest = max((len(case.candidates.hits) for case in cases if case.candidates is not None), default=1)
    if isinstance(stage, LearnedFilter):
        ruled = any(hit.chunk.query_must is not None for case in cases for hit in start_of(case).hits)
        # what a satisfied rule asked for by name crowds the rest out, where rules are named by accident it should not
        variants = [stage, *([replace(stage, beside=None)] if ruled and stage.beside is not None else [])]
        tried = [
            _learned(cases, replace(pipeline, stages=(*front, one, *pipeline.stages[place + 1 :])), place, objective,
                     floor, min_grade)
            for one in variants
        ]  # fmt: skip
        return max(tried, key=lambda choice: choice.value)
    if stage.trained:
        return choose_trained(cases, pipeline, objective, min_grade=min_grade)
    if isinstance(stage, TopK):
        fixed, k, value = fixed_k(cases, front, objective, floor, min_grade)
        tuned = Pipeline((*front, TopK(k=k), *pipeline.stages[place + 1 :]))
        return Choice(tuned, {"k": k}, value, fixed, k, value)
    if isinstance(stage, AdaptiveGap):
        most = (*(one for one in LADDER if one < longest), max(1, min(longest, 1000)))
        kinds = {falling(start_of(case)).metric for case in cases if start_of(case).hits}
        by_score = kinds & set(SCORED)
        kind = "auto" if by_score and len(kinds) > 1 else str(next(iter(by_score), "distance"))
        best: Choice | None = None
        for policy in policies:
            # numbers that are no defaults, which are refused on lists that are no cosine distances; both are sought
            start = replace(
                stage,
                gap_threshold=0.2,
                distance_offset=0.5,
                min_results=1,
                max_results=1000,
                gap_policy=policy,
                relative_offset=None,
                score_kind=kind,
            )
            variant = replace(pipeline, stages=(*front, start, *pipeline.stages[place + 1 :]))
            axes = (
                Axis("min_results", stage.name, "min_results", LEAST),
                Axis("max_results", stage.name, "max_results", most),
                *([Axis("jumps", stage.name, "jumps", JUMPS)] if policy == "autocut" else []),
                Axis("gap_threshold", stage.name, "gap_threshold", tuple(np.linspace(0.01, 0.5, 20).round(4).tolist())),
                Axis("distance_offset", stage.name, "distance_offset", tuple(np.linspace(0, 1, 21).round(3).tolist())),
            )
            try:
                choice = choose(cases, variant, axes, objective, floor=floor, min_grade=min_grade)
            except InputError:
                if best is None and policy == policies[-1]:
                    raise
                continue
            if best is None or choice.value > best.value + SAME:
                best = choice
        assert best is not None
        return best
    grid = tuple(
        Axis(row.name, stage.name, row.name, tuple(np.linspace(*row.grid).round(6).tolist()))
        for row in stage.declared()
        if row.numeric and row.grid is not None
    )
    return choose(cases, pipeline, grid, objective, floor=floor, min_grade=min_grade)
