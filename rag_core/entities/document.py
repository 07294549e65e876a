"""A structure as the document it would be read from: what a page offers for download, or stores for pipelines."""

from __future__ import annotations

import json
from typing import Any

from rag_core.entities.structure import VERSION, Structure


def structure_document(structure: Structure) -> dict[str, Any]:
    """Plain data that `parse_structure` reads back as an equal structure."""
    return {
        "name": structure.name,
        "version": VERSION,
        "role_words": sorted(structure.role_words),
        "stop_words": sorted(structure.stop_words),
        "aliases": {alias: list(teams) for alias, teams in structure.aliases.items()},
        "synonyms": dict(structure.synonyms),
        "entities": {entity.name: dict(entity.data) for entity in structure.entities},
    }


def structure_text(structure: Structure) -> str:
    """The structure as a JSON file, ready to be edited by hand."""
    return json.dumps(structure_document(structure), ensure_ascii=False, indent=1) + "\n"
