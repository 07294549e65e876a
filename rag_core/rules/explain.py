"""One sentence about a verdict: why a chunk was dropped, and what the query would have to hold for it to stay.

Written for a person who sees the query beside it; the verdict itself, with spans, is in match.py.
"""

from __future__ import annotations

from rag_core.rules.match import RulePart, RuleVerdict
from rag_core.rules.model import NumberIn


def reason_text(verdict: RuleVerdict) -> str:
    """Why the verdict drops the chunk, e.g. "no word of: armor class 7 / ac 7 / a.c. 7"; empty where it does not."""
    return "; ".join(_lacking(part) for part in verdict.missing)


def would_stay_text(verdict: RuleVerdict) -> str:
    """What would have kept the chunk, e.g. "would stay if the query held one of: armor class 6, ac 6"."""
    wanted = "; and ".join(_wanted(part) for part in verdict.missing)
    return f"would stay if the query held {wanted}" if wanted else ""


def chip_text(part: RulePart) -> str:
    """A part of a rule in a few words: what it asks for."""
    if part.number is not None:
        return f"{label_text(part.number)} {range_text(part.number)}"
    return " / ".join(part.terms) + (f" (where one of {len(part.among)} is named)" if part.among else "")


def label_text(element: NumberIn) -> str:
    """The labels of a number condition: "intelligence / int", or "intelligence + wisdom" for a sum."""
    return " + ".join(group[0] for group in element.labels) if element.summed else " / ".join(element.labels[0])


def range_text(element: NumberIn) -> str:
    """The closed range in words: "from 10 to 13", "of at least 10", "of at most 13"."""
    if element.maximum is None:
        return f"of at least {element.minimum:g}"
    if element.minimum is None:
        return f"of at most {element.maximum:g}"
    if element.minimum == element.maximum:
        return f"of {element.minimum:g}"
    return f"from {element.minimum:g} to {element.maximum:g}"


def _lacking(part: RulePart) -> str:
    if part.number is None:
        named = f" (the query names {part.named})" if part.named is not None else ""
        return f"no word of: {' / '.join(part.terms)}{named}"
    asked = chip_text(part)
    if not part.given:
        return f"no number for: {asked}"
    return f"no number in range for: {asked} (the query says {', '.join(f'{number:g}' for number in part.given[:5])})"


def _wanted(part: RulePart) -> str:
    if part.number is not None:
        return f"a number for {chip_text(part)}"
    return f"one of: {', '.join(part.terms)}" if len(part.terms) > 1 else part.terms[0]
