"""Parametric tables and entries of a freely licensed game as chunks, and labelled questions on them.

The game's files are the caller's; what rules do to lists of these chunks is measured in rules_on_tables.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_core.types import Case, Chunk, Query

FAMILIES = """
version: 1
families:
  - name: saving-throws
    title: 'saving throws for (?P<class>[a-z-]+?)s?, level (?P<low>\\d+)(?:-(?P<high>\\d+))?'
    rule:
      contain_one_of: [["{class}", "{class}s"], [save, saves, saving throw, saving throws]]
      number_in: [{label: [level], min: "{low}", max: "{high}"}]
  - name: thief-abilities
    title: 'thief abilities, level (?P<n>\\d+)'
    rule:
      contain_one_of: [[thief, thieves]]
      number_in: [{label: [level], min: "{n}", max: "{n}"}]
  - name: turning
    title: 'turning undead, cleric level (?P<n>\\d+)'
    rule:
      contain_one_of: [[turn, turns, turning]]
      number_in: [{label: [level], min: "{n}", max: "{n}"}]
"""


def chunks_of(data: Path) -> list[Chunk]:
    """Every chunk of the game's files."""
    return [*attack_tables(data), *level_tables(data), *prose(data)]


def questions_on(chunks: Sequence[Chunk]) -> list[Case]:
    """Labelled questions on these chunks."""
    return [*attack_questions(chunks), *level_questions(chunks), *prose_questions(chunks)]


def _json(data: Path, name: str) -> Any:
    return json.loads((data / f"{name}.json").read_text(encoding="utf-8"))


ATTACKERS = {
    "CLERICS, DRUIDS AND MONKS": ("cleric", "cleric_or_thief_level"),
    "FIGHTERS, PALADINS AND RANGERS": ("fighter", "fighter_level"),
    "MAGIC-USERS AND ILLUSIONISTS": ("magic-user", "magic_user_level"),
    "THIEVES AND ASSASSINS": ("thief", "cleric_or_thief_level"),
}


def attack_tables(data: Path) -> Iterator[Chunk]:
    """Class group x armor class: what each level needs to roll, from the game's attack bonuses."""
    rows = _json(data, "attack_bonus")
    for title, (name, column) in ATTACKERS.items():
        for armor in range(11, 23):
            lines = [
                f"| {_levels(row[column])} | {max(2, armor - int(row['attack_bonus']))} |"
                for row in rows
                if row[column]
            ]
            text = "| Level | Roll |\n| --- | --- |\n" + "\n".join(lines)
            yield Chunk(f"attack-{name}-{armor}", f"ATTACK MATRIX FOR {title} - Opponent Armor Class {armor}", text)


def _levels(value: Any) -> str:
    listed = value if isinstance(value, list) else [value]
    return f"{listed[0]}-{listed[-1]}" if len(listed) > 1 else str(listed[0])


def level_tables(data: Path) -> Iterator[Chunk]:
    """Saving throws by class and levels, a thief's abilities and a cleric's turning by level."""
    for name, rows in _json(data, "saving_throws").items():
        plain = name.replace("_", "-")
        for row in rows if plain in ("cleric", "fighter", "magic-user", "thief") else ():
            levels = _levels(row["level"])
            if levels[0].isdigit():
                yield Chunk(
                    f"save-{plain}-{levels}", f"SAVING THROWS FOR {plain.upper()}S, Level {levels}", _cells(row)
                )
    for row in _json(data, "thief_abilities"):
        yield Chunk(f"thief-{row['thief_level']}", f"THIEF ABILITIES, Level {row['thief_level']}", _cells(row))
    for row in _json(data, "turning_undead")["rows"]:
        level = _levels(row["cleric_level"])
        yield Chunk(f"turn-{level}", f"TURNING UNDEAD, Cleric Level {level}", _cells(row))


def _cells(row: Mapping[str, Any]) -> str:
    return "\n".join(f"{key.replace('_', ' ')}: {_levels(value)}" for key, value in row.items())


def prose(data: Path) -> Iterator[Chunk]:
    """The game's classes, spells, monsters and magic items, one entry a chunk."""
    for kind in ("classes", "spells", "monsters", "magic_items"):
        for number, entry in enumerate(_json(data, kind), 1):
            yield Chunk(f"{kind}/{number}", entry["name"], str(entry.get("description") or "")[:1500])


def _case(name: str, text: str, relevant: Sequence[str], *tags: str) -> Case:
    return Case(Query(name, text, tags=tags), dict.fromkeys(relevant, 3))


def attack_questions(chunks: Sequence[Chunk]) -> Iterator[Case]:
    """One armor class, two armor classes, two classes; and none, where the entry on the class is what is asked for."""
    names = [name for name, _ in ATTACKERS.values()]
    for at, name in enumerate(names):
        for armor in range(11, 23):
            level, tag = 1 + armor % 9, "one armor class"
            text = f"What must a level {level} {name} roll to hit a foe with an armor class of {armor}?"
            yield _case(f"one-{name}-{armor}", text, [f"attack-{name}-{armor}"], tag)
        both = [f"attack-{name}-{armor}" for armor in (13, 18)]
        yield _case(
            f"two-{name}", f"A {name} attacks AC 13 and then AC 18: which rolls hit?", both, "several armor classes"
        )
        other = names[(at + 1) % len(names)]
        pair = [f"attack-{name}-15", f"attack-{other}-15"]
        text = f"A {name} and a {other} both attack armor class 15: who hits more easily?"
        yield _case(f"pair-{name}", text, pair, "several classes")
        entry = next(chunk.id for chunk in chunks if chunk.title.lower() == name and chunk.id.startswith("classes/"))
        yield _case(f"none-{name}", f"How well does a {name} fight?", [entry], "no armor class")


def level_questions(chunks: Sequence[Chunk]) -> Iterator[Case]:
    """A saving throw, a thief's ability, a turning, at one level."""
    for chunk in chunks:
        kind, _, rest = chunk.id.partition("-")
        level = rest.rsplit("-", 1)[-1].rstrip("+")
        if kind == "save":
            name = rest.rstrip("0123456789+").rstrip("-").rstrip("0123456789").rstrip("-")
            yield _case(chunk.id, f"What does a level {level} {name} need to save against poison?", [chunk.id], "saves")
        elif kind == "thief":
            yield _case(chunk.id, f"How good is a level {level} thief at opening locks?", [chunk.id], "thief abilities")
        elif kind == "turn":
            yield _case(chunk.id, f"Which undead can a level {level} cleric turn?", [chunk.id], "turning")


def prose_questions(chunks: Sequence[Chunk]) -> Iterator[Case]:
    """Every sixth entry, asked for by name: rules must not touch these."""
    for chunk in [chunk for chunk in chunks if "/" in chunk.id][::6]:
        yield _case(f"ask {chunk.id}", f"What does the rulebook say about {chunk.title}?", [chunk.id], "entries")
