"""A source in numbers: types with their rules, lengths against what the model reads, duplicates."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.components import say
from pages.widgets.take_along import BLUE, GREY, ORANGE, laid_out, table, take_along
from rag_core.index.browse import MOST_DOCUMENTS, MOST_DUPLICATES, Overview


def figures(numbers: Overview) -> None:
    """The source in one line of figures."""
    ruled = sum(group.with_rule for group in numbers.groups)
    count = max(1, numbers.chunks)
    model_reads = numbers.unit == "tokens"
    with st.container(horizontal=True, key="data.figures"):
        st.metric("chunks", f"{numbers.chunks:,}", width=90, help="Pieces of documents that a search can return.")
        if numbers.documents:
            many = "+" if len(numbers.documents) == MOST_DOCUMENTS else ""
            meaning = "Files, or what the field “file” of a connected collection names."
            st.metric("documents", f"{len(numbers.documents):,}{many}", width=110, help=meaning)
        meaning = (
            "Tokens of title and text, as the embedding model counts them; half the chunks have fewer."
            if model_reads
            else "Characters of the text; half the chunks have fewer. No model reads recorded lists."
        )
        st.metric(f"{numbers.unit}, median", f"{numbers.median:,}", width=150, help=meaning)
        span = f"{numbers.shortest:,} to {numbers.longest:,}"
        st.metric("shortest to longest", span, width=170, help=f"{numbers.unit.capitalize()} of either.")
        if model_reads:
            whole = numbers.chunks - numbers.too_long
            meaning = (
                f"Chunks that the model reads to their end, up to {numbers.window} tokens; {numbers.too_long:,} are "
                "longer, and what stands behind cannot be found. Higher is better."
            )
            st.metric("embedded whole", share(whole, count), width=150, help=meaning)
        meaning = "Chunks with title and text of another chunk. Lower is better."
        st.metric("repeated", f"{numbers.duplicated:,}", width=100, help=meaning)
        meaning = "Chunks whose rule a question must satisfy; those without one are never dropped by rules."
        st.metric("with a rule", f"{ruled:,} ({ruled / count:.0%})", width=150, help=meaning)
        unreadable = [group.rules for group in numbers.groups if group.rules.unreadable]
        if unreadable:
            total = sum(rules.unreadable for rules in unreadable)
            meaning = f"They drop nothing. The first: {say.plain(unreadable[0].problem)}"
            st.metric("rules not read", f"{total:,}", width=130, help=meaning)


def share(part: int, whole: int) -> str:
    """A share as whole percent that is 100 % only where nothing is missing."""
    return "100 %" if part >= whole else f"{min(99, round(100 * part / whole))} %"


def show(numbers: Overview) -> None:
    """Lengths and types, then duplicates."""
    starts = [start for start, _ in numbers.lengths]
    take_along(
        "lengths",
        {
            f"{numbers.unit} from": starts,
            "to": [start + numbers.bin_width - 1 for start in starts],
            "chunks": [count for _, count in numbers.lengths],
        },
        lambda: _figure(numbers),
        f"Chunks by {numbers.unit}, in bins of {numbers.bin_width}",
    )
    _types(numbers)
    _duplicates(numbers)


def _types(numbers: Overview) -> None:
    groups = numbers.groups
    table(
        {
            "type": [group.type or "no type" for group in groups],
            "chunks": [group.chunks for group in groups],
            "with a rule": [f"{group.with_rule:,} ({group.with_rule / group.chunks:.0%})" for group in groups],
            f"{numbers.unit}, mean": [round(group.tokens / group.chunks) for group in groups],
        },
        "data.types",
        f"{len(groups)} types with chunks, rules and mean length",
    )


def _figure(numbers: Overview) -> Any:
    """Chunks by length; those beyond what the model reads in another colour, with the limit's value on its line."""
    import plotly.graph_objects as go

    width, window = numbers.bin_width, numbers.window
    starts = [start for start, _ in numbers.lengths]
    figure = go.Figure(
        go.Bar(
            x=[start + width / 2 for start in starts],
            y=[count for _, count in numbers.lengths],
            width=width,
            marker_color=[ORANGE if 0 < window <= start else BLUE for start in starts],
            customdata=[f"{start:,} to {start + width - 1:,}" for start in starts],
            hovertemplate=f"%{{customdata}} {numbers.unit}<br>%{{y}} chunks<extra></extra>",
        )
    )
    if window and numbers.longest > window * 0.7:
        figure.add_vline(x=window, line_dash="dash", line_color=GREY, annotation_text=f"the model reads {window}")
    return laid_out(figure, numbers.unit, "chunks")


def _duplicates(numbers: Overview) -> None:
    if not numbers.duplicates:
        st.markdown("No two chunks have the same title and text.")
        return
    groups = numbers.duplicates
    most = f"; the first {MOST_DUPLICATES} groups" if len(groups) == MOST_DUPLICATES else ""
    st.markdown(f"**Chunks that repeat another’s title and text: {numbers.duplicated:,}**{most}")
    table(
        {"times": [len(ids) for ids in groups], "ids": [", ".join(ids[:20]) for ids in groups]},
        "data.duplicates",
        f"{len(groups)} groups of chunks with the same title and text",
        tall=300,
    )
