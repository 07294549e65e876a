"""The LLM filter on Explore: its switch and settings in the sidebar, and what it decided, cost and took above the list.

Who answers is in llm_asking.py. Decisions and reasons stand in the table of chunks, one a row. Names of endpoints and
models, messages and reasons are foreign words: they are shown as plain text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.components import say, session
from pages.components.llm_cost import cost_word
from pages.components.llm_view import DEPTHS, SIMULATED
from pages.components.view import View, pipeline_of
from rag_core.measure.experiment import Outcome
from rag_core.stage import Pipeline
from rag_core.text import counted
from rag_core.types import Step

if TYPE_CHECKING:
    from pages.components.asked import Asked
    from rag_core.llm import Preview

STAGE = "LLMFilter"
MODES = ("listwise", "isolated")
CHECKED = "explore.llm.connection"
NO_ENDPOINT = (
    "No model endpoint is set: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, and OPENAI_MODEL, then "
    "start again. Until then the simulated judge answers from the labels."
)
HELP = (
    "A model keeps, expands or discards each candidate. Settings below the prompt only decide anew on what it said: "
    "they never ask again."
)


def choose() -> None:
    """The switch and, while it is on, who answers and how."""
    view = session.current()
    st.toggle("LLM filter", help=HELP, key=session.bind("llm_on")["key"], on_change=_switched)
    if view.llm_on:
        _choose_judge(view)
        _choose_prompt()
        with st.expander("More", key="explore.llm.more"):
            _choose_more(view)


def _switched() -> None:
    """Take the switch over; a collection is read as deep as the filter judges."""
    on = st.session_state[f"{session.VIEW}.llm_on"]
    view = session.current()
    wanted = int(view.max_chunks * view.oversample_multiplier + 1e-9)
    deeper = {"depth": max(view.depth, wanted)} if on and view.collection else {}
    session.change(llm_on=on, **deeper)


def _choose_judge(view: View) -> None:
    from pages.components import llm_asking

    known, problem = llm_asking.known_endpoints()
    options = [SIMULATED, *known]
    bound = session.bind("judge")
    if view.judge not in options:
        st.session_state[bound["key"]] = None
    st.selectbox(
        "Judge",
        options,
        format_func=lambda name: "simulated judge" if name == SIMULATED else f"{name}: {known[name].model}",
        placeholder="choose a judge",
        help="The simulated judge answers from the labels with a chosen error rate: it is no model and costs nothing.",
        **bound,
    )
    if problem:
        st.text(problem)
    elif not known:
        st.caption(NO_ENDPOINT)
    if view.judge == SIMULATED:
        _choose_simulated()
    elif view.judge in known:
        _connection(view)


def _choose_simulated() -> None:
    st.number_input(
        "Error rate", 0.0, 1.0, step=0.05, format="%.2f",
        help="Share of chunks that the simulated judge decides the wrong way.", **session.bind("error_rate"),
    )  # fmt: skip


def _connection(view: View) -> None:
    """Test connection: one small question to the endpoint, and what came of it."""
    from pages.components import llm_asking
    from rag_core.errors import WinnowError
    from rag_core.llm import check_connection

    if st.button("Test connection", icon=":material/cable:", key="explore.llm.test"):
        try:
            with st.spinner("Asking the endpoint one small question"):
                found = check_connection(llm_asking.endpoint(view))
            text = f"{found.address} answers as {found.model} in {found.milliseconds:,.0f} ms, form {found.form}"
        except WinnowError as error:
            text = str(error)
        st.session_state[CHECKED] = (view.judge, text)
    judge, text = st.session_state.get(CHECKED, ("", ""))
    if judge == view.judge:
        st.text(text)


def _choose_prompt() -> None:
    from rag_core.filters.llm import variant_names

    st.selectbox(
        "Prompt", variant_names(), help="The wording: a file of the prompts folder.", **session.bind("variant")
    )
    st.number_input("Keep at most", 1, 1000, step=1, help="Before expansion.", **session.bind("max_chunks"))


def _choose_more(view: View) -> None:
    """What is seldom changed: how is asked, what is judged at all, and what a simulated judge expands."""
    st.segmented_control(
        "Asked", MODES, required=True, help="listwise: several chunks a call. isolated: one chunk a call, so that no "
        "chunk’s text can sway the decision on another.", **session.bind("llm_mode"),
    )  # fmt: skip
    st.toggle(
        "check the order", help="Ask again in reverse order and flag what changes; twice the calls.",
        **session.bind("check_order"),
    )  # fmt: skip
    st.slider(
        "Least similarity to be judged", min(0.0, view.min_relevance_threshold), 1.0, step=0.01, format="%.2f",
        help="Cosine similarity, 1 − cosine distance. What lies under it goes, without the model.",
        **session.bind("min_relevance_threshold"),
    )  # fmt: skip
    st.number_input(
        "Oversample ×", 1.0, 20.0, step=0.1, format="%.1f", help="How many times as many are judged.",
        **session.bind("oversample_multiplier"),
    )  # fmt: skip
    if view.judge == SIMULATED:
        st.selectbox(
            "Expands", DEPTHS, format_func=lambda steps: f"EXPAND_{steps}" if steps else "KEEP only",
            help="What the simulated judge says of a relevant chunk that refers to others.",
            **session.bind("judge_depth"),
        )  # fmt: skip


def pipeline(view: View, asked: Asked) -> Pipeline:
    """The page's filters for the query in sight; the LLM filter is left out while its model was not asked."""
    if not view.llm_on:
        return pipeline_of(view)
    from pages.components import llm_asking

    return llm_asking.ready(view, asked).pipeline


def pipeline_for_all(view: View, asked: Asked) -> Pipeline:
    """The page's filters for every query of the set; an endpoint's model is not asked, its stored answers are read."""
    if not view.llm_on:
        return pipeline_of(view)
    from pages.components import llm_asking

    return llm_asking.for_all(view, asked)


def show(outcome: Outcome, view: View, asked: Asked) -> None:
    """What the filter did, or that its model was not asked yet and what asking takes."""
    if not view.llm_on:
        return
    from pages.components import llm_asking

    step = next((one for one in outcome.result.steps if one.stage == STAGE), None)
    if step is not None:
        _decided(step, outcome)
    else:
        ready = llm_asking.ready(view, asked)
        if ready.problem:
            say.problem("The LLM filter cannot run; the list is shown without it.", ready.problem)
        if ready.waiting is not None:
            _offer(f"The model was not asked about this list. Asking takes {ahead(ready.waiting.ahead)}.", view, asked)
    unasked = sum(drop.stage == STAGE and drop.reason.text.startswith("not judged") for drop in outcome.result.drops)
    if unasked and view.judge != SIMULATED:
        came = counted(unasked, "chunk came", "chunks came")
        _offer(f"{came} in after the model was asked, not judged.", view, asked)


def _offer(text: str, view: View, asked: Asked) -> None:
    """Say what is missing, and ask the model once the button is pressed."""
    from pages.components import llm_asking

    with st.container(horizontal=True, vertical_alignment="center", key="llm.offer"):
        pressed = st.button("Ask the model", icon=":material/forum:", key="explore.llm.ask")
        st.text(text)
    if pressed:
        with st.spinner("Asking the model"):
            llm_asking.ask(view, asked)
        st.rerun()


def ahead(one: Preview) -> str:
    """What asking would take, before it is paid: "2 calls, about 3,100 + 250 tokens, cost unknown"."""
    stored = f" ({one.stored} more are stored)" if one.stored else ""
    tokens = f"about {one.prompt_tokens:,} + {one.completion_tokens:,} tokens"
    return f"{counted(one.calls, 'call', 'calls')}{stored}, {tokens}, {cost_word(one.cost, about='about ')}"


def _decided(step: Step, outcome: Outcome) -> None:
    """The step in words; a fallback stands out, with its reason."""
    if not step.facts.get("llm_intelligence_enabled"):
        st.caption("The LLM filter is switched off by CHUNK_FILTERING_ENABLED.")
        return
    st.text(f"LLM filter · {' · '.join(facts(step))}")
    for fallback in outcome.result.fallbacks:
        if fallback.stage == STAGE:
            say.problem("Fallback: where the model did not decide, the nearest chunks stay.", fallback.reason)


def facts(step: Step) -> list[str]:
    """Who answered, what was decided and brought, tokens, cost and time, whether it fell back: one phrase each."""
    told = step.facts
    tokens = f"{told.get('prompt_tokens', 0):,} + {told.get('completion_tokens', 0):,} tokens"
    estimated = " (estimated)" if told.get("tokens_estimated") else ""
    stored = f", {told['cache_hits']} of them stored" if told.get("cache_hits") else ""
    return [
        str(told["judge"]),
        f"{told['processed_count']} judged, {told['filtered_count']} kept, {told['added']} brought by references",
        counted(told.get("prompts", 0), "call", "calls") + stored,
        f"{tokens}{estimated}",
        cost_word(told.get("cost_without_cache")),
        f"{told['processing_time_ms']:,.0f} ms",
        "fallback" if told["fallback_used"] else "no fallback",
    ]
