"""Ship: how does it get into my system, and stay good there?"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages import rail, state
from pages.components import resources, say
from pages.ship import runs
from pages.widgets.take_along import table
from rag_core.errors import InputError, SpecError, WinnowError
from rag_core.export import export_filter, export_spec, fates
from rag_core.project.session import Session
from rag_core.spec import saved_names, shipped_names
from rag_core.stage import Pipeline

FORMS = (
    ("Python file", "", ":material/code:", "One file for Python 3.11 or later; needs nothing else and tests itself."),
    (
        "Chroma",
        "chroma",
        ":material/database:",
        "The same file with a retriever over your collection, asked on as here.",
    ),
    ("LangChain", "langchain", ":material/link:", "The same file with a retriever over your vector store."),
    ("LlamaIndex", "llamaindex", ":material/account_tree:", "The same file with a node post-processor."),
)
# Name, adapter in the file, icon and help. No docstring: Streamlit would write it on the page.
PICKED, OWN = "ship.pipeline", "own settings"

HELP = """
**Take home** is the pipeline A of the Bench. The Python file keeps what it keeps here: its self-test compares both.
What searches stays behind, since your own search brings the list; a stage that asks a model or reads the collection
cannot go into a file that needs nothing but Python, and is said with its reason. The spec holds every stage.

**A run** is what a pipeline gave on all questions, kept as it was: figures per question, kept chunks, reasons, labels,
and fingerprints of source, rules, labels and model. It never changes; notes can be added.

**The gate** asks one thing: is A worse than a kept run by more than chance? *fail*, *pass*, or *inconclusive* where the
questions are too few or the two cannot be set against each other. The same gate runs in your builds.
"""


def draw() -> None:
    try:
        session = state.session()
    except WinnowError:
        return  # the rail has said why
    rail.head("ship", HELP)
    try:
        pipeline = state.pipeline_of("A", session)
    except WinnowError as error:
        say.problem("Pipeline A cannot be read.", str(error))
        st.button("Take the project's own", on_click=state.change, kwargs={"a": ""})
        return
    if pipeline is None:
        return
    pick(session, pipeline)
    take_home(session, pipeline)
    runs.show(session, pipeline)
    state.write_address()
    resources.settle()


def pick(session: Session, pipeline: Pipeline) -> None:
    """Pipeline A, the same as on the Bench, and the way back to it."""
    entry = state.current().a or session.project.pipelines.get("A") or ""
    names = [*session.pipeline_names(), *shipped_names(), *saved_names(session.workspace)]
    shown = (pipeline.label or OWN) if entry.startswith("~") else entry
    options = list(dict.fromkeys([shown, *names]))
    st.session_state[PICKED] = shown
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox("Pipeline A", options, key=PICKED, on_change=_take, args=(shown,), width=260)
        rail.link("bench", "Change it on the Bench")


def _take(shown: str) -> None:
    if st.session_state[PICKED] != shown:
        state.change(a=st.session_state[PICKED])


def take_home(session: Session, pipeline: Pipeline) -> None:
    """Every form of the pipeline one click away, and what becomes of each stage."""
    st.markdown("**Take it home**")
    name = say.plain(pipeline.label or "pipeline").replace(" ", "-") or "pipeline"
    refused = ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for title, adapter, icon, about in FORMS:
            try:
                text = export_filter(pipeline, adapter, *session.scores_of(pipeline), session.record_fields())
            except (SpecError, InputError) as error:
                text, refused = "", str(error)
            st.download_button(
                title, text, "filter.py", "text/x-python", key=f"ship.take.{adapter or 'python'}", icon=icon,
                help=about, disabled=not text, type="primary" if not adapter else "secondary", on_click="ignore",
            )  # fmt: skip
        st.download_button(
            "Spec (YAML)", export_spec(pipeline, "yaml"), f"{name}.yaml", "application/yaml", key="ship.take.spec",
            icon=":material/description:", on_click="ignore",
            help="Every stage with all its settings: for this library, a colleague, or the gate in your builds.",
        )  # fmt: skip
    if refused:
        say.problem(
            "This pipeline cannot become a Python file as it is; its spec can be taken.",
            refused,
            "Switch the stage off on the Bench, or run the spec with this library.",
        )
    rows = fates(pipeline)
    marks = ["✓ goes along" if one.goes else "· stays with your search" if one.stays else "✕ cannot go" for one in rows]
    table(
        {
            "stage": [f"{one.title} ({one.stage})" for one in rows],
            "": marks,
            "why": [one.why for one in rows],
        },
        "ship.fates",
        _said([f"{one.title}: {one.why}" for one in rows]),
        tall=1000,
        width=920,
    )
    with st.expander("How it is called"):
        st.code(
            "from filter import filter_chunks\n\n"
            'kept = filter_chunks(question, chunks)  # mappings, best first, with "distance" and maybe "query_must"',
            language="python",
        )
        st.code("python filter.py --self-test", language=None)


def _said(lines: Sequence[str]) -> str:
    return "Stages of the pipeline and whether they can be taken home: " + "; ".join(lines)


draw()
