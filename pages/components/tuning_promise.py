"""The view "Guaranteed recall" of Tune: one knob set so that at most a share α of what is relevant is missed.

Calibrated on the dev queries; the held-out ones are looked at only when asked, and the look is counted. The assumption
stands on the screen beside every figure that needs it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import resources, say, tuning, tuning_method, tuning_set, who
from rag_core.errors import InputError
from rag_core.eval_sets.reading import EvalSet
from rag_core.project.deeds import JUDGE_HELD_OUT
from rag_core.project.looks import held_out_key, look
from rag_core.spec import fingerprint, read_pipeline
from rag_core.stage import Pipeline, Stage
from rag_core.tune.conformal import ASSUMPTION, KNOBS
from rag_core.tune.promise import Promise, lost_before, promises, realised, sentence, too_few
from rag_core.types import Case

WORDS = {"distance_offset": "distance offset", "k": "fixed k", "min_relevance": "least similarity"}
JUDGED = "tune.promise.judged"

HELP = (
    "The share of the relevant chunks of a list that may be lost, on average over queries. "
    "Name it before you look at the table: a promise picked by its outcome is none."
)


@st.cache_resource(max_entries=12, show_spinner="Calibrating")
def _promises(
    key: str, front: str, alpha: float, min_grade: int, _dev: Sequence[Case]
) -> tuple[dict[str, Promise | str], float]:
    """Every knob at this α, and what is lost before any of them."""
    stages = read_pipeline(tuning.FRONTS[front][1]).stages
    return promises(_dev, stages, alpha, min_grade), lost_before(_dev, stages, min_grade)


def draw(key: str, chosen: EvalSet, cases: Sequence[Case], front: str) -> None:
    """α and knob, the table of knobs, the promise in words, the held-out queries, the pipeline file."""
    split = tuning_method.split(chosen, cases)
    if split is None:
        return
    dev, test = split
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.session_state.setdefault("tune.alpha", 0.10)
        alpha = st.slider(
            "May be missed on average (α)", 0.01, 0.5, step=0.01, key="tune.alpha", persist_state="session", help=HELP
        )
        knob = st.segmented_control(
            "Knob", list(WORDS), format_func=WORDS.__getitem__, default="distance_offset", required=True,
            key="tune.knob", persist_state="session",
        ) or "k"  # fmt: skip
    found, lost = _promises(f"{key} {len(dev)}", front, alpha, chosen.min_grade, dev)
    st.markdown(
        f"**The assumption.** The promise {ASSUMPTION}: same users, same corpus, same retrieval. It is an average over "
        "queries, not a promise for each. It is about the chunks in the list: "
        f"{lost:.1%} of the relevant chunks of these dev queries never came into the lists, and no cut can bring them."
    )
    _draw_table(found)
    made = found[knob]
    if isinstance(made, str):
        say.problem("This knob cannot be set on these lists; choose another.", made)
        return
    _draw_promise(f"{key} {front} {alpha} {knob}", chosen, test, front, made)
    _draw_command(chosen, front, alpha, knob)


def _draw_table(found: dict[str, Promise | str]) -> None:
    st.dataframe(
        {
            "knob": [KNOBS[name] for name in found],
            "setting": [_setting(one) for one in found.values()],
            "missed, dev": [None if isinstance(one, str) else _missed(one) for one in found.values()],
            "kept on average": [None if isinstance(one, str) else one.kept_mean for one in found.values()],
            "of": [None if isinstance(one, str) else one.list_mean for one in found.values()],
            "calibrated on": [None if isinstance(one, str) else one.guarantee.queries for one in found.values()],
        },
        hide_index=True,
        key="tune.promises",
        column_config={
            "missed, dev": st.column_config.NumberColumn(format="percent"),
            "kept on average": st.column_config.NumberColumn(format="%.1f"),
            "of": st.column_config.NumberColumn(format="%.1f"),
        },
        alt="Per knob: its setting, the share missed on the dev queries, how much it keeps on average",
    )
    tuning_set.quiet("The tightest setting of each knob that the promise allows; the fewest kept is the cheapest.")


def _setting(one: Promise | str) -> str:
    if isinstance(one, str):
        return "needs a score these lists lack"
    value = one.guarantee.value
    if value is None:
        return "none, whole lists only"
    return f"{value:.0f}" if one.guarantee.knob == "k" else f"{value:.4f}"


def _missed(one: Promise) -> float | None:
    return one.guarantee.miss_share if one.pipeline is not None else None


def _draw_promise(key: str, chosen: EvalSet, test: Sequence[Case], front: str, made: Promise) -> None:
    """The promise in words, with what the held-out queries say once they were looked at."""
    with st.container(border=True, key="tune.promise"):
        if made.pipeline is None:
            st.markdown("**No promise.**")
            st.text(f"{too_few(made)}.")
            return
        kept: Any = st.session_state.get(JUDGED)
        held_out, times = kept[1:] if kept is not None and kept[0] == key else (None, 0)
        st.markdown(f"**Promised recall of the list: {1 - made.guarantee.alpha:.0%}.** {sentence(made)}")
        if held_out is not None:
            interval = "" if held_out.interval is None else f" [{held_out.interval[0]:.1%}, {held_out.interval[1]:.1%}]"
            within = "within" if held_out.miss_share <= made.guarantee.alpha else "above"
            st.markdown(
                f"**Realised on {held_out.queries} held-out queries: {held_out.miss_share:.1%} missed{interval}**, "
                f"{within} the promised {made.guarantee.alpha:.1%}; {held_out.kept_mean:.1f} of "
                f"{held_out.list_mean:.1f} chunks kept. One draw may lie above: the promise is about the average of "
                f"draws. Looked at the held-out set {times} time{'s' if times != 1 else ''}."
            )
        stages = read_pipeline(tuning.FRONTS[front][1]).stages
        look = tuning_method.Look(test, held_out is not None, _judge, (key, test, stages, made, chosen))
        tuning_method.draw_actions(look, chosen, made.pipeline, "The promised setting.", "tune.promise")


def _judge(key: str, test: Sequence[Case], front: tuple[Stage, ...], made: Promise, chosen: EvalSet) -> None:
    """Look at the held-out queries once more and keep what they say."""
    pipeline = made.pipeline or Pipeline(front)
    tuning_method.keep_problem("")
    try:
        with who.doing(JUDGE_HELD_OUT, chosen.name):
            times = look(resources.workspace(), held_out_key(test), fingerprint(pipeline))
        st.session_state[JUDGED] = (key, realised(test, front, made, chosen.min_grade), times)
    except (InputError, OSError) as error:
        tuning_method.keep_problem(str(error))


def _draw_command(chosen: EvalSet, front: str, alpha: float, knob: str) -> None:
    with st.expander("The same from the command line"):
        spec = tuning.FRONTS[front][1]
        st.code(
            f"python -m rag_core tune {tuning_method.source_words(chosen)} --method conformal -p {shlex.quote(spec)} "
            f"--alpha {alpha:g} --knob {knob}",
            language=None,
            wrap_lines=True,
        )
