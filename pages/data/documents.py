"""How the source came in: its documents or the store it mirrors, brought up to date, added to, cut anew, or deleted.

Names of documents and ids of chunks are foreign text and stand in cells and lists of choices only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

import streamlit as st

from pages import state
from pages.components import jobs, resources, say, who
from pages.data import source
from rag_core.errors import WinnowError
from rag_core.index.browse import Overview
from rag_core.index.collection import CollectionSummary, delete_collection
from rag_core.index.handles import ingest_embedder
from rag_core.project.deeds import DELETE_COLLECTION, INGEST
from rag_core.project.intake import Chroma, Documents, intake_of
from rag_core.project.project import Project, ProjectSource, save
from rag_core.project.session import Session
from rag_core.rechunk import Recut, look, recut
from rag_core.store.events import Event

RECUT_LOOKED, RECUT_PROBLEM, PROBLEM = "data.recut_looked", "data.recut_problem", "data.documents_problem"
SHOWN = 200
MEANING = {
    "same": "the same text under the same id",
    "moved": "the same text under another id",
    "split": "the text lies in other chunks now",
    "lost": "the text is gone: the label is kept and counts again when it comes back",
}


def show(session: Session, summary: CollectionSummary, numbers: Overview) -> None:
    """Where it came from on the left, what can be done on the right."""
    project = session.project
    if st.session_state.get(PROBLEM):
        say.problem("This was not begun.", st.session_state[PROBLEM])
    left, right = st.columns([2, 3], gap="large")
    with left:
        _table(numbers.documents)
    with right:
        if summary.origin:
            _mirror(project, summary)
        else:
            _up_to_date(session)
            if not project.shipped:
                with st.expander("Add documents", icon=":material/add:"):
                    source.ask(project, (source.DOCUMENTS,))
            _cut_anew(project)
        _delete(project)


def _table(rows: Mapping[str, int]) -> None:
    if not rows or set(rows) == {""}:
        st.markdown("No chunk names the document it came from.")
        return
    st.dataframe(
        {"document": [PurePath(path).name or path for path in rows], "chunks": list(rows.values())},
        hide_index=True,
        key="data.documents",
        height=min(38 + 35 * len(rows), 460),
        column_config={"document": st.column_config.TextColumn("document", width="large")},
        alt=f"{len(rows)} documents with their chunks",
    )


def _up_to_date(session: Session) -> None:
    """Read the documents again: one click, where it is known which they were."""
    project, order = session.project, intake_of(session.project)
    if project.shipped:
        st.markdown("The chunks come with the project; what changed in them is embedded by itself.")
    elif isinstance(order, Documents):
        st.text("\n".join(order.paths))
        st.button(
            "Bring up to date",
            icon=":material/sync:",
            key="data.again",
            disabled=jobs.running() or bool(who.refusal(INGEST)),
            on_click=again,
            args=(project,),
            help="Reads these documents again; only what changed is embedded.",
        )
    else:
        st.markdown("Where the documents lay was not kept: add them again to bring the collection up to date.")


def again(project: Project) -> None:
    """Do what was last wanted of the source once more: what is done already is not repeated."""
    st.session_state[PROBLEM] = ""
    order = intake_of(project)
    try:
        if order is not None:
            source.start(project, order)
    except (WinnowError, OSError) as error:
        st.session_state[PROBLEM] = str(error)


def _mirror(project: Project, summary: CollectionSummary) -> None:
    """Which store is mirrored, what its metadata means, and reading it again."""
    st.markdown("**A mirror of a Chroma collection**; the store itself is never written to.")
    st.text(f"{summary.origin}\n{summary.model}, {summary.dimension} dimensions, {summary.metric} distances")
    order = intake_of(project)
    if not isinstance(order, Chroma):
        st.markdown("Connect it again with a new project to change what its metadata means.")
        return
    names = sorted({name for chunk in state.session().source.chunks[:SHOWN] for name in chunk.metadata})
    kept = dict(order.fields or ())
    fields = source.ask_fields(sorted({*names, *kept.values()}), kept, "data.kept_field")
    if st.button(
        "Read it again", icon=":material/sync:", key="data.again", disabled=jobs.running(),
        help="Brings the mirror up to date, with the metadata meaning what is chosen here.",
    ):  # fmt: skip
        st.session_state[PROBLEM] = ""
        try:
            source.start(project, replace(order, fields=fields))
        except (WinnowError, OSError) as error:
            st.session_state[PROBLEM] = str(error)
        st.rerun()


# Cutting anew


def _cut_anew(project: Project) -> None:
    """The level, what it would do to chunks and labels, and the button that does it."""
    with st.expander("Cut the Markdown anew at another header level", icon=":material/content_cut:"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            level = st.segmented_control("Header level", (2, 3, 4), default=3, required=True, key="data.recut_level")
            if st.button("Look first", icon=":material/visibility:", key="data.recut_look"):
                _look(project, int(level or 3))
        if st.session_state.get(RECUT_PROBLEM):
            say.problem("This collection cannot be cut anew.", st.session_state[RECUT_PROBLEM])
        cut = st.session_state.get(RECUT_LOOKED)
        if isinstance(cut, Recut) and (cut.collection, cut.header_level) == (project.source.name, level):
            report_cut(cut)
            st.button(
                "Cut anew",
                type="primary",
                key="data.recut_go",
                disabled=jobs.running(),
                on_click=_cut,
                args=(project, cut.header_level),
            )


def _labels() -> list[Event]:
    """The labels that count now, of every project: another one may be measured on the same collection."""
    from rag_core.store.labels import LabelStore  # the database layer: only whoever cuts anew waits for it

    if not resources.has_store():
        return []
    kept = LabelStore(resources.label_store())
    return [label for name in kept.eval_sets() for label in kept.labels(name)]


def _look(project: Project, level: int) -> None:
    st.session_state[RECUT_PROBLEM] = ""
    st.session_state.pop(RECUT_LOOKED, None)
    try:
        who.check(INGEST, project.source.name)
        workspace, name = project.workspace, project.source.name
        st.session_state[RECUT_LOOKED] = look(workspace, name, level, ingest_embedder(workspace, name), _labels())
    except WinnowError as error:
        st.session_state[RECUT_PROBLEM] = str(error)


def _cut(project: Project, level: int) -> None:
    """Cut in the background; until the end the collection is searched as it was."""
    st.session_state.pop(RECUT_LOOKED, None)
    workspace, name = project.workspace, project.source.name
    try:
        labels = _labels()
        jobs.start(
            "Cutting documents anew",
            lambda progress: recut(workspace, name, level, ingest_embedder(workspace, name), labels, progress),
            who.deed(INGEST, name),
            kind=source.job_of(project),
        )
    except WinnowError as error:
        st.session_state[RECUT_PROBLEM] = str(error)


def report_cut(cut: Recut) -> None:
    """Chunks before and after, and the labels by what becomes of them; those not met as before one by one."""
    verb = "would be" if cut.report is None else "are"
    st.markdown(
        f"**Chunks: {cut.before:,} {verb} {cut.after:,}**; {cut.unchanged:,} of them with a text as before, "
        "which are not embedded again"
    )
    if not cut.labels:
        st.markdown("No label is on a chunk of this collection.")
        return
    outcomes = {outcome: count for outcome, count in cut.outcomes.items() if count}
    st.dataframe(
        {
            "labels": list(outcomes.values()),
            "become": list(outcomes),
            "meaning": [MEANING[outcome] for outcome in outcomes],
        },
        hide_index=True,
        alt=f"{len(cut.labels)} labels by what becomes of them",
    )
    rows = [one for one in cut.labels if one.outcome != "same"][:SHOWN]
    if rows:
        st.dataframe(
            {
                "question": [one.label.query_id for one in rows],
                "chunk": [one.label.chunk_id for one in rows],
                "becomes": [one.outcome for one in rows],
                "now in": [", ".join(one.chunk_ids) for one in rows],
            },
            hide_index=True,
            height=min(38 + 35 * len(rows), 250),
            alt=f"{len(rows)} labels whose text is elsewhere",
        )


# Deleting


def _delete(project: Project) -> None:
    """Delete the collection, once its name was typed."""
    if who.refusal(DELETE_COLLECTION):
        return
    with st.popover("Delete these chunks", icon=":material/delete:"):
        st.markdown("Chunks, rules and vectors go for good. Documents, questions, labels and recorded lists stay.")
        typed = st.text_input(f"Type {say.plain(project.source.name)} to confirm", key="data.confirm")
        st.button(
            "Delete",
            key="data.delete",
            type="primary",
            disabled=typed != project.source.name or jobs.running(),
            on_click=_deleted,
            args=(project,),
        )


def _deleted(project: Project) -> None:
    if st.session_state["data.confirm"] != project.source.name:  # pressed before the page knew what was typed
        return
    st.session_state[PROBLEM] = ""
    try:
        with who.doing(DELETE_COLLECTION, project.source.name):
            delete_collection(project.workspace, project.source.name)
        if project.shipped or not (project.folder / "meta.yaml").is_file():
            state.change(project=state.DEFAULT_PROJECT)
        else:
            save(project, source=ProjectSource())
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)
