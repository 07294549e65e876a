"""Whether a question asks for one thing or for a field: the visible rule behind AdaptiveGap's `query_specific`.

    specific   holds a number or a quoted phrase, or opens with what is, who is, where is, when, how many, how much,
               how far, how long, define                                             threshold × 0.5
    broad      opens with tell me about, describe, explain, list, what are, which, compare, give me an overview,
               everything about, overview of                                         threshold × 1.5
    other      neither                                                               threshold as set

A number or a quotation decides before an opening. Only the form is read: no model, no word list of a field.
"""

from __future__ import annotations

from rag_core.text import fold, tokenize

SPECIFIC = (
    "what is", "what s", "who is", "where is", "when", "how many", "how much", "how far", "how long", "define",
)  # fmt: skip
BROAD = (
    "tell me about", "describe", "explain", "list", "what are", "which", "compare", "give me an overview",
    "everything about", "overview of",
)  # fmt: skip
FACTORS = {"specific": 0.5, "broad": 1.5, "other": 1.0}
_QUOTES = ('"', "“", "«", "„")


def query_form(text: str) -> str:
    """`specific`, `broad` or `other`."""
    if any(token.value is not None for token in tokenize(text)) or any(mark in text for mark in _QUOTES):
        return "specific"
    opening = " ".join("".join(one if one.isalnum() else " " for one in fold(text)).split()) + " "
    for form, openings in (("broad", BROAD), ("specific", SPECIFIC)):
        if any(opening.startswith(f"{words} ") for words in openings):
            return form
    return "other"


def threshold_factor(text: str) -> float:
    """What a gap threshold is multiplied with for this question."""
    return FACTORS[query_form(text)]
