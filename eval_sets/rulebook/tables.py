"""The demo rulebook's generated tables: attack matrices, psionic attack tables, encounter tables.

Only the tables: prose, rules and labels are added by build.py. The attack values follow the published progressions
(base value for armor class 0 per level band; b = base − armor class stands as it is up to 20, 20 stands for 21 to 25,
and b − 5 above). Psionic numbers and encounter lists are this project's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_core.files import parse_yaml, read_text

FOLDER = Path(__file__).parent
Record = dict[str, Any]


@dataclass(frozen=True)
class AttackGroup:
    """One of the four attack tables: who uses it and the roll needed against armor class 0, band by band."""

    name: str
    numeral: str
    heading: str
    people: str
    bands: tuple[tuple[str, int], ...]
    remark: str


GROUPS = (
    AttackGroup(
        "cleric",
        "I.A.",
        "CLERICS, DRUIDS AND MONKS",
        "a cleric, druid or monk",
        (("1-3", 20), ("4-6", 18), ("7-9", 16), ("10-12", 14), ("13-15", 12), ("16-18", 10), ("19+", 9)),
        "A druid in beast shape and a monk with open hand use the row of their own level.",
    ),
    AttackGroup(
        "fighter",
        "I.B.",
        "FIGHTERS, PALADINS, RANGERS, BARDS, AND 0 LEVEL HALFLINGS AND HUMANS",
        "a fighter, paladin, ranger or bard, or a halfling or human of no level,",
        (("0", 21), ("1-2", 20), ("3-4", 18), ("5-6", 16), ("7-8", 14), ("9-10", 12), ("11-12", 10), ("13-14", 8),
         ("15-16", 6), ("17+", 4)),
        "Bards count only their fighter levels here.",
    ),
    AttackGroup(
        "magic-user",
        "I.C.",
        "MAGIC-USERS AND ILLUSIONISTS",
        "a magic-user or illusionist",
        (("1-5", 21), ("6-10", 19), ("11-15", 16), ("16-20", 13), ("21+", 11)),
        "Spells that must touch the foe are rolled on the same row as a dagger.",
    ),
    AttackGroup(
        "thief",
        "I.D.",
        "THIEVES AND ASSASSINS",
        "a thief or assassin",
        (("1-4", 21), ("5-8", 19), ("9-12", 16), ("13-16", 14), ("17-20", 12), ("21+", 10)),
        "A blow from behind adds to the die before this row is read.",
    ),
)  # fmt: skip

ARMOR_CLASSES = range(10, -11, -1)
WORN = {
    10: "no armor at all",
    9: "a shield and nothing more",
    8: "leather or a quilted coat",
    7: "studded leather, or leather with a shield",
    6: "ring mail, or studded leather with a shield",
    5: "a scale coat, or ring mail with a shield",
    4: "chain mail, or scale with a shield",
    3: "banded mail, or chain with a shield",
    2: "plate mail, or banded with a shield",
    1: "plate mail and a shield",
    0: "plate and shield with one enchantment between them",
}


def roll_needed(base: int, armor_class: int) -> int:
    """The number on a d20 that hits, given the base value for armor class 0."""
    value = base - armor_class
    if value <= 20:
        return value
    return 20 if value <= 25 else value - 5


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def attack_matrices() -> Iterator[Record]:
    """84 chunks: four groups, armor class 10 down to -10."""
    for group in GROUPS:
        for armor_class in ARMOR_CLASSES:
            yield attack_matrix(group, armor_class)


def attack_matrix(group: AttackGroup, armor_class: int) -> Record:
    """One matrix: level bands and the roll each needs against one armor class."""
    rows = [(band, roll_needed(base, armor_class)) for band, base in group.bands]
    worn = WORN.get(armor_class, "magic, hide of dragon or stranger protection, never armor of common make")
    lines = [
        f"What {group.people} needs to roll on a d20 to hit an opponent of armor class {armor_class}, by level.",
        table(("Level", "Roll to hit"), rows),
        f"Armor class {armor_class} means {worn}. {group.remark}",
    ]
    if max(value for _, value in rows) > 20:
        lines[-1] += " Numbers above 20 want a bonus to the die."
    if min(value for _, value in rows) < 1:
        lines[-1] += " A figure below 1 is hit even by a 1."
    return {
        "id": f"tables/attack-{group.name}-ac{armor_class}",
        "title": f"{group.numeral} ATTACK MATRIX FOR {group.heading} - Opponent Armor Class {armor_class}",
        "text": "\n\n".join(lines),
        "type": "table",
        "family": "combat",
        "class_group": group.name,
        "armor_class": armor_class,
    }


@dataclass(frozen=True)
class Reach:
    """One range of the psionic blast: how far, the number against the weakest minds, and what success does."""

    name: str
    feet: str
    base: int
    effect: str


REACHES = (
    Reach("short", "up to 30 feet", 6, "Success stuns for 2d4 rounds. Five over the number leaves the victim an idiot "
          "until healed; ten over, and the heart stops."),
    Reach("medium", "31 to 60 feet", 9, "The stricken drop what they hold and wander, asleep on their feet, for d6 "
          "rounds. Eight over the number costs a point of wisdom for good."),
    Reach("long", "61 to 120 feet", 12, "So far off the wave does no more than daze: no spell, no charge and no song "
          "in this round or the next. It does reach all minds in a cone."),
)  # fmt: skip
TOTALS = (
    (6, 10, "Ogres and the simple have minds like this, open as a barn."),
    (11, 13, "Drunkards and tired watchmen belong here as well."),
    (14, 16, "Most soldiers and farmers fall in this band."),
    (17, 19, "An ordinary townsman, neither clever nor a fool."),
    (20, 22, "Adventurers of middling gifts are commonly found here."),
    (23, 25, "A sound, schooled mind, such as a chaplain's."),
    (26, 28, "Minds trained to hold still. Expect it of abbots."),
    (29, 32, "Wizards of note stand so high, and dragons past their youth."),
    (33, 36, "Few mortals are here, and those few are seldom taken twice by the same trick."),
)
STRENGTHS = ("1-25", "26-50", "51-75", "76-100", "101-150", "151+")


def psionic_tables() -> Iterator[Record]:
    """27 chunks: three ranges of the psionic blast, nine bands of intelligence and wisdom added together."""
    for reach in REACHES:
        for step, (low, high, remark) in enumerate(TOTALS):
            yield psionic_table(reach, step, low, high, remark)


def psionic_table(reach: Reach, step: int, low: int, high: int, remark: str) -> Record:
    """One table: the attacker's psionic strength and the roll it needs; a dash where no roll suffices."""
    needed = [reach.base + 2 * step - 2 * band for band in range(len(STRENGTHS))]
    cells = ["-" if number > 20 else max(2, number) for number in needed]
    text = "\n\n".join(
        [
            f"Psionic blast at {reach.name} range ({reach.feet}) upon an ordinary mind whose intelligence and wisdom "
            f"together make {low} to {high}: d20 roll needed, by present psionic strength of the attacker.",
            table(("Psionic strength", "Roll"), list(zip(STRENGTHS, cells, strict=True))),
            f"{remark} {reach.effect}",
        ]
    )
    return {
        "id": f"tables/psionic-{reach.name}-{low}-{high}",
        "title": f"II. PSIONIC BLAST ATTACK TABLE - {reach.name.title()} Range, "
        f"Intelligence and Wisdom Total {low}-{high}",
        "text": text,
        "type": "table",
        "family": "psionic",
        "attack_range": reach.name,
        "total_min": low,
        "total_max": high,
    }


DICE = ("2", "3-4", "5-7", "8-10", "11-13", "14-16", "17-18", "19", "20")


def encounter_tables() -> Iterator[Record]:
    """27 chunks: climate by terrain, and the faerie and sylvan settings of the temperate zone."""
    source = FOLDER / "encounters.yaml"
    for entry in parse_yaml(read_text(source), source.name):
        yield encounter_table(entry)


def encounter_table(entry: Mapping[str, Any]) -> Record:
    """One table of nine rows, rolled with a d12 and a d8 added together."""
    climate, terrain, setting = str(entry["climate"]), str(entry["terrain"]), str(entry.get("setting", ""))
    place = f"{climate} {terrain}" + (f", {setting} setting" if setting else "")
    text = "\n\n".join(
        [
            f"Wandering encounters in {place}. Add a d12 and a d8.",
            table(("Dice", "Encounter"), list(zip(DICE, entry["creatures"], strict=True))),
            str(entry["note"]),
        ]
    )
    heading = f"{climate.title()} {terrain.title()}" + (", Faerie and Sylvan Setting" if setting else "")
    record = {
        "id": "tables/encounter-" + "-".join(filter(None, [climate, terrain, setting and "faerie-sylvan"])),
        "title": f"III. ENCOUNTER TABLE - {heading}",
        "text": text,
        "type": "table",
        "family": "encounter",
        "climate": climate,
        "terrain": terrain,
    }
    return {**record, "setting": setting} if setting else record
