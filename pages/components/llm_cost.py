"""What calls to a model cost, in words: with its currency, and an unknown cost is never nothing."""

from __future__ import annotations

CURRENCY = "USD"
"""Providers list their prices in it; who sets prices in another reads costs in that one."""

COST = f"cost, {CURRENCY}"
"""The heading of a column of costs."""

UNKNOWN = "cost unknown"


def cost_word(cost: float | None, digits: int = 6, about: str = "") -> str:
    """A cost as "cost 0.001200 USD", before it is paid "cost about …"; "cost unknown" where no price is known."""
    return UNKNOWN if cost is None else f"cost {about}{cost:.{digits}f} {CURRENCY}"
