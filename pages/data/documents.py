"""How the source came in: its documents or the store it mirrors, brought up to date, added to, or deleted.

Names of documents and ids of chunks are foreign text and stand in cells and lists of choices only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

import streamlit as st

from pages import state
from pages.components import jobs, say, who
from pages.components.act import refusing
from pages.data import source
from pages.widgets.take_along import table
from rag_core.index.browse import Overview
from rag_core.index.collection import CollectionSummary, delete_collection
from rag_core.project.deeds import DELETE_COLLECTION, INGEST
from rag_core.project.intake import Chroma, Documents, intake_of
from rag_core.project.project import Project, ProjectSource, save
from rag_core.project.session import Session

PROBLEM = "data.documents_problem"
SHOWN = 200  # chunks whose metadata is looked at


def show(session: Session, summary: CollectionSummary, numbers: Overview) -> None:
    """Where it came from on the left, what can be done on the right."""
    project = session.project
    if st.session_state.get(PROBLEM):
        say.problem("This was not begun.", st.session_state[PROBLEM])
    left, right = st.columns([2, 3], gap="large")
    rows = numbers.documents
    with left:
        if not rows or set(rows) == {""}:
            st.markdown("No chunk names the document it came from.")
        else:
            table(
                {"document": [PurePath(path).name or path for path in rows], "chunks": list(rows.values())},
                "data.documents",
                f"{len(rows)} documents with their chunks",
                tall=460,
                config={"document": st.column_config.TextColumn("document", width="large")},
            )
    with right:
        if summary.origin:
            _mirror(project, summary)
        else:
            _up_to_date(session)
            if not project.shipped:
                with st.expander("Add documents", icon=":material/add:"):
                    source.ask(project, (source.DOCUMENTS,))
            if any(path.endswith((".md", ".markdown")) for path in rows):
                st.caption(
                    "To cut at another header level, ingest the documents as a collection beside it (`winnow ingest … "
                    "--collection trial --header-level 2`): `winnow labels remap --eval-set "
                    f"{say.plain(project.labels)} --collection trial` says where each label goes."
                )
        _delete(project)


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
            disabled=jobs.running(source.job_of(project)) or bool(who.refusal(INGEST)),
            on_click=again,
            args=(project,),
            help="Reads these documents again; only what changed is embedded.",
        )
    else:
        st.markdown("Where the documents lay was not kept: add them again to bring the collection up to date.")


def again(project: Project) -> None:
    """Do what was last wanted of the source once more: what is done already is not repeated."""
    order = intake_of(project)
    with refusing(PROBLEM):
        if order is not None:
            source.start(project, order)


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
        "Read it again", icon=":material/sync:", key="data.again", disabled=jobs.running(source.job_of(project)),
        help="Brings the mirror up to date, with the metadata meaning what is chosen here.",
    ):  # fmt: skip
        with refusing(PROBLEM):
            source.start(project, replace(order, fields=fields))
        st.rerun()


def _delete(project: Project) -> None:
    """Delete the collection, once its name was typed."""
    if who.refusal(DELETE_COLLECTION):
        return

    def delete() -> None:
        if st.session_state["data.confirm"] != project.source.name:  # pressed before the page knew what was typed
            return
        with refusing(PROBLEM):
            with who.doing(DELETE_COLLECTION, project.source.name):
                delete_collection(project.workspace, project.source.name)
            if project.shipped or not (project.folder / "meta.yaml").is_file():
                state.change(project=state.DEFAULT_PROJECT)
            else:
                save(project, source=ProjectSource())

    with st.popover("Delete these chunks", icon=":material/delete:"):
        st.markdown("Chunks, rules and vectors go for good. Documents, questions, labels and recorded lists stay.")
        typed = st.text_input(f"Type {say.plain(project.source.name)} to confirm", key="data.confirm")
        st.button(
            "Delete",
            key="data.delete",
            type="primary",
            disabled=typed != project.source.name or jobs.running(source.job_of(project)),
            on_click=delete,
        )
