"""Below the plane of Tune: precision and recall in numbers, knobs that do nothing, the command."""

from __future__ import annotations

import shlex

import streamlit as st

from pages.components import glossary, tuning, tuning_method, tuning_points, tuning_set
from rag_core.eval_sets.reading import EvalSet


def draw_front(study: tuning.Study) -> None:
    """The table twin of the front beside the plane: the settings no other beats, and every fixed k."""
    tuning_set.quiet(
        "The front of the plane: settings that no other beats in both mean precision and mean recall; below it every "
        f"fixed k. Macro over {len(study.dev)} dev queries."
    )
    rows = tuning_points.front_of(study)
    numbers = {name: st.column_config.NumberColumn(format="%.3f") for name in tuning.MEASURES}
    numbers["kept_mean"] = st.column_config.NumberColumn("kept, mean", format="%.1f")
    numbers = glossary.explained(tuning.MEASURES, numbers)
    st.dataframe(
        {name: [row[name] for row in rows] for name in rows[0]}, hide_index=True, key="tune.front_table",
        column_config=numbers, alt="Settings that no other beats in both mean precision and mean recall",
        height=min(38 + 35 * len(rows), 420),
    )  # fmt: skip
    fixed = tuning_points.fixed_ks(study)
    st.dataframe(
        {
            "fixed k": [at for at, _ in enumerate(fixed, 1)],
            **{name: [getattr(one, name) for one in fixed] for name in tuning.MEASURES},
            "kept_mean": [one.kept for one in fixed],
        },
        hide_index=True, key="tune.fixed_table", column_config=numbers, height=min(38 + 35 * len(fixed), 260),
        alt="Mean precision, recall and F of every fixed k",
    )  # fmt: skip


def draw_knobs(study: tuning.Study) -> None:
    """On how many queries each knob changes what is kept; labels play no part, so held-out ones may be counted."""
    from rag_core.tune.knobs import knobs

    found = knobs(study.cases, study.pipeline)
    st.markdown(
        f"On how many of **all {len(study.cases)} queries** turning a knob changes what is kept. Labels play no part, "
        "so this is no look at the held-out queries. A knob that moves nothing here cannot be tuned here."
    )
    st.dataframe(
        {
            "knob": [one.setting for one in found],
            "from": [one.low for one in found],
            "to": [one.high for one in found],
            "share of queries": [one.share for one in found],
            "in words": [one.sentence() for one in found],
            "most kept sets of one query": [max(one.kept_sets.values(), default=0) for one in found],
        },
        hide_index=True,
        key="tune.knobs",
        column_config={
            "share of queries": st.column_config.ProgressColumn(
                "share of queries", min_value=0.0, max_value=1.0, format="percent"
            )
        },
        alt="Per knob: range, share of queries on which what is kept changes",
    )


def draw_command(chosen: EvalSet, study: tuning.Study) -> None:
    """The same from the command line."""
    ask = study.ask
    parts = ["python -m rag_core tune", tuning_method.source_words(chosen), "-p", shlex.quote(ask.spec)]
    parts += ["--grid", shlex.quote(study.grid), "--objective", ask.objective]
    if ask.floor is not None:
        parts += ["--constraint", shlex.quote(f"SetR>={ask.recall:g}")]
    st.markdown(
        "The same choice and judgement from the command line (it looks at the held-out queries, and counts it):"
    )
    st.code(" ".join(parts), language=None, wrap_lines=True)
