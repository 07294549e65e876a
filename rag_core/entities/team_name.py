"""Strategy 4, team_name: the query names an entity, spelt right, in singular or plural, or misspelt."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from rag_core.entities.match import EntityMatch, EntitySettings
from rag_core.entities.phrases import Phrase, PhraseFinder
from rag_core.entities.reading import read
from rag_core.entities.structure import Structure
from rag_core.entities.vocabulary import Vocabulary


class TeamNameStrategy:
    """Finds entities by their own names; how misspelt a name may be is said in phrases.py."""

    name = "team_name"

    def __init__(self, structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> None:
        self._teams = [entity.name for entity in structure.entities]
        phrases = [Phrase(team) for team in self._teams]
        self._finder = PhraseFinder(phrases, lambda word: vocabulary.misspelt(word, settings), settings.threshold)

    def at(self, threshold: float) -> TeamNameStrategy:
        """The same strategy with another threshold for misspelt names."""
        other = copy.copy(self)
        other._finder = self._finder.at(threshold)
        return other

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The entities the query names; stop words belong to names, so the whole query is read."""
        return [
            EntityMatch(
                team, self.name, team, hit.words, hit.score, name_reason(team, hit.exact), round(hit.score / 100, 3)
            )
            for hit in self._finder.find(read(query_lower))
            for team in (self._teams[hit.number],)
        ]


def name_reason(name: str, exact: bool) -> str:
    """Why a name counts: word by word the same, or misspelt."""
    return "the same words, singular or plural" if exact else f"close to {name!r}; no ordinary word, no word known here"
