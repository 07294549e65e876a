"""Strategies 3 and 4, alias and team_name: the query uses an entity's own name, or another one.

Names stand on word boundaries ("guard" is not in "safeguard"), in singular or plural, and may be misspelt. A synonym
("orcs") leads to what its target ("orks") leads to. Initials are given by the structure, or made from names of three
words and more where they are nobody else's and no word; they are never guessed from a misspelling. Of an entity's own
name a distinctive word is enough ("Nemesis" for Nemesis Claw).
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
    targets = _targets(structure)  # a synonym of a role word leads to members, in vocabulary.py
    yield from (
        Alias(word, item, targets[item], "synonym") for word, item in structure.synonyms.items() if item in targets
    )
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


class TeamNameStrategy:
    """Finds entities by their own names, or by a distinctive word of one."""

    name = "team_name"

    def __init__(self, structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> None:
        self._names = list(own_names(structure, vocabulary, settings))
        phrases = [Phrase(phrase) for phrase, _ in self._names]
        self._finder = PhraseFinder(phrases, lambda word: vocabulary.misspelt(word, settings), settings.threshold)

    def at(self, threshold: float) -> TeamNameStrategy:
        """The same strategy with another threshold for misspelt names."""
        other = copy.copy(self)
        other._finder = self._finder.at(threshold)
        return other

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The entities the query names, each by what is most alike; stop words belong to names."""
        best: dict[str, EntityMatch] = {}
        for hit in self._finder.find(read(query_lower)):
            phrase, team = self._names[hit.number]
            whole = phrase == team
            reason = name_reason(phrase, hit.exact) if whole else f"{phrase!r}, a distinctive word of its name"
            share = 1.0 if whole else 1 / len(read(team).words)
            match = EntityMatch(team, self.name, team, hit.words, hit.score, reason, round(hit.score / 100 * share, 3))
            if team not in best or hit.score > best[team].score:  # the whole name comes first
                best[team] = match
        return list(best.values())


def own_names(structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> Iterator[tuple[str, str]]:
    """(phrase, entity): every entity's name, then the distinctive words of the names of two words and more.

    Distinctive is what no other entity's name holds and is no role word, no stop word and nobody's alias: no ordinary
    English word either, but for a name's first word of six letters and more ("Angels" of Angels Of Death).
    """
    readings = {entity.name: read(entity.name) for entity in structure.entities}
    yield from ((name, name) for name in readings)
    holders = Counter(key for reading in readings.values() for key in set(reading.keys))
    other = {read(alias.phrase).keys for alias in all_aliases(structure)}
    for name, reading in readings.items():
        first = True
        for word, key in zip(reading.words, reading.keys, strict=True):
            if word in vocabulary.stop or key in vocabulary.stop:
                continue
            known = word in ordinary_words() or key in ordinary_words()
            least = settings.distinctive_word_length if known else settings.min_word_length
            free = holders[key] == 1 and key not in vocabulary.roles and (key,) not in other
            if len(reading.words) > 1 and free and len(word) >= least and (first or not known):
                yield word, name
            first = False


def name_reason(name: str, exact: bool) -> str:
    """Why a name counts: word by word the same, or misspelt."""
    return "the same words, singular or plural" if exact else f"close to {name!r}; no ordinary word, no word known here"
