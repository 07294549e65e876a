"""What Rules works on: a collection as it stands, labelled queries for it, and the lists it gives for them.

Shared between sessions under keys made from content: the collection's revision, the labels, the depth. Nothing here
draws; long work reports through a callback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import streamlit as st

from pages.components import resources
from rag_core import workbench
from rag_core.errors import InputError
from rag_core.evaluate.capture import capture_to_file
from rag_core.evaluate.experiment import PipelineReport, run
from rag_core.evaluate.sets import EvalSet, folders, labels_fingerprint, load_set
from rag_core.filters.query_must import QueryMust
from rag_core.index.collection import list_collections, revision_of
from rag_core.index.search import CollectionIndex
from rag_core.records import load_lists
from rag_core.retrieve.requery import Requery
from rag_core.rules.lint import Finding, lint_rules
from rag_core.rules.model import Rule
from rag_core.rules.suggest import Coverage, Crowd, coverage, families_of, suggest
from rag_core.stage import Pipeline
from rag_core.types import Case, Chunk

DEMO = "rulebook"
ROUNDS = 3
AT_ONCE = 500  # queries; more of them are asked only when a person says so
Progress = Callable[[int, int], None]
Rules = Mapping[str, Rule | None]


@dataclass(frozen=True)
class Bench:
    """A collection, the labelled queries it is held to, and how rules are read: all that a view of the page needs."""

    collection: str
    revision: str
    index: CollectionIndex
    eval_set: str
    cases: tuple[Case, ...]
    min_grade: int
    k: int
    mode: str

    @property
    def chunks(self) -> Sequence[Chunk]:
        """The chunks as they stand."""
        return self.index.snapshot.chunks

    @cached_property
    def by_id(self) -> dict[str, Chunk]:
        """Chunk id → chunk."""
        return {chunk.id: chunk for chunk in self.chunks}

    @cached_property
    def labels(self) -> str:
        """A hash of queries and labels."""
        return labels_fingerprint(self.cases)

    @property
    def depth(self) -> int:
        """How deep lists are read: as far as the rounds of Requery can go."""
        return self.k * ROUNDS

    @property
    def pipeline(self) -> Pipeline:
        """The rules with refill, as the page sets them."""
        return Pipeline((Requery(k=self.k, max_iterations=ROUNDS, rules=QueryMust(mode=self.mode)),))

    @property
    def queries(self) -> dict[str, str]:
        """Query id → text."""
        return {case.query.id: case.query.text for case in self.cases}


def collections() -> dict[str, str]:
    """The collections that can be chosen: name → what the list shows, the demo first."""
    known = {summary.name: summary for summary in list_collections(resources.workspace())}
    named = {DEMO: "Demo: the rulebook"}
    for name, summary in known.items():
        if name != DEMO:
            named[name] = f"{name} (cannot be used)" if summary.problem else f"{name} ({summary.chunks:,} chunks)"
    return named


@st.cache_resource(show_spinner=False)
def _brought_up() -> set[str]:
    return set()


def bring_up_demo(progress: Progress) -> None:
    """Make the demo's collection hold its corpus: once a process, or again where the collection is gone."""
    workspace = resources.workspace()
    done = _brought_up()
    if str(workspace) in done and (workspace / "collections" / DEMO).is_dir():
        return
    workbench.bring_up_to_date(load_set(DEMO, workspace), workspace, progress)
    done.add(str(workspace))


def open_index(collection: str) -> tuple[str, CollectionIndex]:
    """(revision, index) of a collection as it stands now, read again when it changed."""
    workspace = resources.workspace()
    revision = revision_of(workspace, collection)
    return revision, _opened(str(workspace), collection, revision)


@st.cache_resource(max_entries=3, show_spinner="Opening the collection")
def _opened(workspace: str, collection: str, revision: str) -> CollectionIndex:
    return workbench.opened(Path(workspace), collection)


def eval_sets() -> dict[str, str]:
    """Eval sets whose queries rules can be held to: name → title; '' is none."""
    return {"": "none", **resources.set_titles()}


def eval_set(name: str) -> EvalSet | None:
    """The eval set of that name, read again when a file of it changes; None for no name."""
    if not name:
        return None
    folder = folders(resources.workspace()).get(name)
    changed = sorted(path.stat().st_mtime_ns for path in folder.glob("*.*")) if folder else []
    return _read_set(str(resources.workspace()), name, tuple(changed))


@st.cache_resource(max_entries=8, show_spinner=False)
def _read_set(workspace: str, name: str, changed_at: tuple[int, ...]) -> EvalSet:
    return load_set(name, Path(workspace))


def capture_file(bench: Bench) -> Path:
    """Where the lists of this collection for these queries are kept."""
    name = workbench.capture_fingerprint(bench.index, bench.depth, bench.cases)
    return resources.workspace() / "captures" / f"rules-{bench.collection}-{name}.jsonl"


def captured(bench: Bench, progress: Progress) -> Bench:
    """The bench with the unfiltered list of each query, asked once and kept in a file; an interrupted run resumes."""
    path = capture_file(bench)
    if not path.is_file():
        fingerprint = workbench.capture_fingerprint(bench.index, bench.depth, bench.cases)
        source = workbench.source_of(bench.index, bench.depth)
        capture_to_file(bench.cases, source, path, fingerprint, progress)
    lists = {case.query.id: case.candidates for case in _read_lists(str(path), path.stat().st_mtime_ns)}
    cases = tuple(replace(case, candidates=lists.get(case.query.id)) for case in bench.cases)
    return replace(bench, cases=_with_given_labels(bench.eval_set, cases))


@st.cache_resource(max_entries=4, show_spinner=False)
def _read_lists(path: str, changed_at: int) -> tuple[Case, ...]:
    return tuple(load_lists(Path(path)))


def _with_given_labels(eval_set: str, cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The cases with the labels people gave on other pages laid over them."""
    if not resources.has_store():
        return cases
    from pages.components import labels  # late: the database layer takes long to import

    return tuple(labels.overlaid(resources.label_store(), eval_set, cases))


def with_rules(bench: Bench, changes: Rules) -> list[Case]:
    """The captured cases with the chunks as they stand now, and some rules changed."""
    now = {**bench.by_id, **{identity: _changed(bench.by_id[identity], rule) for identity, rule in changes.items()}}
    found = []
    for case in bench.cases:
        if case.candidates is not None:
            hits = tuple(replace(hit, chunk=now.get(hit.chunk.id, hit.chunk)) for hit in case.candidates.hits)
            found.append(replace(case, candidates=replace(case.candidates, hits=hits)))
    return found


def _changed(chunk: Chunk, rule: Rule | None) -> Chunk:
    return replace(chunk, query_must=None if rule is None else rule.as_mapping())


@st.cache_resource(max_entries=16, show_spinner=False)
def _report(key: str, _bench: Bench, _changes: Rules) -> PipelineReport:
    return run(with_rules(_bench, _changes), _bench.pipeline, _bench.min_grade)


def report(bench: Bench, changes: Rules) -> PipelineReport:
    """The captured lists through the rules, with some of them changed, and refill."""
    return _report(f"{_key(bench)} {sorted(_as_text(changes).items())}", bench, changes)


def _as_text(rules: Rules) -> dict[str, str]:
    return {identity: "" if rule is None else rule.as_json() for identity, rule in rules.items()}


def _key(bench: Bench) -> str:
    listed = any(case.candidates is not None for case in bench.cases)
    return f"{bench.collection} {bench.revision} {bench.labels} {bench.min_grade} {bench.k} {bench.mode} {listed}"


@dataclass(frozen=True)
class Families:
    """The families of the corpus by what they take of the unfiltered lists, the same with rules in force, coverage."""

    crowds: tuple[Crowd, ...]
    with_rules: Mapping[str, Crowd]
    coverage: Coverage


@st.cache_resource(max_entries=4, show_spinner="Looking for families of titles")
def _families(key: str, _bench: Bench) -> Families:
    kept = [replace(outcome.case, candidates=outcome.result) for outcome in _report(f"{key} []", _bench, {}).outcomes]
    named = families_of(_bench.chunks)
    now = suggest(_bench.chunks, kept, _bench.k, _bench.min_grade, named=named)
    before = suggest(_bench.chunks, _bench.cases, _bench.k, _bench.min_grade, named=named)
    return Families(before, {crowd.name: crowd for crowd in now}, coverage(_bench.chunks, named=named))


def families(bench: Bench) -> Families:
    """Which families crowd the lists, and which carry rules."""
    return _families(_key(bench), bench)


@st.cache_resource(max_entries=4, show_spinner="Checking the rules")
def _findings(key: str, _bench: Bench) -> tuple[Finding, ...]:
    return lint_rules(_bench.chunks, _bench.cases, _bench.min_grade)


def findings(bench: Bench) -> tuple[Finding, ...]:
    """What the linter says of the stored rules."""
    return _findings(_key(bench), bench)


def bench_of(collection: str, chosen: EvalSet | None, k: int, mode: str) -> Bench:
    """The bench of a collection; an InputError or StoreError says why it cannot be opened."""
    revision, index = open_index(collection)
    cases = tuple(replace(case, candidates=None) for case in chosen.cases) if chosen else ()
    if len({case.query.id for case in cases}) < len(cases):
        raise InputError("two queries of the eval set have one id, expected each id once")
    min_grade = chosen.min_grade if chosen else 1
    return Bench(collection, revision, index, chosen.name if chosen else "", cases, min_grade, k, mode)
