"""Strategy 2, ability: the query names a rule, a ploy or a piece of equipment.

Of a name's words without stop words: the one, both of two, or at least two of more.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_core.entities.found import Found, ItemIndex, item_matches
from rag_core.entities.match import Match
from rag_core.entities.reading import key, read
from rag_core.entities.vocabulary import Item

ENOUGH = 2  # words of a longer name


class AbilityStrategy:
    """Finds abilities by name; it looks only at those that share a word with the query."""

    name = "ability"

    def __init__(self, abilities: Sequence[Item]) -> None:
        self._index = ItemIndex([item for item in abilities if item.kept], lambda item: (item.kept, _needed(item)))

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[Match]:
        """The abilities the query names, each with every team that owns it."""
        reading, present = read(query_lower), frozenset(map(key, query_words))
        found = ((item, judge_ability(item, present)) for item in self._index.candidates(present))
        return [match for item, why in found if why for match in item_matches(self.name, item, why, reading)]


def _needed(item: Item) -> int:
    return min(ENOUGH, len(set(item.kept)))


def judge_ability(item: Item, present: frozenset[str]) -> Found | None:
    """What of the ability's name is in the query, or None where that is not enough."""
    kept = frozenset(item.kept)
    shared = kept & present
    if len(shared) < _needed(item):
        return None
    left_out = f" (left out as stop words: {', '.join(item.stopped)})" if item.stopped else ""
    return Found(shared, f"{len(shared)} of {len(kept)} words{left_out}")
