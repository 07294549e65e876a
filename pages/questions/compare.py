"""Another project's questions beside this one's: what is added, gone and changed, labels of the files included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.components import resources, say
from rag_core.errors import InputError
from rag_core.eval_sets.facts import SetDiff, diff_sets
from rag_core.eval_sets.reading import folders
from rag_core.project.project import title_of_project
from rag_core.project.session import Session

SHOWN = 500


def show(session: Session) -> None:
    """Choose the other and draw what differs."""
    workspace, name = resources.workspace(), session.project.folder.name
    others = [other for other in folders(workspace) if other != name]
    st.markdown("**What another project asks otherwise**: a copy, a later round, a colleague’s set.")
    other = st.selectbox(
        "Other project",
        others,
        index=None,
        key="questions.other",
        placeholder="choose one",
        format_func=lambda one: title_of_project(one, workspace),
        label_visibility="collapsed",
    )
    if not other:
        return
    try:
        found = diff_sets(name, other, workspace)
    except InputError as error:
        say.problem("These two cannot be compared.", str(error))
        return
    if found.same:
        st.markdown("**Both hold the same** questions, tags, sides, labels in their files and chunks.")
        return
    chunks = found.chunks
    counts = {
        "questions": (len(found.queries.added), len(found.queries.removed), len(found.queries.changed)),
        "labels in the files": (len(found.labels_added), len(found.labels_removed), len(found.labels_changed)),
        "chunks": (len(chunks.added), len(chunks.removed), len(chunks.changed)) if chunks else None,
    }
    with st.container(horizontal=True):
        for title, numbers in counts.items():
            said = "–" if numbers is None else "+{:,} −{:,} ≠{:,}".format(*numbers)
            st.metric(
                title,
                said,
                width="content",
                help="There and not here, here and not there, changed. Labels: of questions both hold.",
            )
    _tables(found)


def _tables(found: SetDiff) -> None:
    queries = found.queries
    groups = (("added", queries.added), ("gone", queries.removed), ("changed", queries.changed))
    _table(
        "Questions",
        [
            {"question": one, "how": how, "what": ", ".join(found.fields.get(one, ()))}
            for how, ids in groups
            for one in ids
        ],
    )
    labels = [(query, chunk, "added", "") for query, chunk in found.labels_added]
    labels += [(query, chunk, "gone", "") for query, chunk in found.labels_removed]
    labels += [(query, chunk, "changed", f"{old} → {new}") for query, chunk, old, new in found.labels_changed]
    _table("Labels", [dict(zip(("question", "chunk", "how", "grade"), row, strict=True)) for row in labels])
    if found.chunks:
        chunk_groups = (
            ("added", found.chunks.added),
            ("gone", found.chunks.removed),
            ("changed", found.chunks.changed),
        )
        _table("Chunks", [{"chunk": one, "how": how} for how, ids in chunk_groups for one in ids])


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> None:
    if rows:
        more = f", the first {SHOWN}" if len(rows) > SHOWN else ""
        st.markdown(f"**{title} that differ: {len(rows):,}**{more}")
        st.dataframe(rows[:SHOWN], hide_index=True, width="stretch", alt=f"{title} that differ")
