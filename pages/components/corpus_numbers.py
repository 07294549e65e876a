"""A collection in numbers: types with their rules, lengths against what the model reads, duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import streamlit as st

from rag_core.index.browse import MOST_DUPLICATES, Overview

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8A9199"


def show(numbers: Overview) -> None:
    """Figures, then types and lengths side by side, then duplicates."""
    cells = st.container(horizontal=True)
    for name, value, width, meaning in _figures(numbers):
        cells.metric(name, value, width=width, help=meaning)
    side_by_side = st.container(horizontal=True, gap="medium")  # wraps where the window is narrow
    with side_by_side.container(width=400):
        _types(numbers)
    with side_by_side.container(width="stretch"):
        st.plotly_chart(
            _figure(numbers),
            key="corpus.lengths",
            config={"displaylogo": False},
            alt=f"Chunks by tokens, in bins of {numbers.bin_width}; the table below holds the numbers.",
        )
        with st.expander("The lengths in numbers"):
            _lengths(numbers)
    _duplicates(numbers)


def _figures(numbers: Overview) -> Iterator[tuple[str, str, int, str]]:
    """(name, value, width, meaning) of each figure."""
    ruled = sum(group.with_rule for group in numbers.groups)
    yield "chunks", f"{numbers.chunks:,}", 90, "Pieces of documents in this collection."
    share = f"{ruled:,} ({ruled / max(1, numbers.chunks):.0%})"
    yield "with a rule", share, 150, "Chunks that query_must can drop, and their share of all chunks."
    unreadable = sum(group.rules.unreadable for group in numbers.groups)
    if unreadable:
        why = next(group.rules.problem for group in numbers.groups if group.rules.unreadable)
        yield "rules not read", f"{unreadable:,}", 120, f"They drop nothing. The first: {why}"
    meaning = "Tokens of title and text, as the embedding model counts them; half the chunks have fewer."
    yield "tokens, median", f"{numbers.median:,}", 140, meaning
    span = f"{numbers.shortest:,} to {numbers.longest:,}"
    yield "shortest to longest", span, 170, "Tokens of the shortest and of the longest chunk."
    meaning = "Chunks whose end the model does not read: it cannot be found. Lower is better."
    yield "too long for the model", f"{numbers.too_long:,}", 180, meaning
    meaning = "Chunks with title and text of another chunk. Lower is better."
    yield "repeated", f"{numbers.duplicated:,}", 100, meaning


def _types(numbers: Overview) -> None:
    groups = numbers.groups
    st.dataframe(
        {
            "type": [group.type or "no type" for group in groups],
            "chunks": [group.chunks for group in groups],
            "with a rule": [f"{group.with_rule:,} ({group.with_rule / group.chunks:.0%})" for group in groups],
            "tokens, mean": [round(group.tokens / group.chunks) for group in groups],
        },
        hide_index=True,
        key="corpus.types",
        alt=f"{len(groups)} types with chunks, rules and mean tokens",
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
            marker_color=[ORANGE if start >= window else BLUE for start in starts],
            customdata=[f"{start:,} to {start + width - 1:,}" for start in starts],
            hovertemplate="%{customdata} tokens<br>%{y} chunks<extra></extra>",
        )
    )
    if numbers.longest > window * 0.7:
        figure.add_vline(x=window, line_dash="dash", line_color=GREY, annotation_text=f"the model reads {window}")
    figure.update_layout(
        height=300,
        bargap=0.05,
        margin={"l": 60, "r": 16, "t": 44, "b": 48},
        title={"text": "How long the chunks are", "font": {"size": 14}},
        xaxis={"title": {"text": "tokens of title and text"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "chunks"}},
    )
    return figure


def _lengths(numbers: Overview) -> None:
    st.dataframe(
        {
            "tokens from": [start for start, _ in numbers.lengths],
            "to": [start + numbers.bin_width - 1 for start, _ in numbers.lengths],
            "chunks": [count for _, count in numbers.lengths],
        },
        hide_index=True,
        height=260,
        alt="Chunks by tokens",
    )


def _duplicates(numbers: Overview) -> None:
    if not numbers.duplicates:
        st.markdown("No two chunks have the same title and text.")
        return
    groups = numbers.duplicates
    most = f"; the first {MOST_DUPLICATES} groups" if len(groups) == MOST_DUPLICATES else ""
    st.markdown(f"**Chunks that repeat another’s title and text: {numbers.duplicated:,}**{most}")
    st.dataframe(
        {"times": [len(ids) for ids in groups], "ids": [", ".join(ids[:20]) for ids in groups]},
        hide_index=True,
        key="corpus.duplicates",
        height=min(38 + 35 * len(groups), 300),
        alt=f"{len(groups)} groups of chunks with the same title and text",
    )
