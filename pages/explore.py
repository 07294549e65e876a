"""Explore: what does this filter do to this query?"""

import math
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.components import (
    controls,
    cut_chart,
    header,
    inert_text,
    measures_line,
    resources,
    say,
    session,
    sources,
)
from pages.components.reading import Row, chart_data, reading_of_rules, rows_of, waterfall
from pages.components.view import ADAPTIVE, LARGEST_LIMIT, View, pipeline_of
from rag_core.errors import InputError, StoreError
from rag_core.evaluate.experiment import Outcome, run, run_case
from rag_core.evaluate.sets import EvalSet
from rag_core.stage import Pipeline
from rag_core.types import Case

BELOW = ("Chunks", "Context", "All queries")
TABLE_WIDTH = 590  # pixels: rank, distance, verdict, label and the start of the title

HELP = """
**Keys.** Tab reaches a dashed limit in the chart: arrow keys move it (Shift or Page for ten steps, Home for 0).
Tab reaches the chunks of the chart: arrow keys walk, Enter selects.

**SetP, SetR, SetF.** Precision, recall and F₁ of the list that is kept, for this query; “was” is the list without any
filter. Relevant means a label of at least min_grade.

**Distance.** Lower is nearer. **Gap.** The difference of two neighbours’ distances; the first gap never ends a list.

**kept / dropped** is what the filters decide; **relevant / irrelevant / unjudged** is what people say.
"""


def find_set() -> EvalSet | None:
    """The eval set in the view, or None with the reason shown."""
    if sources.upload_problem():
        say.problem("This file cannot be opened; nothing was changed.", sources.upload_problem())
    try:
        return sources.find(session.current().eval_set)
    except InputError as error:
        say.problem("This eval set cannot be shown.", str(error))
        st.button("Open the example queries", on_click=controls.start_over, icon=":material/play_arrow:")
        return None


def labelled(chosen: EvalSet) -> list[Case]:
    """The cases with the labels people gave laid over them; without a store there is nothing to lay."""
    if not resources.has_store():
        return list(chosen.cases)
    from pages.components import labels  # late: the database layer takes longer to import than this page

    try:
        return labels.overlaid(resources.label_store(), chosen.name, chosen.cases)
    except StoreError as error:
        say.problem("The labels given here cannot be read; the eval set’s own are shown.", str(error))
        return list(chosen.cases)


def find_query(cases: Sequence[Case]) -> Case:
    """The query in the view; an unknown one is said, and the first is shown."""
    wanted = session.current().query_id
    found = next((case for case in cases if case.query.id == wanted), None)
    if found is None:
        if wanted:
            say.problem(
                "The link names a query that this eval set does not hold; the first one is shown.", wanted[:200]
            )
        found = cases[0]
        session.settle_query(found.query.id)
    return found


def run_view(case: Case, view: View, min_grade: int) -> Outcome:
    """The case through the page's filters; where they cannot run on this list, without the one that cannot."""
    try:
        return run_case(case, pipeline_of(view), min_grade)
    except InputError as error:
        say.problem("A filter cannot run on this list as it is set; the list is shown without it.", str(error))
        return run_case(case, pipeline_of(replace(view, adaptive_on=False)), min_grade)


def moved(event: cut_chart.ChartEvent) -> None:
    """Take over what a person did in the chart."""
    if event.selected is not None:
        session.select(event.selected)
    limits = {
        name: min(value, LARGEST_LIMIT)
        for name, value in event.limits.items()
        if name in ADAPTIVE and math.isfinite(value) and value >= 0
    }
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


def draw_below(outcome: Outcome, before: Outcome, rows: Sequence[Row], chosen: EvalSet, cases: Sequence[Case]) -> None:
    """Chunks, context or all queries: only the one that is chosen runs."""
    view = session.current()
    picked = st.segmented_control(
        "Below the charts", BELOW, default=BELOW[0], required=True, key="explore.below", label_visibility="collapsed"
    )
    if picked == "Context":
        from pages.components import context_view

        context_view.show(outcome)
    elif picked == "All queries":
        draw_all(view, chosen, cases)
    else:
        draw_chunks(outcome, rows, chosen, view)


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


def draw_all(view: View, chosen: EvalSet, cases: Sequence[Case]) -> None:
    """The page's setting on every query of the eval set."""
    from pages.components import all_queries

    try:
        now = run(cases, pipeline_of(view), chosen.min_grade)
    except InputError as error:
        say.problem("This setting cannot run on every query of the eval set.", str(error))
        return
    all_queries.show(now, run(cases, Pipeline(), chosen.min_grade))


def draw_chart(data: cut_chart.ChartData) -> None:
    """The chart, or that there is nothing to draw."""
    if data.total:
        cut_chart.show(data, key="explore.chart", on_change=moved)
    else:
        st.markdown("This list holds no candidates: there is nothing to filter.")


def draw_sidebar(cases: Sequence[Case] = (), data: cut_chart.ChartData | None = None) -> None:
    """What is looked at and which filters run; without a list only the eval set can be chosen."""
    with st.sidebar:
        controls.choose_set(sources.titles())
        if data is not None:
            controls.choose_query(cases)
            controls.filters(data.limit_maximum, data.step)
            controls.take_along()


def draw() -> None:
    header.show("Explore", "What does this filter do to this query?", HELP)
    session.read_address()
    if st.session_state.get(session.PROBLEM):
        say.problem(
            "The link cannot be shown as it is; the page stands as at first.", st.session_state[session.PROBLEM]
        )
    chosen = find_set()
    if chosen is None:
        draw_sidebar()
        return
    cases = labelled(chosen)
    case = find_query(cases)
    view = session.current()
    before = run_case(case, Pipeline(), chosen.min_grade)
    outcome = run_view(case, view, chosen.min_grade)
    rows = rows_of(outcome, chosen.min_grade)
    data = chart_data(outcome, rows, view, session.selected())
    above, charts = st.container(), st.container()
    with charts:  # sent first: what a person looks at while a setting moves
        draw_chart(data)
    draw_sidebar(cases, data)
    with above:
        draw_query(case, rows, view)
        measures_line.show(outcome, before)
        st.markdown(f"**{waterfall(outcome)}** · :gray[{measures_line.footnote(outcome, chosen.min_grade)}]")
        draw_remarks(outcome)
    session.write_address(session.current())
    draw_below(outcome, before, rows, chosen, cases)
    resources.settle()


draw()
