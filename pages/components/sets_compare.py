"""Two eval sets side by side: what the second adds, takes away and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.components import resources, say
from rag_core.errors import InputError
from rag_core.evaluate.set_facts import SetDiff, diff_sets

SHOWN = 500


def show(names: Sequence[str], first: str) -> None:
    """Choose two and draw what differs."""
    left, right = st.columns(2)
    before = left.selectbox("Before", names, index=names.index(first) if first in names else 0, key="sets.before")
    after = right.selectbox("After", names, index=0, key="sets.after")
    if before == after:
        st.markdown("**Choose two different sets**: a copy and what it was copied from, or two rounds of one set.")
        return
    try:
        found = diff_sets(before, after, resources.workspace())
    except InputError as error:
        say.problem("These two cannot be compared.", str(error))
        return
    _figures(found)
    _tables(found)


def _figures(found: SetDiff) -> None:
    if found.same:
        st.markdown("**Both hold the same** queries, tags, split, labels and chunks.")
        return
    chunks = found.chunks
    counts = {
        "queries": (len(found.queries.added), len(found.queries.removed), len(found.queries.changed)),
        "labels in the files": (len(found.labels_added), len(found.labels_removed), len(found.labels_changed)),
        "chunks": (len(chunks.added), len(chunks.removed), len(chunks.changed)) if chunks else None,
    }
    with st.container(horizontal=True):
        for name, numbers in counts.items():
            said = "–" if numbers is None else "+{:,} −{:,} ≠{:,}".format(*numbers)
            st.metric(name, said, help="Added, taken away, changed. Labels are compared on queries that both hold.")


def _tables(found: SetDiff) -> None:
    _table("Queries", _query_rows(found))
    labels = [(query, chunk, "added", "") for query, chunk in found.labels_added]
    labels += [(query, chunk, "taken away", "") for query, chunk in found.labels_removed]
    labels += [(query, chunk, "changed", f"{old} → {new}") for query, chunk, old, new in found.labels_changed]
    _table("Labels", [dict(zip(("query", "chunk", "how", "grade"), row, strict=True)) for row in labels])
    chunks = found.chunks
    if chunks:
        groups = (("added", chunks.added), ("taken away", chunks.removed), ("changed", chunks.changed))
        _table("Chunks", [{"chunk": one, "how": how} for how, ids in groups for one in ids])


def _query_rows(found: SetDiff) -> list[Mapping[str, str]]:
    groups = (("added", found.queries.added), ("taken away", found.queries.removed), ("changed", found.queries.changed))
    return [
        {"query": one, "how": how, "what": ", ".join(found.fields.get(one, ()))} for how, ids in groups for one in ids
    ]


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> None:
    if rows:
        more = f", the first {SHOWN}" if len(rows) > SHOWN else ""
        st.markdown(f"**{title} that differ: {len(rows):,}**{more}")
        st.dataframe(rows[:SHOWN], hide_index=True, width="stretch", alt=f"{title} that differ")
