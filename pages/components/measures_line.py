"""The line of measures: precision, recall and F of the kept list beside the unfiltered list, and what they rest on."""

from __future__ import annotations

import streamlit as st

from pages.components.reading import figure
from rag_core.evaluate.experiment import Outcome

HELP = {
    "SetP": "Precision of the kept list: relevant kept chunks ÷ kept chunks.",
    "SetR": "Recall of the kept list: relevant kept chunks ÷ all relevant chunks.",
    "SetF": "F₁ of the two: 2PR ÷ (P + R).",
}


def show(outcome: Outcome, before: Outcome, baseline: str = "") -> None:
    """The measures of this query, each with its value without any filter, or with the filter that `baseline` names."""
    with st.container(horizontal=True, key="measures"):
        for name, text in HELP.items():
            now, was = figure(outcome.scores.values, name), figure(before.scores.values, name)
            _metric(name, now, _compared(now, was, baseline), text)
        kept = {hit.chunk.id for hit in outcome.result.hits}
        dropped = len({drop.hit.chunk.id for drop in outcome.result.drops} - kept)  # references may bring one again
        total = len(kept) + dropped
        _metric("kept", f"{outcome.scores.kept} of {total}", f"{dropped} dropped", "Chunks that are left.")
        judged = f"{outcome.scores.judged_kept} of {outcome.scores.kept}"
        _metric("judged", judged, "of the kept chunks", "Kept chunks that have a label.")


def _compared(now: str, was: str, baseline: str) -> str:
    """The value to compare with, in a word."""
    if now == was == "–":
        return "not scored"
    return f"as {baseline or 'without filter'}" if now == was else f"was {was}"


def _metric(label: str, value: str, note: str, text: str) -> None:
    st.metric(label, value, note, delta_color="off", delta_arrow="off", help=text, border=True)


def footnote(outcome: Outcome, min_grade: int, baseline: str = "") -> str:
    """What the figures rest on, in words of ours."""
    scores = outcome.scores
    parts = [f"“was” is {baseline}, no other filter."] if baseline else []
    parts.append(f"Relevant means grade ≥ {min_grade} (min_grade).")
    if scores.unjudged:
        parts.append("This query has no labels: it is run, not scored. Label a chunk below to see measures.")
    elif scores.without_relevant:
        parts.append("No chunk is labelled relevant: precision and recall are not defined.")
    else:
        place = "collection" if baseline else "list"
        known = (
            "known to exist" if outcome.case.relevant_total is not None else f"labelled in this {place}, taken as all"
        )
        parts.append(f"{scores.relevant_total} relevant {known}.")
        if scores.low["SetF"] != scores.high["SetF"]:
            low, high = scores.low["SetF"], scores.high["SetF"]
            parts.append(f"With unjudged chunks either way SetF lies in {low:.3f}–{high:.3f}.")
    if scores.empty:
        parts.append("Nothing is kept: precision is 0 by convention.")
    return " ".join(parts)
