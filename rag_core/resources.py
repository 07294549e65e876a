"""What a pipeline's stages are handed besides an index: the finder of entities, and the judge of the LLM filter.

Sits above spec, entities and llm, which do not know each other. Reads what a pipeline needs and nothing else: the
workspace's own structure where there is one, else the demo structure; the endpoint that the environment names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_core.spec import build
from rag_core.stage import Pipeline, needs_of
from rag_core.types import Chunk, Query
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.entities import TeamFilter
    from rag_core.entities.filter import StructurePart
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
    """The pipeline with a judge for each stage that needs one, and a look-up of `chunks` for what follows references.

    Without `judge` it is that of the environment's endpoint; where none is named the filter falls back and says so.
    """
    needs = needs_of(pipeline)
    if "chunks" in needs:
        pipeline = build(pipeline, {"chunks": {chunk.id: chunk for chunk in chunks}})
    if "judge" not in needs:
        return pipeline
    from rag_core.llm.judge import environment_judge

    return build(pipeline, {"judge": judge or environment_judge(workspace or resolve_workspace())})


def with_hop_judge(pipeline: Pipeline, workspace: Path | None = None, judge: Judge | None = None) -> Pipeline:
    """The pipeline with a judge, and the part of the workspace's structure that a query needs, where hops are judged.

    Without `judge` it is that of the environment's endpoint; where none is named the stage falls back and says so.
    """
    if "hop_judge" not in needs_of(pipeline):
        return pipeline
    from rag_core.llm.judge import environment_judge

    folder = workspace or resolve_workspace()
    path = structure_path(folder)
    told = _structure_of(_finder(path, path.stat().st_mtime_ns)) if path else None
    return build(pipeline, {"hop_judge": judge or environment_judge(folder), "structure": told})


def _structure_of(finder: TeamFilter) -> Callable[[Query], StructurePart]:
    """What a model is told of a structure: the entities that the query names, or any; whole ones within the budget."""
    return lambda query: finder.part(finder.extract_relevant_teams(query.text), STRUCTURE_BUDGET)


def structure_path(workspace: Path) -> Path | None:
    """The workspace's own structure, or None where it has none."""
    return next((path for name in STRUCTURE_FILES if (path := workspace / name).is_file()), None)


@lru_cache(maxsize=4)
def _finder(path: Path | None, changed_at: int) -> TeamFilter:
    """The finder of a structure file, read again when the file changes."""
    from rag_core.entities import TeamFilter, load_structure

    return TeamFilter(load_structure(path))
