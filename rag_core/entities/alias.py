"""Strategy 3, alias: the query uses another name: an alias, a synonym or initials.

Aliases stand on word boundaries ("guard" is not in "safeguard") and may be misspelt. A synonym ("orcs") leads to what
its target ("orks") leads to. Initials are given by the structure, or made from names of three words and more where they
are nobody else's and no word; they are never guessed from a misspelling.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_core.entities.match import EntityMatch, EntitySettings
from rag_core.entities.phrases import Phrase, PhraseFinder, PhraseHit
from rag_core.entities.reading import ordinary_words, read
from rag_core.entities.structure import Structure
from rag_core.entities.team_name import name_reason
from rag_core.entities.vocabulary import Vocabulary

INITIALS_FROM = 3  # words of a name
INITIALS_CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class Alias:
    """One way to say teams: the phrase, what it says, the teams, and how it came (alias | synonym | initials)."""

    phrase: str
    item: str
    teams: tuple[str, ...]
    kind: str = "alias"


class AliasStrategy:
    """Finds entities by aliases, synonyms and initials."""

    name = "alias"

    def __init__(self, structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> None:
        self._aliases = list(all_aliases(structure))
        phrases = [Phrase(alias.phrase, fuzzy=alias.kind != "initials") for alias in self._aliases]
        self._finder = PhraseFinder(phrases, lambda word: vocabulary.misspelt(word, settings), settings.threshold)

    def at(self, threshold: float) -> AliasStrategy:
        """The same strategy with another threshold for misspelt names."""
        other = copy.copy(self)
        other._finder = self._finder.at(threshold)
        return other

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """One match per team of every alias in the query; stop words belong to aliases, so the whole query is read."""
        hits = self._finder.find(read(query_lower))
        return [match for hit in hits for match in self._matches(self._aliases[hit.number], hit)]

    def _matches(self, alias: Alias, hit: PhraseHit) -> Iterator[EntityMatch]:
        confidence = round(hit.score / 100 * (INITIALS_CONFIDENCE if alias.kind == "initials" else 1), 3)
        for team in alias.teams:
            yield EntityMatch(
                team, self.name, alias.item, hit.words, hit.score, alias_reason(alias, hit.exact), confidence
            )


def alias_reason(alias: Alias, exact: bool) -> str:
    """Why the alias counts, and how it came to be one."""
    reason = name_reason(alias.phrase, exact)
    if alias.kind == "synonym":
        return f"{alias.phrase!r} is a synonym of {alias.item!r}: {reason}"
    return f"initials of {alias.item!r}" if alias.kind == "initials" else reason


def all_aliases(structure: Structure) -> Iterator[Alias]:
    """Shared aliases, then the entities' own, then synonyms, then initials."""
    yield from (Alias(alias, alias, tuple(teams)) for alias, teams in structure.aliases.items())
    for entity in structure.entities:
        yield from (Alias(alias, alias, (entity.name,)) for alias in entity.aliases)
    targets = _targets(structure)
    yield from (Alias(word, item, targets[item], "synonym") for word, item in structure.synonyms.items())
    for entity in structure.entities:
        yield from (Alias(initials, entity.name, (entity.name,), "initials") for initials in entity.initials)
    yield from _made_initials(structure)


def _targets(structure: Structure) -> dict[str, tuple[str, ...]]:
    """What a synonym may point to → its teams."""
    owners: dict[str, dict[str, None]] = {}
    for alias, teams in structure.aliases.items():
        owners.setdefault(alias, {}).update(dict.fromkeys(teams))
    for entity in structure.entities:
        for name in (entity.name, *entity.aliases, *entity.members, *entity.abilities):
            owners.setdefault(name, {})[entity.name] = None
    return {name: tuple(teams) for name, teams in owners.items()}


def _made_initials(structure: Structure) -> Iterator[Alias]:
    """First letters of names of three words and more: nobody else's, no ordinary word, no stop word, none given."""
    made = [(entity, "".join(word[0] for word in read(entity.name).words)) for entity in structure.entities]
    count = Counter(initials for _, initials in made)
    for entity, initials in made:
        free = count[initials] == 1 and initials not in ordinary_words() and initials not in structure.stop_words
        if len(initials) >= INITIALS_FROM and free and not entity.initials:
            yield Alias(initials, entity.name, (entity.name,), "initials")
