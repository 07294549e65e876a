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
    "distance": "Distance of the chunk to the query, in the collection’s metric. Lower is nearer.",
    "kappa": f"Agreement of two beyond chance: 1 is full, 0 is chance. {HIGHER}",
    "alpha": f"Krippendorff’s alpha, ordinal: agreement of any number of people beyond chance. {HIGHER}",
    "AUC": f"Chance that a relevant chunk scores above an irrelevant one; 0.5 is chance. {HIGHER}",
    "noise share": f"Tokens of kept chunks that are not relevant, over all kept tokens. {LOWER}",
    "perfect filter": f"SetF if exactly the relevant chunks of each list were kept. {HIGHER}",
    "best cut": f"SetF if each list were cut at its own best place. {HIGHER}",
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
