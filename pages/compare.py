"""Compare: A or B, on which queries, and why?"""

import streamlit as st

from pages import state
from pages.components import (
    choice,
    compare_beside,
    compare_losses,
    compare_matrix,
    compare_queries,
    compare_run,
    compare_state,
    compare_table,
    halves,
    header,
    resources,
    say,
    tuning_set,
    tuning_sources,
)
from pages.components.compare_run import Material
from pages.components.compare_view import FEWEST, FIRST, MEASURES, MOST, SHOWN, CompareView, title_of
from pages.labels.pairs import WANTED
from rag_core.errors import InputError
from rag_core.evaluate import compare
from rag_core.evaluate.sets import EvalSet
from rag_core.evaluate.tally import PipelineTally
from rag_core.spec import saved_names, shipped_names

PIPELINE = "compare.pipeline"

HELP = """
**Means** are macro: every scored query weighs the same. **Intervals** are 95 % bootstrap intervals over queries.

**p** is a paired permutation test against the baseline, corrected for the number of comparisons (Holm).

**SetP, SetR, SetF.** Precision, recall and F₁ of the kept list. **nDCG@15** also sees the order.

**Unjudged** chunks count as irrelevant: where many are, label before you decide.

**Rank-biased overlap** compares two rankings, the top counting most; **Jaccard** compares the two sets.
"""


def choose_set() -> EvalSet | None:
    """The eval set in the header, that of all pages."""
    titles = tuning_sources.titles()
    compare_state.follow()
    view = compare_state.current()
    if view.eval_set not in titles:
        if view.eval_set:
            say.problem("The link names an eval set that is not here; another one is shown.", view.eval_set[:80])
        kept = (st.session_state.get(tuning_set.SET), *tuning_set.PREFERRED, *titles)
        compare_state.settle(eval_set=next(name for name in kept if name in titles), pipelines=(), query_id="")
    choice.select("Eval set", list(titles), format_func=lambda key: titles[key], **compare_state.bind("eval_set"))
    try:
        return tuning_sources.eval_set(compare_state.current().eval_set)
    except InputError as error:
        say.problem("This eval set cannot be opened.", str(error), choice.ANOTHER_SET)
        return None


def choose_pipelines(chosen: EvalSet) -> None:
    """Two to five pipelines, which of them is the baseline, which is looked at, and by which measure."""
    if not compare_state.current().pipelines:
        compare_state.settle(pipelines=FIRST[chosen.recorded])
    compare_state.follow_pipeline()
    known = [*shipped_names(), *saved_names(resources.workspace())]
    known += [entry for entry in compare_state.current().pipelines if entry not in known]
    with st.sidebar:
        st.multiselect(
            f"Pipelines ({FEWEST} to {MOST})", known, format_func=title_of, max_selections=MOST,
            help="Shipped ones, those saved in the workspace, and what Explore has now.",
            **compare_state.bind("pipelines"),
        )  # fmt: skip
        st.button(
            "Add what Explore has now", icon=":material/filter_alt:", on_click=compare_state.add_from_explore,
            help="The filters and settings of the page Explore in this session, as a pipeline of their own.",
        )  # fmt: skip
        entries = compare_state.current().pipelines
        if len(entries) < FEWEST:
            return
        places = range(len(entries))
        st.selectbox("Baseline", places, format_func=lambda at: title_of(entries[at]), **compare_state.bind("baseline"))
        st.segmented_control("Measure", MEASURES, required=True, **compare_state.bind("measure"))
    choose_pipeline(known)


def choose_pipeline(known: list[str]) -> None:
    """The pipeline of all pages, in the header: the one that is held against the baseline."""
    view = compare_state.current()
    st.session_state[PIPELINE] = view.pipelines[view.other]
    choice.select(
        "Pipeline", [entry for entry in known if entry != view.pipelines[view.baseline]], format_func=title_of,
        key=PIPELINE, on_change=lambda: compare_state.put_in(st.session_state[PIPELINE]),
        help="The views Queries and Where relevant chunks die hold it against the baseline.",
    )  # fmt: skip


def draw_view(found: Material, tallies: list[PipelineTally], view: CompareView) -> None:
    """The view that is chosen."""
    st.segmented_control("View", SHOWN, required=True, label_visibility="collapsed", **compare_state.bind("shown"))
    if view.shown == "Table":
        compare_table.show(found, tallies, view)
        draw_to_decide(found, tallies, view)
    elif view.shown == "Queries":
        compare_queries.show(tallies, view)
        compare_beside.show(found, view)
    elif view.shown == "Slices":
        compare_table.show_slices(found, tallies, view)
    elif view.shown == "Heat map":
        picked = compare_matrix.show(tallies, view)
        if picked:
            compare_state.change(shown="Queries", query_id=picked)
            st.rerun()
    else:
        compare_losses.show(found, view)


def draw_to_decide(found: Material, tallies: list[PipelineTally], view: CompareView) -> None:
    """Whether open labels could still turn the comparison, and the way to give them."""
    baseline, other = tallies[view.baseline], tallies[view.other]
    asked = compare_run.computed(
        "decide", found, view.baseline, view.other, words="open labels weighed",
        work=lambda _: compare.to_decide(baseline, other),
    )  # fmt: skip
    if asked is None:
        return
    if asked.settled:
        st.text(f"No open label can change which of {baseline.name} and {other.name} has the higher mean SetF.")
        return
    ranked = asked.ranked()[:12]
    st.text(f"Open labels can still change which of {baseline.name} and {other.name} has the higher mean SetF.")
    if ranked and st.button(f"Label these {len(ranked)} to decide", icon=":material/new_label:"):
        state.change(project=view.eval_set)
        pairs = compare_run.pairs(found, [(query_id, chunk_id) for _, query_id, chunk_id in ranked])
        st.session_state[WANTED] = (pairs, f"can decide between {baseline.name} and {other.name}")
        st.session_state["labels.view"] = "Queue"
        st.switch_page("pages/labels/page.py")


def draw() -> None:
    header.show("Compare", "A or B, on which queries, and why?", HELP)
    compare_state.read_address()
    if st.session_state.get(compare_state.PROBLEM):
        say.problem("The link cannot be shown as it is.", st.session_state[compare_state.PROBLEM])
    if not tuning_sources.titles():
        say.problem("There is no eval set.", "Make one on Questions, or drop result lists on Explore.")
        return
    chosen = choose_set()
    if chosen is None:
        return
    choose_pipelines(chosen)
    view = compare_state.current()
    if len(view.pipelines) < FEWEST:
        st.markdown(f"Choose at least **{FEWEST} pipelines** in the sidebar to compare them.")
        return
    found = compare_run.material(halves.chosen_half(chosen), view.pipelines)
    tallies = compare_run.tallies(found) if found is not None else None
    if found is None or tallies is None:
        return
    draw_view(found, tallies, view)
    compare_state.write_address()
    resources.settle()


draw()
