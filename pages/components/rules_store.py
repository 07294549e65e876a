"""Storing rules from a page: one batch a click, what became of it, and taking batches back.

What may be stored is decided by rag_core.rules.proposals before anything comes here.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.components import resources, say, who
from pages.components.rules_state import Bench, Rules
from rag_core.errors import WinnowError
from rag_core.index.rules import RuleBatch, apply_rules, rule_batches, undo_rules
from rag_core.project.deeds import CHANGE_RULES, UNDO_RULES, Kind

DONE = "rules.done"  # (collection, sentence, number of the batch that can be undone or 0)
FAILED = "rules.failed"


def store(collection: str, rules: Rules, about: str) -> None:
    """Store rules as one batch and keep the sentence about it for the page."""

    def work() -> tuple[str, int]:
        batch = apply_rules(resources.workspace(), collection, rules, about)
        return f"Batch {batch.number} is stored: {batch.chunks:,} chunks, nothing was embedded.", batch.number

    _tried(CHANGE_RULES, collection, work)


def undo(collection: str, number: int) -> None:
    """Take one batch back."""

    def work() -> tuple[str, int]:
        found = undo_rules(resources.workspace(), collection, number)
        kept = f"; {len(found.changed_since):,} were changed since and stay" if found.changed_since else ""
        return f"Batch {found.number} is undone: {len(found.restored):,} chunks are as before{kept}.", 0

    _tried(UNDO_RULES, collection, work)


def refuse(reason: str) -> None:
    """Keep why a rule was not stored, for the page."""
    st.session_state.pop(DONE, None)
    st.session_state[FAILED] = reason


def _tried(kind: Kind, collection: str, work: Callable[[], tuple[str, int]]) -> None:
    st.session_state[FAILED] = ""
    st.session_state.pop(DONE, None)
    try:
        with who.doing(kind, collection):
            st.session_state[DONE] = (collection, *work())
    except (WinnowError, OSError) as error:
        st.session_state[FAILED] = str(error)


def show_outcome(chosen: str) -> None:
    """What the last click stored in the chosen collection, with its undo; or why it did not."""
    if st.session_state.get(FAILED):
        say.problem("Nothing was stored.", st.session_state[FAILED])
    collection, sentence, number = st.session_state.get(DONE, ("", "", 0))
    if collection != chosen:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="rules.outcome"):
        st.markdown(f":material/check: {sentence}")
        if number:
            st.button(
                f"Undo batch {number}",
                icon=":material/undo:",
                key="rules.undo_last",
                on_click=undo,
                args=(collection, number),
            )


def show_batches(bench: Bench) -> None:
    """Every batch of the collection, newest first, and the undo of one."""
    batches = rule_batches(resources.workspace(), bench.collection)[::-1]
    if not batches:
        st.markdown(
            "No batch yet: rules that are applied from a family, or saved beside a query, are listed here with an undo."
        )
        return
    st.dataframe(
        {
            "batch": [one.number for one in batches],
            "state": ["undone" if one.undone else "stands" for one in batches],
            "chunks": [one.chunks for one in batches],
            "for": [one.about for one in batches],
            "stored at (UTC)": [one.at[:19].replace("T", " ") for one in batches],
        },
        hide_index=True,
        key="rules.batches",
        height=min(38 + 35 * len(batches), 400),
        alt=f"{len(batches)} batches of rules with state, number of chunks, purpose and time",
    )
    standing = [one for one in batches if not one.undone]
    if standing:
        _undo_one(bench, standing)


def _undo_one(bench: Bench, standing: list[RuleBatch]) -> None:
    named = {one.number: f"{one.number}: {one.chunks:,} chunks, {one.about}" for one in standing}
    if st.session_state.get("rules.batch") not in named:
        st.session_state["rules.batch"] = standing[0].number
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number = st.selectbox("Batch", list(named), format_func=lambda one: named[one], key="rules.batch", width=420)
        st.button(
            "Undo this batch",
            icon=":material/undo:",
            key="rules.undo",
            on_click=undo,
            args=(bench.collection, number),
        )
    st.caption("Chunks whose rules were changed by a later batch keep what they have.")
