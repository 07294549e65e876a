"""Data: what is in the project's source, how did it get there, and which families crowd out answers?"""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from pages import rail, state
from pages.components import jobs, resources, say
from pages.data import chunks, documents, families, numbers, rules, source, words
from rag_core.errors import WinnowError
from rag_core.index.browse import Overview, overview, overview_of
from rag_core.index.collection import CollectionSummary, list_collections, revision_of
from rag_core.index.foreign import Connected
from rag_core.index.ingest import IngestReport
from rag_core.project.intake import intake_of
from rag_core.project.project import CALLABLE, COLLECTION, NOTHING
from rag_core.project.session import Session
from rag_core.text import counted

CHUNKS, NUMBERS, FAMILIES, WORDS, DOCUMENTS = "Chunks", "Numbers", "Families", "Words", "Documents"
SHOWN = "data.project"
# What of the session belongs to the project in sight.
OF_A_PROJECT = (
    *(chunks.CHUNK, chunks.PAGE, families.CHOSEN, families.CHUNK, rules.CHUNK, rules.FAILED),
    *(source.PROBLEM, source.LOOKED, source.FOUND, documents.PROBLEM),
)

HELP = """
**Chunk.** A piece of a document that a search can return: for Markdown the text under a header, for JSONL, CSV and
Parquet a row, for OpenAPI an operation or a schema, for a connected collection a record.

**Tokens** are those of title and text as the embedding model counts them. It reads a limited number; what stands behind
is not embedded and cannot be found by it: **embedded whole** is the share it reads to the end.

**Repeated.** Chunks whose title and text are those of another chunk.

**Rule.** What a question must say for the chunk to be returned. A chunk without a rule always stays. **Batch.** Rules
stored together; one press takes them back. Nothing is embedded again.

**Family.** Chunks whose titles differ in a number, a code or a few words only: their **slots**. **Places taken** is a
family's share of the first k places of the dev questions' lists, **not relevant** the part of it that no label calls
relevant. Rules are checked on dev questions only, since they are a choice too.
"""


def draw() -> None:
    """The place: a new project's beginning, a project without a source, or what is in the source."""
    forget_another("" if state.beginning() else state.current().project)
    if state.beginning():
        head("A new project: where do its chunks come from?")
        source.ask(None)
        return
    try:
        session = state.session()
    except WinnowError:
        return  # the rail has said it
    try:
        head("What is in it, how did it get there, and which families crowd out answers?", session)
        if jobs.current(source.job_of(session.project)) is not None:
            jobs.show(source.job_of(session.project))
        elif jobs.running():
            st.caption("As much work is under way on this server as it does at once; begin when some has ended.")
        draw_outcome(session)
        draw_source(session)
    except WinnowError as error:
        say.problem("This source cannot be shown.", str(error))
    state.write_address()


def forget_another(project: str) -> None:
    """What was selected or refused in another project is no matter of this one."""
    if st.session_state.get(SHOWN, project) != project:
        for key in OF_A_PROJECT:
            st.session_state.pop(key, None)
    st.session_state[SHOWN] = project


def head(question: str, session: Session | None = None) -> None:
    """The question that the place answers, the next action, and help."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(f":small[:gray[{question}]]")
        with st.container(horizontal=True, width="content", vertical_alignment="center"):
            if session is not None:
                next_action(session)
            with st.popover("?", help="What the words and numbers on this page mean"):
                st.markdown(HELP)


def next_action(session: Session) -> None:
    """The one thing to do next, where the source stands and something else is missing."""
    if not rail.standing(rail.PLACES[0], session).endswith("✓"):
        return
    place, words = (
        (rail.PLACES[1], "Add questions")
        if not session.cases
        else (rail.PLACES[2], "Label chunks")
        if not any(case.grades for case in session.cases)
        else (rail.PLACES[3], "Open the Bench")
    )
    st.page_link(place.script, label=f"**{words}** →", query_params=state.link())


def draw_outcome(session: Session) -> None:
    """What the last work on this project's source did, until it is put away; one that stopped can be resumed."""
    project = session.project
    job = jobs.current(source.job_of(project))
    if job is None or not job.over.is_set():
        return
    with st.container(border=True, key="data.outcome"):
        if job.problem or job.stopped:
            said = "The work ended with a problem; what was done before is kept." if job.problem else "Stopped."
            say.problem(said, job.problem or job.stopped)
            with st.container(horizontal=True):
                if intake_of(project) is not None:
                    st.button(
                        "Resume", icon=":material/resume:", type="primary", key="data.resume",
                        on_click=documents.again, args=(project,), help="What is embedded is not embedded again.",
                    )  # fmt: skip
                st.button(
                    "Leave it",
                    key="data.close",
                    on_click=jobs.put_away,
                    args=(source.job_of(project),),
                    type="tertiary",
                )
            return
        report = job.report
        if isinstance(report, IngestReport):
            read = counted(report.documents, "document", "documents")
            st.markdown(
                f":material/check: **Chunks in the collection: {report.chunks:,}**; from {read} read, "
                f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, "
                f"{report.embedded:,} embedded; {report.seconds_embedding + report.seconds_storing:.1f} s"
            )
            if report.too_long:
                st.markdown(
                    f":material/warning: Longer than the {report.window} tokens the model reads: "
                    f"**{len(report.too_long):,}**; what stands behind is not embedded. *Chunks*, ordered by length, "
                    "shows them."
                )
            source.remarks(report.warnings, report.passed_over_files, report.skipped)
        elif isinstance(report, Connected):
            st.markdown(
                f":material/check: **Chunks in the mirror: {report.chunks:,}**; {report.with_text:,} with text, "
                f"{report.dimension:,} dimensions, {report.metric} distances"
            )
            st.text(f"{report.origin}\n{report.notice or f'queries are embedded with {report.model}'}")
        with st.container(horizontal=True, vertical_alignment="center"):
            next_action(session)
            st.button(
                "Hide this report",
                key="data.close",
                on_click=jobs.put_away,
                args=(source.job_of(project),),
                type="tertiary",
            )


def draw_source(session: Session) -> None:
    """The source: asked for where there is none, else its figures and sections."""
    project = session.project
    if project.source.kind == NOTHING:
        st.markdown("**This project has no source yet.** Where do its chunks come from?")
        source.ask(None if project.shipped else project)
        return
    summary = None
    if project.source.kind == COLLECTION:
        summary = standing(session)
        if summary is None:
            return
    elif project.source.kind == CALLABLE:
        st.markdown("The source is a function of yours: its chunks become known as it answers.")
        st.button("Ask it again", icon=":material/refresh:", key="data.ask_again", on_click=session.ask_again)
        if not session.source.chunks:
            return
    shown = numbers_of(session)
    numbers.figures(shown)
    sections: dict[str, Callable[[], None]] = {
        CHUNKS: lambda: chunks.show(session, shown),
        NUMBERS: lambda: numbers.show(shown),
        FAMILIES: lambda: families.show(session),
        rules.RULES: lambda: rules.show(session),
    }
    if summary is not None:
        sections[WORDS] = lambda: words.show(session)
        sections[DOCUMENTS] = lambda: documents.show(session, summary, shown)
    if st.query_params.get("section") in sections:  # of a link; it leaves the address with the first drawing
        st.session_state[rules.SECTION] = st.query_params["section"]
    if st.session_state.get(rules.SECTION) not in sections:
        st.session_state[rules.SECTION] = CHUNKS
    section = st.segmented_control(
        "Section", list(sections), required=True, key=rules.SECTION, label_visibility="collapsed"
    )
    sections[section or CHUNKS]()


def standing(session: Session) -> CollectionSummary | None:
    """The collection as it stands; None where it does not, with what can be done about it."""
    project = session.project
    known = {one.name: one for one in list_collections(session.workspace)}
    if project.source.name not in known and project.eval_set.corpus is not None:
        with st.spinner("Bringing the project's chunks in …"):
            session.refresh()
        st.rerun()  # so that the rail counts them
    summary = known.get(project.source.name)
    if summary is not None and not summary.problem and summary.chunks:
        return summary
    if jobs.current(source.job_of(project)) is not None:
        return None  # at work, or its outcome stands above with its buttons
    if summary is not None:
        say.problem("This collection cannot be shown.", summary.problem or "it holds no chunk")
    else:
        st.markdown("**The chunks of this project are not here yet.**")
    if intake_of(project) is not None:
        st.button(
            "Ingest now", icon=":material/resume:", type="primary", key="data.resume", on_click=documents.again,
            args=(project,), help="With the documents and settings that were given before; what is done is kept.",
        )  # fmt: skip
    if not project.shipped:
        source.ask(project)
    return None


def numbers_of(session: Session) -> Overview:
    """The source's numbers, counted anew when it changes."""
    project = session.project
    if project.source.kind == COLLECTION:
        revision = revision_of(session.workspace, project.source.name)
        return _numbers(str(resources.workspace()), project.source.name, revision)
    return _numbers_of_chunks(str(session.workspace), project.name, session.source.revision, session)


@st.cache_resource(max_entries=8, show_spinner="Counting chunks …")
def _numbers_of_chunks(workspace: str, name: str, revision: str, _session: Session) -> Overview:
    return overview_of(_session.source.chunks)


@st.cache_resource(max_entries=8, show_spinner="Counting chunks …")
def _numbers(workspace: str, name: str, revision: str) -> Overview:
    return overview(Path(workspace), name)


draw()
