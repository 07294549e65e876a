"""The demo rulebook's tables: every attack value recomputed here from the published progressions."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "eval_sets" / "rulebook"
CHUNKS = {c["id"]: c for c in map(json.loads, (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines())}
ROW = re.compile(r"^\| ([\d+-]+) \| (-?\d+|-) \|$", re.MULTILINE)

# group → first level of each band and the roll against armor class 0, before the six twenties
BASES = {
    "cleric": [(1, 20), (4, 18), (7, 16), (10, 14), (13, 12), (16, 10), (19, 9)],
    "fighter": [(0, 21), (1, 20), (3, 18), (5, 16), (7, 14), (9, 12), (11, 10), (13, 8), (15, 6), (17, 4)],
    "magic-user": [(1, 21), (6, 19), (11, 16), (16, 13), (21, 11)],
    "thief": [(1, 21), (5, 19), (9, 16), (13, 14), (17, 12), (21, 10)],
}
PEOPLE = {
    "cleric": "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS",
    "fighter": "I.B. ATTACK MATRIX FOR FIGHTERS, PALADINS, RANGERS, BARDS, AND 0 LEVEL HALFLINGS AND HUMANS",
    "magic-user": "I.C. ATTACK MATRIX FOR MAGIC-USERS AND ILLUSIONISTS",
    "thief": "I.D. ATTACK MATRIX FOR THIEVES AND ASSASSINS",
}


def ladder(start: int, steps: int) -> list[int]:
    """Rolls for `steps` armor classes downward from one that needs `start` (under 20): one more each, but 20 six times."""
    return [*range(start, 20), *[20] * 6, *range(21, 60)][:steps]


def first_levels(text: str) -> list[tuple[int, int]]:
    """(first level of the band, roll) per row."""
    return [(int(re.match(r"\d+", band)[0]), int(roll)) for band, roll in ROW.findall(text)]


@pytest.mark.parametrize("group", BASES)
def test_every_cell_of_a_groups_matrices_follows_the_progression(group):
    for position, (level, base) in enumerate(BASES[group]):
        expected = ladder(base - 10, 21)  # armor class 10 needs ten less than armor class 0
        found = [first_levels(CHUNKS[f"tables/attack-{group}-ac{ac}"]["text"])[position] for ac in range(10, -11, -1)]
        assert found == [(level, roll) for roll in expected]


@pytest.mark.parametrize("group", BASES)
def test_a_groups_matrices_have_a_row_per_band_and_say_who_and_against_what(group):
    for ac in range(-10, 11):
        chunk = CHUNKS[f"tables/attack-{group}-ac{ac}"]
        assert len(ROW.findall(chunk["text"])) == len(BASES[group])
        assert chunk["title"] == f"{PEOPLE[group]} - Opponent Armor Class {ac}"
        assert (chunk["class_group"], chunk["armor_class"]) == (group, ac)


def test_bands_leave_no_level_out():
    bands = [band for band, _ in ROW.findall(CHUNKS["tables/attack-thief-ac0"]["text"])]
    assert bands == ["1-4", "5-8", "9-12", "13-16", "17-20", "21+"]


@pytest.mark.parametrize(
    ("chunk", "level", "roll"),
    [
        ("tables/attack-cleric-ac6", 7, 10),
        ("tables/attack-fighter-ac3", 7, 11),
        ("tables/attack-fighter-ac0", 0, 20),
        ("tables/attack-fighter-ac-4", 0, 20),
        ("tables/attack-fighter-ac-5", 0, 21),
        ("tables/attack-magic-user-ac-10", 1, 26),
    ],
)
def test_known_values(chunk, level, roll):
    assert (level, roll) in first_levels(CHUNKS[chunk]["text"])


def test_the_corpus_holds_what_the_demo_promises():
    families = [chunk.get("family", "prose") for chunk in CHUNKS.values()]
    assert families.count("combat") == 84
    assert min(families.count("psionic"), families.count("encounter")) >= 25
    assert families.count("prose") >= 500


def test_psionic_tables_get_harder_with_distance_and_with_wit_and_easier_with_strength():
    rolls = {
        (c["attack_range"], c["total_min"]): [20.5 if roll == "-" else int(roll) for _, roll in ROW.findall(c["text"])]
        for c in CHUNKS.values()
        if c.get("family") == "psionic"
    }
    totals = sorted({low for _, low in rolls})
    for reach in ("short", "medium", "long"):
        for low, high in pairwise(totals):
            assert all(a <= b for a, b in zip(rolls[reach, low], rolls[reach, high], strict=True))
        assert all(a >= b for low in totals for a, b in pairwise(rolls[reach, low]))
    for nearer, farther in pairwise(("short", "medium", "long")):
        assert all(a <= b for low in totals for a, b in zip(rolls[nearer, low], rolls[farther, low], strict=True))


def test_psionic_bands_join_without_gap_from_6_to_36():
    bands = sorted((c["total_min"], c["total_max"]) for c in CHUNKS.values() if c.get("attack_range") == "long")
    assert bands[0][0] == 6
    assert bands[-1][1] == 36
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(bands))
