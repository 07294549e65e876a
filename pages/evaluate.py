"""Evaluate: how good is it, in figures that can be kept?"""

import streamlit as st

from pages.components import (
    choice,
    compare_run,
    evaluate_measures,
    halves,
    header,
    resources,
    say,
    tuning_set,
    tuning_sources,
    who,
)
from pages.components.compare_run import Material
from pages.components.compare_view import FIRST, title_of
from rag_core.errors import InputError, StoreError
from rag_core.evaluate.run_file import summary_of
from rag_core.evaluate.sets import EvalSet
from rag_core.project.deeds import KEEP_RUN
from rag_core.spec import saved_names, shipped_names

SHOWN = ("Measures", "Per query")
PIPELINES, PIPELINE = "evaluate.pipelines", "evaluate.pipeline"
NAME, KEPT, PROBLEM = "evaluate.name", "evaluate.kept", "evaluate.problem"
MOST = 8

HELP = """
**Means** are macro: per query first, then the mean over scored queries. Mean SetF is not the F of mean SetP and SetR.

**Scored** is a query with at least one relevant chunk; an empty list scores 0. A query for which nothing is relevant is
counted apart.

**Run.** What an evaluation found, kept as it was: figures per query, settings, labels, and fingerprints of corpus,
labels, model and code. Two runs on different labels are not subtracted from each other.
"""


def choose_pipelines(chosen: EvalSet) -> list[str]:
    """The pipelines in the sidebar; others at first for recorded lists than for a live set."""
    known = [*shipped_names(), *saved_names(resources.workspace())]
    key = f"{PIPELINES}.{'recorded' if chosen.recorded else 'live'}"
    entries = choice.added(st.session_state.get(key, FIRST[chosen.recorded]), choice.met("evaluate"), MOST)
    st.session_state[key] = list(entries)
    known += [entry for entry in entries if entry not in known]
    choose_pipeline(known, key)
    with st.sidebar:
        return st.multiselect(
            "Pipelines", known, max_selections=MOST, format_func=title_of, key=key, persist_state="session"
        )


def choose_pipeline(known: list[str], key: str) -> None:
    """The pipeline of all pages, in the header; choosing one measures it beside the others."""
    entries = st.session_state[key]
    st.session_state[PIPELINE] = choice.pipeline() if choice.pipeline() in entries else next(iter(entries), None)
    choice.select(
        "Pipeline", known, format_func=title_of, key=PIPELINE, on_change=measure_too, args=(key,),
        placeholder="choose a pipeline",
        help="Is measured beside those in the sidebar; Explore and Compare open with it.",
    )  # fmt: skip


def measure_too(key: str) -> None:
    """Take over the header's pipeline, and measure it beside the others."""
    choice.take_widget(choice.PIPELINE, PIPELINE)
    choice.met("evaluate")
    st.session_state[key] = list(choice.added(st.session_state[key], choice.pipeline(), MOST))


def keep(found: Material) -> None:
    """Run once more with reasons, and store the run under the name that stands in the field by now."""
    try:
        from rag_core.store.runs import RunStore

        with who.doing(KEEP_RUN) as performed:
            run = compare_run.recorded(found, st.session_state.get(NAME, ""))
            st.session_state[KEPT] = RunStore(resources.label_store()).save(run.document, summary_of(run))
            performed.result = run.id
    except (InputError, StoreError) as error:
        st.session_state[PROBLEM] = str(error)


def draw_keep(found: Material) -> None:
    """Name and button; what became of it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name of the run", key=NAME, max_chars=200, placeholder="what was tried")
        st.button("Keep as a run", icon=":material/bookmark_add:", on_click=keep, args=(found,))
    kept, problem = st.session_state.pop(KEPT, ""), st.session_state.pop(PROBLEM, "")
    if kept:
        st.success(f"Kept as run {kept}; it is listed on Ship.")
    if problem:
        say.problem("The run was not kept.", problem)


def draw_figures(shown: str) -> None:
    """The measures of an eval set, as means or per query."""
    chosen = tuning_set.choose()
    if chosen is None:
        return
    entries = choose_pipelines(chosen)
    if not entries:
        st.markdown("Choose a **pipeline** in the sidebar to measure it.")
        return
    found = compare_run.material(halves.chosen_half(chosen), entries)
    tallies = compare_run.tallies(found) if found is not None else None
    if found is None or tallies is None:
        return
    if shown == "Measures":
        evaluate_measures.show_means(tallies)
        draw_keep(found)
    else:
        evaluate_measures.show_queries(tallies)


def draw() -> None:
    header.show("Evaluate", "How good is it, in figures that can be kept?", HELP)
    st.session_state.setdefault("evaluate.shown", SHOWN[0])
    shown = st.segmented_control(
        "View", SHOWN, required=True, key="evaluate.shown", label_visibility="collapsed", persist_state="session"
    )
    if not tuning_sources.titles():
        say.problem("There is no eval set.", "Make one on Questions, or drop result lists on Explore.")
    else:
        draw_figures(shown or SHOWN[0])
    resources.settle()


draw()
