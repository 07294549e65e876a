"""Winnow: show, measure and tune what retrieval filters keep, what they drop, and why.

The public API is what this module lists; everything is imported when first asked for.

    from rag_core import load_lists, read_pipeline, run
    cases = load_lists(Path("lists.jsonl"))
    report = run(cases, read_pipeline("query-must"))
    report.summary.means["SetF"]
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Candidates": "rag_core.types",
    "Case": "rag_core.types",
    "Chunk": "rag_core.types",
    "Hit": "rag_core.types",
    "Metric": "rag_core.types",
    "Query": "rag_core.types",
    "WinnowError": "rag_core.errors",
    "InputError": "rag_core.errors",
    "Pipeline": "rag_core.stage",
    "Stage": "rag_core.stage",
    "counterfactuals": "rag_core.stage",
    "AdaptiveGap": "rag_core.filters.adaptive",
    "cut": "rag_core.filters.cut",
    "MinSimilarity": "rag_core.filters.cutoff",
    "TopK": "rag_core.filters.cutoff",
    "QueryMust": "rag_core.filters.query_must",
    "Requery": "rag_core.retrieve.requery",
    "parse_pipeline": "rag_core.spec",
    "read_pipeline": "rag_core.spec",
    "dump_pipeline": "rag_core.spec",
    "load_lists": "rag_core.records",
    "dump_lists": "rag_core.records",
    "load_set": "rag_core.eval_sets.reading",
    "run": "rag_core.measure.experiment",
    "open_project": "rag_core.project.project",
    "Session": "rag_core.project.session",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"rag_core has no {name!r}, it has {', '.join(__all__)}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
