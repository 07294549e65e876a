"""Entity filter: time per query against the plain scan.

    python -m benchmarks.entities [--items 2400 24000 240000] [--rounds 5]

Every round runs all rows after one another; a ratio is the median of the rounds' ratios [least..most]. Answers are
compared before anything is timed; times are processor time of the one thread that all rows run in. Goals: strategies at
least 5x the scan.
"""

from __future__ import annotations

import argparse
import random
from statistics import median
from typing import Any

from benchmarks.parts.pairs import Work, in_turn, processor_ms, ratio, verdict
from benchmarks.parts.plain_scan import PlainMatch, PlainScan
from rag_core.entities import Structure, TeamFilter, parse_structure
from rag_core.entities.structure import ordinary_words

PER_ENTITY = 50
QUERIES = 12
SYLLABLES = tuple("ka zor mil ul dra ven tis gor bel nax fir rum sha lok eth pri".split())  # noqa: SIM905
ENDINGS = ("hook", "maw", "reaver", "lash", "brand", "fang", "ward", "crest", "husk", "spark", "rend", "mantle")
ROLES = ("Gunner", "Warrior", "Leader", "Medic", "Sniper")


def made_structure(items: int, rng: random.Random) -> Structure:
    """A structure of `items` items, 50 an entity, with names of one to three words and some words shared by many."""
    common = rng.sample(sorted(word for word in ordinary_words() if len(word) > 4), 200)
    entities: dict[str, Any] = {}
    while len(entities) < items // PER_ENTITY:
        root = "".join(rng.choices(SYLLABLES, k=3)).title()
        own = [root + ending for ending in ENDINGS]
        members = [
            rng.choice(own),
            f"{rng.choice(own)} {rng.choice(ROLES)}",
            f"{rng.choice(own)} {rng.choice(own)}",
        ] * 5
        abilities = [f"{rng.choice(common)} {rng.choice(own)}" for _ in range(20)]
        abilities += [f"{rng.choice(common)} {rng.choice(common)} {rng.choice(ENDINGS)}" for _ in range(15)]
        entities.setdefault(f"{root} {rng.choice(ENDINGS)}s", {"members": members, "abilities": abilities})
    return parse_structure({"entities": entities})


def made_queries(structure: Structure, rng: random.Random) -> list[str]:
    """Questions of about ten words: a name, sometimes misspelt, among ordinary words."""
    common = sorted(ordinary_words())
    queries = []
    for _ in range(QUERIES):
        entity = rng.choice(structure.entities)
        name = rng.choice((entity.name, rng.choice(entity.members), rng.choice(entity.abilities))).lower()
        at = rng.randrange(1, len(name))
        spelt = name[:at] + rng.choice("aeiou") + name[at:] if rng.random() < 0.5 else name
        queries.append(" ".join([*rng.sample(common, 4), spelt, *rng.sample(common, 4)]))
    return queries


def compared(name: str, items: int, slow: Work, fast: Work, rounds: int, goal: float) -> str:
    """One line: milliseconds a query of both, their ratio and the goal."""
    times = in_turn({"slow": slow, "fast": fast}, rounds, processor_ms)
    faster, each = ratio(times["slow"], times["fast"]), [median(row) / QUERIES for row in times.values()]
    reached = verdict(faster.median >= goal, f"{goal:g}×")
    return f"{items:>9,}  {name:<38} {each[0]:>10.3f} {each[1]:>9.3f} {faster}{reached}"


def strategies_row(structure: Structure, items: int, queries: list[str], rounds: int) -> str:
    """All four strategies: the plain scan of all items against the word index; per query, nothing remembered."""
    team_filter, plain = TeamFilter(structure), PlainScan(structure)
    for query in queries:
        explained = team_filter.explain(query)
        matches = (*explained.matches, *explained.inside)
        found = {PlainMatch(match.team, match.strategy, match.item, match.score) for match in matches}
        assert found == plain.matches(query), f"index and scan differ on {query!r}"
    return compared(
        "strategies: scan, index",
        items,
        lambda _: [plain.matches(query) for query in queries],
        lambda _: [team_filter._explain(query) for query in queries],
        rounds,
        5,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=int, nargs="+", default=[2_400, 24_000, 240_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{'items':>9}  {'row':<38} {'slow ms':>10} {'fast ms':>9} {'ratio':>9}")
    for items in options.items:
        rng = random.Random(options.seed)
        structure = made_structure(items, rng)
        print(strategies_row(structure, items, made_queries(structure, rng), options.rounds), flush=True)


if __name__ == "__main__":
    main()
