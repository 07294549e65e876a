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
    """Items, stop words with their keys, keys of role words, and the keys of every word the structure holds."""

    members: tuple[VocabularyItem, ...]
    by_role: tuple[VocabularyItem, ...]  # members again, called by a synonym of their role word
    abilities: tuple[VocabularyItem, ...]
    stop: frozenset[str]
    roles: frozenset[str]
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
    others = (synonym for synonym, target in structure.synonyms.items() if target in structure.role_words)
    roles = frozenset(map(key, (*structure.role_words, *others)))
    members = [(name, name, entity.name) for entity in structure.entities for name in entity.members]
    abilities = [(name, name, entity.name) for entity in structure.entities for name in entity.abilities]
    return Vocabulary(
        members=_items(members, stop, roles, settings),
        by_role=_items(_by_role(members, structure), stop, roles, settings),
        abilities=_items(abilities, stop, roles, settings),
        stop=frozenset(stop),
        roles=roles,
        known=frozenset(_known(structure)),
    )


def _by_role(members: Iterable[tuple[str, str, str]], structure: Structure) -> list[tuple[str, str, str]]:
    """Members as they are called with a synonym of their role word, "Mirebrand Healer" for Mirebrand Medic."""
    others: dict[str, list[str]] = {}
    for synonym, role in structure.synonyms.items():
        if role in structure.role_words:
            others.setdefault(key(role), []).append(synonym)
    taken = {read(name).words for _, name, _ in members}
    said = [
        (" ".join([*reading.words[:at], other, *reading.words[at + 1 :]]), name, team)
        for _, name, team in members
        for reading in (read(name),)
        for at, word in enumerate(reading.keys)
        for other in others.get(word, ())
    ]
    return [one for one in said if read(one[0]).words not in taken]


def _items(
    names: list[tuple[str, str, str]], stop: frozenset[str], roles: frozenset[str], settings: EntitySettings
) -> tuple[VocabularyItem, ...]:
    """One item per (words, name, entity), whoever owns it; two spellings of the same words are one item."""
    owners: dict[tuple[str, ...], tuple[str, str, dict[str, None]]] = {}
    for said, name, team in names:
        if len(name.strip()) >= settings.min_word_length:
            owners.setdefault(read(said).words, (said, name, {}))[2][team] = None
    return tuple(_item(said, name, tuple(teams), stop, roles, settings) for said, name, teams in owners.values())


def _item(
    said: str,
    name: str,
    teams: tuple[str, ...],
    stop: frozenset[str],
    roles: frozenset[str],
    settings: EntitySettings,
) -> VocabularyItem:
    reading = read(said)
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
