"""Entity filter: time per query against the plain scan, and misspelt names against a per-pair rapidfuzz loop.

    python -m benchmarks.entities [--items 2400 24000 240000] [--rounds 5]

Every round runs all rows after one another; a ratio is the median of the rounds' ratios [least..most]. Answers are
compared before anything is timed; times are processor time of the one thread that all rows run in. Goals: strategies at
least 5x the scan, misspelt names at least 10x the loop.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from statistics import median
from time import thread_time
from typing import Any

from rapidfuzz import fuzz

from benchmarks.parts.plain_scan import PlainMatch, PlainScan
from rag_core.entities import Structure, TeamFilter, parse_structure
from rag_core.entities.near import NearStrings
from rag_core.entities.reading import ordinary_words

PER_ENTITY = 50
QUERIES = 12
SYLLABLES = (
    "ka",
    "zor",
    "mil",
    "ul",
    "dra",
    "ven",
    "tis",
    "gor",
    "bel",
    "nax",
    "fir",
    "rum",
    "sha",
    "lok",
    "eth",
    "pri",
)
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


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of processor time of one call, from as many calls as make 20 ms: other load does not count."""
    calls, started = 0, thread_time()
    while not calls or thread_time() - started < 0.02:
        work()
        calls += 1
    return (thread_time() - started) * 1000 / calls


def compared(slow: Callable[[], object], fast: Callable[[], object], rounds: int) -> tuple[float, float, list[float]]:
    """Median milliseconds of both, and the ratio of every round, sorted."""
    pairs = [(timed(slow), timed(fast)) for _ in range(rounds)]
    return median(s for s, _ in pairs), median(f for _, f in pairs), sorted(s / f for s, f in pairs)


def shown(name: str, items: int, slow: float, fast: float, ratios: list[float], goal: float) -> str:
    ratio = median(ratios)
    verdict = "ok" if ratio >= goal else "MISSED"
    spread = f"[{ratios[0]:.0f}..{ratios[-1]:.0f}]"
    return f"{items:>9,}  {name:<38} {slow:>10.3f} {fast:>9.3f} {ratio:>8.1f}x {spread:<12} goal {goal:g}x {verdict}"


def strategies_row(structure: Structure, items: int, queries: list[str], rounds: int) -> str:
    """All four strategies: the plain scan of all items against the word index; per query, nothing remembered."""
    team_filter, plain = TeamFilter(structure), PlainScan(structure)
    for query in queries:
        found = {PlainMatch(m.team, m.strategy, m.item, m.score) for m in team_filter.explain(query).matches}
        assert found == plain.matches(query), f"index and scan differ on {query!r}"
    scan, index, ratios = compared(
        lambda: [plain.matches(query) for query in queries],
        lambda: [team_filter._explain(query) for query in queries],
        rounds,
    )
    return shown("strategies: scan, index", items, scan / len(queries), index / len(queries), ratios, 5)


def misspelt_row(structure: Structure, items: int, rounds: int, rng: random.Random) -> str:
    """One misspelt name against every name of the structure, 80 and more alike: a loop over pairs against bounds."""
    names = [name.lower() for entity in structure.entities for name in (*entity.members, *entity.abilities)]
    near = NearStrings(list(enumerate(names)))
    words = [name[:-2] + "ix" for name in rng.sample(names, QUERIES)]

    def loop(word: str) -> list[tuple[int, float]]:
        return [(n, score) for n, name in enumerate(names) if (score := fuzz.ratio(word, name)) >= 80]

    assert all(loop(word) == near.close(word, 80) for word in words), "loop and bounds differ"
    pairs, bounded, ratios = compared(
        lambda: [loop(word) for word in words], lambda: [near.close(word, 80) for word in words], rounds
    )
    return shown("misspelt name: pair loop, bounds", items, pairs / len(words), bounded / len(words), ratios, 10)


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
        print(misspelt_row(structure, items, options.rounds, rng), flush=True)


if __name__ == "__main__":
    main()
