"""The words of a structure, read once: items with their remaining words, stop and role words, and all known words.

Shared by the strategies. What counts as a match is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag_core.entities.match import EntitySettings
from rag_core.entities.reading import key, ordinary_words, read
from rag_core.entities.structure import Structure


@dataclass(frozen=True, slots=True)
class VocabularyItem:
    """A member or an ability, read once: `keys` of all its words, `kept` of those that are no stop words."""

    name: str
    teams: tuple[str, ...]
    keys: tuple[str, ...]
    kept: tuple[str, ...]
    stopped: tuple[str, ...]  # the stop words that were left out
    roles: frozenset[str]  # keys among `kept` that are role words
    distinctive: frozenset[str]  # keys among `kept` of long words that are no role words


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Items, stop words with their keys, and the keys of every word the structure holds."""

    members: tuple[VocabularyItem, ...]
    abilities: tuple[VocabularyItem, ...]
    stop: frozenset[str]
    known: frozenset[str]

    def without_stop_words(self, words: Iterable[str]) -> tuple[str, ...]:
        """The words that tell something, in order."""
        return tuple(word for word in words if word not in self.stop and key(word) not in self.stop)

    def misspelt(self, word: str, settings: EntitySettings) -> bool:
        """Whether a word may be a misspelt name: letters only, long enough, no ordinary word and none we know."""
        return (
            len(word) >= settings.min_word_length
            and word.isalpha()
            and key(word) not in self.known
            and word not in ordinary_words()
            and key(word) not in ordinary_words()
        )


def vocabulary(structure: Structure, settings: EntitySettings) -> Vocabulary:
    """Everything the strategies look up, computed once per structure."""
    stop = structure.stop_words | {key(word) for word in structure.stop_words}
    roles = frozenset(map(key, structure.role_words))
    members = [(name, entity.name) for entity in structure.entities for name in entity.members]
    abilities = [(name, entity.name) for entity in structure.entities for name in entity.abilities]
    return Vocabulary(
        members=_items(members, stop, roles, settings),
        abilities=_items(abilities, stop, roles, settings),
        stop=frozenset(stop),
        known=frozenset(_known(structure)),
    )


def _items(
    pairs: list[tuple[str, str]], stop: frozenset[str], roles: frozenset[str], settings: EntitySettings
) -> tuple[VocabularyItem, ...]:
    """One item per name, whoever owns it; two spellings of the same words are one item."""
    owners: dict[tuple[str, ...], tuple[str, dict[str, None]]] = {}
    for name, team in pairs:
        if len(name.strip()) >= settings.min_word_length:
            owners.setdefault(read(name).words, (name, {}))[1][team] = None
    return tuple(_item(name, tuple(teams), stop, roles, settings) for name, teams in owners.values())


def _item(
    name: str, teams: tuple[str, ...], stop: frozenset[str], roles: frozenset[str], settings: EntitySettings
) -> VocabularyItem:
    reading = read(name)
    pairs = list(zip(reading.words, reading.keys, strict=True))
    kept = [(word, k) for word, k in pairs if word not in stop and k not in stop]
    long = settings.distinctive_word_length
    return VocabularyItem(
        name=name,
        teams=teams,
        keys=reading.keys,
        kept=tuple(k for _, k in kept),
        stopped=tuple(word for word, k in pairs if word in stop or k in stop),
        roles=frozenset(k for _, k in kept if k in roles),
        distinctive=frozenset(k for word, k in kept if len(word) >= long and k not in roles),
    )


def _known(structure: Structure) -> Iterable[str]:
    """Keys of the words of every name, alias, synonym, role word and stop word."""
    texts = [*structure.aliases, *structure.synonyms, *structure.role_words, *structure.stop_words]
    for entity in structure.entities:
        texts += [entity.name, *entity.members, *entity.abilities, *entity.aliases, *entity.initials]
    for text in texts:
        yield from read(text).keys
