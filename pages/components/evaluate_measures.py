"""Evaluate's figures: every measure of every pipeline with its bounds and counts, and the same per query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import glossary
from pages.components.listed import columns, paged
from pages.components.say import plain
from pages.components.trace import counted
from pages.components.tuning_set import quiet
from rag_core.evaluate.measures import SET_MEASURES
from rag_core.evaluate.tally import PipelineTally, QueryTally

MEANINGS = {
    "SetP": "relevant of the kept",
    "SetR": "kept of the relevant",
    "SetF": "F₁ of SetP and SetR, per query",
    "P@15": "relevant of the first 15, over 15 even where fewer are kept",
    "R@15": "relevant found in the first 15, of all relevant",
    "RR": "1 / rank of the first relevant",
    "AP": "precision at each relevant, mean over all relevant",
    "nDCG@15": "graded gain of the first 15, discounted by rank, over the ideal",
}
"""Measure → what is counted over what; all are better when higher."""


def show_means(tallies: Sequence[PipelineTally]) -> None:
    """Measures as rows, pipelines as columns; then what stands beside every mean."""
    first = tallies[0].summary
    total = counted(first.queries_total, "query", "queries")
    st.markdown(f"**Means**, macro over {first.queries_scored} of {total}; higher is better")
    bounded = {measure.name for measure in SET_MEASURES}
    found: dict[str, list[Any]] = {"measure": list(first.means)}
    for tally in tallies:
        summary = tally.summary
        found[tally.name] = [
            _with_bounds(summary.means[name], summary.low.get(name), summary.high.get(name), name in bounded)
            for name in first.means
        ]
    found["what it counts"] = [MEANINGS.get(name, "") for name in first.means]
    st.dataframe(
        found, hide_index=True, key="evaluate.means", height=min(38 + 35 * len(first.means), 420),
        column_config={"measure": st.column_config.TextColumn("measure", width=90)},
        alt="Per measure and pipeline the macro mean; set measures with bounds over unjudged chunks",
    )  # fmt: skip
    if any("(" in cell for tally in tallies for cell in found[tally.name]):
        quiet(
            "In brackets: the least and greatest value the set measures could have if the unjudged kept chunks were "
            "all irrelevant or all relevant."
        )
    _counts(tallies)


def _with_bounds(mean: float | None, low: float | None, high: float | None, bounded: bool) -> str:
    if mean is None:
        return "–"
    wide = bounded and low is not None and high is not None and high - low > 5e-4
    return f"{mean:.3f} ({low:.3f} … {high:.3f})" if wide else f"{mean:.3f}"


def _counts(tallies: Sequence[PipelineTally]) -> None:
    rows = [
        {
            "pipeline": tally.name,
            "queries": summary.queries_total,
            "scored": summary.queries_scored,
            "empty": summary.queries_empty,
            "nothing relevant exists": summary.queries_without_relevant,
            "of these returned something": _share(summary.false_return_rate),
            "without labels": summary.queries_unjudged,
            "fallback": summary.queries_fallback,
            "judged of kept": None if summary.judged is None else round(summary.judged, 2),
        }
        for tally in tallies
        for summary in (tally.summary,)
    ]
    st.markdown("**What the means stand on**")
    st.dataframe(
        columns(rows),
        hide_index=True,
        key="evaluate.counts",
        column_config={
            "judged of kept": st.column_config.NumberColumn(format="percent"),
        },
        alt="Per pipeline: queries, scored, empty, without relevant, without labels, fallback, share judged",
    )


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def show_queries(tallies: Sequence[PipelineTally]) -> None:
    """One row per query of one pipeline, page by page."""
    places = range(len(tallies))
    picked = st.segmented_control(
        "Pipeline", places, format_func=lambda at: plain(tallies[at].name) or f"pipeline {at + 1}", default=0,
        required=True, key="evaluate.read", label_visibility="collapsed",
    )  # fmt: skip
    tally = tallies[picked if picked in places else 0]
    shown = paged(len(tally.queries), f"evaluate.page.{tally.name}")
    rows = [_query_row(tally.queries[at]) for at in shown]
    st.dataframe(
        columns(rows),
        hide_index=True,
        key="evaluate.queries",
        height=min(38 + 35 * len(rows), 560),
        column_config=glossary.explained(
            ("kept", *tally.queries[0].scores.values),
            {name: st.column_config.NumberColumn(format="%.3f") for name in tally.queries[0].scores.values},
        ),
        alt=f"Per query of {picked}: kept, relevant kept, every measure, unjudged",
    )
    quiet(f"{counted(len(tally.queries), 'query', 'queries')}; an empty measure means the query is not scored.")


def _query_row(one: QueryTally) -> dict[str, Any]:
    """One query of a pipeline: counts, every measure, and what is odd about it."""
    scores = one.scores
    return {
        "query": one.query_id,
        "kept": f"{len(one.kept)} of {one.candidates}",
        "relevant kept": f"{scores.found} of {scores.relevant_total}",
        **scores.values,
        "unjudged kept": scores.kept - scores.judged_kept,
        "note": _note(scores.scored, scores.empty, scores.fallback),
        "text": one.query,
    }


def _note(scored: bool, empty: bool, fallback: bool) -> str:
    return ", ".join(
        word for word, holds in (("not scored", not scored), ("empty", empty), ("fallback", fallback)) if holds
    )
