"""Lint a structure: names that can never be found, tell nothing, or lead to more than one place.

A structure with findings still works; each finding says what a query will do because of it. What is malformed is
refused in structure.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from rag_core.entities.strategies import SHORT_NAME, Alias, EntitySettings, Vocabulary, all_aliases, vocabulary
from rag_core.entities.structure import Structure, ordinary_words, read

TOO_MANY_SHARE = 0.2  # an item of more than this share of the entities tells little
TOO_MANY_LEAST = 4  # and of at least this many
FEW = 3  # findings of ordinary words that are listed one by one


@dataclass(frozen=True, slots=True)
class EntityFinding:
    """One doubtful name: the kind of trouble, the name, the teams it concerns, and a sentence."""

    kind: str  # alias_collision | close_names | too_many | stop_words_only | role_word_only | too_short | ordinary_word
    name: str
    teams: tuple[str, ...]
    text: str


def lint_structure(structure: Structure, settings: EntitySettings | None = None) -> list[EntityFinding]:
    """All findings, by kind in the order of the checks, then as the structure has them."""
    settings = settings or EntitySettings()
    words = vocabulary(structure, settings)
    aliases = list(all_aliases(structure))
    return [
        *_collisions(structure, aliases, words),
        *_close_names(structure, aliases, settings),
        *_too_many(structure, words),
        *_untellable(structure, words),
        *_too_short(structure, settings),
        *_together(list(_ordinary(words))),
    ]


def _together(findings: list[EntityFinding]) -> list[EntityFinding]:
    """Findings of ordinary words as one where they are many: they would hide what matters."""
    if len(findings) <= FEW:
        return findings
    some = "; ".join(one.text for one in findings[:3])
    text = f"{len(findings)} names are found by one ordinary English word alone: {some} …"
    teams = tuple(sorted({team for one in findings for team in one.teams}))
    return [EntityFinding("ordinary_word", findings[0].name, teams, text)]


def _collisions(structure: Structure, aliases: Sequence[Alias], words: Vocabulary) -> Iterator[EntityFinding]:
    """An alias that is also another alias, an entity's name or an item, of other teams."""
    meant: dict[tuple[str, ...], list[tuple[str, frozenset[str]]]] = {}
    for entity in structure.entities:
        meant.setdefault(read(entity.name).keys, []).append(("the entity's name", frozenset((entity.name,))))
    for item in (*words.members, *words.abilities):
        meant.setdefault(item.keys, []).append((f"the item {item.name!r}", frozenset(item.teams)))
    for alias in aliases:
        teams = frozenset(alias.teams)
        others = meant.setdefault(read(alias.phrase).keys, [])
        for what, owners in others:
            if owners != teams:
                text = f"{alias.kind} {alias.phrase!r} of {_listed(teams)} is also {what} of {_listed(owners)}"
                yield EntityFinding("alias_collision", alias.phrase, tuple(sorted(teams | owners)), text)
        others.append((f"the {alias.kind}", teams))


def _close_names(structure: Structure, aliases: Sequence[Alias], settings: EntitySettings) -> Iterator[EntityFinding]:
    """Two names so alike that a misspelling of one may be the other."""
    named = [(" ".join(read(entity.name).words), frozenset((entity.name,))) for entity in structure.entities]
    named += [(" ".join(read(a.phrase).words), frozenset(a.teams)) for a in aliases if a.kind != "initials"]
    long = [pair for pair in dict.fromkeys(named) if len(pair[0]) >= settings.distinctive_word_length]
    names = [name for name, _ in long]
    for number, (name, teams) in enumerate(long):
        near = process.extract(name, names, scorer=fuzz.ratio, score_cutoff=settings.threshold, limit=None)
        for other, score, place in sorted(near, key=lambda alike: alike[2]):
            others = long[place][1]
            if place > number and teams != others and read(name).keys != read(other).keys:
                text = f"{name!r} and {other!r} are {score:.0f} alike: a misspelling of one may find the other"
                yield EntityFinding("close_names", name, tuple(sorted(teams | others)), text)


def _too_many(structure: Structure, words: Vocabulary) -> Iterator[EntityFinding]:
    """Items of so many entities that naming them hardly narrows anything."""
    most = max(TOO_MANY_LEAST, int(TOO_MANY_SHARE * len(structure.entities)) + 1)
    for item in (*words.members, *words.abilities):
        if len(item.teams) >= most:
            text = f"{item.name!r} belongs to {len(item.teams)} of {len(structure.entities)} entities: it tells little"
            yield EntityFinding("too_many", item.name, item.teams, text)


def _untellable(structure: Structure, words: Vocabulary) -> Iterator[EntityFinding]:
    """Items whose words are all stop words, and members that are a single role word: never found."""
    for item in (*words.members, *words.abilities):
        if not item.kept:
            text = f"{item.name!r} holds only stop words: no query finds it"
            yield EntityFinding("stop_words_only", item.name, item.teams, text)
    for item in words.members:
        if len(item.kept) == 1 and item.roles:
            text = f"member {item.name!r} is a single role word: no query finds it"
            yield EntityFinding("role_word_only", item.name, item.teams, text)


def _too_short(structure: Structure, settings: EntitySettings) -> Iterator[EntityFinding]:
    least = settings.min_word_length
    for entity in structure.entities:
        for name in (*entity.members, *entity.abilities):
            if len(name.strip()) < least:
                text = f"{name!r} has fewer than {least} characters: no query finds it; an alias would be found"
                yield EntityFinding("too_short", name, (entity.name,), text)


def _ordinary(words: Vocabulary) -> Iterator[EntityFinding]:
    """Members and abilities that one ordinary English word sets off."""
    for item, short in ((item, SHORT_NAME) for item in words.members):
        if len(item.kept) <= short and not item.roles:
            for key in dict.fromkeys(key for key in item.kept if key in ordinary_words()):
                text = f"the ordinary word {key!r} alone finds member {item.name!r}"
                yield EntityFinding("ordinary_word", item.name, item.teams, text)
    for item in words.abilities:
        if len(item.kept) == 1 and item.kept[0] in ordinary_words():
            text = f"the ordinary word {item.kept[0]!r} alone finds ability {item.name!r}"
            yield EntityFinding("ordinary_word", item.name, item.teams, text)


def _listed(teams: frozenset[str]) -> str:
    return ", ".join(sorted(teams))
