"""A paid run on the page *LLM filter*: what it would take, a budget, and the job with rate, time left and spend.

What was answered is stored, so a run that is stopped or killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.components import jobs, say, who
from pages.components.llm_cost import CURRENCY, UNKNOWN, cost_word
from rag_core.errors import InputError
from rag_core.judged import asking
from rag_core.judged.bench import Bench
from rag_core.judged.entrants import Entrant
from rag_core.llm import Limits, Progress
from rag_core.project.deeds import ASK_MODEL
from rag_core.text import counted

KIND = "llm"


@st.cache_resource(show_spinner=False)
def _latest() -> dict[str, Progress]:
    return {}


def words(ahead: Mapping[str, Any]) -> str:
    """What a run would take, before it is paid."""
    cost = f"{UNKNOWN}, no price is set" if ahead["cost"] is None else cost_word(ahead["cost"], 4, "about ")
    tokens = f"about {ahead['prompt_tokens']:,} + {ahead['completion_tokens']:,} tokens"
    return f"{counted(ahead['calls'], 'call', 'calls')} to make, {ahead['stored']:,} stored · {tokens} · {cost}"


def offer(bench: Bench, paid: Sequence[Entrant], what: str, key: str) -> None:
    """Preview, budget and the button that starts the run; nothing where all is answered."""
    if not paid:
        return
    ahead = asking.ahead(bench, paid)
    with st.container(border=True, key=f"{key}.offer"):
        st.markdown(f"**{what}** {words(ahead)}")
        if ahead["calls"]:
            _ask(bench, paid, ahead, key)
    _ended()


def _ask(bench: Bench, paid: Sequence[Entrant], ahead: Mapping[str, Any], key: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        budget = st.number_input(
            f"Budget, {CURRENCY}", 0.0, 1e9, 0.0, step=0.1, format="%.4f", key=f"{key}.budget", width=150,
            disabled=ahead["cost"] is None, help="No call is started that would pass it. 0: no budget.",
        )  # fmt: skip
        most = st.number_input("Calls at most", 0, 10_000_000, 0, key=f"{key}.calls", width=150, help="0: no limit.")
        pressed = st.button(
            f"Ask {counted(ahead['calls'], 'question', 'questions')}", type="primary", icon=":material/play_arrow:",
            key=f"{key}.run", disabled=jobs.running(),
        )  # fmt: skip
    if jobs.running() and jobs.current(KIND) is None:
        st.caption("Other work is running; this run can start when it is done.")
    if pressed:
        _start(bench, paid, asking.limits_of(paid, budget or None, int(most) or None))


def _start(bench: Bench, paid: Sequence[Entrant], limits: Limits) -> None:
    def work(progress: jobs.Progress) -> asking.Ran:
        job = jobs.current(KIND)

        def tell(now: Progress) -> None:
            _latest()[KIND] = now
            if job is not None:
                job.done, job.total = now.done, now.total

        return asking.ask_all(bench, paid, limits, tell, job.stop if job is not None else None)

    _latest().pop(KIND, None)
    try:
        jobs.start(
            "Asking the models", work, who.deed(ASK_MODEL, ", ".join(one.label for one in paid)),
            kind=KIND, verb="asked", unit="questions", first="looking what is stored …",
        )  # fmt: skip
    except InputError as error:
        say.problem("No model was asked.", str(error))
        return
    st.rerun()


def show() -> None:
    """The running job of this page: n of N, rate, time left, spend, cancel."""
    job = jobs.current(KIND)
    if job is not None and not job.over.is_set():
        _bar()


@st.fragment(run_every=0.5)
def _bar() -> None:
    job, now = jobs.current(KIND), _latest().get(KIND)
    if job is None or job.over.is_set():
        st.rerun()
    with st.container(border=True, key="llm.job"):
        st.markdown(f"**{job.title}**")
        st.progress(job.done / job.total if job.total else 0.0, text=job.first if now is None else how_far(now))
        st.button("Cancel", key="llm.cancel", on_click=job.stop.set, disabled=job.stop.is_set())


def how_far(now: Progress) -> str:
    """How many of all, at what rate, the time left, spend and failures."""
    left = "" if now.remaining_seconds is None else f" · {now.remaining_seconds:,.0f} s left"
    spent = "spend unknown" if now.spent is None else f"spent {now.spent:.4f} {CURRENCY}"
    failed = f" · {now.failed:,} failed" if now.failed else ""
    return f"{now.done:,} of {now.total:,} · {now.rate:.1f} calls a second{left} · {spent}{failed}"


def _ended() -> None:
    """How the last run ended, where it did not go through."""
    job = jobs.current(KIND)
    if job is None or not job.over.is_set():
        return
    ran = job.report
    stopped = job.problem or job.stopped or (ran.stopped if isinstance(ran, asking.Ran) else "")
    failures = sorted({one for row in ran.runs for one in row["failures"]}) if isinstance(ran, asking.Ran) else []
    if stopped:
        say.problem("The last run stopped before its end; what was answered is stored, and it can go on.", stopped)
    if failures:
        say.remarks(f"Why calls of the last run failed: {counted(len(failures), 'reason', 'reasons')}", failures)
