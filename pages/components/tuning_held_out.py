"""The held-out queries of a study: nothing but `judged` scores them, and every look is written down.

What is said before a look comes from the dev queries alone. Nothing here draws.
"""

from __future__ import annotations

from pathlib import Path

from pages.components.tuning import Study
from rag_core.errors import InputError
from rag_core.project.looks import held_out_key, look, looks
from rag_core.spec import fingerprint
from rag_core.tune import judgement


def seen(study: Study, workspace: Path) -> int:
    """How often the held-out queries were looked at so far."""
    return looks(workspace, held_out_key(study.test)) if study.test else 0


def judged(study: Study, workspace: Path) -> judgement.Judgement:
    """Look at the held-out queries once more, write the look down, and judge the choice on them.

    InputError where there is no choice.
    """
    if study.choice is None:
        raise InputError(f"there is no choice to judge, {study.problem}")
    times = look(workspace, held_out_key(study.test), fingerprint(study.choice.pipeline))
    return judgement.judge(
        study.test,
        study.choice,
        study.ask.objective,
        given=study.pipeline,
        looks=times,
        min_grade=study.min_grade,
    )


def before_judging(study: Study, times: int) -> str:
    """What the dev queries say, in words, while the held-out ones are not looked at."""
    choice, name = study.choice, study.ask.objective
    if choice is None:
        return f"There is no setting to recommend: {study.problem}."
    text = (
        f"On {len(study.dev)} dev queries {name} {choice.value:.3f} vs {choice.baseline_value:.3f} for "
        f"{choice.baseline.label}; dev figures promise too much, because the setting was chosen on them."
    )
    if study.crossed is not None:
        crossed = study.crossed
        text += (
            f" Chosen on the other folds and judged on each of {crossed.folds}: {crossed.value:.3f}, "
            f"{crossed.gain:+.3f} over the best fixed k."
        )
    done = f"looked at {times} time{'s' if times != 1 else ''} before" if times else "never looked at yet"
    return f"{text} The {len(study.test)} held-out queries: {done}."


def setting_words(study: Study) -> str:
    """The chosen setting as a person reads it."""
    gap, offset = study.best
    kind = "share of the span" if study.ask.policy == "relative" else "distance"
    return f"gap threshold {gap:.4f} ({kind}), offset {offset:.4f} (distance)"
