"""Random structures and random queries made of their names, ordinary words and slips of the keyboard."""

import json
import os
import random
from pathlib import Path

from rag_core.entities import parse_structure
from rag_core.entities.structure import ordinary_words, read

SHARED = Path(os.environ.get("WINNOW_SHARED", Path(__file__).parents[3] / "shared"))
SRD = SHARED / "data" / "dnd5e-srd-2014"

SYLLABLES = ("ka", "zor", "mi", "ul", "dra", "ven", "tis", "gor", "bel", "nax", "fi", "rum", "sha", "lok", "eth", "pri")
ROLES = ("gunner", "warrior", "leader", "medic", "sniper")


def random_structure(rng, entities=40, items=30):
    """A structure whose names share words often, so that every branch of the rules is met."""
    pool = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(entities * 3)]
    pool += [*rng.sample(sorted(ordinary_words()), entities), "the", "of", "we"]

    def name(roles=()):
        words = rng.choices([*pool, *list(roles) * 20], k=rng.choice((1, 1, 2, 2, 3, 4)))
        return " ".join(words) + rng.choice(("", "s"))

    named = {}
    while len(named) < entities:
        team = name()
        named.setdefault(read(team).words, team.title())
    made = {
        team: {
            "members": [name(ROLES) for _ in range(items // 2)],
            "abilities": [name() for _ in range(items // 2)],
        }
        for team in named.values()
    }
    teams = list(made)
    aliases = {name(): rng.sample(teams, k=rng.randint(1, 4)) for _ in range(entities // 2)}
    synonyms = {name(): rng.choice([*aliases, *teams]) for _ in range(entities // 4)}
    return parse_structure({"entities": made, "aliases": aliases, "synonyms": synonyms})


def srd_structure():
    """Classes and races of the SRD with their features and traits, as a structure."""

    def rows(name):
        return json.loads((SRD / f"5e-SRD-{name}.json").read_text(encoding="utf-8"))

    entities = {row["name"]: {"members": [], "abilities": []} for row in (*rows("Classes"), *rows("Races"))}
    for row in rows("Subclasses"):
        entities[row["class"]["name"]]["members"].append(row["name"])
    for row in rows("Features"):
        entities[row["class"]["name"]]["abilities"].append(row["name"])
    for row in rows("Traits"):
        for race in row["races"]:
            entities[race["name"]]["abilities"].append(row["name"])
    for name, entity in entities.items():
        entity["members"] = entity["members"] or [f"{name} hero"]
    return parse_structure({"entities": entities})


def slip(rng, word):
    """The word with one keyboard slip, or as it is."""
    at = rng.randrange(len(word)) if word else 0
    letter = rng.choice("aeioukstz")
    return rng.choice(
        (word, word[:at] + word[at + 1 :], word[:at] + letter + word[at + 1 :], word[:at] + letter + word[at:])
    )


def random_query(rng, structure):
    """Parts of one to three names, sometimes shuffled or misspelt, between ordinary words."""
    parts = []
    for _ in range(rng.randint(1, 3)):
        entity = rng.choice(structure.entities)
        name = rng.choice(
            (entity.name, rng.choice(entity.members), *entity.abilities[:5], *structure.aliases, *structure.synonyms)
        )
        words = name.split()
        if rng.random() < 0.2:
            rng.shuffle(words)
        parts += [
            slip(rng, word.lower()) if rng.random() < 0.3 else word for word in words[: rng.randint(1, len(words))]
        ]
        parts += rng.sample(COMMON, k=rng.randint(0, 2))
    return " ".join(parts)


COMMON = sorted(ordinary_words())[::37]


def rng(seed):
    return random.Random(seed)
