"""A run in words: the waterfall in one line, and what each stage of a live run did, asked and took."""

from __future__ import annotations

from rag_core.measure.experiment import Outcome
from rag_core.text import counted as counted
from rag_core.types import Step

STAGE_NAMES = {
    "Dense": "search",
    "Lexical": "word search",
    "Hybrid": "hybrid search",
    "NormaliseKeywords": "keywords",
    "ExpandSynonyms": "synonyms",
    "MultiHop": "hops",
    "QueryMust": "query_must",
    "Requery": "refill",
    "AdaptiveGap": "adaptive",
    "LLMFilter": "LLM filter",
    "TopK": "top-k",
}


def waterfall(outcome: Outcome) -> str:
    """The run in one line: "15 in → query_must −13 → adaptive −0 → 2 kept"."""
    steps = outcome.result.steps[len(outcome.start.steps) :]
    return " → ".join([f"{len(outcome.start.hits)} in", *map(_fallen, steps), f"{len(outcome.result.hits)} kept"])


def _fallen(step: Step) -> str:
    """What a filter took away; refill also brings, so it says how many it read and left."""
    name = STAGE_NAMES.get(step.stage, step.stage)
    if step.stage == "Requery":
        return f"{name} read {step.facts['read']}, left {step.left}"
    if step.stage == "MultiHop":
        return f"{name} +{step.left - step.entered}"
    added = step.facts.get("added", 0) if step.stage == "LLMFilter" else 0
    return f"{name} −{step.entered - step.left + added}" + (f" +{added} by references" if added else "")


def trace(outcome: Outcome) -> list[str]:
    """What each stage of a live run did and took, one line a stage."""
    return [f"{STAGE_NAMES.get(step.stage, step.stage)}: {_told(step)}" for step in outcome.result.steps]


def _told(step: Step) -> str:
    facts, took = step.facts, f"{step.milliseconds:.1f} ms"
    if step.stage == "Dense":
        kind = "exact" if facts["exact"] else "approximate (Chroma)"
        depth = f"depth {facts['depth']} of {facts['matching']:,} chunks"
        return f"{depth}, {kind}, {counted(facts['store_queries'], 'store query', 'store queries')}, {took}"
    if step.stage == "Lexical":
        return f"depth {facts['depth']} of {facts['matching']:,} chunks that share a word, BM25, {took}"
    if step.stage == "Hybrid":
        sides = f"{facts['found_dense']} by vectors in {facts['dense_ms']:.1f} ms, {facts['found_lexical']} by words "
        return f"{sides}in {facts['lexical_ms']:.1f} ms, {facts['found_both']} by both, fused, {took}"
    if step.stage in ("NormaliseKeywords", "ExpandSynonyms"):
        found = "the query is rewritten" if facts.get("found") or facts.get("added") else "nothing found"
        return f"{found} among {facts['known']:,} known, {took}"
    if step.stage == "MultiHop":
        return f"{counted(facts['hops_used'], 'hop', 'hops')}, ended: {facts['stop']}, {took}"
    if step.stage == "Requery":
        asked = counted(facts["store_queries"], "store query", "store queries")
        rounds = counted(facts["rounds"], "round", "rounds")
        return f"{rounds}, {facts['read']} read, {asked}, stopped: {facts['stop']}, {took}"
    return f"{step.entered} in, {step.left} left, {took}"
