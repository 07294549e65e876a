"""LLM filter: which prompt and which model, what do they cost, and what do they break?"""

import streamlit as st

from pages.components import header, llm_page, llm_run, resources, say, tuning_set
from rag_core.errors import WinnowError
from rag_core.eval_sets.reading import EvalSet
from rag_core.judged.entrants import Entrant
from rag_core.types import Case

USUAL = "api-docs"  # made for this filter: its chunks refer to each other
VIEWS = ("Compare", "Decisions", "Repeat", "How good?", "Depth", "Answer")

HELP = """
**Simulated judge.** Answers from the labels and is wrong as often as it is told to be. It is no model: it says how good
a judge would have to be and what it may cost, before one is paid.

**Agreement, kappa.** How often the decisions match the labels; kappa takes chance out. **False drops** are relevant
chunks thrown away (harm), **false keeps** irrelevant ones left in (misses).

**Fallback.** Where a call fails, its candidates stay in distance order: the list is never empty for that reason.

**ms.** The time the filter adds to a query where its calls run side by side. **Tokens, cost** are of all queries;
an unknown price is an unknown cost. **Cost per point**: what 0.01 of SetF over no model costs.

**The front.** Precision, recall and cost together; a filled marker is one that no other filter beats in all three.
"""


def draw_compare(plan: llm_page.Plan, rivals: list[Entrant]) -> None:
    """The run that is missing, and all figures of what is stored."""
    from pages.components import llm_results

    llm_run.offer(plan.bench, [one for one in rivals if not one.simulated], "Before paying:", "llm.variants")
    document = llm_page.compared(plan, rivals)
    tuning_set.quiet(
        f"Macro over {document['queries_scored']} of {document['queries_total']} queries; "
        f"relevant means grade ≥ {plan.bench.min_grade}. “rerank off” keeps the nearest {plan.stage.max_chunks}."
    )
    llm_results.figures(document)


def draw_decisions(plan: llm_page.Plan, rivals: list[Entrant]) -> None:
    """One entrant as a classifier, and its harm."""
    from pages.components import llm_results

    document = llm_page.compared(plan, rivals)
    names = [row["name"] for row in document["variants"]]
    picked = st.selectbox("Prompt and judge", names, key="llm.decided") or names[0]
    row = document["variants"][names.index(picked)]
    llm_results.decisions(row)
    llm_results.false_drops(row["false_drops_listed"])


def draw_repeat(plan: llm_page.Plan, rivals: list[Entrant]) -> None:
    """Repeatability and position bias of one entrant."""
    from pages.components import llm_results
    from rag_core.judged import asking, repeating

    names = [one.label for one in rivals]
    left, right = st.columns([3, 1])
    picked = left.selectbox("Prompt and judge", names, key="llm.repeated") or names[0]
    times = int(right.number_input("Runs", 2, 20, 3, key="llm.times.repeated"))
    rival = rivals[names.index(picked)]
    every = repeating.runs_of(rival, times)
    if rival.simulated:
        asking.ask_all(plan.bench, every, asking.limits_of(every, None, None))
        st.caption("A simulated judge decides by query and chunk: it repeats itself and no order sways it.")
    else:
        llm_run.offer(plan.bench, every, "Asked again and in reverse order:", "llm.repeat")
    with st.spinner("Comparing the runs"):
        llm_results.steady(repeating.steadiness(plan.bench, rival, times))


def draw_good(plan: llm_page.Plan) -> None:
    """How good must a judge be, and what may it cost?"""
    from pages.components import llm_charts, llm_tables

    document = llm_page.simulated_curve(plan)
    even, best = document["break_even_error_rate"], document["best_free"]
    st.markdown(
        "**No tried error rate crosses the best free filter.**" if even is None
        else f"**A judge must decide {1 - even:.1%} of the chunks rightly to beat the best free filter.**"
    )  # fmt: skip
    st.text(f"The best free filter: {best}")
    st.plotly_chart(
        llm_charts.accuracy(document), key="llm.accuracy", config={"displaylogo": False},
        alt="SetF over the simulated judge's accuracy with the free filters and the break-even; numbers in the table",
    )  # fmt: skip
    llm_tables.accuracy(document)


def draw_depth(plan: llm_page.Plan) -> None:
    """What references bring at each depth."""
    from pages.components import llm_charts, llm_tables
    from rag_core.judged.depths import depths

    texts = {case.query.id: case.query.text for case in plan.bench.cases}
    wanted = st.selectbox(
        "Query", ["", *texts], format_func=lambda name: f"{name}: {texts[name][:90]}" if name else "mean of all",
        key="llm.depth.query",
    )  # fmt: skip
    rows = depths(plan.bench, plan.stage.max_chunks, plan.stage.max_total_chunks, wanted or "")
    if not any(chunk.ref_ids for chunk in plan.bench.chunks.values()):
        st.markdown("No chunk of this set refers to another: there is nothing to expand.")
    st.plotly_chart(
        llm_charts.by_depth(rows), key="llm.depth.chart", config={"displaylogo": False},
        alt="Tokens per depth of expansion; the table below holds the numbers",
    )  # fmt: skip
    llm_tables.by_depth(rows)
    tuning_set.quiet(
        f"The nearest {plan.stage.max_chunks} chunks and what they refer to, at most {plan.stage.max_total_chunks} "
        "brought by one of them, each chunk once. Tokens are estimated, a quarter of the characters."
    )


def draw_view(chosen: EvalSet, cases: list[Case]) -> None:
    plan = llm_page.choose(chosen, cases)
    llm_run.show()
    picked = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key="llm.view", label_visibility="collapsed"
    )
    if picked == "How good?":
        draw_good(plan)
    elif picked == "Depth":
        draw_depth(plan)
    elif picked == "Answer":
        from pages.components import llm_answers

        llm_answers.show(plan)
    else:
        draw_entrants(plan, picked or VIEWS[0])


def draw_entrants(plan: llm_page.Plan, picked: str) -> None:
    """The views that need a prompt and a judge."""
    rivals = llm_page.rivals(plan)
    if not rivals:
        st.markdown("Choose at least one prompt and one judge in the sidebar: an endpoint, or a simulated judge.")
        return
    llm_page.answer_simulated(plan, rivals)
    if picked == "Decisions":
        draw_decisions(plan, rivals)
    elif picked == "Repeat":
        draw_repeat(plan, rivals)
    else:
        draw_compare(plan, rivals)


def draw() -> None:
    header.show("LLM filter", "Which prompt and model, at what cost, with what harm?", HELP)
    chosen = tuning_set.choose((USUAL, *tuning_set.PREFERRED))
    cases = None if chosen is None else tuning_set.cases_of(chosen)
    if chosen is None or not cases:
        return
    try:
        draw_view(chosen, cases)
    except (WinnowError, OSError) as error:
        say.problem("This comparison cannot be made as it is set.", str(error))
    resources.settle()


draw()
