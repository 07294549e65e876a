"""The recommendation of Tune: chosen on dev, judged on held-out queries only when asked, looks counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.components import choice, resources, say, tuning, tuning_held_out, tuning_points, tuning_set, who
from rag_core.errors import WinnowError
from rag_core.project.deeds import JUDGE_HELD_OUT
from rag_core.tune.judgement import Judgement, sentence

JUDGED = "tune.judged"
Interval = tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Seen:
    """What one look brought: the judgement, and both pipelines' held-out points with intervals."""

    judgement: Judgement
    points: tuple[tuple[tuning_points.Point, Interval, Interval], ...]


def seen(key: str) -> Seen | None:
    """The last look at this question in this session."""
    kept = st.session_state.get(JUDGED)
    return kept[1] if kept is not None and kept[0] == key else None


def draw_choice(key: str, study: tuning.Study) -> None:
    """Setting and sentence; the button that looks at the held-out queries."""
    labelled = len(study.dev) + len(study.test)
    tuning_set.quiet(
        f"{labelled} of {len(study.cases)} queries have a relevant label (grade ≥ {study.min_grade}): "
        f"{len(study.dev)} dev, {len(study.test)} held out. In front of the cut: "
        f"{tuning.FRONTS[study.ask.front][0]}. Every figure below is over dev queries unless it says held out."
    )
    with st.container(border=True, key="tune.choice"):
        found = seen(key)
        if study.choice is None:
            st.markdown("**No recommendation.**")
            st.text(_told(f"{study.problem}."))
            return
        verdict = _expectation(study) if found is None else _verdict(found.judgement)
        st.markdown(f"**Chosen on dev: {tuning_held_out.setting_words(study)}.** {verdict}")
        times = tuning_held_out.seen(study, resources.workspace())
        st.markdown(tuning_held_out.before_judging(study, times) if found is None else sentence(found.judgement))
        _draw_button(key, study, times, found is not None)


def _told(text: str) -> str:
    return text[:1].upper() + text[1:]


def _draw_button(key: str, study: tuning.Study, times: int, again: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        label = "Judged" if again else f"Judge once on the {len(study.test)} held-out queries"
        st.button(
            label,
            key="tune.judge",
            on_click=_judge,
            args=(key, study),
            disabled=again,
            help="Every look is written down and counted; after several looks a set is no longer held out.",
        )
        if times:
            tuning_set.quiet(f"These held-out queries were looked at {times} time{'s' if times != 1 else ''}.")
        if st.session_state.get("tune.judge_problem"):
            say.problem("The held-out queries could not be judged.", st.session_state["tune.judge_problem"])


def _expectation(study: tuning.Study) -> str:
    """What the folds say before any look: a gain that is only there where it was chosen is none."""
    if study.choice is None or study.crossed is None or study.crossed.gain > 0:
        return ""
    return f"Folds over the dev queries show no gain over the best fixed k: {study.choice.baseline.label} will do."


def _verdict(found: Judgement) -> str:
    """What to do, in a few words."""
    if not found.tells:
        return f"The data cannot tell it from {found.choice.baseline.label}; the simpler one will do."
    better = (found.against_baseline.delta or 0.0) > 0
    name = found.choice.baseline.label
    return (
        f"Better than {name} on held-out queries." if better else f"Worse than {name} on held-out queries: keep {name}."
    )


def _judge(key: str, study: tuning.Study) -> None:
    st.session_state["tune.judge_problem"] = ""
    try:
        with who.doing(JUDGE_HELD_OUT, choice.eval_set()):
            found = tuning_held_out.judged(study, resources.workspace())
        points = tuple(_point(study, name, pipeline) for name, pipeline in _two(found).items())
    except (WinnowError, OSError) as error:
        st.session_state["tune.judge_problem"] = str(error)
        return
    st.session_state[JUDGED] = (key, Seen(found, points))


def _two(found: Judgement) -> dict[str, Any]:
    return {"chosen setting": found.choice.pipeline, found.choice.baseline.label: found.choice.baseline}


def _point(study: tuning.Study, name: str, pipeline: Any) -> tuple[tuning_points.Point, Interval, Interval]:
    """A pipeline's held-out means with the intervals of precision and recall; part of the same look."""
    import numpy as np

    from rag_core.measure.significance import bootstrap_interval
    from rag_core.tune.tune import values_of

    intervals: list[Interval] = []
    for measure in ("SetP", "SetR"):
        values = [one for one in values_of(study.test, pipeline, measure, study.min_grade) if one is not None]
        low, high, _ = bootstrap_interval(np.array(values))
        intervals.append(None if low is None or high is None else (low, high))
    return tuning_points.point(name, study.test, pipeline, study.min_grade), intervals[0], intervals[1]
