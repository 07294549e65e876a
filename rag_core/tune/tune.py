"""Choosing a setting on the dev queries beside the best fixed k, and judging the choice once on the held-out ones.

The baseline is what everybody could do without a filter: the same stages in front and the best k. Folds over the dev
queries say what a choice is worth on others without touching the held-out ones. A judgement is a figure, an interval,
the optimism and the word against the best fixed k; the ledger counts how often the held-out queries were used, and the
word is one that holds however often (measure/sequential.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from rag_core.errors import InputError
from rag_core.eval_sets.split import fold_queries, split_queries
from rag_core.measure.measures import SET_MEASURES
from rag_core.measure.sequential import Ruling, decide
from rag_core.measure.significance import (
    BETTER,
    IDENTICAL,
    OPEN,
    SAME,
    WORSE,
    Comparison,
    compare_each,
    mean_interval,
    paired_differences,
    said_identical,
    shown_p,
)
from rag_core.measure.tally import measure_all
from rag_core.spec import dump_stages
from rag_core.stage import Pipeline, Stage
from rag_core.tune.grid import Axis, pipeline_at
from rag_core.tune.plane import Floor, best_of_plane, fixed_k, sweep
from rag_core.types import Case

Values = list[float | None]


@dataclass(frozen=True)
class Choice:
    """A pipeline chosen on some queries, and its mean there."""

    pipeline: Pipeline
    settings: Mapping[str, Any]  # what was chosen, by axis name
    value: float
    baseline: Pipeline
    baseline_k: int
    baseline_value: float

    @property
    def taken(self) -> Pipeline:
        """What to take: the best fixed k where the choice is no better than it."""
        return self.pipeline if self.value > self.baseline_value + 1e-9 else self.baseline


@dataclass(frozen=True)
class CrossValidated:
    """Folds over the dev queries: chosen on the others, judged on each. Says what to expect without a look."""

    folds: int
    value: float
    baseline_value: float
    error: float  # standard error of the gain

    @property
    def gain(self) -> float:
        """Mean held-out gain over the best fixed k of the same folds."""
        return self.value - self.baseline_value


def parse_floor(text: str) -> Floor:
    """`SetR>=0.95` as measure and least mean; InputError for anything else."""
    name, sign, least = (piece.strip() for piece in text.partition(">="))
    known = [measure.name for measure in SET_MEASURES]
    try:
        value = float(least)
    except ValueError:
        value = -1.0
    if not sign or name not in known or not 0 <= value <= 1:
        raise InputError(
            f"constraint is {text[:80]!r}, expected one of {', '.join(known)}, >= and a number from 0 to 1"
        )
    return name, value


def dev_and_test(
    cases: Sequence[Case], share: float | None = None, seed: int = 0, min_grade: int = 1
) -> tuple[list[Case], list[Case]]:
    """The scored cases to choose on and to judge on: the set's own split where every query has one, else by share.

    `share` asks for a split of that share even so; the default is 0.3. InputError with fewer than two scored queries.
    """
    usable = scored(cases, min_grade)
    own = [case.query.metadata.get("split") for case in usable]
    if share is None and set(own) == {"dev", "test"}:
        held = {case.query.id for case, side in zip(usable, own, strict=True) if side == "test"}
    else:
        held = set(split_queries([case.query for case in usable], 0.3 if share is None else share, seed).test)
    dev = [case for case in usable if case.query.id not in held]
    return dev, [case for case in usable if case.query.id in held]


def scored(cases: Sequence[Case], min_grade: int = 1) -> list[Case]:
    """The cases that enter the means; InputError where they are fewer than two."""
    usable = [case for case in cases if case.has_relevant(min_grade)]
    if len(usable) < 2:
        raise InputError(f"tuning got {len(usable)} queries with a relevant label, expected at least two")
    return usable


def choose(
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    objective: str = "SetF",
    *,
    floor: Floor | None = None,
    min_grade: int = 1,
) -> Choice:
    """The best setting on these cases: the optimum of the continuous plane where there is one, else of the grid.

    InputError where no setting reaches the floor.
    """
    front = stages_in_front(pipeline, axes)
    baseline, k, baseline_value = fixed_k(cases, front, objective, floor, min_grade)
    found = best_of_plane(cases, pipeline, axes, objective, min_grade=min_grade, at_least=floor)
    if found is not None:
        others, point = found
        numbers = point.settings()
        settings = {axis.name: others.get(axis.name, numbers.get(axis.setting)) for axis in axes}
        value = float(getattr(point, objective))
    else:
        table = sweep(cases, pipeline, axes, min_grade=min_grade)
        best = table.best_at(objective, floor)
        if best is None:
            raise _unreached(table.means[("SetP", "SetR", "SetF").index(floor[0])] if floor else None, floor)
        settings = dict(zip((axis.name for axis in axes), best, strict=True))
        value = float(table.row_at(best)[objective])
    chosen = pipeline_at(pipeline, [(axis, settings[axis.name]) for axis in axes])
    return Choice(replace(chosen, label="tuned"), settings, value, baseline, k, baseline_value)


def stages_in_front(pipeline: Pipeline, axes: Sequence[Axis]) -> tuple[Stage, ...]:
    """The stages before the first one that the grid varies, as they stand."""
    varied = {axis.stage for axis in axes}
    at = next((at for at, stage in enumerate(pipeline.stages) if stage.name in varied), len(pipeline.stages))
    return pipeline.stages[:at]


def _unreached(means: Any, floor: Floor | None) -> InputError:
    if floor is None or means is None:
        return InputError("no setting of the grid is possible, expected at least one")
    highest = float(means[means == means].max())
    return InputError(f"no setting reaches {floor[0]} {floor[1]} on the dev queries, the highest is {highest:.3f}")


def cross_validate(
    cases: Sequence[Case],
    chooser: Callable[[Sequence[Case]], Choice],
    objective: str = "SetF",
    *,
    folds: int = 5,
    min_grade: int = 1,
    seed: int = 0,
) -> CrossValidated:
    """Choose on all folds but one and judge on that one, for each; means over all queries."""
    by_id = {case.query.id: case for case in cases}
    chosen: Values = []
    fixed: Values = []
    for split in fold_queries([case.query for case in cases], folds, seed):
        choice = chooser([by_id[id_] for id_ in split.dev])
        held = [by_id[id_] for id_ in split.test]
        chosen += values_of(held, choice.pipeline, objective, min_grade)
        fixed += values_of(held, choice.baseline, objective, min_grade)
    gains = [one - other for one, other in zip(chosen, fixed, strict=True) if one is not None and other is not None]
    error = float(np.std(gains, ddof=1)) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return CrossValidated(folds, mean_of(chosen), mean_of(fixed), error)


def values_of(cases: Sequence[Case], pipeline: Pipeline, objective: str, min_grade: int = 1) -> Values:
    """The measure of every case under the plain pipeline."""
    (tally,) = measure_all(cases, [pipeline], min_grade, SET_MEASURES)
    return tally.values(objective)


def mean_of(values: Values) -> float:
    """The mean over the scored queries."""
    return fmean(value for value in values if value is not None)


@dataclass(frozen=True)
class ChoiceJudgement:
    """A choice judged on queries it was not made on. Values are means of the objective over the scored ones."""

    choice: Choice
    objective: str
    queries: int  # held-out queries scored
    value: float
    interval: tuple[float, float] | None  # 95 %
    baseline_value: float
    against_baseline: Comparison  # chosen − best fixed k
    given: Comparison | None  # the pipeline as it was given − best fixed k
    ruling: Ruling
    looks: int

    @property
    def optimism(self) -> float:
        """What the gain over the baseline promised too much on dev."""
        return (self.choice.value - self.choice.baseline_value) - (self.value - self.baseline_value)

    @property
    def tells(self) -> bool:
        """Whether the held-out queries show a difference from the baseline, or that there is none worth having."""
        return self.ruling.word in (BETTER, WORSE, SAME)


def judge(
    cases: Sequence[Case],
    choice: Choice,
    objective: str = "SetF",
    *,
    given: Pipeline | None = None,
    looks: int = 1,
    pair: int = 1,
    first: bool = True,
    min_grade: int = 1,
) -> ChoiceJudgement:
    """The choice on held-out cases against its baseline, and `given` against the same.

    `looks` is how often these cases have been looked at, this time included; this is the `pair`-th pair that is judged
    on them, for the `first` time or again.
    """
    pipelines = {"best fixed k": choice.baseline, "tuned": choice.pipeline}
    if given is not None:
        pipelines["given"] = given
    values = {name: values_of(cases, pipeline, objective, min_grade) for name, pipeline in pipelines.items()}
    families = [case.query.family for case in cases]
    compared = compare_each(values, objective, families)
    scored = [value for value in values["tuned"] if value is not None]
    named = [family for family, value in zip(families, values["tuned"], strict=True) if value is not None]
    low, high, _ = mean_interval(scored, named)
    row, of = paired_differences(values["best fixed k"], values["tuned"], families)
    ruling, against = decide(np.asarray(row), of, pair=pair, first=first), compared[0]
    if dump_stages(choice.pipeline) == dump_stages(choice.baseline):
        ruling, against = replace(ruling, word=IDENTICAL, needed=None), said_identical(against)
    return ChoiceJudgement(
        choice,
        objective,
        len(scored),
        mean_of(values["tuned"]),
        None if low is None or high is None else (low, high),
        mean_of(values["best fixed k"]),
        replace(against, a=choice.baseline.label),
        compared[1] if given is not None else None,
        ruling,
        looks,
    )


def judgement_json(judgement: ChoiceJudgement) -> dict[str, Any]:
    """The judgement as plain JSON values."""
    return {
        "queries": judgement.queries,
        judgement.objective: judgement.value,
        "ci": None if judgement.interval is None else list(judgement.interval),
        "baseline": judgement.baseline_value,
        "optimism": judgement.optimism,
        "tells": judgement.tells,
        "looks": judgement.looks,
        "verdict": judgement.ruling.word,
        "bounds": [judgement.ruling.low, judgement.ruling.high],
        "needed": judgement.ruling.needed,
        "comparison": [one.to_json() for one in (judgement.against_baseline, judgement.given) if one is not None],
        "sentence": sentence(judgement),
    }


def sentence(judgement: ChoiceJudgement) -> str:
    """The judgement in plain words, for people who read nothing else."""
    compared, word = judgement.against_baseline, judgement.ruling.word
    interval = "" if judgement.interval is None else f" [{judgement.interval[0]:.3f}, {judgement.interval[1]:.3f}]"
    between = "" if compared.low is None else f" [{compared.low:+.3f}, {compared.high:+.3f}]"
    p = "" if compared.p is None else f", {shown_p(compared.p)}"
    needed = judgement.ruling.needed
    more = "" if needed is None else f" About {needed:,} in all would tell, if they are like these."
    times = "1 look" if judgement.looks == 1 else f"{judgement.looks} looks"
    return (
        f"On {judgement.queries} held-out queries {judgement.objective} {judgement.value:.3f}{interval} "
        f"vs {judgement.baseline_value:.3f} for {judgement.choice.baseline.label}: "
        f"{compared.delta or 0.0:+.3f}{between}{p}: {word}{' which is better' if word == OPEN else ''}.{more} "
        f"Dev was {judgement.choice.value:.3f} (optimism of the gain {judgement.optimism:+.3f}). After {times}."
    )
