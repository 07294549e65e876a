"""Where relevant chunks die: the waterfall of one pipeline, what each stage is good for alone, and what order does."""

from __future__ import annotations

from html import escape
from typing import Any

import streamlit as st

from pages.components import compare_run
from pages.components.compare_run import Material
from pages.components.compare_view import CompareView
from pages.components.listed import columns
from pages.components.trace import counted
from pages.components.tuning_set import quiet
from rag_core.evaluate.attribution import Attribution, Waterfall, attribute

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A9199"


def show(found: Material, view: CompareView) -> None:
    """Verdict, waterfall, stages and swaps of the pipeline that is compared with the baseline."""
    pipeline = found.pipelines[view.other]
    total = len(found.cases)
    made: Attribution | None = compare_run.computed(
        "losses", found, view.other, words="queries without each stage in turn",
        work=lambda told: attribute(
            found.cases, pipeline, found.chosen.min_grade, progress=lambda done: told(done, total)
        ),
    )  # fmt: skip
    if made is None:
        return
    st.text(f"{pipeline.label}: {made.verdict()}")
    _waterfall(made.waterfall, pipeline.label, made.queries)
    _stages(made)
    _swaps(made)


def _waterfall(falls: Waterfall, name: str, queries: int) -> None:
    import plotly.graph_objects as go

    steps, scored = falls.steps(), counted(queries, "scored query", "scored queries")
    figure = go.Figure(
        go.Waterfall(
            x=[step for step, _ in steps],
            y=[count for _, count in steps],
            measure=["absolute", *["relative"] * (len(steps) - 2), "total"],
            text=[f"{count:+d}" if 0 < at < len(steps) - 1 else str(count) for at, (_, count) in enumerate(steps)],
            textposition="outside",
            decreasing={"marker": {"color": ORANGE}},
            totals={"marker": {"color": BLUE}},
            increasing={"marker": {"color": GREEN}},
            connector={"line": {"color": GREY}},
            cliponaxis=False,
            hovertemplate="%{x}: %{text} relevant chunks<extra></extra>",
        )
    )
    figure.update_layout(
        height=300,
        margin={"l": 60, "r": 16, "t": 44, "b": 40},
        title={"text": f"Relevant chunks of {scored} through {escape(name)}", "font": {"size": 14}},
        yaxis={"title": {"text": "relevant chunks"}, "rangemode": "tozero"},
        showlegend=False,
    )
    st.plotly_chart(
        figure, key="compare.waterfall", config={"displaylogo": False},
        alt="Relevant chunks: all, lost in retrieval, lost at each stage, kept; the table below holds the stages",
    )  # fmt: skip


def _stages(made: Attribution) -> None:
    if not made.stages:
        quiet("This pipeline has no filter: what is missing was never retrieved.")
        return
    rows: list[dict[str, Any]] = [
        {
            "stage": one.stage,
            "relevant dropped": one.dropped.relevant,
            "irrelevant dropped": one.dropped.irrelevant,
            "unjudged dropped": one.dropped.unjudged,
            "irrelevant only it drops": one.unique.irrelevant if one.unique else None,
            "relevant only it drops": one.unique.relevant if one.unique else None,
            "SetF it brings": one.gain,
        }
        for one in made.stages
    ]
    st.markdown("**Each stage**: what it drops, and what changes when it alone is left out")
    st.dataframe(
        columns(rows),
        hide_index=True,
        key="compare.stages",
        column_config={"SetF it brings": st.column_config.NumberColumn(format="%+.3f")},
        alt="Per stage: chunks dropped by label, chunks only it drops, mean SetF it brings",
    )
    shared = "" if made.shared is None else f"; {made.shared:+.3f} of it belongs to no stage alone"
    quiet(
        f"All filters together change mean SetF from {made.unfiltered:.3f} to {made.set_f:.3f} "
        f"({made.together:+.3f}{shared})."
    )
    for one in made.stages:
        if one.not_tried:
            st.text(f"{one.stage} was not left out: {one.not_tried}.")


def _swaps(made: Attribution) -> None:
    """Whether neighbours could stand in the other order."""
    for swap in made.swaps:
        if swap.queries_changed:
            st.text(
                f"{swap.first} before {swap.second} matters: the other order changes what is kept on "
                f"{counted(swap.queries_changed, 'query', 'queries')}, mean SetF {-swap.gain:+.3f}."
            )
        else:
            st.text(f"{swap.first} and {swap.second} may stand in either order: no query changes.")
