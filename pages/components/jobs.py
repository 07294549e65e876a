"""Long work in a thread of its own: it goes on while pages are changed, says how far it is, and can be stopped.

Several at once, each the deed of a person. A kind with a name behind it, as `data mine`, is work on what people share:
one at a time, seen by all; of a kind without one each person has one, and sees their own. What is done when it is
stopped stays done; that is the work's own promise.
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
from pages.components.act import refusing
from rag_core.errors import Cancelled, WinnowError
from rag_core.journal import running as logged
from rag_core.project.deeds import Deed, allow, cancel_kind, perform
from rag_core.workspace import resolve_workspace

Progress = Callable[[int, int], None]
Work = Callable[["Job"], Any]
"""The work; it calls the job with how far it is and returns its report. Being stopped is a Cancelled from there."""

AT_ONCE = 4  # jobs of the server: each takes a processor
PROBLEM = "jobs.problem"


@dataclass
class Job:
    """A piece of work and how far it is; `verb`, `unit` and `first` are the words of its bar."""

    title: str
    deed: Deed
    workspace: Path
    verb: str = "embedded"
    unit: str = "texts"
    first: str = "reading the documents …"
    done: int = 0
    total: int = 0
    note: str = ""  # what else is known of how far it is: spend, failures
    report: Any = None
    problem: str = ""
    stopped: str = ""

    counting_since: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)
    stop: threading.Event = field(default_factory=threading.Event)

    def reached(self, done: int, total: int, note: str = "") -> None:
        """Take note of how far the work is."""
        self.counting_since = self.counting_since or perf_counter()
        self.done, self.total, self.note = done, total, note

    def __call__(self, done: int, total: int) -> None:
        """Take note of how far the work is; raises Cancelled where a person wants it stopped."""
        self.reached(done, total)
        if self.stop.is_set() and done < total:
            raise Cancelled(f"stopped after {done:,} of {total:,} {self.unit}; do it again, it resumes")

    def run(self, work: Work) -> None:
        """Do the work and keep its report or its one sentence."""
        try:
            with logged("job"), perform(self.deed, self.workspace):
                self.report = work(self)
        except Cancelled as error:
            self.stopped = str(error)
        except (WinnowError, OSError) as error:
            self.problem = str(error)
        except Exception as error:  # a fault of ours must not leave a job that never ends
            self.problem = f"internal error, {type(error).__name__}"
            raise
        finally:
            self.over.set()


_beginning = threading.Lock()


@st.cache_resource(show_spinner=False)
def _kept() -> dict[tuple[str, str], Job]:
    """(kind, whose, '' where it is everybody's) → the job that runs or the last one."""
    return {}


def _key(kind: str) -> tuple[str, str]:
    return kind, "" if " " in kind else who.person().name


def current(kind: str) -> Job | None:
    """The job of that kind that runs, this person's own or everybody's, or the last one until it is put away."""
    return _kept().get(_key(kind))


def under_way() -> list[Job]:
    """Every job that runs, whoever began it."""
    return [job for job in list(_kept().values()) if not job.over.is_set()]


def running(kind: str = "") -> bool:
    """Whether no job of that kind can be begun: one runs, or as many as the server does at once."""
    job = current(kind) if kind else None
    return (job is not None and not job.over.is_set()) or len(under_way()) >= AT_ONCE


def start(title: str, work: Work, deed: Deed, kind: str, **words: Any) -> None:
    """Start the work, unless no job of its kind can be begun; `kind` says whose page shows what came of it.

    An InputError where the deed is not allowed: it is asked here, where the page can still say so.
    """
    allow(deed, resolve_workspace())
    with _beginning:
        if running(kind):
            return
        job = _kept()[_key(kind)] = Job(title, deed, resolve_workspace(), **words)
    threading.Thread(target=job.run, args=(work,), name="job", daemon=True).start()


def put_away(kind: str = "") -> None:
    """Forget a job that is over; without a kind, all of this person's own."""
    mine = who.person().name
    for key in [_key(kind)] if kind else [key for key in _kept() if key[1] == mine]:
        if key in _kept() and _kept()[key].over.is_set():
            _kept().pop(key, None)


def outcome(kind: str, of: Any, refused: str) -> Any:
    """The report of the job of that kind that is over, where it was begun for `of`; why there is none is shown.

    The work gives (what it was begun for, its report). `of` is (what, the session's state): for the same with another
    state it is said that it is of before.
    """
    show(kind)
    job = current(kind)
    if job is None or not job.over.is_set():
        return None
    if job.problem or job.stopped:
        say.problem(refused, job.problem or job.stopped)
    begun, report = job.report if isinstance(job.report, tuple) else (None, None)
    if begun == of:
        return report
    if isinstance(of, tuple) and isinstance(begun, tuple) and begun[0] == of[0]:
        st.caption(f"{refused} Labels, questions or the source have changed since it was begun: press it again.")
    return None


def show(kind: str = "") -> None:
    """The running job of that kind, without one every job that runs, with a bar and a button that stops it.

    The page is drawn anew when it ends.
    """
    job = current(kind) if kind else None
    for number, one in enumerate([job] if job else [] if kind else under_way()):
        if not one.over.is_set():
            _bar(one, f"job{number or ''}")


@st.fragment(run_every=0.5)
def _bar(job: Job, key: str) -> None:
    if job.over.is_set():
        st.rerun()
    if job.stop.is_set():
        how_far = "stopping after this batch …"
    elif not job.total:
        how_far = job.first
    else:
        rate = job.done / max(perf_counter() - job.counting_since, 0.5)
        left = (job.total - job.done) / rate if rate else 0
        how_far = f"{job.verb} {job.done:,} of {job.total:,} {job.unit} · {rate:,.0f} a second · {left:,.0f} s left"
        how_far += f" · {job.note}" if job.note else ""
    with st.container(border=True, key=key):
        st.markdown(f"**{job.title}**")
        if job.deed.person.name != who.person().name:
            st.text(f"begun by {job.deed.person.name}")
        st.progress(job.done / job.total if job.total else 0.0, text=how_far)
        st.button("Cancel", key=f"{key}.cancel", on_click=_cancel, args=(job,), disabled=job.stop.is_set())
        if problem := st.session_state.pop(PROBLEM, ""):
            say.problem("The work goes on.", problem)


def _cancel(job: Job) -> None:
    """Ask a job to stop; another's is stopped by admins."""
    starter = job.deed.person.name
    with refusing(PROBLEM), who.doing(cancel_kind(who.person(), starter), job.deed.kind.name, whose=starter):
        job.stop.set()
