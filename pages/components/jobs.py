"""Long work in a thread of its own: it goes on while pages are changed, says how far it is, and can be stopped.

One job at a time in the app, each the deed of a person. What is done when it is stopped stays done; that is the work's
own promise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import streamlit as st

from pages.components import say, who
from rag_core.errors import Cancelled, WinnowError
from rag_core.journal import running as logged
from rag_core.project.deeds import Deed, allow, cancel_kind, perform
from rag_core.workspace import resolve_workspace

Progress = Callable[[int, int], None]
Work = Callable[[Progress], Any]
"""The work; it calls the progress it is given and returns its report. Being stopped is a Cancelled from there."""

DONE, UNIT = "embedded", "texts"
FIRST = "reading the documents …"
PROBLEM = "jobs.problem"


@dataclass
class Job:
    """A piece of work and how far it is. `kind` says whose work it is: only that page shows what came of it."""

    title: str
    deed: Deed
    workspace: Path
    kind: str = "corpus"
    verb: str = DONE
    unit: str = UNIT
    first: str = FIRST
    done: int = 0
    total: int = 0
    note: str = ""  # what else is known of how far it is: spend, failures
    report: Any = None
    problem: str = ""
    stopped: str = ""
    started: float = field(default_factory=perf_counter)
    counting_since: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)

    def reached(self, done: int, total: int, note: str = "") -> None:
        """Take note of how far the work is."""
        self.counting_since = self.counting_since or perf_counter()
        self.done, self.total, self.note = done, total, note

    def progress(self, done: int, total: int) -> None:
        """Take note of how far the work is; raises Cancelled where a person wants it stopped."""
        self.reached(done, total)
        if self.stop.is_set() and done < total:
            raise Cancelled(f"stopped after {done:,} of {total:,} {self.unit}; do it again, it resumes")

    def run(self, work: Work) -> None:
        """Do the work and keep its report or its one sentence."""
        try:
            with logged("job"), perform(self.deed, self.workspace):
                self.report = work(self.progress)
        except Cancelled as error:
            self.stopped = str(error)
        except (WinnowError, OSError) as error:
            self.problem = str(error)
        except Exception as error:  # a fault of ours must not leave a job that never ends
            self.problem = f"internal error, {type(error).__name__}"
            raise
        finally:
            self.over.set()


@st.cache_resource(show_spinner=False)
def _kept() -> dict[str, Job]:
    return {}


def current(kind: str = "corpus") -> Job | None:
    """The job of that kind that runs, or the last one until it is put away."""
    job = _kept().get("job")
    return job if job is not None and job.kind == kind else None


def running() -> bool:
    """Whether a job of any kind runs."""
    job = _kept().get("job")
    return job is not None and not job.over.is_set()


def start(
    title: str,
    work: Work,
    deed: Deed,
    kind: str = "corpus",
    verb: str = DONE,
    unit: str = UNIT,
    first: str = FIRST,
) -> None:
    """Start the work, unless another job runs; `verb`, `unit` and `first` are the words of its bar.

    An InputError where the deed is not allowed: it is asked here, where the page can still say so.
    """
    allow(deed, resolve_workspace())
    if running():
        return
    job = _kept()["job"] = Job(title, deed, resolve_workspace(), kind, verb, unit, first)
    threading.Thread(target=job.run, args=(work,), name="job", daemon=True).start()


def put_away() -> None:
    """Forget a job that is over."""
    if not running():
        _kept().pop("job", None)


def outcome(kind: str, of: Any, refused: str) -> Any:
    """The report of the job of that kind that is over, where it was begun for `of`; why there is none is shown.

    The work gives (what it was begun for, its report).
    """
    show(kind)
    job = current(kind)
    if job is None or not job.over.is_set():
        return None
    if job.problem or job.stopped:
        say.problem(refused, job.problem or job.stopped)
    return job.report[1] if isinstance(job.report, tuple) and job.report[0] == of else None


def show(kind: str = "") -> None:
    """The running job with a bar and a button that stops it; the page is drawn anew when it ends.

    Where several kinds may be shown on one page each names its own: a bar stands on a page once.
    """
    if running() and kind in ("", _kept()["job"].kind):
        _bar()


@st.fragment(run_every=0.5)
def _bar() -> None:
    job = _kept().get("job")
    if job is None or job.over.is_set():
        st.rerun()
    with st.container(border=True, key="job"):
        st.markdown(f"**{job.title}**")
        st.progress(job.done / job.total if job.total else 0.0, text=_how_far(job))
        st.button("Cancel", key="job.cancel", on_click=_cancel, args=(job,), disabled=job.stop.is_set())
        if problem := st.session_state.pop(PROBLEM, ""):
            say.problem("The work goes on.", problem)


def _cancel(job: Job) -> None:
    """Ask a job to stop; another's is stopped by admins."""
    starter = job.deed.person.name
    try:
        with who.doing(cancel_kind(who.person(), starter), job.deed.kind.name, whose=starter):
            job.stop.set()
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)


def _how_far(job: Job) -> str:
    if job.stop.is_set():
        return "stopping after this batch …"
    if not job.total:
        return job.first
    rate = job.done / max(perf_counter() - job.counting_since, 0.5)
    left = (job.total - job.done) / rate if rate else 0
    note = f" · {job.note}" if job.note else ""
    return f"{job.verb} {job.done:,} of {job.total:,} {job.unit} · {rate:,.0f} a second · {left:,.0f} s left{note}"
