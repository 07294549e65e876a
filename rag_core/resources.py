"""What a pipeline's stages are handed besides an index: today the finder of entities that EntityFilter asks.

Sits above spec and entities, which do not know each other. Reads the structure only for a pipeline that needs it: the
workspace's own where there is one, else the demo structure.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_core.spec import build
from rag_core.stage import Pipeline
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.entities import TeamFilter

STRUCTURE_FILES = ("structure.yaml", "structure.yml", "structure.json")
"""Names under which a workspace may keep a structure of its own; the first that is there counts."""


def with_entities(pipeline: Pipeline, workspace: Path | None = None) -> Pipeline:
    """The pipeline with the finder of entities handed to each EntityFilter; any other pipeline as it is.

    An InputError names the place where the workspace's structure is malformed.
    """
    if not any(stage.name == "EntityFilter" for stage in pipeline.stages):
        return pipeline
    path = structure_path(workspace or resolve_workspace())
    return build(pipeline, {"entities": _finder(path, path.stat().st_mtime_ns if path else 0)})


def structure_path(workspace: Path) -> Path | None:
    """The workspace's own structure, or None where it has none."""
    return next((path for name in STRUCTURE_FILES if (path := workspace / name).is_file()), None)


@lru_cache(maxsize=4)
def _finder(path: Path | None, changed_at: int) -> TeamFilter:
    """The finder of a structure file, read again when the file changes."""
    from rag_core.entities import TeamFilter, load_structure

    return TeamFilter(load_structure(path))
