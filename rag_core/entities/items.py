"""Strategies 1 and 2, operative and ability: the query names a member, or an ability.

A member's full name in order always counts. Else a role word ("gunner") asks for more: of a name of two words all of
them side by side, of a longer name one distinctive word. A name without a role word needs one of its one or two words,
and of a longer name one distinctive word or two words. An ability needs its one word, or two of its words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rag_core.entities.match import EntityMatch
from rag_core.entities.reading import StructureReading, key, read
from rag_core.entities.vocabulary import VocabularyItem

SHORT_NAME = 2  # words
ENOUGH = 2  # words of a longer ability


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
            for rare in rarest[: max(0, len(rarest) - least + 1)]:
                self._by_key.setdefault(rare, []).append(number)

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


class OperativeStrategy:
    """Finds members by name; it looks only at those that share a word with the query."""

    name = "operative"

    def __init__(self, members: Sequence[VocabularyItem]) -> None:
        usable = [item for item in members if item.kept and not _only_role(item)]
        self._index = ItemIndex(usable, _triggers)

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The members the query names, each with every team that owns it."""
        reading, present = read(query_lower), frozenset(map(key, query_words))
        found = ((item, judge_member(item, present, reading)) for item in self._index.candidates(present))
        return [match for item, why in found if why for match in item_matches(self.name, item, why, reading)]


def _only_role(item: VocabularyItem) -> bool:
    """A single role word is nobody's name."""
    return len(item.kept) == 1 and bool(item.roles)


def _triggers(item: VocabularyItem) -> tuple[Sequence[str], int]:
    """Keys of which a match needs at least so many; see `judge_member`."""
    if len(item.kept) <= SHORT_NAME:
        return (item.kept, len(set(item.kept))) if item.roles else (item.kept, 1)
    if item.roles:
        return (tuple(item.distinctive), 1) if item.distinctive else (item.kept, len(set(item.kept)))
    return item.kept, 1 if item.distinctive else 2


def judge_member(item: VocabularyItem, present: frozenset[str], reading: StructureReading) -> FoundEntities | None:
    """What of the member's name is in the query, or None where that is not enough."""
    kept = frozenset(item.kept)
    if kept <= present and reading.holds(item.keys):
        return FoundEntities(kept, "the full name, in order")
    if len(item.kept) <= SHORT_NAME:
        return _judge_short(item, kept, present, reading)
    distinctive = item.distinctive & present
    if distinctive:
        return FoundEntities(kept & present, f"a distinctive word of a long name: {', '.join(sorted(distinctive))}")
    if not item.roles and len(kept & present) >= SHORT_NAME:
        return FoundEntities(kept & present, f"{len(kept & present)} words of a long name")
    return None


def _judge_short(
    item: VocabularyItem, kept: frozenset[str], present: frozenset[str], reading: StructureReading
) -> FoundEntities | None:
    if item.roles:
        together = kept <= present and reading.holds(item.kept)
        return FoundEntities(kept, "a name with a role word, its words side by side") if together else None
    shared = kept & present
    return FoundEntities(shared, f"{len(shared)} of {len(kept)} words of a short name") if shared else None


class AbilityStrategy:
    """Finds abilities by name; it looks only at those that share a word with the query."""

    name = "ability"

    def __init__(self, abilities: Sequence[VocabularyItem]) -> None:
        self._index = ItemIndex([item for item in abilities if item.kept], lambda item: (item.kept, _needed(item)))

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The abilities the query names, each with every team that owns it."""
        reading, present = read(query_lower), frozenset(map(key, query_words))
        found = ((item, judge_ability(item, present)) for item in self._index.candidates(present))
        return [match for item, why in found if why for match in item_matches(self.name, item, why, reading)]


def _needed(item: VocabularyItem) -> int:
    return min(ENOUGH, len(set(item.kept)))


def judge_ability(item: VocabularyItem, present: frozenset[str]) -> FoundEntities | None:
    """What of the ability's name is in the query, or None where that is not enough."""
    kept = frozenset(item.kept)
    shared = kept & present
    if len(shared) < _needed(item):
        return None
    left_out = f" (left out as stop words: {', '.join(item.stopped)})" if item.stopped else ""
    return FoundEntities(shared, f"{len(shared)} of {len(kept)} words{left_out}")
