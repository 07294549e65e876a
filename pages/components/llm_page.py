"""What the page *LLM filter* compares: queries with their lists, prompts, judges and settings, from the sidebar.

The work is in rag_core.judged; here it is chosen, and what may be kept between two runs of the page is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.components import llm_asking, llm_controls, resources
from pages.components.llm_cost import CURRENCY
from rag_core.errors import WinnowError
from rag_core.eval_sets.reading import EvalSet, labels_fingerprint
from rag_core.filters.llm import LLMFilter, variant_names
from rag_core.judged import asking, comparing, simulating
from rag_core.judged.bench import Bench, chunks_of
from rag_core.judged.entrants import Entrant, endpoint_judge, entrants, simulated_judge, stages_of
from rag_core.llm import Price, RecordedJudge
from rag_core.settings import chunk_filtering
from rag_core.spec import shipped_names
from rag_core.types import Case, Chunk

MODES = llm_controls.MODES
RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
NOT_CHEAP = ("query-must-refill", "unfiltered")  # refill reads a store; unfiltered is the baseline


@dataclass(frozen=True)
class Plan:
    """What is compared."""

    bench: Bench
    key: str  # names queries, lists and labels
    variants: tuple[str, ...]
    endpoints: tuple[str, ...]
    rates: tuple[float, ...]
    depth: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    price: Price | None = None
    free: tuple[str, ...] = ()

    @property
    def stage(self) -> LLMFilter:
        """The filter with the page's settings and its first prompt."""
        return stages_of([*self.variants[:1]] or ["terse"], self.settings)[0]


@st.cache_resource(max_entries=4, show_spinner=False)
def _corpus(workspace: str, name: str, changed: int) -> Mapping[str, Chunk]:
    from rag_core import workbench

    index = workbench.opened(resources.workspace(), name)
    found = {chunk.id: chunk for chunk in index.snapshot.chunks}
    resources.freeze()
    return found


def bench_of(chosen: EvalSet, cases: Sequence[Case], first: int) -> Bench:
    """The queries to run on; references may bring any chunk of the set's collection, else those of its lists."""
    some = tuple(cases[:first])
    chunks: Mapping[str, Chunk] = chunks_of(some)
    if chosen.corpus is not None and not chosen.recorded:
        with suppress(WinnowError, OSError):  # else the lists' own chunks are what is there
            chunks = _corpus(str(resources.workspace()), chosen.name, chosen.corpus.stat().st_mtime_ns)
    return Bench(chosen.name, some, chunks, chosen.min_grade)


def choose(chosen: EvalSet, cases: Sequence[Case]) -> Plan:
    """The sidebar: queries, judges, prompts, settings and the cheap filters beside them."""
    known, problem = llm_asking.known_endpoints()
    with st.sidebar:
        first = st.number_input(
            "Queries", 1, len(cases), len(cases), key=f"llm.first.{chosen.name}", persist_state="session",
            help="The first so many of the set: a few are enough for a first look at an endpoint.",
        )  # fmt: skip
        if problem:
            st.text(problem)
        elif not known:
            st.caption(llm_controls.NO_ENDPOINT)
        names = st.multiselect(
            "Endpoints", list(known), format_func=lambda name: f"{name}: {known[name].model}", key="llm.endpoints",
            persist_state="session", disabled=not known, placeholder="choose endpoints" if known else "none is set",
        )  # fmt: skip
        rates, depth, price = _simulated()
        variants = st.multiselect(
            "Prompts", variant_names(), default=["terse"], key="llm.variants", persist_state="session",
            help="Files of the prompts folder. To the simulated judge they differ in tokens only.",
        )  # fmt: skip
        settings = _settings()
        free = st.multiselect(
            "Cheap filters beside it", [name for name in shipped_names() if name not in NOT_CHEAP],
            default=["adaptive-default"], key="llm.free", persist_state="session",
        )  # fmt: skip
    bench = bench_of(chosen, cases, int(first))
    sizes = [len(case.candidates.hits) if case.candidates else 0 for case in bench.cases]
    digest = hashlib.sha256(f"{chosen.name} {labels_fingerprint(bench.cases)} {sizes} {chosen.min_grade}".encode())
    return Plan(
        bench, digest.hexdigest(), tuple(variants), tuple(names), tuple(rates), depth, settings, price, tuple(free)
    )


def _simulated() -> tuple[Sequence[float], int, Price | None]:
    rates = st.multiselect(
        "Simulated judges, error rate", RATES, default=[0.1], format_func=lambda rate: f"{rate:.0%}", key="llm.rates",
        persist_state="session", help="A simulated judge answers from the labels, wrong this often. It is no model.",
    )  # fmt: skip
    with st.expander("Simulated judge"):
        depth = st.selectbox(
            "Expands", (0, 1, 3, 5), format_func=lambda steps: f"EXPAND_{steps}" if steps else "KEEP only",
            key="llm.depth", persist_state="session", help="What it says of a relevant chunk that refers to others.",
        )  # fmt: skip
        low, high = st.columns(2)
        price_in = low.number_input(
            f"In, {CURRENCY}",
            0.0,
            1e6,
            0.15,
            step=0.05,
            key="llm.price_in",
            persist_state="session",
            help="Price of a million tokens.",
        )
        price_out = high.number_input(
            f"Out, {CURRENCY}",
            0.0,
            1e6,
            0.6,
            step=0.05,
            key="llm.price_out",
            persist_state="session",
            help="Price of a million tokens.",
        )
    return rates, int(depth or 0), Price(price_in, price_out)


def _settings() -> dict[str, Any]:
    usual = chunk_filtering()
    with st.expander("Filter settings"):
        floor = st.slider(
            "Least similarity to be judged", min(0.0, usual.min_relevance_threshold), 1.0,
            usual.min_relevance_threshold, 0.01, key="llm.floor", persist_state="session",
        )  # fmt: skip
        most = st.number_input("Keep at most", 1, 1000, 25, key="llm.most", persist_state="session")
        times = st.number_input(
            "Oversample ×", 1.0, 20.0, usual.oversample_multiplier, 0.1, format="%.1f", key="llm.times",
            persist_state="session",
        )  # fmt: skip
        tokens = st.number_input(
            "Tokens per prompt", 500, 1_000_000, usual.max_prompt_tokens, 500, key="llm.tokens", persist_state="session"
        )
        seconds = st.number_input(
            "Seconds a call may take", 0.5, 600.0, usual.llm_timeout_ms / 1000, 5.0, format="%.1f", key="llm.seconds",
            persist_state="session", help="Retries included. A small model on this machine may need a minute.",
        )  # fmt: skip
        mode = st.segmented_control(
            "Asked", MODES, default=MODES[0], required=True, key="llm.mode", persist_state="session"
        )
    return {
        "min_relevance_threshold": floor, "max_chunks": int(most), "oversample_multiplier": times,
        "max_prompt_tokens": int(tokens), "timeout_ms": int(seconds * 1000), "mode": mode or MODES[0],
    }  # fmt: skip


@st.cache_resource(max_entries=50, show_spinner=False)
def _simulated_judge(key: str, rate: float, depth: int, price: Price | None, _bench: Bench) -> RecordedJudge:
    return simulated_judge(_bench, rate, depth, 0, price)


def rivals(plan: Plan) -> list[Entrant]:
    """Every prompt with every judge; an InputError for an endpoint that cannot be asked."""
    workspace = resources.workspace()
    judges = [_simulated_judge(plan.key, rate, plan.depth, plan.price, plan.bench) for rate in plan.rates]
    judges += [endpoint_judge(workspace, name, store=llm_asking.answers()) for name in plan.endpoints]
    return entrants(stages_of(list(plan.variants), plan.settings), judges) if plan.variants else []


def answer_simulated(plan: Plan, found: Sequence[Entrant]) -> None:
    """Have the simulated judges answer: it costs nothing and takes a moment."""
    free = [one for one in found if one.simulated]
    if free:
        asking.ask_all(plan.bench, free, asking.limits_of(free, None, None))


def compared(plan: Plan, found: Sequence[Entrant]) -> dict[str, Any]:
    """The comparison on what is stored by now."""
    stored = sum(one.judge.store.count() for one in found if not one.simulated)
    key = repr((plan.key, plan.settings, plan.depth, plan.price, plan.free, [one.label for one in found], stored))
    return _compared(key, list(found), plan.free, plan.bench)


@st.cache_resource(max_entries=20, show_spinner="Comparing")
def _compared(key: str, _found: list[Entrant], _free: tuple[str, ...], _bench: Bench) -> dict[str, Any]:
    return comparing.compare(_bench, _found, free=_free)


def simulated_curve(plan: Plan) -> dict[str, Any]:
    """F1 and cost over the simulated judge's error rate."""
    return _curve(repr((plan.key, plan.settings, plan.depth, plan.price, plan.free, plan.variants[:1])), plan)


@st.cache_resource(max_entries=20, show_spinner="Running simulated judges")
def _curve(key: str, _plan: Plan) -> dict[str, Any]:
    return simulating.simulate(_plan.bench, _plan.stage, depth=_plan.depth, free=_plan.free, cost=_plan.price)
