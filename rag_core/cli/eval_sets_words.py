"""Eval sets and their differences in words, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_core.eval_sets.facts import SetDiff, SetFacts

LISTED = 20  # ids that a diff prints


def line(facts: SetFacts) -> str:
    """One set with its counts."""
    if facts.problem:
        return f"{facts.name}: {facts.problem}"
    split = ", ".join(f"{count} {side}" for side, count in facts.split.items()) or "no split"
    tags = f"{len(facts.tags)} tags" if facts.tags else "no tags"
    return (
        f"{facts.name}: {facts.queries} queries ({facts.judged} judged, {facts.labels} labels), {split}, {tags}, "
        f"{facts.holds}{'' if facts.own else ', shipped'}"
    )


def diff_words(found: SetDiff) -> str:
    """What differs, a line each with its count and first ids."""
    if found.same:
        return f"{found.first} and {found.second} hold the same"
    rows: list[tuple[str, Sequence[str]]] = [
        ("queries added", found.queries.added),
        ("queries removed", found.queries.removed),
        ("queries changed", [f"{name} ({', '.join(what)})" for name, what in found.fields.items()]),
        ("labels added", [f"{query} {chunk}" for query, chunk in found.labels_added]),
        ("labels removed", [f"{query} {chunk}" for query, chunk in found.labels_removed]),
        ("labels changed", [f"{query} {chunk} {old}→{new}" for query, chunk, old, new in found.labels_changed]),
    ]
    for what in ("added", "removed", "changed") if found.chunks else ():
        rows.append((f"chunks {what}", getattr(found.chunks, what)))
    return "\n".join(f"{len(ids)} {title}{_some(ids)}" for title, ids in rows if ids)


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - LISTED} more" if len(ids) > LISTED else ""
    return f": {', '.join(ids[:LISTED])}{more}"
