"""A structure: entities with members and abilities, and the words that lead to them; read from YAML or JSON.

Everything a person may set is data: aliases, synonyms, initials, role words, stop words. A malformed structure is one
InputError that names the place. Names and queries are read alike: as words and their keys, singulars by three plain
suffix rules, so that "gunners" meets "gunner". What a query means is left to the strategies, doubtful names to lint.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rag_core.errors import InputError
from rag_core.files import MAX_DEPTH, parse_json, parse_yaml, read_text
from rag_core.text import words

VERSION = 1
DEMO = Path(__file__).with_name("demo.yaml")
DEFAULTS = Path(__file__).with_name("defaults.yaml")
MAX_NAME = 200  # characters
MAX_BYTES = 20_000_000  # of a structure file; YAML is held to 1 MB by its reader

_TOP = ("name", "version", "description", "role_words", "stop_words", "aliases", "synonyms", "entities")
_ENTITY = ("members", "abilities", "aliases", "initials", "text")


_SIBILANTS = ("sses", "shes", "ches", "xes", "zzes")
_NO_PLURAL = ("ss", "us", "is")


@lru_cache(maxsize=65536)
def key(word: str) -> str:
    """The word without its plural ending; words under 4 letters and in -ss, -us, -is stay as they are."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(_SIBILANTS) else word[:-1]


class StructureReading(NamedTuple):
    """A text as words in order, their keys, and the keys as one line with a blank at either end of each."""

    words: tuple[str, ...]
    keys: tuple[str, ...]
    line: str

    def holds(self, keys: tuple[str, ...]) -> bool:
        """Whether the keys stand in this text side by side and in order."""
        return f" {' '.join(keys)} " in self.line


@lru_cache(maxsize=64)
def read(text: str) -> StructureReading:
    """The text as words and keys; remembered for the last texts, since every strategy reads the same query."""
    found = tuple(words(text))
    keys = tuple(map(key, found))
    return StructureReading(found, keys, f" {' '.join(keys)} ")


@cache
def ordinary_words() -> frozenset[str]:
    """Common English words of 3 to 14 letters, lower-case (SCOWL; the licence stands beside the list)."""
    path = Path(__file__).with_name("ordinary_words.txt")
    return frozenset(path.read_text(encoding="utf-8").split())


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity: its names of members and abilities, its own aliases and initials, and its data as it was given."""

    name: str
    members: tuple[str, ...]
    abilities: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    initials: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Structure:
    """All entities and the shared words.

    `aliases`: alias → entity names; `synonyms`: word → alias, entity, item or role word.
    """

    entities: tuple[Entity, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    synonyms: Mapping[str, str] = field(default_factory=dict)
    role_words: frozenset[str] = frozenset()
    stop_words: frozenset[str] = frozenset()
    name: str = "structure"

    def with_alias(self, alias: str, teams: tuple[str, ...]) -> Structure:
        """The structure with one more alias; an InputError where a team is unknown or the alias holds no word."""
        names = {entity.name for entity in self.entities}
        _name(alias, "the alias")
        for team in teams:
            if team not in names:
                raise InputError(f"the alias {alias[:80]!r} names {team!r:.80}, expected an entity of the structure")
        return replace(self, aliases={**self.aliases, alias: tuple(teams)})


def load_structure(path: Path | None = None) -> Structure:
    """The structure of a YAML or JSON file; the demo structure where no file is named."""
    path = path or DEMO
    parse = parse_json if path.suffix.lower() == ".json" else parse_yaml
    return parse_structure(parse(read_text(path, limit=MAX_BYTES), str(path)), str(path))


def structure_from_text(text: str, where: str = "the structure") -> Structure:
    """The structure of an uploaded or typed text: JSON where it begins with a brace, else YAML."""
    parse = parse_json if text.lstrip().startswith("{") else parse_yaml
    return parse_structure(parse(text, where), where)


def parse_structure(value: Any, where: str = "the structure") -> Structure:
    """The structure of parsed data, or an InputError that names the place in it."""
    if _is_bare(value):
        value = {"entities": value}
    top = _mapping(value, where, _TOP)
    if top.get("version", VERSION) != VERSION:
        raise _wrong(f"{where}: version", top["version"], str(VERSION))
    if "entities" not in top:
        raise InputError(f"{where} has no entities, expected a mapping of entity names to their members")
    structure = Structure(
        entities=tuple(_entities(top["entities"], f"{where}: entities")),
        role_words=_single_words(top, "role_words", where),
        stop_words=_single_words(top, "stop_words", where),
        name=_text(top.get("name") or "structure", f"{where}: name"),
    )
    structure = replace(structure, aliases=dict(_aliases(top.get("aliases", {}), structure, f"{where}: aliases")))
    synonyms = {} if "role_words" in top else dict(_defaults()["role_synonyms"])
    synonyms |= dict(_synonyms(top.get("synonyms", {}), structure, f"{where}: synonyms"))
    return replace(structure, synonyms=synonyms)


def default_words(name: str) -> frozenset[str]:
    """The role_words or stop_words of a structure that names none of its own."""
    return frozenset(_defaults()[name])


@cache
def _defaults() -> Mapping[str, Any]:
    return _mapping(parse_yaml(read_text(DEFAULTS), DEFAULTS.name), DEFAULTS.name)


def _is_bare(value: Any) -> bool:
    """Whether this is the original design's form, `{team: {operatives: …, …}}`, with nothing around it."""
    if not isinstance(value, Mapping) or not value:
        return False
    return all(isinstance(entity, Mapping) and "operatives" in entity for entity in value.values())


def _wrong(place: str, got: Any, expected: str) -> InputError:
    return InputError(f"{place} is {str(got)[:80]!r} ({type(got).__name__}), expected {expected}")


def _mapping(value: Any, place: str, known: tuple[str, ...] = ()) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(place, value, "a mapping")
    for key in value:
        if known and key not in known:
            raise InputError(f"{place} has the unknown key {str(key)[:80]!r}, expected one of {', '.join(known)}")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _wrong(place, value, "a list")
    return list(value)


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise _wrong(place, value, "text (in quotes where it looks like a number)")
    return value


def _name(value: Any, place: str) -> str:
    """A name that can be found: text of at most 200 characters that holds a word."""
    name = _text(value, place)
    if len(name) > MAX_NAME:
        raise InputError(f"{place} has {len(name)} characters, expected at most {MAX_NAME}")
    if not read(name).words:
        raise _wrong(place, name, "a name with a letter or digit in it")
    return name


def _entities(value: Any, place: str) -> Iterator[Entity]:
    entities = _mapping(value, place)
    if not entities:
        raise InputError(f"{place} is empty, expected at least one entity")
    seen: dict[tuple[str, ...], str] = {}
    for name, data in entities.items():
        said = read(_name(name, f"{place}, an entity's name")).words
        if said in seen:
            raise InputError(f"{place}: {name!r} is the same name as {seen[said]!r}, expected one of them")
        seen[said] = name
        yield _entity(name, data, f"{place} → {name}")


def _entity(name: str, data: Any, place: str) -> Entity:
    if isinstance(data, Mapping) and "operatives" in data:
        return _with_operatives(name, data, place)
    known = _mapping(data, place, _ENTITY)
    _plain(known, place)
    if "members" not in known:
        raise InputError(f"{place} has no members, expected a list of names")
    members = tuple(_items(known["members"], f"{place} → members"))
    if not members:
        raise InputError(f"{place} → members is empty, expected at least one member")
    abilities = tuple(_abilities(known.get("abilities", []), f"{place} → abilities"))
    aliases = tuple(_names(known.get("aliases", []), f"{place} → aliases"))
    initials = tuple(_names(known.get("initials", []), f"{place} → initials"))
    _text(known.get("text", ""), f"{place} → text")
    return Entity(name, members, abilities, aliases, initials, known)


def _with_operatives(name: str, data: Mapping[str, Any], place: str) -> Entity:
    """An entity in the original design's form: what holds names beside `operatives` are abilities, the rest is data."""
    _plain(data, place)
    listed = {key: list(value) if isinstance(value, Mapping) else value for key, value in data.items()}
    members = tuple(_items(listed.pop("operatives"), f"{place} → operatives"))
    if not members:
        raise InputError(f"{place} → operatives is empty, expected at least one")
    aliases = tuple(_names(listed.pop("aliases", []), f"{place} → aliases"))
    named = {key: value for key, value in listed.items() if isinstance(value, list) and all(map(_has_name, value))}
    return Entity(name, members, tuple(_abilities(named, place)), aliases, (), data)


def _has_name(value: Any) -> bool:
    name = value.get("name") if isinstance(value, Mapping) else value
    return isinstance(name, str) and bool(read(name).words) and len(name) <= MAX_NAME


def _names(value: Any, place: str) -> Iterator[str]:
    for position, item in enumerate(_list(value, place)):
        yield _name(item, f"{place}[{position}]")


def _items(value: Any, place: str) -> Iterator[str]:
    """Names of a list whose elements are names or mappings with a name."""
    for position, item in enumerate(_list(value, place)):
        here = f"{place}[{position}]"
        if isinstance(item, Mapping):
            if "name" not in item:
                raise InputError(f"{here} has no name, expected a mapping with name")
            yield _name(item["name"], f"{here} → name")
        else:
            yield _name(item, here)


def _abilities(value: Any, place: str) -> Iterator[str]:
    """Names of one list, or of lists under headings (rules, ploys, equipment …)."""
    if isinstance(value, Mapping):
        for heading, items in value.items():
            yield from _items(items, f"{place} → {_text(heading, place + ', a heading')}")
    else:
        yield from _items(value, place)


def _aliases(value: Any, structure: Structure, place: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    names = {entity.name for entity in structure.entities}
    for alias, target in _mapping(value, place).items():
        here = f"{place} → {_name(alias, place + ', an alias')}"
        targets = [target] if isinstance(target, str) else _list(target, here)
        if not targets:
            raise InputError(f"{here} is empty, expected the entities it stands for")
        for position, team in enumerate(targets):
            if _text(team, f"{here}[{position}]") not in names:
                raise _wrong(f"{here}[{position}]", team, "the name of an entity, spelt as there")
        yield alias, tuple(dict.fromkeys(targets))


def _synonyms(value: Any, structure: Structure, place: str) -> Iterator[tuple[str, str]]:
    known = {*structure.aliases, *structure.role_words}
    for entity in structure.entities:
        known |= {entity.name, *entity.aliases, *entity.members, *entity.abilities}
    for word, target in _mapping(value, place).items():
        here = f"{place} → {_name(word, place + ', a synonym')}"
        if _text(target, here) not in known:
            raise _wrong(here, target, "an alias, an entity, an item or a role word, spelt as there")
        if target in structure.role_words and len(read(word).words) != 1:
            raise _wrong(here, word, "one word, as a synonym of a role word is")
        yield word, target


def _single_words(top: Mapping[str, Any], name: str, where: str) -> frozenset[str]:
    """The folded words of a list, each one word; the defaults where the structure has none."""
    if name not in top:
        return default_words(name)
    found: set[str] = set()
    for position, word in enumerate(_list(top[name], f"{where}: {name}")):
        said = read(_name(word, f"{where}: {name}[{position}]")).words
        if len(said) != 1:
            raise _wrong(f"{where}: {name}[{position}]", word, "one word")
        found.add(said[0])
    return frozenset(found)


def _plain(value: Any, place: str, depth: int = 0) -> None:
    """Refuse what JSON cannot say (dates, sets) and nesting deeper than 50."""
    if depth > MAX_DEPTH:
        raise InputError(f"{place[:200]} is nested too deeply, expected at most {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _plain(item, f"{place} → {_text(key, place + ', a key')}", depth + 1)
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _plain(item, f"{place}[{position}]", depth + 1)
    elif value is not None and not isinstance(value, str | bool | int | float):
        raise _wrong(place, value, "text, a number, true, false, a list or a mapping")


def structure_document(structure: Structure) -> dict[str, Any]:
    """Plain data that `parse_structure` reads back as an equal structure."""
    return {
        "name": structure.name,
        "version": VERSION,
        "role_words": sorted(structure.role_words),
        "stop_words": sorted(structure.stop_words),
        "aliases": {alias: list(teams) for alias, teams in structure.aliases.items()},
        "synonyms": dict(structure.synonyms),
        "entities": {entity.name: dict(entity.data) for entity in structure.entities},
    }


def structure_text(structure: Structure) -> str:
    """The structure as a JSON file, ready to be edited by hand."""
    return json.dumps(structure_document(structure), ensure_ascii=False, indent=1) + "\n"
