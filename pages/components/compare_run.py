"""The runs behind Compare: the cases of an eval set with today's labels, every pipeline over them, kept block by block.

A block that was measured stays measured: a run that was cancelled goes on where it was, and another baseline or measure
runs nothing. Traces are let go with their query. What is computed of the tallies is in rag_core.evaluate.compare, long
work in sight of a person in under_way.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st
from cachetools import LRUCache

from pages.components import resources, say, under_way
from pages.components.asked import labelled, working
from pages.components.compare_view import read_entry
from pages.components.trace import counted
from rag_core.errors import InputError, WinnowError
from rag_core.evaluate.compare import SHOWN
from rag_core.evaluate.experiment import Outcome, run_all, stream
from rag_core.evaluate.measures import DEFAULT_MEASURES, Measure, parse_measure
from rag_core.evaluate.pooling import Pair
from rag_core.evaluate.run_file import Run
from rag_core.evaluate.sets import EvalSet, labels_fingerprint
from rag_core.evaluate.snapshot import About, Recorder
from rag_core.evaluate.tally import PipelineTally, QueryTally, measure_all
from rag_core.resources import with_entities
from rag_core.spec import dump_pipeline
from rag_core.stage import Pipeline
from rag_core.types import Case

BLOCK = 100  # queries that are measured between two looks at whether to go on


@dataclass(frozen=True)
class Material:
    """What is compared: cases with their labels, the pipelines ready to run, and what names this state."""

    chosen: EvalSet
    cases: tuple[Case, ...]
    pipelines: tuple[Pipeline, ...]
    key: str
    about: About  # what a kept run says of itself


def measures() -> tuple[Measure, ...]:
    """Those every report has, and those of the table."""
    known = {measure.name: measure for measure in DEFAULT_MEASURES}
    return (*known.values(), *(parse_measure(name) for name in SHOWN if name not in known))


def material(chosen: EvalSet, entries: Sequence[str]) -> Material | None:
    """The cases and pipelines, ready to run; None with the reason shown."""
    try:
        pipelines = [replace(_allowed(read_entry(entry)), label=name) for entry, name in _named(entries)]
        if chosen.recorded:
            cases = labelled(chosen, chosen.cases, None)
            ready, about = [with_entities(one) for one in pipelines], About(eval_set=chosen.name)
        else:
            cases, ready, about = _live(chosen, pipelines)
    except (WinnowError, OSError) as error:
        say.problem("This comparison cannot be run.", str(error))
        return None
    specs = [dump_pipeline(pipeline) for pipeline in ready]
    state = [str(resources.workspace()), about, labels_fingerprint(cases), chosen.min_grade, specs]
    return Material(chosen, tuple(cases), tuple(ready), hashlib.sha256(repr(state).encode()).hexdigest(), about)


def _named(entries: Sequence[str]) -> list[tuple[str, str]]:
    """Entry and the name it goes by; of two pipelines of one name the second is name-2."""
    from pages.components.compare_view import title_of

    found: list[tuple[str, str]] = []
    for entry in entries:
        title = title_of(entry)
        taken = sum(name == title or name.startswith(f"{title}-") for _, name in found)
        found.append((entry, title if not taken else f"{title}-{taken + 1}"))
    return found


def _allowed(pipeline: Pipeline) -> Pipeline:
    """The pipeline, unless running it over a whole set may cost money."""
    if any(stage.costly for stage in pipeline.stages):
        raise InputError(
            f"pipeline {pipeline.label!r} asks a language model, expected one that does not: the page LLM filter "
            "shows what such a run costs before it starts"
        )
    return pipeline


def _live(chosen: EvalSet, pipelines: Sequence[Pipeline]) -> tuple[list[Case], list[Pipeline], About]:
    """The set's collection brought up to date and opened; its cases with the labels of chunks it holds."""
    from pages.components import live
    from rag_core import workbench

    if not live.is_fresh(chosen):
        working(f"Bringing the collection {chosen.name} up to date", lambda bar: live.bring_up_to_date(chosen, bar))
    opened = live.open_live(chosen.name, False)
    cases = labelled(chosen, [opened.known(case) for case in chosen.cases], opened)
    about = About(
        eval_set=chosen.name,
        corpus=str(opened.index.fingerprint),
        rules=opened.revision,
        models={"embedding": opened.index.snapshot.model},
    )
    return cases, [workbench.live(one, opened.index) for one in pipelines], about


@st.cache_resource(show_spinner=False)
def _blocks() -> LRUCache[tuple[str, int], list[tuple[QueryTally, ...]]]:
    return LRUCache(400)


def tallies(found: Material) -> list[PipelineTally] | None:
    """Every pipeline over all cases, with a bar while blocks are missing; None with the reason shown."""
    kept = _blocks()
    starts = range(0, len(found.cases), BLOCK)
    missing = [start for start in starts if (found.key, start) not in kept]
    if missing:
        words = f"queries through {counted(len(found.pipelines), 'pipeline', 'pipelines')}"
        if not under_way.done(words, lambda told: _measure(found, missing, told)):
            return None
    rows = [kept[found.key, start] for start in starts]
    return [
        PipelineTally(pipeline.label, pipeline, tuple(one for row in rows for one in row[at]), found.chosen.min_grade)
        for at, pipeline in enumerate(found.pipelines)
    ]


def _measure(found: Material, missing: Sequence[int], told: under_way.Told) -> None:
    """Measure the missing blocks, each kept once it is done."""
    total = len(found.cases)
    for start in missing:
        cases = found.cases[start : start + BLOCK]
        done = measure_all(
            cases, found.pipelines, found.chosen.min_grade, measures(), partial(_told_from, told, start, total)
        )
        _blocks()[found.key, start] = [tally.queries for tally in done]
    resources.freeze()


def _told_from(told: under_way.Told, start: int, total: int, done: int) -> None:
    told(start + done, total)


def recorded(found: Material, name: str) -> Run:
    """The run of these pipelines over all cases, to be kept: every query once more, this time with its reasons."""
    recorder = Recorder(found.pipelines, found.chosen.min_grade, replace(found.about, name=name.strip()))
    for outcomes_of_query in stream(found.cases, found.pipelines, found.chosen.min_grade, measures()):
        recorder.add(outcomes_of_query)
    return recorder.run()


def outcomes(found: Material, query_id: str) -> list[Outcome] | None:
    """One query through every pipeline, with traces; None where the set has no such query."""
    case = next((case for case in found.cases if case.query.id == query_id), None)
    if case is None:
        return None
    reports = run_all([case], found.pipelines, found.chosen.min_grade, measures())
    return [report.outcomes[0] for report in reports]


def pairs(found: Material, wanted: Sequence[tuple[str, str]]) -> list[Pair]:
    """What the queue of Label takes: (query id, chunk id) with their texts; chunks that no list holds are left out."""
    taken = []
    for query_id, chunk_id in wanted:
        ran = outcomes(found, query_id) or []
        hits = (hit for one in ran for hit in (*one.result.hits, *(drop.hit for drop in one.result.drops)))
        hit = next((hit for hit in hits if hit.chunk.id == chunk_id), None)
        if hit is not None:
            taken.append(Pair(ran[0].case.query, hit.chunk, distance=hit.distance))
    return taken


@st.cache_resource(show_spinner=False)
def _figures() -> LRUCache[tuple[Any, ...], Any]:
    return LRUCache(30)


def computed(what: str, found: Material, *settings: Any, work: Callable[[under_way.Told], Any], words: str) -> Any:
    """A figure that takes a while (intervals, tests, ablations), once for the same runs and settings.

    None, with the reason shown, where a person stopped it or it cannot be had.
    """
    kept, name = _figures(), (what, found.key, *settings)

    def make(told: under_way.Told) -> None:
        kept[name] = work(told)

    return kept[name] if name in kept or under_way.done(words, make) else None
