"""Strategy 1, operative: the query names a member.

The full name in order always counts. Else a role word ("gunner") asks for more: of a name of two words all of them side
by side, of a longer name one distinctive word. A name without a role word needs one of its one or two words, and of a
longer name one distinctive word or two words.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_core.entities.found import FoundEntities, ItemIndex, item_matches
from rag_core.entities.match import EntityMatch
from rag_core.entities.reading import StructureReading, key, read
from rag_core.entities.vocabulary import VocabularyItem

SHORT_NAME = 2  # words


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
