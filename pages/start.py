"""Start: one picture of what filters do, and the ways in."""

import streamlit as st

from pages.components import header, pipeline_picture, resources, say, session, sources
from pages.components.view import DEFAULT_SET
from rag_core.errors import InputError
from rag_core.evaluate.experiment import run_case
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline

EXAMPLE = "combat-1"
DOOR_WIDTH = 308  # pixels
DEMO = {"set": DEFAULT_SET, "query": EXAMPLE, "pipeline": '["QueryMust"]'}

HELP = """
**Precision** is the share of the kept chunks that are relevant, **recall** the share of the relevant chunks that are
kept, **F₁** the balance of both. A filled dot is kept, a hollow one dropped; ✓ is labelled relevant, ✕ irrelevant.
"""

LINE = (
    '{"id": "q1", "query": "…", "candidates": [\n'
    '  {"id": "c1", "title": "…", "distance": 0.6820, "relevant": 1, "text": "…"},\n'
    '  {"id": "c2", "title": "…", "distance": 0.7088, "relevant": null}]}'
)


def draw_picture() -> None:
    """The worked example, run as it stands in the eval set."""
    try:
        chosen = resources.eval_set(DEFAULT_SET)
        case = next(case for case in chosen.cases if case.query.id == EXAMPLE)
        outcome = run_case(case, parse_pipeline(["QueryMust"]), chosen.min_grade)
    except (InputError, StopIteration) as error:
        say.problem("The worked example cannot be read.", str(error))
        return
    before = run_case(case, Pipeline(), chosen.min_grade)
    pipeline_picture.show(outcome, before, "query_must", chosen.min_grade, key="start.picture")


def opened() -> None:
    """A file was dropped: show it on Explore when the page has run."""
    name = sources.take_upload("start.file")
    if name:
        session.change(eval_set=name, query_id="")
        st.session_state["start.go"] = True


def draw_doors() -> None:
    """The ways in, side by side."""
    doors = st.container(horizontal=True)  # wraps where the window is narrow
    demo, mine, own, shell = (doors.container(border=True, width=DOOR_WIDTH) for _ in range(4))
    with demo:
        st.markdown("**Try the example queries**")
        st.markdown("Recorded lists of a rulebook index with labels. No key and no model needed.")
        st.page_link(
            "pages/explore.py",
            label="Open combat-1 with query_must on",
            icon=":material/play_arrow:",
            query_params=DEMO,
        )
    with mine:
        st.markdown("**Open my result lists**")
        st.file_uploader(
            "Recorded result lists (JSONL)",
            type=["jsonl"],
            key="start.file",
            on_change=opened,
            label_visibility="collapsed",
        )
        if sources.upload_problem():
            say.problem("This file cannot be opened; nothing was changed.", sources.upload_problem())
        with st.expander("What a line holds"):
            st.code(LINE, language=None, wrap_lines=True)
            st.markdown("Only `query` and one score per candidate are required. `relevant` is a grade from 0, or null.")
    with own:
        st.markdown("**Connect my collection**")
        st.markdown("A folder of documents, or a Chroma collection, which is only read.")
        st.page_link("pages/data/page.py", label="Open Data", icon=":material/database:")
    with shell:
        st.markdown("**Measure from the command line**")
        st.markdown("The same filters and figures, for scripts and checks.")
        st.code("python -m rag_core replay lists.jsonl --pipeline query-must --json", language=None, wrap_lines=True)


def draw() -> None:
    header.show("Start", "What do retrieval filters keep, what do they drop, and is it right?", HELP)
    if st.session_state.pop("start.go", False):
        st.switch_page("pages/explore.py")
    draw_picture()
    st.space("small")
    draw_doors()


draw()
