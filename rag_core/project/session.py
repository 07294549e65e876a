"""Session: a project at work. Opens its handles once, captures its lists once, joins what is true today, remembers.

A pipeline is run in two parts that must not be confused. What searching brings (ids and scores) is captured and kept
until the source changes; text, metadata, rules and labels are joined each time, so no figure is ever of yesterday's
rules. `spec.build` is reached from `ready` alone. Pages and commands call this and nothing below it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from math import fsum
from pathlib import Path
from statistics import median
from threading import RLock, local
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache

from rag_core import workbench
from rag_core.compare.snapshot import ListsDigest
from rag_core.errors import InputError, StoreError
from rag_core.eval_sets.reading import LISTS as LISTS_FILE
from rag_core.eval_sets.reading import EvalSet, files_state, labels_fingerprint
from rag_core.files import read_text, write_whole
from rag_core.filters.cutoff import TopK
from rag_core.index.collection import revision_of
from rag_core.index.foreign import fields_of
from rag_core.llm.store import SCORES as RERANKED
from rag_core.measure.experiment import Outcome, PipelineReport, run_case, start_of, unique_names
from rag_core.measure.experiment import stream as run_stream
from rag_core.measure.measures import DEFAULT_MEASURES, SET_MEASURES, Measure
from rag_core.measure.tally import PipelineTally, measure_all
from rag_core.project.captures import CapturedList, ListCache, query_key
from rag_core.project.ledger import key_of
from rag_core.project.project import CALLABLE, COLLECTION, LISTS, NOTHING, Project
from rag_core.project.rules import OVERLAY, overlay_of
from rag_core.project.split import Sides, questions_that_chose, split_of
from rag_core.resources import structure_path, with_handles
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical
from rag_core.retrieve.multihop import MultiHop
from rag_core.retrieve.question import check_question
from rag_core.retrieve.requery import Requery
from rag_core.settings import database_settings
from rag_core.sources.callable_source import CallOptions, load_callable
from rag_core.spec import SAVED, dump_pipeline, fingerprint, read_pipeline
from rag_core.stage import ChosenOn, Pipeline, Stage
from rag_core.tune.arrays import Floats
from rag_core.tune.plane import fixed_k
from rag_core.tune.steps import figures_of, measure_kept
from rag_core.tune.variants import Captures
from rag_core.types import SCORES, Candidates, Case, Chunk, Metric, Query, chunks_in
from rag_core.wording import KINDS, word_file, word_resources

if TYPE_CHECKING:
    from rag_core.llm.judge import Judge
    from rag_core.project.labels import GivenLabels
    from rag_core.store.matching import AtHand

DEEP = 200
"""How deep a question is searched at least, so that a knob can move without searching again."""
COMMITTED_EVERY = 50  # questions between two writes of captured lists: what a killed capture loses at most
LINKS = "links"
STORE_FILE = "winnow.db"
Progress = Callable[[int, int], None]


class _Stands(local):
    """How this thread saw things stand on the disk; None outside of `Session.steady`."""

    seen: dict[str, str] | None = None


def _looked_at_once(look: Callable[[Session], str]) -> Callable[[Session], str]:
    """A look at the disk that a thread makes once within `Session.steady`."""

    def state(session: Session) -> str:
        seen = session._stands.seen
        if seen is None:
            return look(session)
        if look.__name__ not in seen:
            seen[look.__name__] = look(session)
        return seen[look.__name__]

    return state


@dataclass(frozen=True)
class Opened:
    """The source as it stands now: the index (None for recorded lists), its chunks, and what names its state."""

    index: Any
    chunks: tuple[Chunk, ...]
    revision: str

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row by chunk id."""
        return {chunk.id: row for row, chunk in enumerate(self.chunks)}

    @cached_property
    def by_id(self) -> dict[str, Chunk]:
        """Chunk by id."""
        return {chunk.id: chunk for chunk in self.chunks}

    @cached_property
    def at_hand(self) -> AtHand:
        """The chunks as labels meet them."""
        from rag_core.project.labels import chunks_of  # as below: only where labels were ever given

        return chunks_of(self.index)

    @cached_property
    def rules(self) -> int:
        """How many chunks carry a rule."""
        return sum(chunk.query_must is not None for chunk in self.chunks)

    @cached_property
    def fingerprint(self) -> str:
        """Ids, texts, metadata and model: all that a list may depend on besides the search; rules are not among it."""
        digest = hashlib.sha256(str(getattr(self.index, "fingerprint", "lists")).encode())
        for chunk in self.chunks:
            digest.update(repr((chunk.id, chunk.title, chunk.type, chunk.ref_ids, dict(chunk.metadata))).encode())
            digest.update(chunk.text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]

    @cached_property
    def rules_fingerprint(self) -> str:
        """Every rule of every chunk."""
        rules = [(chunk.id, chunk.query_must) for chunk in self.chunks if chunk.query_must is not None]
        return hashlib.sha256(json.dumps(rules, sort_keys=True, default=str).encode()).hexdigest()[:16]

    @property
    def model(self) -> str:
        """The embedding model, '' where there is none or it is not known."""
        return str(getattr(getattr(self.index, "snapshot", None), "model", ""))


@dataclass(frozen=True, eq=False)
class Figures:
    """What a pipeline gives on some questions, in arrays: SetP, SetR, SetF and the number kept by question, (4, q)."""

    values: Floats  # NaN where a question is not scored

    @property
    def f(self) -> Floats:
        """SetF by question."""
        row: Floats = self.values[2]
        return row

    @cached_property
    def scored(self) -> int:
        """How many questions enter the means."""
        return int(np.isfinite(self.values[2]).sum())

    @cached_property
    def means(self) -> dict[str, float | None]:
        """Macro means over the scored questions, None without one; kept over all."""
        means: dict[str, float | None] = {}
        for name, row in zip(("SetP", "SetR", "SetF"), self.values[:3], strict=True):
            known = row[np.isfinite(row)]
            means[name] = fsum(known.tolist()) / len(known) if len(known) else None
        kept = self.values[3]
        return {**means, "kept": float(kept.mean()) if len(kept) else None}


@dataclass
class _Held:
    """What is open, with the state it is of: shared by a session and those that judge otherwise."""

    opened: tuple[str, Opened] | None = None
    own: tuple[str, EvalSet] | None = None
    cases: tuple[str, EvalSet] | None = None
    given: tuple[EvalSet, Opened | None, GivenLabels] | None = None
    split: tuple[tuple[Case, ...], str, Sides] | None = None
    lists: tuple[tuple[Case, ...], str] | None = None
    asked: int = 0


class Session:
    """One project at work. Cheap to make; safe for several threads, which wait for each other where handles open."""

    def __init__(
        self, project: Project, *, judge: Judge | None = None, approximate: bool = False, min_grade: int | None = None
    ) -> None:
        self.project = project
        self.workspace = project.workspace
        self.judge = judge
        self.hop_judge: Any = None  # None: the model of the environment's endpoint
        self.approximate = approximate
        self._min_grade = min_grade
        self.cache = ListCache(project.workspace)
        self._judge_state = ""
        self._lock = RLock()
        self._stands = _Stands()
        self._held = _Held()
        self._lists: LRUCache[tuple[str, ...], dict[str, CapturedList]] = LRUCache(6)
        self._joined: LRUCache[tuple[Any, ...], dict[str, Candidates]] = LRUCache(6)
        self._tallies: LRUCache[tuple[Any, ...], PipelineTally] = LRUCache(64)
        self._captures: LRUCache[tuple[Any, ...], Captures] = LRUCache(8)
        self._made: LRUCache[tuple[Any, ...], Any] = LRUCache(64)

    def judged_by(self, judge: Judge | None, state: str) -> Session:
        """The same project at work with another judge of the LLM filter; handles and lists are shared.

        `state` names who answers and what is stored: another one, and no figure of before counts.
        """
        other = copy(self)
        other.judge, other._judge_state = judge, state
        return other

    # What there is

    @property
    def asked(self) -> int:
        """Searches made: what a test counts."""
        return self._held.asked

    @property
    def min_grade(self) -> int:
        """Relevant means a grade of at least this: as the project says, unless the session was made with another."""
        return self._min_grade or self.project.min_grade

    def refresh(self, progress: Progress | None = None) -> bool:
        """Bring the source to what its documents say now; whether anything was embedded or stored.

        A shipped project's collection is made from its corpus; only what changed is embedded.
        """
        if self.project.source.kind != COLLECTION:
            return False
        eval_set = self._own()
        if eval_set.corpus is None or self.project.source.name != eval_set.name:
            return False
        with self._lock:
            changed = workbench.bring_up_to_date(eval_set, self.workspace, progress) is not None
        if changed and self._stands.seen is not None:
            self._stands.seen.clear()
        return changed

    @property
    def source(self) -> Opened:
        """The source as it stands now, opened again only where it changed; a WinnowError says why it cannot be."""
        with self._lock:
            state = self._source_state()
            if self._held.opened is None or self._held.opened[0] != state:
                self.close()
                self._held.opened = (state, self._open(state))
            return self._held.opened[1]

    def close(self) -> None:
        """Let go of the source; the next use opens it again."""
        with self._lock:
            if self._held.opened is not None:
                getattr(self._held.opened[1].index, "close", lambda: None)()
                self._held.opened = None

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Within it, this thread sees source, questions and labels as they stood when they were first asked for.

        One change on the Bench asks some thirty times how they stand, and each time is a look at the disk: 95 ms of CPU
        with them, 50 without (40 questions × 200). What somebody else changes meanwhile is seen by the next one.
        """
        outer = self._stands.seen
        self._stands.seen = {} if outer is None else outer
        try:
            yield
        finally:
            self._stands.seen = outer

    @_looked_at_once
    def _source_state(self) -> str:
        """What changes when the source does; cheap, since every page asks it."""
        source = self.project.source
        marks = [_look_at(self.project.state / OVERLAY)]
        if source.kind == COLLECTION:
            if not (self.workspace / "collections" / source.name).is_dir():
                self.refresh()
            try:
                marks.append(revision_of(self.workspace, source.name))
            except StoreError:  # not there, being made, or damaged: whoever opens it hears which
                marks.append("")
        elif source.kind == LISTS:
            marks.append(_look_at(self.project.folder / LISTS_FILE))
        return " ".join(marks)

    def _open(self, state: str) -> Opened:
        source = self.project.source
        if source.kind == COLLECTION:
            index = workbench.opened(self.workspace, source.name, self.approximate)
            return Opened(index, index.snapshot.chunks, state)
        if source.kind == CALLABLE:
            return Opened(load_callable(source.name, source.call or CallOptions()), (), state)
        if source.kind == LISTS:
            overlay, chunks = overlay_of(self.project), chunks_in(self._own().cases).values()
            ruled = (replace(one, query_must=overlay[one.id]) if one.id in overlay else one for one in chunks)
            return Opened(None, tuple(ruled), state)
        raise InputError(f"project {self.project.name} has no source yet, expected a collection or recorded lists")

    def scores_of(self, pipeline: Pipeline) -> tuple[str, str]:
        """(metric, kind of score) of the lists that a pipeline is tuned on here; "" for what is not known."""
        if self.project.source.kind == NOTHING:
            return "", ""
        if self.project.source.kind == LISTS:
            starts = [start_of(case) for case in self._own().cases]
            metrics = {str(start.metric) for start in starts}
            hits = [hit for start in starts for hit in start.hits]
            kind = next((kind for kind in SCORES if hits and all(kind in hit.scores for hit in hits)), "")
            metric = metrics.pop() if len(metrics) == 1 else ""
        else:
            index = self.source.index
            metric = str(getattr(getattr(index, "proposal", None), "metric", "") or getattr(index, "metric", ""))
            kind = str(getattr(getattr(index, "proposal", None), "kind", "distance"))
            if any(stage.kind == "source" and type(stage) is not Dense for stage in pipeline.stages):
                kind = ""  # a search by words brings other scores, a fused list several
        return ("" if metric == Metric.UNKNOWN else metric), kind

    def record_fields(self) -> dict[str, str]:
        """Which metadata of the store's records is what, where the source is a collection that was connected."""
        source = self.project.source
        return fields_of(self.project.workspace, source.name) if source.kind == COLLECTION else {}

    @property
    def live(self) -> bool:
        """Whether lists are searched; recorded ones are not."""
        return self.project.source.kind in (COLLECTION, CALLABLE)

    # Questions, labels, split

    @property
    def eval_set(self) -> EvalSet:
        """The questions with today's labels: those of the set, and over them those given in the workspace."""
        with self._lock:
            state = f"{self._labels_state()} {self._source_state()}"
            if self._held.cases is None or self._held.cases[0] != state:
                self._held.cases = (state, self._with_labels())
            return self._held.cases[1]

    def _own(self) -> EvalSet:
        """The set as its files stand now, read anew where they changed: 5,000 lists of 50 take 4 s and 200 MB."""
        state = files_state(self.project.folder)
        if self._held.own is None or self._held.own[0] != state:
            # a fresh value of the project reads the files anew
            self._held.own = (state, replace(self.project, name=self.project.name).eval_set)
        return self._held.own[1]

    def _with_labels(self) -> EvalSet:
        own = self._own()
        if not own.cases or not _has_labels(self.workspace):
            labelled = self._named(own)
        else:
            held, source = self._held.given, self.source if self.live else None
            if held is None or held[0] is not own or held[1] is not source:
                self._held.given = held = (own, source, self._given(own))
            labelled = held[2].now()
        overlay = overlay_of(self.project)
        if not overlay or not labelled.recorded:
            return labelled
        cases = (_with_rules(case, overlay) for case in labelled.cases)
        return replace(labelled, cases=tuple(cases))

    @property
    def cases(self) -> tuple[Case, ...]:
        """The questions with today's labels, with their own lists where they were recorded."""
        return self.eval_set.cases

    def case(self, query_id: str) -> Case:
        """One question; an InputError where the project has none of that id."""
        found = next((case for case in self.cases if case.query.id == query_id), None)
        if found is None:
            raise InputError(f"project {self.project.name} has no question {query_id[:80]!r}, expected one of its own")
        return found

    def question(self, text: str) -> Case:
        """A question of one's own, with the labels it was given when it was asked before."""
        query = Query("own-" + hashlib.sha256(check_question(text).encode()).hexdigest()[:16], text)
        own = EvalSet(self.project.labels, self.project.title, (Case(query),))
        return (self._given(own).now() if _has_labels(self.workspace) else own).cases[0]

    def _named(self, own: EvalSet) -> EvalSet:
        """The questions under the name that labels are given to."""
        return own if own.name == self.project.labels else replace(own, name=self.project.labels)

    def _given(self, own: EvalSet) -> GivenLabels:
        """The labels given in the workspace, to be laid over those of the questions."""
        # the database layer takes a tenth of a second: who never labelled waits not
        from rag_core.project.labels import GivenLabels

        return GivenLabels(self._named(own), self.workspace, self.source.at_hand if self.live else None)

    @_looked_at_once
    def _labels_state(self) -> str:
        """What changes when a question or a label does."""
        return f"{files_state(self.project.folder)} {_newest_label(self.workspace, self.project.labels)}"

    @property
    def split(self) -> Sides:
        """Which questions are dev and which are held out; decided once for each question."""
        cases = self.cases
        with self._lock:
            held = self._held.split
            if held is not None and held[0] is cases:  # asked ten times for one change on the Bench
                return held[2]
            queries = [case.query for case in cases]
            about = repr([(query.id, query.text, query.metadata.get("split")) for query in queries])
            split = held[2] if held is not None and held[1] == about else split_of(self.project, queries)
            self._held.split = (cases, about, split)
            return split

    @property
    def dev(self) -> list[Case]:
        """The questions that may be chosen on."""
        return self.split.cases(self.cases, "dev")

    @property
    def held_out(self) -> list[Case]:
        """The questions that a verdict is judged on: whoever shows a figure over them writes a look (ledger.py)."""
        return self.split.cases(self.cases, "held_out")

    def chosen_on(self, method: str, dev: Sequence[Case] | None = None) -> ChosenOn:
        """What a pipeline carries that was chosen today on the dev questions: those that a mean stands on."""
        chose = [case for case in (self.dev if dev is None else dev) if case.has_relevant(self.min_grade)]
        return ChosenOn(self.split.name, len(chose), key_of(chose), method, datetime.now(UTC).date().isoformat())

    def unseen(self, pipelines: Sequence[Pipeline], cases: Sequence[Case]) -> list[Case]:
        """The cases that none of the pipelines was chosen on, as far as their specs and this project's splits tell."""
        chose = set().union(*(questions_that_chose(self.project, self.split, one) or () for one in pipelines))
        return [case for case in cases if case.query.id not in chose]

    def flattered(self, pipelines: Sequence[Pipeline], cases: Sequence[Case]) -> list[str]:
        """A sentence for each pipeline whose figures over these cases stand on questions that chose it."""
        told = []
        for one in (pipeline for pipeline in pipelines if pipeline.chosen_on is not None):
            assert one.chosen_on is not None
            if questions_that_chose(self.project, self.split, one) is None:
                of = f"{one.chosen_on.questions} questions of the split {one.chosen_on.split[:80]!r}"
                told.append(f"{one.called} was chosen on {of}: whether any of these are among them is not known")
            elif mixed := len(cases) - len(self.unseen([one], cases)):
                told.append(f"{one.called} was chosen on {mixed} of these {len(cases)} questions, which flatter it")
        return told

    # Pipelines

    def pipeline(self, entry: str) -> Pipeline:
        """A pipeline by its name in the project, a shipped or saved one, inline JSON or a file."""
        own = self.project.state / SAVED / f"{entry}.yaml"
        if entry.replace("-", "").replace("_", "").isalnum() and own.is_file():
            return read_pipeline(str(own))
        return read_pipeline(entry)

    def pipeline_names(self) -> list[str]:
        """The names of the pipelines that were saved with this project."""
        return sorted(path.stem for path in (self.project.state / SAVED).glob("*.yaml"))

    def save_pipeline(self, name: str, pipeline: Pipeline) -> Path:
        """Keep a pipeline with the project under a name; an InputError for a name that is none."""
        if not (name and name.replace("-", "").replace("_", "").isalnum() and len(name) <= 64):
            raise InputError(f"the pipeline's name is {name[:80]!r}, expected up to 64 letters, digits, - and _")
        path = self.project.state / SAVED / f"{name}.yaml"
        write_whole(path, json.dumps(dump_pipeline(replace(pipeline, label=name)), ensure_ascii=False, indent=1) + "\n")
        return path

    def keep_link(self, text: str) -> str:
        """Keep what is too long for an address; the name that stands for it there."""
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        write_whole(self.project.state / LINKS / f"{name}.json", text)
        return name

    def kept_link(self, name: str) -> str:
        """What was kept under a name; an InputError where nothing was."""
        path = self.project.state / LINKS / f"{name}.json"
        if not name.isalnum() or not path.is_file():
            raise InputError(
                f"pipeline {name[:40]!r} of the link was never kept here, expected a link of this workspace"
            )
        return read_text(path)

    def whole(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the search that `ready` would put in front of it, so that both count stages alike."""
        if not self.live or any(stage.kind == "source" for stage in pipeline.stages):
            return pipeline
        rest = tuple(stage for stage in pipeline.stages if stage.kind != "rewrite")
        return replace(pipeline, stages=(*front_of(pipeline).stages, *rest))

    def ready(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with every handle its stages need; one without a source searches by vectors."""
        if not self.live:
            return with_handles(pipeline, self.workspace, self.source.chunks, self.judge)
        return workbench.live(
            pipeline, self.source.index, self.project.labels, self.hop_judge, self.judge, self.workspace
        )

    def baseline(self, pipeline: Pipeline) -> Pipeline:
        """The fair rival: the last cut replaced by the best fixed k, chosen on dev; without a cut, the bare search.

        Without a label that could choose it, k is the median length of what the pipeline keeps.
        """
        found: Pipeline = self.remembered("baseline", pipeline, lambda: self._best_fixed(pipeline))
        return found

    def _best_fixed(self, pipeline: Pipeline) -> Pipeline:
        places = [at for at, stage in enumerate(pipeline.stages) if stage.is_cut]
        if places:
            front, back = pipeline.stages[: places[-1]], pipeline.stages[places[-1] + 1 :]
        else:
            front, back = tuple(stage for stage in pipeline.stages if stage.kind in ("rewrite", "source")), ()
        dev = self.dev or list(self.cases)
        captured = self.capture(Pipeline(front), dev)
        try:
            _, k, _ = fixed_k(captured, self.ready(Pipeline(front)).stages, "SetF", None, self.min_grade)
        except InputError:
            lengths = [len(self.run(pipeline, case).result.hits) for case in captured[:200]]
            k = max(1, round(median(lengths))) if lengths else 15
        return Pipeline((*front, TopK(k=k), *back), f"best fixed k = {k}", self.chosen_on("fixed k", dev))

    def fingerprints(self, pipeline: Pipeline | None = None) -> dict[str, str]:
        """What a figure stands on: source, rules, labels, pipeline and model."""
        source = self.source
        return {
            "source": self._lists_fingerprint() if not self.live else source.fingerprint,
            "rules": source.rules_fingerprint,
            "labels": labels_fingerprint(self.cases),
            "pipeline": fingerprint(pipeline) if pipeline is not None else "",
            "model": source.model,
        }

    def _lists_fingerprint(self) -> str:
        cases = self.cases
        with self._lock:
            held = self._held.lists
        if held is not None and held[0] is cases:
            return held[1]
        digest = ListsDigest()
        for case in cases:
            digest.add(case)
        with self._lock:
            self._held.lists = (cases, digest.source)
        return digest.source

    @property
    def state(self) -> tuple[str, ...]:
        """What changes when the source, a label, a question, the split or whatever else a figure stands on does."""
        return (
            self._labels_state(),
            self._source_state(),
            self.split.fingerprint,
            self._workspace_state(),
            self._words_state(),
            self._judge_state,
        )

    @_looked_at_once
    def _words_state(self) -> str:
        """What changes when a keyword or synonym list does, which rewrites of the question read."""
        source = self.project.source
        collection = source.name if source.kind == COLLECTION else ""
        return " ".join(_look_at(word_file(self.workspace, collection, kind, self.project.labels)) for kind in KINDS)

    @_looked_at_once
    def _workspace_state(self) -> str:
        """What changes when the workspace's structure of entities or a reranker's score does."""
        return f"{_look_at(structure_path(self.workspace))} {_look_at(self.workspace / RERANKED)}"

    # Lists

    def capture(
        self,
        pipeline: Pipeline,
        cases: Iterable[Case] | None = None,
        progress: Progress | None = None,
    ) -> list[Case]:
        """The questions with the list that the pipeline's search brings, joined with today's chunks and rules.

        Searched are only those that no kept list answers; a `progress` that raises ends it, and what is done is kept.
        """
        wanted = list(self.cases if cases is None else cases)
        if not self.live:
            return wanted
        front = front_of(pipeline)
        deep = _deepened(front, pipeline)
        source = self.source
        lists = self._captured(deep, wanted, source, progress)
        source = self.source  # a function's chunks became known by asking
        depth = _depth(front, pipeline)
        key = (fingerprint(deep), source.revision, self._words_state(), depth)
        with self._lock:
            joined = self._joined.setdefault(key, {})
            for case in wanted:
                name = query_key(case.query)
                if name not in joined:
                    joined[name] = lists[name].joined(case.query, source.chunks, depth, None)
        return [replace(case, candidates=replace(joined[query_key(case.query)], query=case.query)) for case in wanted]

    def captures(self, pipeline: Pipeline, cases: Sequence[Case]) -> Captures:
        """The questions' lists for an array engine, which remembers what stages in front of a knob made of them."""
        ids = hashlib.sha256(repr([case.query.id for case in cases]).encode()).hexdigest()
        key = (fingerprint(front_of(pipeline)), _refill(pipeline), ids, *self.state)
        with self._lock:
            if key not in self._captures:
                self._captures[key] = Captures(self.capture(pipeline, cases), self.project.min_grade)
            return self._captures[key]

    def _captured(
        self,
        front: Pipeline,
        cases: Sequence[Case],
        source: Opened,
        progress: Progress | None,
    ) -> dict[str, CapturedList]:
        """The list of every case by its query key, from memory, from the disk, else from a search."""
        words = repr(word_resources(front, source.index, self.project.labels))
        search = hashlib.sha256(f"{fingerprint(front)} {words} {self.approximate}".encode()).hexdigest()[:16]
        kept = self.project.source.kind == COLLECTION  # a function's state is not known: its answers live with us only
        state = source.fingerprint if kept else source.revision
        with self._lock:
            lists = self._lists.setdefault((state, search), {})
            missing = {query_key(case.query): case for case in cases if query_key(case.query) not in lists}
            if missing and kept:
                lists.update(self.cache.read(self.project.source.name, state, search, missing))
                missing = {key: case for key, case in missing.items() if key not in lists}
            if not missing:
                return lists
            ready, fresh = self.ready(front), {}
            try:
                for done, (key, case) in enumerate(missing.items(), 1):
                    self._held.asked += 1
                    searched = ready(Candidates(case.query))
                    if not kept:
                        source = self._learn(searched)
                    fresh[key] = lists[key] = CapturedList.of(searched, source.row_of)
                    if kept and len(fresh) >= COMMITTED_EVERY:
                        self.cache.write(self.project.source.name, state, search, fresh)
                        fresh = {}
                    if progress is not None:
                        progress(done, len(missing))
            finally:
                if kept and fresh:
                    self.cache.write(self.project.source.name, state, search, fresh)
            return lists

    def _learn(self, searched: Candidates) -> Opened:
        """A function's chunks become known as it answers; rows stay where they are."""
        source = self.source
        new = [hit.chunk for hit in searched.hits if hit.chunk.id not in source.row_of]
        if new:
            overlay = overlay_of(self.project)
            ruled = tuple(replace(one, query_must=overlay.get(one.id, one.query_must)) for one in new)
            source = Opened(source.index, (*source.chunks, *ruled), source.revision)
            self._held.opened = (source.revision, source)
        return source

    def ask_again(self) -> None:
        """Forget what a function answered: the state of what it searches is not known, only a person can tell."""
        with self._lock:
            for answered in (self._lists, self._joined, self._tallies, self._captures, self._made):
                answered.clear()

    # Running

    def run(self, pipeline: Pipeline, case: Case) -> Outcome:
        """One question through a pipeline, with its whole trace."""
        return run_case(self.starts(pipeline, [case])[0], self.ready(pipeline), self.min_grade)

    def starts(self, pipeline: Pipeline, cases: Sequence[Case], progress: Progress | None = None) -> list[Case]:
        """The questions as the pipeline begins on them: with their captured list, or bare where it must search."""
        if self.live and must_search(pipeline):
            return [replace(case, candidates=None) for case in cases]
        return self.capture(pipeline, cases, progress)

    def stream(
        self,
        pipelines: Sequence[Pipeline],
        cases: Sequence[Case] | None = None,
        measures: Sequence[Measure] = DEFAULT_MEASURES,
        progress: Progress | None = None,
    ) -> Iterator[tuple[Outcome, ...]]:
        """Question by question the outcome of every pipeline, with its trace; beginnings that they share run once."""
        wanted = list(self.cases if cases is None else cases)
        alike: dict[object, list[int]] = {}
        for at, pipeline in enumerate(pipelines):
            front = front_of(pipeline)
            captured = (fingerprint(_deepened(front, pipeline)), _depth(front, pipeline))
            key = None if not self.live else "searches" if must_search(pipeline) else captured
            alike.setdefault(key, []).append(at)
        groups = []
        for places in alike.values():
            started = self.starts(pipelines[places[0]], wanted, progress)
            groups.append(run_stream(started, [self.ready(pipelines[at]) for at in places], self.min_grade, measures))
        order = [at for places in alike.values() for at in places]
        for parts in zip(*groups, strict=True):
            outcomes = dict(zip(order, (outcome for part in parts for outcome in part), strict=True))
            yield tuple(outcomes[at] for at in range(len(pipelines)))

    def reports(
        self,
        pipelines: Sequence[Pipeline],
        cases: Sequence[Case] | None = None,
        measures: Sequence[Measure] = DEFAULT_MEASURES,
        progress: Progress | None = None,
    ) -> list[PipelineReport]:
        """Every pipeline over the same questions with every trace; a repeated name becomes name#2."""
        ready = [self.ready(pipeline) for pipeline in pipelines]
        rows = list(self.stream(pipelines, cases, measures, progress))
        return [
            PipelineReport(name, pipeline, tuple(row[at] for row in rows), self.min_grade)
            for at, (name, pipeline) in enumerate(zip(unique_names(pipelines), ready, strict=True))
        ]

    def remembered(self, what: str, pipeline: Pipeline, make: Callable[[], Any]) -> Any:
        """What `make` gives for a pipeline on this project, kept until source, questions, labels or split change."""
        key = (what, fingerprint(pipeline), *self.state)
        with self._lock:
            if key in self._made:
                return self._made[key]
        made = make()
        with self._lock:
            self._made[key] = made
        return made

    def figures(self, pipeline: Pipeline, cases: Sequence[Case]) -> Figures:
        """A pipeline's figures on these questions: in arrays where that is exact, else by measuring it."""
        if not (self.live and must_search(pipeline)):
            values = figures_of(self.captures(pipeline, cases), self.ready(pipeline))
            if values is not None:
                return Figures(values)
        (tally,) = self.measure([pipeline], cases)
        rows = [
            [np.nan if (value := row.scores.values[name]) is None else value for row in tally.queries]
            for name in ("SetP", "SetR", "SetF")
        ]
        return Figures(np.array([*rows, [row.scores.kept for row in tally.queries]], dtype=np.float64))

    def measure_kept(
        self,
        pipelines: Sequence[Pipeline],
        cases: Sequence[Case],
        progress: Progress | None = None,
        measures: Sequence[Measure] = SET_MEASURES,
    ) -> list[PipelineTally]:
        """What every pipeline keeps of the same questions, in arrays where that is exact; nothing by stage."""
        tallies = []
        for done, (name, pipeline) in enumerate(zip(unique_names(pipelines), pipelines, strict=True), 1):
            if self.live and must_search(pipeline):
                (tally,) = self.measure([pipeline], cases, measures=measures)
            else:
                (tally,) = measure_kept(self.captures(pipeline, cases), [self.ready(pipeline)], measures)
            tallies.append(replace(tally, name=name, pipeline=pipeline))
            if progress is not None:
                progress(done * len(cases), len(pipelines) * len(cases))
        return tallies

    def measure(
        self,
        pipelines: Sequence[Pipeline],
        cases: Sequence[Case] | None = None,
        progress: Progress | None = None,
        measures: Sequence[Measure] = SET_MEASURES,
    ) -> list[PipelineTally]:
        """Every pipeline over the same questions, without traces; remembered until what it stands on changes."""
        wanted = list(self.cases if cases is None else cases)
        about = hashlib.sha256(repr([case.query.id for case in wanted]).encode()).hexdigest()
        names = tuple(measure.name for measure in measures)
        keys = [(fingerprint(pipeline), names, about, *self.state) for pipeline in pipelines]
        with self._lock:
            known = {key: self._tallies[key] for key in keys if key in self._tallies}
        for pipeline, key in zip(pipelines, keys, strict=True):
            if key not in known:
                ready = self.ready(pipeline)
                started = self.starts(pipeline, wanted)
                tell = None if progress is None else (lambda done: progress(done, len(wanted)))
                (known[key],) = measure_all(started, [ready], self.min_grade, measures, tell)
        with self._lock:
            self._tallies.update(known)
        return [
            replace(known[key], name=name, pipeline=pipeline)
            for key, name, pipeline in zip(keys, unique_names(pipelines), pipelines, strict=True)
        ]


def front_of(pipeline: Pipeline) -> Pipeline:
    """What of a pipeline searches: its rewrites and its source; vectors where it names none."""
    rewrites = tuple(stage for stage in pipeline.stages if stage.kind == "rewrite")
    source = next((stage for stage in pipeline.stages if stage.kind == "source"), Dense())
    return Pipeline((*rewrites, source))


def must_search(pipeline: Pipeline) -> bool:
    """Whether running it asks more of the source than one list: hops, or a refill that no captured list answers."""
    if any(isinstance(stage, MultiHop) for stage in pipeline.stages):
        return True
    rest = [stage for stage in pipeline.stages if stage.kind not in ("rewrite", "source")]
    refills = [at for at, stage in enumerate(rest) if isinstance(stage, Requery)]
    # Behind another filter a refill reads on where the search ended, not where the filter did.
    return any(at > 0 or getattr(rest[at], "strategy", "") == "prefilter" for at in refills)


def _refill(pipeline: Pipeline) -> int:
    """How far down the ranking the pipeline's refill may read; 0 without one."""
    return max((stage.reach for stage in pipeline.stages), default=0)


def _deepened(front: Pipeline, pipeline: Pipeline) -> Pipeline:
    """The search that is captured: deep enough for the source and a refill; ranks are fused anew when it is used."""
    *rewrites, source = front.stages
    captured: Stage = source
    if isinstance(source, Hybrid):
        captured = replace(source, rrf_k=Hybrid().rrf_k, weights=Hybrid().weights)
    elif isinstance(source, Dense | Lexical):
        captured = replace(source, depth=min(10_000, max(DEEP, source.depth, _refill(pipeline))))
    return Pipeline((*rewrites, captured))


def _depth(front: Pipeline, pipeline: Pipeline) -> int | None:
    """How many hits of the captured list the pipeline reads before its filters; None: all."""
    source = front.stages[-1]
    return max(source.depth, _refill(pipeline)) if isinstance(source, Dense | Lexical) else None


def _with_rules(case: Case, overlay: Mapping[str, Any]) -> Case:
    start = start_of(case)
    hits = tuple(
        replace(hit, chunk=replace(hit.chunk, query_must=overlay.get(hit.chunk.id, hit.chunk.query_must)))
        for hit in start.hits
    )
    return replace(case, candidates=replace(start, hits=hits))


def _has_labels(workspace: Path) -> bool:
    """Whether there may be labels: a server is named, or the workspace has its file."""
    return database_settings() is not None or (workspace / STORE_FILE).is_file()


def _look_at(path: Path | None) -> str:
    """What changes when a file does."""
    return f"{path} {path.stat().st_mtime_ns}" if path is not None and path.is_file() else ""


def _newest_label(workspace: Path, eval_set: str) -> str:
    """The position of the newest label event of a set: cheap, and another one means that labels changed."""
    if not _has_labels(workspace):
        return ""
    from sqlalchemy import func, select  # as above: only where labels were ever given

    from rag_core.store.database import open_store
    from rag_core.store.schema import label_event

    with open_store(workspace, create=False) as store, store.reading() as connection:
        newest = connection.scalar(select(func.max(label_event.c.position)).where(label_event.c.eval_set == eval_set))
    return str(newest or "")
