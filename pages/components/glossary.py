"""What a number on a page means, in one line: definition, denominator, direction. The same words wherever it stands.

The full account with traps and worked examples is docs/measures.md; a column or figure takes its tooltip from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rag_core.errors import InputError
from rag_core.measure.measures import parse_measure

HIGHER, LOWER = "Higher is better.", "Lower is better."
TERMS = {
    "precision": f"The share of what was found that is meant. {HIGHER}",
    "recall": f"The share of what is meant that was found. {HIGHER}",
    "micro precision": f"Right pairs of query and entity over all pairs found. {HIGHER}",
    "micro recall": f"Right pairs of query and entity over all pairs meant. {HIGHER}",
    "difference": "The pipeline minus the baseline, mean over the queries scored by both. Above 0 is better.",
    "change": "Now minus before, for this query. Above 0 is better.",
    "interval": "95 % interval over families of questions (widened t). Where it holds 0, the sign is open.",
    "p": "Chance of so large a difference if the two were alike: two-sided t over families, Holm-corrected.",
    "wins": "Queries with a higher value than the baseline’s.",
    "ties": "Queries with the same value as the baseline’s.",
    "losses": f"Queries with a lower value than the baseline’s. {LOWER}",
    "kept": "Chunks that stay, of those that came from the list.",
    "distance": "Distance of the chunk to the query, in the collection’s metric. Lower is nearer.",
    "kappa": f"Agreement of two beyond chance: 1 is full, 0 is chance. {HIGHER}",
    "alpha": f"Krippendorff’s alpha, ordinal: agreement of any number of people beyond chance. {HIGHER}",
    "AUC": f"Chance that a relevant chunk scores above an irrelevant one; 0.5 is chance. {HIGHER}",
    "noise share": f"Tokens of kept chunks that are not relevant, over all kept tokens. {LOWER}",
    "relevant chunks per 1,000 tokens": f"Kept relevant chunks over kept tokens, times 1,000. {HIGHER}",
    "perfect filter": f"SetF if exactly the relevant chunks of each list were kept. {HIGHER}",
    "best cut": f"SetF if each list were cut at its own best place. {HIGHER}",
    "lost in retrieval": f"Relevant chunks that the list does not hold, over all relevant. {LOWER}",
}
"""Number → its tooltip."""


def told(name: str) -> str:
    """The tooltip of a number by its name on a page, '' for what is no measure: “SetF was” is SetF."""
    if name in TERMS:
        return TERMS[name]
    first = re.match(r"[A-Za-z]+(@\d+)?(?![\w@])", name)
    if first is None or first[0] in TERMS:
        return TERMS[first[0]] if first else ""
    try:
        meaning = parse_measure(first[0]).meaning
    except InputError:
        return ""
    return f"{meaning[0].upper()}{meaning[1:]}. {HIGHER}"


def explained(columns: Iterable[str], config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A table's column_config with the tooltip of every measure that has none of its own."""
    found = dict(config or {})
    for name in columns:
        held = found.get(name) or {}
        if told(name) and not held.get("help"):
            found[name] = {**held, "help": told(name)}
    return found


def digits(value: float | None) -> str:
    """A measure with three digits, a dash where it does not apply."""
    return "–" if value is None else f"{value:.3f}"
