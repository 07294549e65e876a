"""Families of near-duplicate titles: what they take of the result lists, which carry rules, and one taken up.

Titles and family names are foreign text: they stand in cells and in lists of options, which read no markup. What is
proposed for the family is drawn by rules_proposals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import rules_proposals, rules_state, rules_written
from pages.components.rules_state import Bench, Families
from rag_core.rules.suggest import Crowd

TABLE = "rules.families"
FAMILY = "rules.family"


def show(bench: Bench) -> None:
    """The table of families, and below it the one that is taken."""
    found = rules_state.families(bench)
    if not found.crowds:
        st.markdown("No family: no three chunks of this collection have near-duplicate titles.")
        return
    listed = any(case.candidates is not None for case in bench.cases)
    _table(found, listed, bench.k)
    if not listed:
        st.caption("Choose an eval set above to see what each family takes of result lists.")
    _one(bench, found.crowds)


def _table(found: Families, listed: bool, k: int) -> None:
    names = [one.name for one in found.crowds]
    if st.session_state.get(FAMILY) not in names:
        st.session_state[FAMILY] = names[0]
    # A table of its own for each family: one that is kept would send its old selection after the pick list was used.
    at = names.index(st.session_state[FAMILY])
    key = f"{TABLE}.{at}"
    st.session_state[key] = {"selection": {"rows": [at], "columns": []}}
    st.dataframe(
        _columns(found, listed),
        hide_index=True,
        key=key,
        on_select=lambda: _taken(key, names),
        selection_mode="single-row",
        height=min(38 + 35 * len(names), 290),
        column_config={
            "family": st.column_config.TextColumn("family", width="medium"),
            "template": st.column_config.TextColumn("template", width=150),
            "carry rules": st.column_config.TextColumn("carry rules", width=90),
            "places taken": _share("places taken", f"Share of the first {k} places of all lists, unfiltered"),
            "not relevant": _share("not relevant", f"Share of the first {k} places that no label calls relevant"),
            "not relevant, with rules": _share(
                "not relevant, with rules", "The same in the lists that the stored rules and refill give"
            ),
            "lists": st.column_config.NumberColumn("lists", help="Lists in which the family stands at all", width=64),
            "most in one": st.column_config.NumberColumn("most in one", width=92),
        },
        alt=f"{len(names)} families with chunks, rules, share of places and template",
    )


def _columns(found: Families, listed: bool) -> dict[str, list[object]]:
    """The table's columns; those about result lists only where there are some."""
    columns: dict[str, list[object]] = {
        "family": [one.name for one in found.crowds],
        "template": [one.template or "none fits" for one in found.crowds],
        "carry rules": [f"{one.with_rule} of {len(one.chunks)}" for one in found.crowds],
    }
    if listed:
        columns |= {
            "places taken": [100 * one.share for one in found.crowds],
            "not relevant": [100 * one.crowding for one in found.crowds],
            "not relevant, with rules": [_now(found, one) for one in found.crowds],
            "lists": [one.lists for one in found.crowds],
            "most in one": [one.most for one in found.crowds],
        }
    return columns


def _share(name: str, help_text: str) -> Any:
    return st.column_config.NumberColumn(name, help=help_text, format="%.0f %%", width=max(100, 7 * len(name)))


def _now(found: Families, one: Crowd) -> float:
    now = found.with_rules.get(one.name)
    return 100 * now.crowding if now else 0.0


def _taken(key: str, names: Sequence[str]) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(names):
        st.session_state[FAMILY] = names[rows[0]]


def _one(bench: Bench, crowds: Sequence[Crowd]) -> None:
    """The family that is taken: who writes its rules, and what they do."""
    by_name = {one.name: one for one in crowds}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Family", list(by_name), key=FAMILY, width=560)
        family = by_name[str(name)]
        written = rules_written.choose(bench, family)
    if written is not None:
        rules_proposals.show(bench, family, written)
