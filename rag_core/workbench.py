"""What a live page and a live command share: open a collection's index, bring a demo collection up to date, and run
pipelines on it. Computes nothing itself; it joins index, spec and evaluate, which do not know each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, StoreError
from rag_core.eval_sets.reading import EvalSet, folders
from rag_core.index.collection import list_collections, not_there, revision_of
from rag_core.index.embed import BundledEmbedder, Embedder
from rag_core.index.handles import open_index
from rag_core.index.ingest import IngestReport, ingest
from rag_core.index.search import CollectionIndex
from rag_core.index.shipped import FILE as VECTORS
from rag_core.index.shipped import ShippedVectors
from rag_core.resources import with_handles
from rag_core.retrieve.dense import Dense
from rag_core.spec import build, fingerprint, make_stage
from rag_core.stage import Pipeline, Stage, needs_of
from rag_core.types import Candidates, Case, Hit, Query
from rag_core.wording import word_resources

Progress = Callable[[int, int], None]


def opened(workspace: Path, collection: str, approximate: bool = False) -> CollectionIndex:
    """The index of a collection, exact or through Chroma; a StoreError lists what exists.

    The queries of an eval set of the same name are not embedded where their vectors came with it.
    """
    if collection not in {one.name for one in list_collections(workspace)}:
        raise not_there(workspace, collection)
    index = open_index(workspace, collection, approximate=approximate)
    vectors = folders(workspace).get(collection, workspace) / VECTORS
    if isinstance(index.embedder, BundledEmbedder) and vectors.is_file():
        index.embedder = ShippedVectors(index.embedder, vectors)
    return index


def brings_vectors(eval_set: EvalSet) -> bool:
    """Whether vectors ship beside the set's corpus, so that its collection is made without embedding."""
    return eval_set.corpus is not None and eval_set.corpus.with_name(VECTORS).is_file()


def bring_up_to_date(eval_set: EvalSet, workspace: Path, progress: Progress | None = None) -> IngestReport | None:
    """Make the collection of a live eval set hold its corpus; None where it already does.

    Vectors that ship beside the corpus are used where the texts are unchanged, so that the first start embeds nothing.
    """
    if eval_set.corpus is None:
        raise InputError(f"eval set {eval_set.name} has no corpus, expected a set with corpus.jsonl")
    mark = workspace / "collections" / f"{eval_set.name}.corpus"
    digest = hashlib.sha256(eval_set.corpus.read_bytes()).hexdigest()
    if mark.is_file() and mark.read_text() == f"{digest} {_revision(workspace, eval_set.name)}":
        return None
    embedder: Embedder = BundledEmbedder()
    if brings_vectors(eval_set):
        embedder = ShippedVectors(embedder, eval_set.corpus.with_name(VECTORS))
    report = ingest([eval_set.corpus], eval_set.name, workspace, embedder, format="jsonl", progress=progress)
    mark.write_text(f"{digest} {_revision(workspace, eval_set.name)}")
    return report


def _revision(workspace: Path, name: str) -> str:
    """The revision of a collection, or nothing where it cannot be opened."""
    try:
        return revision_of(workspace, name)
    except StoreError:
        return ""


def live(
    pipeline: Pipeline,
    index: Any,
    eval_set: str = "",
    hop_judge: Any = None,
    judge: Any = None,
    workspace: Path | None = None,
) -> Pipeline:
    """The pipeline on an index; one without a source gets Dense with its defaults in front.

    Query rewriting takes the word lists of the index's collection, else those of the named eval set; hops ask
    `hop_judge` and the LLM filter `judge`, else the model of the environment's endpoint. Structure and answers are
    those of `workspace`, else of the environment's.
    """
    if not any(stage.kind == "source" for stage in pipeline.stages):
        rewrites = tuple(stage for stage in pipeline.stages if stage.kind == "rewrite")
        rest = tuple(stage for stage in pipeline.stages if stage.kind != "rewrite")
        pipeline = replace(pipeline, stages=(*rewrites, Dense(), *rest))
    chunks = getattr(getattr(index, "snapshot", None), "chunks", ())
    pipeline = build(pipeline, {"index": index, **word_resources(pipeline, index, eval_set)})
    if "search" in needs_of(pipeline):
        found = {"headers": getattr(index, "headers", None), "search": search_of(pipeline)}
        pipeline = build(pipeline, found)
    return with_handles(pipeline, workspace, chunks, judge, hop_judge)


def search_of(pipeline: Pipeline) -> Callable[[Query, int], tuple[Hit, ...]]:
    """The rewrites and the source of a pipeline that is ready to run, as a search for further questions."""
    front = Pipeline(tuple(stage for stage in pipeline.stages if stage.kind in ("rewrite", "source")))

    def search(query: Query, count: int) -> tuple[Hit, ...]:
        return front(Candidates(query)).hits[:count]

    return search


def source_of(index: Any, depth: int, pipeline: Pipeline | None = None, eval_set: str = "") -> Stage:
    """The source of a pipeline on an index, with the rewrites before it, at a depth; Dense where none is named."""
    return live(_front(depth, pipeline), index, eval_set)


def _front(depth: int, pipeline: Pipeline | None) -> Pipeline:
    """A pipeline's rewrites and source, the source at a depth; Dense where it has none."""
    stages = pipeline.stages if pipeline is not None else ()
    source = next((stage for stage in stages if stage.kind == "source"), Dense())
    rewrites = tuple(stage for stage in stages if stage.kind == "rewrite")
    return Pipeline((*rewrites, make_stage(source.name, {**source.settings(), "depth": depth})))


def capture_fingerprint(
    index: Any, depth: int, cases: Iterable[Case], pipeline: Pipeline | None = None, eval_set: str = ""
) -> str:
    """What a capture depends on: index, source settings, word lists, and queries with their labels."""
    asked = [[case.query.id, case.query.text, sorted(case.grades.items())] for case in cases]
    front = _front(depth, pipeline)
    text = f"{index.fingerprint} {fingerprint(front)} {asked}{word_resources(front, index, eval_set) or ''}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
