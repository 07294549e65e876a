"""What a pipeline's stages are handed besides an index: the finder of entities, and the judge of the LLM filter.

Sits above spec, entities and llm, which do not know each other. Reads what a pipeline needs and nothing else: the
workspace's own structure where there is one, else the demo structure; the endpoint that the environment names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_core.errors import InputError
from rag_core.spec import build
from rag_core.stage import Pipeline, Stage, needs_of
from rag_core.types import Chunk
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.entities import TeamFilter
    from rag_core.llm.judge import Judge

STRUCTURE_BUDGET = 3_000  # tokens of a structure that a model is told before a hop

STRUCTURE_FILES = ("structure.yaml", "structure.yml", "structure.json")
"""Names under which a workspace may keep a structure of its own; the first that is there counts."""


def with_entities(pipeline: Pipeline, workspace: Path | None = None) -> Pipeline:
    """The pipeline with the finder of entities handed to each stage that needs one; any other pipeline as it is.

    An InputError names the place where the workspace's structure is malformed.
    """
    if "entities" not in needs_of(pipeline):
        return pipeline
    path = structure_path(workspace or resolve_workspace())
    return build(pipeline, {"entities": _finder(path, path.stat().st_mtime_ns if path else 0)})


def with_judge(
    pipeline: Pipeline,
    workspace: Path | None = None,
    chunks: Iterable[Chunk] = (),
    judge: Judge | None = None,
) -> Pipeline:
    """The pipeline with a judge for each stage that needs one, the stored scores of each reranker's endpoint, and a
    look-up of `chunks` for what follows references.

    Without `judge` it is that of the environment's endpoint; where none is named the filter falls back and says so.
    """
    folder = workspace or resolve_workspace()
    pipeline = replace(pipeline, stages=tuple(_reranking(stage, folder) for stage in pipeline.stages))
    needs = needs_of(pipeline)
    if "chunks" in needs:
        pipeline = build(pipeline, {"chunks": {chunk.id: chunk for chunk in chunks}})
    if "judge" not in needs:
        return pipeline
    from rag_core.llm.judge import environment_judge

    return build(pipeline, {"judge": judge or environment_judge(folder)})


def _reranking(stage: Stage, workspace: Path) -> Stage:
    """The stage with the stored scores of the endpoint that it names; any other as it is."""
    if not any(one.name == "reranker" for one in fields(stage)) or not (name := stage.settings()["endpoint"]):
        return stage
    from rag_core.llm.endpoint import endpoint_of, named_endpoint
    from rag_core.llm.rerank import ScoreStore, StoredReranker

    settings = named_endpoint(workspace, name)
    if settings is None:
        raise InputError(f"there is no endpoint {name[:80]!r}")
    scores: Any = StoredReranker(endpoint_of(settings), ScoreStore(workspace))
    return replace(stage, **{"reranker": scores})


def with_hop_judge(pipeline: Pipeline, workspace: Path | None = None, judge: Judge | None = None) -> Pipeline:
    """The pipeline with a judge, and the part of the workspace's structure that a query needs, where hops are judged.

    Without `judge` it is that of the environment's endpoint; where none is named the stage falls back and says so.
    """
    if "hop_judge" not in needs_of(pipeline):
        return pipeline
    from rag_core.llm.judge import environment_judge

    folder = workspace or resolve_workspace()
    path = structure_path(folder)
    handles: dict[str, object] = {"hop_judge": judge or environment_judge(folder), "structure": None}
    if path:  # told are the entities that the query names, or any; whole ones within the budget
        finder = _finder(path, path.stat().st_mtime_ns)
        handles["structure"] = lambda query: finder.part(finder.extract_relevant_teams(query.text), STRUCTURE_BUDGET)
    return build(pipeline, handles)


def structure_path(workspace: Path) -> Path | None:
    """The workspace's own structure, or None where it has none."""
    return next((path for name in STRUCTURE_FILES if (path := workspace / name).is_file()), None)


@lru_cache(maxsize=4)
def _finder(path: Path | None, changed_at: int) -> TeamFilter:
    """The finder of a structure file, read again when the file changes."""
    from rag_core.entities import TeamFilter, load_structure

    return TeamFilter(load_structure(path))
