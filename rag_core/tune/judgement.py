"""Judging a choice once on held-out queries: figure, interval, optimism, test against the best fixed k, in plain words.

What was chosen and how is in tune.py; looks.py counts how often the held-out queries were used, and every p here is
multiplied by that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_core.measure.significance import Comparison, against_first, bootstrap_interval
from rag_core.stage import Pipeline
from rag_core.tune.tune import Choice, Values, mean_of, values_of
from rag_core.types import Case

SURE = 0.05
"""A corrected p below this, with an interval on one side of zero, counts as a difference."""


@dataclass(frozen=True)
class ChoiceJudgement:
    """A choice judged on queries it was not made on. Values are means of the objective over the scored ones."""

    choice: Choice
    objective: str
    queries: int  # held-out queries scored
    value: float
    interval: tuple[float, float] | None  # 95 % bootstrap
    baseline_value: float
    against_baseline: Comparison  # chosen − best fixed k, p corrected for comparisons and looks
    given: Comparison | None  # the pipeline as it was given − best fixed k
    looks: int

    @property
    def optimism(self) -> float:
        """What the dev figure promised too much."""
        return self.choice.value - self.value

    @property
    def tells(self) -> bool:
        """Whether the held-out queries show a difference from the baseline."""
        found = self.against_baseline
        one_sided = found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)
        return bool(one_sided and found.p_corrected is not None and found.p_corrected < SURE)


def judge(
    cases: Sequence[Case],
    choice: Choice,
    objective: str = "SetF",
    *,
    given: Pipeline | None = None,
    looks: int = 1,
    min_grade: int = 1,
    seed: int = 0,
) -> ChoiceJudgement:
    """The choice on held-out cases against its baseline, and `given` against the same; p is corrected for both.

    `looks` is how often these cases have been looked at, this time included: Holm's p times that number.
    """
    pipelines = {"best fixed k": choice.baseline, "tuned": choice.pipeline}
    if given is not None:
        pipelines["given"] = given
    values = {name: values_of(cases, pipeline, objective, min_grade) for name, pipeline in pipelines.items()}
    compared = [_for_looks(one, looks) for one in against_first(values, objective, seed=seed)]
    return ChoiceJudgement(
        choice,
        objective,
        len([value for value in values["tuned"] if value is not None]),
        mean_of(values["tuned"]),
        _interval(values["tuned"], seed),
        mean_of(values["best fixed k"]),
        replace(compared[0], a=choice.baseline.label),
        compared[1] if given is not None else None,
        looks,
    )


def _for_looks(found: Comparison, looks: int) -> Comparison:
    if found.p_corrected is None:
        return found
    return replace(found, p_corrected=min(1.0, found.p_corrected * looks))


def _interval(values: Values, seed: int) -> tuple[float, float] | None:
    import numpy as np

    low, high, _ = bootstrap_interval(np.array([value for value in values if value is not None]), seed=seed)
    return None if low is None or high is None else (low, high)


def judgement_json(found: ChoiceJudgement) -> dict[str, Any]:
    """The judgement as plain JSON values."""
    return {
        "queries": found.queries,
        found.objective: found.value,
        "ci": None if found.interval is None else list(found.interval),
        "baseline": found.baseline_value,
        "optimism": found.optimism,
        "tells": found.tells,
        "looks": found.looks,
        "comparison": [one.to_json() for one in (found.against_baseline, found.given) if one is not None],
        "sentence": sentence(found),
    }


def sentence(found: ChoiceJudgement) -> str:
    """The judgement in plain words, for people who read nothing else."""
    compared = found.against_baseline
    interval = "" if found.interval is None else f" [{found.interval[0]:.3f}, {found.interval[1]:.3f}]"
    text = (
        f"On {found.queries} held-out queries {found.objective} {found.value:.3f}{interval} "
        f"vs {found.baseline_value:.3f} for {found.choice.baseline.label}: {_difference(compared)}. "
        f"Dev was {found.choice.value:.3f} (optimism {found.optimism:+.3f}). "
        f"Looked at the held-out set {found.looks} time{'s' if found.looks != 1 else ''}."
    )
    return text if found.tells else f"{text} {_cannot_tell(found)}"


def _difference(compared: Comparison) -> str:
    interval = "" if compared.low is None else f" [{compared.low:+.3f}, {compared.high:+.3f}]"
    p = "" if compared.p_corrected is None else f", p {compared.p_corrected:.3f}"
    return f"{compared.delta or 0.0:+.3f}{interval}{p}"


def _cannot_tell(found: ChoiceJudgement) -> str:
    seen = found.against_baseline.detectable
    if not seen:
        return "These queries cannot tell the two apart."
    return (
        f"These queries cannot tell the two apart: with {found.queries} queries you can see differences of "
        f"{seen:.3f} or more."
    )
