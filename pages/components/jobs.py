"""Long work in a thread of its own: it goes on while pages are changed, says how far it is, and can be stopped.

One job at a time in the app. What is done when it is stopped stays done; that is the work's own promise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import streamlit as st

from rag_core.errors import Cancelled, WinnowError

Progress = Callable[[int, int], None]
Work = Callable[[Progress], Any]
"""The work; it calls the progress it is given and returns its report. Being stopped is a Cancelled from there."""


@dataclass
class Job:
    """A piece of work and how far it is."""

    title: str
    done: int = 0
    total: int = 0
    report: Any = None
    problem: str = ""
    stopped: str = ""
    started: float = field(default_factory=perf_counter)
    counting_since: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)

    def progress(self, done: int, total: int) -> None:
        """Take note of how far the work is; raises Cancelled where a person wants it stopped."""
        self.counting_since = self.counting_since or perf_counter()
        self.done, self.total = done, total
        if self.stop.is_set() and done < total:
            raise Cancelled(f"stopped after {done:,} of {total:,} texts; do it again, it resumes")

    def run(self, work: Work) -> None:
        """Do the work and keep its report or its one sentence."""
        try:
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


def current() -> Job | None:
    """The job that runs, or the last one until it is put away."""
    return _kept().get("job")


def running() -> bool:
    """Whether a job runs."""
    job = current()
    return job is not None and not job.over.is_set()


def start(title: str, work: Work) -> None:
    """Start the work, unless another job runs."""
    if running():
        return
    job = _kept()["job"] = Job(title)
    threading.Thread(target=job.run, args=(work,), name="job", daemon=True).start()


def put_away() -> None:
    """Forget a job that is over."""
    if not running():
        _kept().pop("job", None)


def show() -> None:
    """The running job with a bar and a button that stops it; the page is drawn anew when it ends."""
    if running():
        _bar()


@st.fragment(run_every=0.5)
def _bar() -> None:
    job = current()
    if job is None or job.over.is_set():
        st.rerun()
    with st.container(border=True, key="job"):
        st.markdown(f"**{job.title}**")
        st.progress(job.done / job.total if job.total else 0.0, text=_how_far(job))
        st.button("Cancel", key="job.cancel", on_click=job.stop.set, disabled=job.stop.is_set())


def _how_far(job: Job) -> str:
    if job.stop.is_set():
        return "stopping after this batch …"
    if not job.total:
        return "reading the documents …"
    rate = job.done / max(perf_counter() - job.counting_since, 0.5)
    left = (job.total - job.done) / rate if rate else 0
    return f"embedded {job.done:,} of {job.total:,} texts · {rate:,.0f} a second · {left:,.0f} s left"
