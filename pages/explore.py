"""Explore: what does this filter do to this query?"""

import math
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.components import (
    controls,
    cut_chart,
    header,
    history_keep,
    inert_text,
    live_controls,
    llm_controls,
    measures_line,
    resources,
    say,
    search_controls,
    sending,
    session,
    sources,
)
from pages.components.asked import Asked, find, find_live, find_set
from pages.components.cut_chart import ChartData
from pages.components.reading import Row, chart_data, reading_of_rules, rows_of
from pages.components.trace import trace, waterfall
from pages.components.view import ADAPTIVE, LARGEST_LIMIT, View, stages
from rag_core.errors import InputError, StoreError, SurroundingsError
from rag_core.evaluate.experiment import Outcome, run_case
from rag_core.evaluate.sets import EvalSet
from rag_core.filters.cutoff import TopK
from rag_core.stage import Pipeline
from rag_core.types import Case

BELOW = ("Chunks", "Context", "All queries")
FUSION, HOPS = "Fusion", "Hops"
FACTOR = "explore.factor"
TABLE_WIDTH = 590  # pixels: rank, distance, verdict, label and the start of the title

HELP = """
**Keys.** Tab reaches a dashed limit in the chart: arrow keys move it (Shift or Page for ten steps, Home for 0).
Tab reaches the chunks of the chart: arrow keys walk, Enter selects.

**SetP, SetR, SetF.** Precision, recall and F₁ of the list that is kept, for this query; “was” is the list without any
filter; of a list that is searched live, its first 15. Relevant means a label of at least min_grade.

**Distance.** Lower is nearer. **Gap.** The difference of two neighbours’ distances; the first gap never ends a list.

**kept / dropped** is what the filters decide; **relevant / irrelevant / unjudged** is what people say.
"""


def run_view(asked: Asked, view: View) -> Outcome:
    """The query's list through the page's filters; where they cannot run on this list, without the one that cannot."""
    case, min_grade = asked.case, asked.chosen.min_grade
    try:
        return run_case(case, filters_of(view, asked), min_grade)
    except InputError as error:
        say.problem("A filter cannot run on this list as it is set; the list is shown without it.", str(error))
        return run_case(case, filters_of(replace(view, adaptive_on=False), asked), min_grade)
    except SurroundingsError as error:
        say.problem("The collection could not be read on; the list is shown without refill.", str(error))
        return run_case(case, filters_of(replace(view, refill_on=False), asked), min_grade)


def filters_of(view: View, asked: Asked) -> Pipeline:
    """The page's filters, ready to run on the query in sight; with hops, whoever judges them."""
    pipeline = llm_controls.pipeline(view, asked)
    if not view.max_hops or asked.live is None:
        return pipeline
    from pages.components import hop_judging

    return hop_judging.ready(pipeline, view, asked)


def run_before(case: Case, asked: Asked) -> Outcome:
    """What “was” means: a recorded list as it came, a live list cut to a fixed number."""
    return run_case(case, compared(asked), asked.chosen.min_grade)


def compared(asked: Asked) -> Pipeline:
    """The pipeline that “was” stands for."""
    if asked.live is None:
        return Pipeline()
    from pages.components.live import BASELINE

    return Pipeline((TopK(BASELINE),))


def moved(event: cut_chart.ChartEvent) -> None:
    """Take over what a person did in the chart."""
    if event.selected is not None:
        session.select(event.selected)
    limits = {
        name: min(value, LARGEST_LIMIT)
        for name, value in event.limits.items()
        if name in ADAPTIVE and math.isfinite(value) and value >= 0
    }
    if "gap_threshold" in limits:  # the chart shows that of this question's form
        limits["gap_threshold"] /= st.session_state.get(FACTOR, 1.0)
    if limits:
        session.change(**limits)


def draw_query(case: Case, rows: Sequence[Row], view: View) -> None:
    """The query, with the words marked that satisfy a rule of a kept chunk."""
    spans = reading_of_rules(case.query.text, rows, view.mode) if view.rules_on else []
    inert_text.show([inert_text.Block("lead", inert_text.marked(case.query.text, spans))], key="explore.query")


def draw_remarks(outcome: Outcome) -> None:
    """Warnings and fallbacks of the run, counted."""
    lines = [f"{notice.chunk_id or 'whole list'}: {notice.text}" for notice in outcome.result.notices]
    lines += [f"{fallback.stage}: {fallback.reason}" for fallback in outcome.result.fallbacks]
    if lines:
        say.remarks(f"{len(lines)} warnings in this run", lines)


def draw_below(outcome: Outcome, rows: Sequence[Row], asked: Asked) -> None:
    """Chunks, context or all queries, how two rankings fused, each hop: only the one that is chosen runs."""
    view = session.current()
    more = [FUSION] * search_controls.fused(outcome) + [HOPS] * (search_controls.hopped(outcome) is not None)
    picked = st.segmented_control(
        "Below the charts",
        [*BELOW, *more],
        default=BELOW[0],
        required=True,
        key="explore.below",
        label_visibility="collapsed",
    )
    if picked == "Context":
        from pages.components import context_view

        context_view.show(outcome)
    elif picked == FUSION:
        search_controls.show_fusion(outcome)
    elif picked == HOPS:
        search_controls.show_hops(outcome)
    elif picked == "All queries":
        from pages.components import all_queries

        all_queries.show(view, asked, compared(asked))
    else:
        draw_chunks(outcome, rows, asked.chosen, view)


def draw_chunks(outcome: Outcome, rows: Sequence[Row], chosen: EvalSet, view: View) -> None:
    """The table, and the selected chunk beside it."""
    from pages.components import chunk_panel, chunk_table
    from pages.components.reading import score_kind, score_name

    kind = score_kind(outcome.start.hits)
    side_by_side = st.container(horizontal=True, gap="medium")  # wraps where the window is too narrow for both
    row = next((row for row in rows if row.hit.chunk.id == session.selected()), None)
    with side_by_side.container(width=TABLE_WIDTH if row else "stretch"):
        chunk_table.show(rows, kind, score_name(kind, outcome.start.metric))
        if row is None:
            st.caption("Select a chunk in the table or the chart to see its text, its rule and its label.")
            return
    with side_by_side.container(width="stretch"):
        try:
            store = resources.label_store()
        except StoreError as error:
            say.problem("Labels cannot be kept here.", str(error))
            store = None
        chunk_panel.show(row, outcome, store, chosen.name, view.mode)


def draw_chart(data: cut_chart.ChartData) -> None:
    """The chart, or that there is nothing to draw."""
    if data.total:
        cut_chart.show(data, key="explore.chart", on_change=moved)
    else:
        st.markdown("This list holds no candidates: there is nothing to filter.")


def draw_sidebar(chosen: EvalSet | None = None, asked: Asked | None = None, data: ChartData | None = None) -> None:
    """What is looked at and which filters run; as much of it as there is something to choose."""
    with st.sidebar:
        controls.choose_set(sources.titles())
        if chosen is not None:
            live_controls.choose_source(chosen)
        if asked is not None and data is not None:
            live_controls.choose_pipeline()
            controls.choose_query(asked.cases)
        if chosen is not None and session.current().collection:
            live_controls.ask()
            live_controls.search()
        controls.open_file()
        if asked is not None and data is not None:
            controls.filters(data.limit_maximum, data.step)
            controls.take_along()


def draw_trace(outcome: Outcome, data: ChartData, asked: Asked) -> None:
    """How the list came to be, for lists that were searched now; what of a deep one is drawn."""
    lines = trace(outcome) if asked.live is not None else []
    if len(data.points) + data.kept_elsewhere < data.total and data.total > len(data.points):
        lines.append(f"drawn: {len(data.points)} of {data.total}, the table holds all")
    if lines:
        st.caption(" · ".join(lines))


def draw() -> None:
    header.show("Explore", "What does this filter do to this query?", HELP)
    session.read_address()
    if st.session_state.get(session.PROBLEM):
        say.problem(
            "The link cannot be shown as it is; the page stands as at first.", st.session_state[session.PROBLEM]
        )
    session.follow()
    live_controls.follow_pipeline()
    chosen = find_set()
    live, ready = find_live(chosen) if chosen is not None else (None, False)
    asked = find(chosen, live) if chosen is not None and ready else None
    if asked is None:
        draw_sidebar(chosen)
        return
    draw_asked(asked)
    resources.settle()


def draw_asked(asked: Asked) -> None:
    """The query, its run, and everything that can be changed about it."""
    view, least = session.current(), asked.chosen.min_grade
    before = run_before(asked.case, asked)
    outcome = run_view(asked, view)
    rows = rows_of(outcome, least)
    data = chart_data(outcome, rows, view, session.selected())
    st.session_state[FACTOR] = view.factor(outcome.case.query.text)
    above, charts = st.container(), st.container()
    with charts:  # sent first: what a person looks at while a setting moves
        draw_chart(data)
    sending.now()
    draw_sidebar(asked.chosen, asked, data)
    with above:
        draw_query(asked.case, rows, view)
        search_controls.show_queries(outcome)
        measures_line.show(outcome, before, asked.baseline)
        st.markdown(f"**{waterfall(outcome)}** · :gray[{measures_line.footnote(outcome, least, asked.baseline)}]")
        draw_trace(outcome, data, asked)
        llm_controls.show(outcome, view, asked)
        draw_remarks(outcome)
    session.write_address(session.current())
    draw_below(outcome, rows, asked)
    if asked.live is not None:
        history_keep.keep(outcome.result, stages(view), view.collection)


draw()
