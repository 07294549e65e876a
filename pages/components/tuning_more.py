"""Below the plane of Tune: precision and recall, knobs that do nothing, the command."""

from __future__ import annotations

import shlex

import streamlit as st

from pages.components import tuning, tuning_points, tuning_set


def draw_front(key: str, study: tuning.Study) -> None:
    """Precision against recall: fixed k, the plane's front, the choice, and held-out points once looked at."""
    from pages.components import tuning_charts
    from pages.components.tuning_choice import seen

    choice, found = study.choice, seen(key)
    chosen = None if choice is None else tuning_points.point("chosen", study.dev, choice.pipeline, study.min_grade)
    figure = tuning_charts.front_figure(study, chosen, () if found is None else found.points)
    st.plotly_chart(figure, key="tune.front_chart", config={"displaylogo": False}, alt=tuning_charts.FRONT_ALT)
    if found is None:
        tuning_set.quiet("Held-out points with 95 % intervals appear once the held-out queries are judged.")
    else:
        tuning_set.quiet("Hollow: held-out queries, with 95 % bootstrap intervals over queries.")
    with st.expander("The front as a table"):
        rows = tuning_points.front_of(study)
        st.dataframe(
            {name: [row[name] for row in rows] for name in rows[0]}, hide_index=True, key="tune.front_table",
            alt="Settings that no other beats in both mean precision and mean recall",
        )  # fmt: skip


def draw_knobs(study: tuning.Study) -> None:
    """On how many queries each knob changes what is kept; labels play no part, so held-out ones may be counted."""
    from rag_core.evaluate.knobs import knobs

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


def draw_command(name: str, study: tuning.Study) -> None:
    """The same from the command line."""
    ask = study.ask
    parts = ["python -m rag_core tune", "--eval-set", shlex.quote(name), "-p", shlex.quote(ask.spec)]
    parts += ["--grid", shlex.quote(study.grid), "--objective", ask.objective]
    if ask.floor is not None:
        parts += ["--constraint", shlex.quote(f"SetR>={ask.recall:g}")]
    st.markdown(
        "The same choice and judgement from the command line (it looks at the held-out queries, and counts it):"
    )
    st.code(" ".join(parts), language=None, wrap_lines=True)
