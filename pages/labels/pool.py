"""The pool of a project: what its pipelines show among their first chunks, each content once a question, blind.

Nothing of another project ever gets in: pipelines run on the project's own source, and the pool is kept under all that
it depends on. Labels are no part of it, so that none of them changes what is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import streamlit as st
from cachetools import LRUCache

from pages import state
from pages.labels.pairs import PairPool
from pages.labels.settings import DECIDE, QueueSettings
from rag_core.errors import InputError
from rag_core.labelling.estimate import in_order_of_asking
from rag_core.labelling.pooling import pool
from rag_core.measure.experiment import PipelineReport
from rag_core.project.labels import ALONE, kept_of, with_searches, without_judges
from rag_core.project.session import Session, front_of
from rag_core.spec import fingerprint
from rag_core.stage import Pipeline
from rag_core.store.events import Event
from rag_core.store.matching import AtHand
from rag_core.types import Chunk

KEPT = 4  # pools held at once
QUIET = 0.7  # seconds before a bar is shown


@dataclass(frozen=True, eq=False)
class Pooled:
    """A pool, with the reports of the first two pipelines where the order is to decide between them."""

    pool: PairPool
    rivals: tuple[PipelineReport, PipelineReport] | None
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Chunks:
    """The chunks that a project's labels can meet."""

    by_id: Mapping[str, Chunk]

    @cached_property
    def at_hand(self) -> AtHand:
        """The same for matching labels by text or id; hashes every text once."""
        return AtHand.of(self.by_id.values())

    def of(self, label: Event) -> Chunk | None:
        """The chunk that a label is about today; None where it meets none."""
        return next((self.by_id[one] for one in self.at_hand.ids(label) if one in self.by_id), None)

    def title(self, chunk_id: str) -> str:
        """What a person knows the chunk by."""
        chunk = self.by_id.get(chunk_id)
        return chunk.title or " ".join(chunk.text.split())[:80] or chunk_id if chunk else chunk_id


@st.cache_resource(show_spinner=False)
def _kept() -> LRUCache[str, Pooled]:
    return LRUCache(KEPT)


def chunks_of(session: Session) -> Chunks:
    """The chunks of the project's source as they stand now."""
    source = session.source
    revision = f"{source.revision} {len(source.chunks)}"
    return _chunks(str(session.workspace), session.project.name, revision, source.by_id)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _chunks(workspace: str, project: str, revision: str, _by_id: Mapping[str, Chunk]) -> Chunks:
    return Chunks(_by_id)


def pipelines_of(session: Session, more: Sequence[str]) -> list[Pipeline]:
    """A, B, C and what the settings name, each with a name of its own and without stages that ask a model.

    A baseline that is chosen by labels stands here as the search alone: its k moves with every label, and whatever it
    shows at any k, the search shows. Filters that ask a model only drop, and a pool costs nobody money.
    """
    first = state.pipeline_of("A", session)
    named: dict[str, Pipeline] = {}

    def add(name: str, pipeline: Pipeline) -> None:
        free = without_judges(pipeline)
        same = fingerprint(free) in {fingerprint(other) for other in named.values()}
        if not same:
            named[name if name not in named else f"{name} ({len(named) + 1})"] = free

    if first is not None:
        add(f"A {first.label}".strip(), first)
    entries = [(side, getattr(state.current(), side.lower()) or session.project.pipelines.get(side)) for side in "BC"]
    for side, entry in entries:
        automatic = side == "B" and entry in (None, "", state.AUTO) and session.project.baseline == state.AUTO
        if automatic and first is not None:
            add(ALONE, front_of(first))
        elif pipeline := state.pipeline_of(side, session):
            add(f"{side} {pipeline.label}".strip(), pipeline)
    for entry in more:
        add(entry, session.pipeline(entry))
    return with_searches([replace(pipeline, label=name) for name, pipeline in named.items()])


def pooled(session: Session, settings: QueueSettings) -> Pooled:
    """The pool, made where it is not kept; what takes longer than a moment says how far it is."""
    # Always there: else the queue below would change its place with the pool, and be seen twice for a moment.
    place, started = st.empty(), perf_counter()
    pipelines = pipelines_of(session, settings.pipelines)
    if not session.cases:
        raise InputError(f"project {session.project.name} has no question yet, expected at least one")
    asked = [(case.query.id, case.query.text) for case in session.cases]
    about = [str(session.workspace), session.project.name, session.source.revision, asked, settings.depth]
    about += [settings.seed, settings.near, settings.order == DECIDE]
    about += [(one.label, fingerprint(one)) for one in pipelines]
    key, held = hashlib.sha256(repr(about).encode("utf-8", "surrogatepass")).hexdigest(), _kept()
    if key not in held:

        def tell(done: int, total: int) -> None:
            if perf_counter() - started > QUIET:
                place.progress(done / max(total, 1), f"Collecting chunks to label: question {done:,} of {total:,}")

        reports = [kept_of(session, pipeline, tell) for pipeline in pipelines]
        pairs = in_order_of_asking(pool(reports, settings.depth, settings.seed, settings.near), settings.seed)
        rivals = (reports[0], reports[1]) if settings.order == DECIDE and len(reports) > 1 else None
        names = tuple(report.name for report in reports)
        held[key] = Pooled(PairPool.of(session.project.labels, pairs), rivals, names)
        place.empty()
    return held[key]
