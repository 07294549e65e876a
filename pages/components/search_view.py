"""How a collection is searched, in a view: by vectors, words or both, the query's rewriting, and hops.

The view's fields and the stages they stand for, both ways. The controls are in search_controls.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pages.components.where import read_where, write_where

if TYPE_CHECKING:
    from pages.components.view import View

ENGINES = {"vector": "Dense", "BM25": "Lexical", "hybrid": "Hybrid"}
"""What the page calls a source, and the stage it is."""

REWRITES = {"NormaliseKeywords": "normalise", "ExpandSynonyms": "synonyms"}
"""Stage → the view's switch."""

BEFORE = (*REWRITES, *ENGINES.values())
"""Everything up to the list: what brings it is not among the page's filters."""

HELD = ("depth", "where", "file_filter", "rrf_k", "weights")
"""The settings of these stages that the view has; of MultiHop only max_hops."""


def settings_of(view: View) -> dict[str, dict[str, Any] | None]:
    """Stage → its settings, None where it is off: rewrites, sources and hops of a live view."""
    conditions = {"depth": view.depth, "where": read_where(view.where) or None, "file_filter": view.file_filter or None}
    fused = {**conditions, "rrf_k": view.rrf_k, "weights": [view.dense_weight, view.lexical_weight]}
    live = bool(view.collection)
    return {
        **{stage: {} if live and getattr(view, switch) else None for stage, switch in REWRITES.items()},
        **{
            stage: (fused if stage == "Hybrid" else conditions) if live and view.engine == name else None
            for name, stage in ENGINES.items()
        },
        "MultiHop": {"max_hops": view.max_hops} if live and view.max_hops else None,
    }


def fields_of(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The view's fields that one of these stages sets."""
    if name in REWRITES:
        return {REWRITES[name]: True}
    if name == "MultiHop":
        return {"max_hops": settings["max_hops"]}
    where, files = write_where(settings["where"] or {}), settings["file_filter"] or ""
    fields = {"depth": settings["depth"], "where": where, "file_filter": files}
    fields["engine"] = next(shown for shown, stage in ENGINES.items() if stage == name)
    if name == "Hybrid":
        dense, lexical = settings["weights"]
        fields |= {"rrf_k": settings["rrf_k"], "dense_weight": dense, "lexical_weight": lexical}
    return fields
