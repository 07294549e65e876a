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


def with_handles(
    pipeline: Pipeline,
    workspace: Path | None = None,
    chunks: Iterable[Chunk] = (),
    judge: Judge | None = None,
    hop_judge: Judge | None = None,
) -> Pipeline:
    """The pipeline with what its stages wait for besides an index: the finder of entities, the judges, stored scores
    of each reranker's endpoint, and a look-up of `chunks` for what follows references.

    Without `judge` and `hop_judge` it is that of the environment's endpoint; where none is named the stage falls back
    and says so. An InputError names the place where the workspace's structure is malformed.
    """
    folder = workspace or resolve_workspace()
    pipeline = replace(pipeline, stages=tuple(_reranking(stage, folder) for stage in pipeline.stages))
    needs, handles = needs_of(pipeline), dict[str, object]()
    if "entities" in needs:
        handles["entities"] = finder_of(folder)
    if "chunks" in needs:
        handles["chunks"] = {chunk.id: chunk for chunk in chunks}
    if "judge" in needs:
        handles["judge"] = judge or _environment_judge(folder)
    if any(getattr(stage, "search", None) is not None for stage in pipeline.stages):  # else there is nowhere to hop to
        handles |= {"hop_judge": hop_judge or _environment_judge(folder), "structure": None}
        if structure_path(folder):  # told are the entities that the query names, or any; whole ones within the budget
            finder = finder_of(folder)
            handles["structure"] = lambda query: finder.part(
                finder.extract_relevant_teams(query.text), STRUCTURE_BUDGET
            )
    return build(pipeline, handles)


def _environment_judge(workspace: Path) -> Judge | None:
    from rag_core.llm.judge import environment_judge

    return environment_judge(workspace)


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


def structure_path(workspace: Path) -> Path | None:
    """The workspace's own structure, or None where it has none."""
    return next((path for name in STRUCTURE_FILES if (path := workspace / name).is_file()), None)


def finder_of(workspace: Path) -> TeamFilter:
    """The finder of the structure that pipelines use; an InputError names what is wrong with the file."""
    path = structure_path(workspace)
    return _finder(path, path.stat().st_mtime_ns if path else 0)


@lru_cache(maxsize=4)
def _finder(path: Path | None, changed_at: int) -> TeamFilter:
    """The finder of a structure file, read again when the file changes."""
    from rag_core.entities import TeamFilter, load_structure

    return TeamFilter(load_structure(path))
