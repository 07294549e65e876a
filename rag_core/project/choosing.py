"""The best cut on the dev questions: every setting of a cut's family, and always the best fixed k beside it.

A fixed k is a point of the same family, so what is recommended is never worse than it on dev; where it is no better,
the fixed k itself is recommended. What a choice is worth on other questions is said by folds over dev; held-out
questions are left to the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.evaluate.grid import Axis
from rag_core.evaluate.learned import choose_trained
from rag_core.evaluate.split import near_duplicates
from rag_core.evaluate.tune import Choice, CrossValidated, Floor, choose, cross_validate, fixed_k
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES
from rag_core.filters.cutoff import TopK
from rag_core.project.session import Session
from rag_core.stage import Pipeline, Stage
from rag_core.types import Case

FOLDS = 5
LEAST = (1, 2, 3)
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
            return f"Over {self.questions} dev questions nothing beats {rival}; take that."
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
    cases = [case for case in captured if any(grade >= least for grade in case.grades.values())]
    if len(cases) < 2:
        raise InputError(f"{len(cases)} dev questions have a relevant label, expected at least two to choose on")
    chooser = partial(_chosen, pipeline=ready, place=place, objective=objective, floor=floor, min_grade=least)
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
    fixed = Pipeline((*front, TopK(k=choice.baseline_k), *back), label=f"best fixed k = {choice.baseline_k}")
    wins = choice.value <= choice.baseline_value + SAME
    tuned = _bare(choice.pipeline.stages[place], pipeline.stages[place])
    taken = fixed if wins else Pipeline((*front, tuned, *back), label="tuned")
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


def _bare(stage: Stage, like: Stage) -> Stage:
    """The chosen stage without the handles it ran with."""
    return replace(like, **stage.settings())


def _chosen(
    cases: Sequence[Case], *, pipeline: Pipeline, place: int, objective: str, floor: Floor | None, min_grade: int
) -> Choice:
    """The best of the cut's family on these cases, with the best fixed k at the same place as its baseline."""
    stage, front = pipeline.stages[place], pipeline.stages[:place]
    longest = max((len(case.candidates.hits) for case in cases if case.candidates is not None), default=1)
    if stage.trained:
        return choose_trained(cases, pipeline, objective, min_grade=min_grade)
    if isinstance(stage, TopK):
        fixed, k, value = fixed_k(cases, front, objective, floor, min_grade)
        tuned = Pipeline((*front, TopK(k=k), *pipeline.stages[place + 1 :]))
        return Choice(tuned, {"k": k}, value, fixed, k, value)
    if isinstance(stage, AdaptiveGap):
        most = (*(one for one in LADDER if one < longest), max(1, min(longest, 1000)))
        best: Choice | None = None
        for policy in POLICIES:
            start = replace(stage, gap_policy=policy, gap_threshold=None, relative_offset=None, min_results=1)
            variant = replace(
                pipeline, stages=(*front, replace(start, max_results=1000), *pipeline.stages[place + 1 :])
            )
            axes = (
                Axis("min_results", stage.name, "min_results", LEAST),
                Axis("max_results", stage.name, "max_results", most),
                Axis("gap_threshold", stage.name, "gap_threshold", tuple(np.linspace(0.01, 0.5, 20).round(4).tolist())),
                Axis("distance_offset", stage.name, "distance_offset", tuple(np.linspace(0, 1, 21).round(3).tolist())),
            )
            try:
                choice = choose(cases, variant, axes, objective, floor=floor, min_grade=min_grade)
            except InputError:
                if best is None and policy == POLICIES[-1]:
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
