"""Cut a collection's Markdown at another header level: a look first, with what becomes of every label, then the cut.

Ids of chunks are foreign text and stand in cells only.
"""

from __future__ import annotations

import streamlit as st

from pages.components import corpus_state, jobs, resources, say, who
from rag_core.errors import WinnowError
from rag_core.project.deeds import INGEST
from rag_core.rechunk import Recut, look, recut
from rag_core.store.events import Event

LOOKED = "corpus.recut_looked"
PROBLEM = "corpus.recut_problem"
SHOWN = 200
MEANING = {
    "same": "the same text under the same id",
    "moved": "the same text under another id",
    "split": "the text lies in other chunks now",
    "lost": "the text is gone: the label is kept and counts again when it comes back",
}


def show(name: str) -> None:
    """The level, what it would do, and the button that does it."""
    with st.expander("Cut the Markdown anew at another header level"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            level = st.segmented_control("Header level", (2, 3, 4), default=3, required=True, key="corpus.recut_level")
            if st.button("Look first", icon=":material/visibility:", key="corpus.recut_look"):
                _look(name, int(level or 3))
        if st.session_state.get(PROBLEM):
            say.problem("This collection cannot be cut anew.", st.session_state[PROBLEM])
        found = st.session_state.get(LOOKED)
        if isinstance(found, Recut) and (found.collection, found.header_level) == (name, level):
            report(found)
            st.button(
                "Cut anew",
                type="primary",
                key="corpus.recut_go",
                disabled=jobs.running(),
                on_click=_start,
                args=(name, found.header_level),
            )


def _labels() -> list[Event]:
    """The labels that count now, of every eval set."""
    from rag_core.store.labels import LabelStore

    if not resources.has_store():
        return []
    kept = LabelStore(resources.label_store())
    return [label for name in kept.eval_sets() for label in kept.labels(name)]


def _look(name: str, level: int) -> None:
    st.session_state[PROBLEM] = ""
    st.session_state.pop(LOOKED, None)
    try:
        who.check(INGEST, name)
        st.session_state[LOOKED] = look(resources.workspace(), name, level, _labels())
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)


def _start(name: str, level: int) -> None:
    """Cut in the background; until the end the collection is searched as it was."""
    st.session_state.pop(LOOKED, None)
    workspace = resources.workspace()

    def work(progress: jobs.Progress) -> object:
        from rag_core.index.handles import ingest_embedder

        return recut(workspace, name, level, ingest_embedder(workspace, name), labels, progress)

    try:
        labels = _labels()
        jobs.start("Cutting documents anew", work, who.deed(INGEST, name))
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)
        return
    corpus_state.choose(name)


def report(found: Recut) -> None:
    """Chunks before and after, and the labels by what becomes of them; those not met as before one by one."""
    verb = "would be" if found.report is None else "are"
    st.markdown(
        f"**Chunks: {found.before:,} {verb} {found.after:,}**; {found.unchanged:,} of them with a text as before, "
        "which are not embedded again"
    )
    if not found.labels:
        st.markdown("No label is on a chunk of this collection.")
        return
    outcomes = {outcome: count for outcome, count in found.outcomes.items() if count}
    st.dataframe(
        {
            "labels": list(outcomes.values()),
            "become": list(outcomes),
            "meaning": [MEANING[outcome] for outcome in outcomes],
        },
        hide_index=True,
        alt=f"{len(found.labels)} labels by what becomes of them",
    )
    moved = [one for one in found.labels if one.outcome != "same"][:SHOWN]
    if moved:
        st.dataframe(
            {
                "eval set": [one.label.eval_set for one in moved],
                "query": [one.label.query_id for one in moved],
                "chunk": [one.label.chunk_id for one in moved],
                "becomes": [one.outcome for one in moved],
                "now in": [", ".join(one.chunk_ids) for one in moved],
            },
            hide_index=True,
            height=min(38 + 35 * len(moved), 250),
            alt=f"{len(moved)} labels whose text is elsewhere",
        )
