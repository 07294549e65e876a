"""What a step of the LLM filter tells: its figures, the fallback with its reason, and what a reader must know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_core.filters.cutoff import cosine_similarity
from rag_core.filters.llm.asking import Asked, Verdict
from rag_core.filters.llm.deciding import Outcome
from rag_core.filters.llm.prompts import FILE_KEYS
from rag_core.types import Candidates, Fallback, Hit, Metric, Notice


def fallbacks(name: str, asked: Asked, known: Sequence[Verdict], made: Outcome) -> tuple[Fallback, ...]:
    """Why candidates were left undecided and what became of them; none where every prompt was answered."""
    if not asked.failures:
        return ()
    undecided = sum(bool(verdict.failure) for verdict in known)
    text = (
        f"{'; '.join(asked.failures)[:1000]}: {undecided} of {len(known)} candidates undecided, "
        f"{made.kept_by_fallback} of them kept in distance order, unexpanded"
    )
    return (Fallback(name, text),)


def notices(
    name: str, first: Sequence[Hit], metric: Metric, hits: Sequence[Hit], made: Outcome, floor: float
) -> tuple[Notice, ...]:
    """What a reader must know: floor skipped, empty on the model's word, references not found, flips.

    `first` are the hits within the oversample, `hits` those of them that were judged.
    """
    unknown = sum(cosine_similarity(hit, metric) is None for hit in first)
    told = []
    if unknown:
        told.append(
            f"similarity floor skipped for {unknown} of {len(first)} candidates: "
            f"no similarity given and the metric is {metric}"
        )
    if first and not hits:
        told.append(f"no candidate reaches the floor of {floor:g}: the model was not asked")
    elif hits and not made.kept:
        told.append(f"the list is empty because the model kept none of {len(hits)} candidates")
    if made.missing:
        told.append(f"{made.missing} referenced chunks were not found")
    flips = [
        Notice(name, f"{verdict_text(verdict)}: the decision depends on the order", hit.chunk.id)
        for hit, verdict in made.flipped
    ]
    return (*(Notice(name, text) for text in told), *flips)


def verdict_text(verdict: Verdict) -> str:
    """The two decisions of a verdict, as words."""
    first = verdict.decision.action if verdict.decision else "not mentioned"
    second = verdict.second.action if verdict.second else "not mentioned"
    return f"{first}, in the other order {second}"


def facts_of(candidates: Candidates, known: Sequence[Verdict], made: Outcome, asked: Asked) -> dict[str, Any]:
    """The stats of the step."""
    entered, base = len(candidates.hits), len(made.kept) - made.added
    files = {hit.chunk.metadata.get(key) for hit in candidates.hits for key in FILE_KEYS[:2]} - {None}
    return {
        "llm_intelligence_enabled": True,
        "original_count": entered,
        "processed_count": len(known),
        "filtered_count": base,
        "reduction_ratio": 1 - base / entered if entered else 0.0,
        "decisions": made.decisions,
        "total_found": entered,
        "files_searched": len(files),
        "search_time_ms": sum(step.milliseconds for step in candidates.steps),
        "error": "; ".join(asked.failures)[:1000],
        "decided": sum(verdict.decision is not None for verdict in known),
        "not_mentioned": sum(not verdict.decision and not verdict.failure for verdict in known),
        "undecided": sum(bool(verdict.failure) for verdict in known),
        "kept_by_fallback": made.kept_by_fallback,
        "expanded": made.expanded,
        "added": made.added,
        "references_missing": made.missing,
        "order_flips": len(made.flipped),
        **asked.facts,
    }
