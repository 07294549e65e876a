"""An index of items by the words that can set them off, and the match an item becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rag_core.entities.match import EntityMatch
from rag_core.entities.reading import StructureReading
from rag_core.entities.vocabulary import VocabularyItem


class FoundEntities(NamedTuple):
    """What of an item stood in the query, and why that is enough."""

    keys: frozenset[str]
    reason: str


class ItemIndex:
    """Key → items that cannot match without it or one of their other keys here.

    `triggers(item)` gives (keys, least): a match needs at least `least` of those keys in the query, so all but
    `least − 1` of them have to be looked up; the commonest are left out.
    """

    def __init__(
        self, items: Sequence[VocabularyItem], triggers: Callable[[VocabularyItem], tuple[Sequence[str], int]]
    ) -> None:
        self._items = items
        wanted = [triggers(item) for item in items]
        common = Counter(key for keys, _ in wanted for key in keys)
        self._by_key: dict[str, list[int]] = {}
        for number, (keys, least) in enumerate(wanted):
            rarest = sorted(set(keys), key=lambda key: (common[key], key))
            for key in rarest[: max(0, len(rarest) - least + 1)]:
                self._by_key.setdefault(key, []).append(number)

    def candidates(self, keys: Iterable[str]) -> list[VocabularyItem]:
        """The items worth judging for a query of these keys, in the structure's order."""
        numbers = {number for key in keys for number in self._by_key.get(key, ())}
        return [self._items[number] for number in sorted(numbers)]


def item_matches(
    strategy: str, item: VocabularyItem, found: FoundEntities, reading: StructureReading
) -> list[EntityMatch]:
    """One match per owner of the item; confidence is the share of the item's words that stood in the query."""
    words = tuple(
        dict.fromkeys(word for word, key in zip(reading.words, reading.keys, strict=True) if key in found.keys)
    )
    confidence = round(len(found.keys) / len(set(item.kept)), 3)
    return [EntityMatch(team, strategy, item.name, words, 100.0, found.reason, confidence) for team in item.teams]
