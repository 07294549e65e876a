"""The lists behind Label: what the chosen pipelines keep for every query of an eval set.

Recorded lists run at once. The queries of a live set are searched in a job with its progress in sight; what it finds is
kept under everything it depends on, so that no setting of the queue searches anything twice. Labels are laid over the
lists later and are no part of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st
from cachetools import LRUCache

from pages.components import jobs, labels, resources, say, tuning_sources, who
from rag_core.evaluate.experiment import PipelineReport, run_all, run_case, unique_names
from rag_core.evaluate.sets import EvalSet
from rag_core.project.deeds import SEARCH_POOL
from rag_core.spec import fingerprint, read_pipeline
from rag_core.stage import Pipeline
from rag_core.store.database import Store
from rag_core.store.matching import AtHand
from rag_core.types import Candidates, Case, Chunk, Hit

if TYPE_CHECKING:
    from pages.components.live import LiveIndex

KIND = "label"
KEPT = 4  # pools of live sets held at once


@dataclass(frozen=True, eq=False)
class Lists:
    """A report per pipeline over the same cases; `at_hand` and `chunks` are of the collection that was searched."""

    reports: tuple[PipelineReport, ...]
    at_hand: AtHand | None = None
    chunks: Mapping[str, Chunk] | None = None

    def cases(self, store: Store, eval_set: str) -> list[Case]:
        """The cases with the labels people gave laid over their own."""
        plain = [outcome.case for outcome in self.reports[0].outcomes]
        if self.at_hand is None:
            return labels.overlaid(store, eval_set, plain)
        return labels.overlaid_in(store, eval_set, plain, self.at_hand)

    def whole(self, store: Store, chosen: EvalSet) -> EvalSet:
        """The eval set with its labels and, per query, all that any pipeline read and every labelled chunk."""
        cases = self.cases(store, chosen.name)
        if self.at_hand is not None:
            groups = zip(*(report.outcomes for report in self.reports), strict=True)
            cases = [
                self._whole(case, [one.result for one in group]) for case, group in zip(cases, groups, strict=True)
            ]
        return replace(chosen, cases=tuple(cases))

    def _whole(self, case: Case, results: Sequence[Candidates]) -> Case:
        read = (hit for one in results for hit in (*one.hits, *(drop.hit for drop in one.drops)))
        hits: dict[str, Hit] = {}
        for hit in read:
            hits.setdefault(hit.chunk.id, hit)
        for chunk_id in case.grades:
            if chunk_id not in hits and self.chunks is not None and chunk_id in self.chunks:
                hits[chunk_id] = Hit(self.chunks[chunk_id], len(hits) + 1)
        return replace(case, candidates=Candidates(case.query, tuple(hits.values()), metric=results[0].metric))


def lists_of(chosen: EvalSet, names: Sequence[str], captured: bool) -> Lists | None:
    """The lists, or None while they are searched, with the progress shown; `captured` takes the kept capture."""
    pipelines = [read_pipeline(name) for name in names] or [Pipeline(label="unfiltered")]
    if chosen.recorded:
        return _run(chosen.cases, pipelines, chosen.min_grade)
    kept = tuning_sources.lists_of(chosen) if captured else None
    return _run(kept, pipelines, chosen.min_grade) if kept else _searched(chosen, pipelines)


def has_capture(chosen: EvalSet) -> bool:
    """Whether a capture of this live set is kept, as Tune and Headroom make it."""
    return not chosen.recorded and tuning_sources.capture_path(chosen, resources.workspace()).is_file()


def _run(cases: Sequence[Case], pipelines: Sequence[Pipeline], min_grade: int) -> Lists:
    return Lists(tuple(run_all(cases, pipelines, min_grade, ())))


@dataclass
class _Held:
    """Finished pools by key, and the key of the job that ran last."""

    pools: LRUCache[str, Lists]
    asked: str = ""


@st.cache_resource(show_spinner=False)
def _held() -> _Held:
    return _Held(LRUCache(KEPT))


def _key(chosen: EvalSet, pipelines: Sequence[Pipeline]) -> str:
    """Everything a pool of a live set depends on."""
    from rag_core.index.collection import revision_of

    place = resources.workspace()
    revision = revision_of(place, chosen.name) if (place / "collections" / chosen.name).is_dir() else ""
    asked = [(case.query.id, case.query.text) for case in chosen.cases]
    return repr((str(place), chosen.name, revision, [fingerprint(one) for one in pipelines], asked))


def _searched(chosen: EvalSet, pipelines: Sequence[Pipeline]) -> Lists | None:
    """The pool of a live set; what keeps it away is shown."""
    from pages.components import live

    held, key = _held(), _key(chosen, pipelines)
    if live.is_fresh(chosen) and key in held.pools:
        return held.pools[key]
    job = jobs.current(KIND)
    if job is not None and job.over.is_set() and held.asked == key and (job.problem or job.stopped):
        say.problem("The pool was not searched to its end.", job.problem or "stopped before every query was asked")
        st.button("Search again", icon=":material/refresh:", on_click=jobs.put_away)
        return None
    if not jobs.running():
        held.asked = key
        jobs.start(
            f"Searching the pool of {len(chosen.cases)} queries",
            lambda progress: _search(chosen, pipelines, progress),
            who.deed(SEARCH_POOL, chosen.name),
            kind=KIND, verb="searched", unit="queries", first="bringing the collection up to date …",
        )  # fmt: skip
    jobs.show()
    return None


def _search(chosen: EvalSet, pipelines: Sequence[Pipeline], progress: jobs.Progress) -> int:
    """The job: bring the collection up to date, ask every query of every pipeline, keep the reports."""
    from pages.components import live
    from rag_core import workbench

    live.bring_up_to_date(chosen, lambda done, total: None)
    found = live.open_live(chosen.name, approximate=False)
    ready = [workbench.live(pipeline, found.index, chosen.name) for pipeline in pipelines]
    cases = [found.known(case) for case in chosen.cases]
    rows = []
    for number, case in enumerate(cases, 1):
        rows.append([run_case(case, pipeline, chosen.min_grade, ()) for pipeline in ready])
        progress(number, len(cases))
    reports = [
        PipelineReport(name, pipeline, outcomes, chosen.min_grade)
        for name, pipeline, outcomes in zip(unique_names(pipelines), ready, zip(*rows, strict=True), strict=True)
    ]
    _held().pools[_key(chosen, pipelines)] = _lists(reports, found)
    return len(cases)


def _lists(reports: Sequence[PipelineReport], found: LiveIndex) -> Lists:
    return Lists(tuple(reports), found.at_hand, found.chunks)
