"""What a model would be sent: the text of the list before and after the filters, with an estimate of its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components.reading import context_text, estimated_tokens
from pages.components.trace import counted
from rag_core.evaluate.experiment import Outcome
from rag_core.types import Hit

ESTIMATE = "Tokens are estimated as characters ÷ 4, no tokenizer was asked. Titles and texts only, best first."


def show(outcome: Outcome) -> None:
    """Before and after, side by side."""
    before, after = outcome.start.hits, outcome.result.hits
    st.caption(ESTIMATE)
    if not any(hit.chunk.text for hit in before):
        st.caption("This list was recorded without chunk texts: only titles can be shown and counted.")
    left, right = st.columns(2)
    with left:
        _side("Before the filters", before, "the whole list")
    with right:
        _side("After the filters", after, saved(before, after))


def _side(title: str, hits: Sequence[Hit], note: str) -> None:
    text = context_text(hits)
    value = f"about {estimated_tokens(text):,} tokens"
    st.metric(
        f"{title}: {counted(len(hits), 'chunk', 'chunks')}", value, note or None, delta_color="off", delta_arrow="off",
        help="Estimated: a quarter of the characters that would be sent. Lower costs less.",
    )  # fmt: skip
    if text:
        st.code(text, language=None, wrap_lines=True, height=420)
    else:
        st.text("Nothing would be sent.")


def saved(before: Sequence[Hit], after: Sequence[Hit]) -> str:
    """How much shorter the text is, by estimated tokens: "62% fewer"."""
    whole, left = estimated_tokens(context_text(before)), estimated_tokens(context_text(after))
    return f"{1 - left / whole:.0%} fewer" if whole else ""
