"""query_must: which chunks of a corpus a query admits, the 15 of a result list, and what refill adds.

    python -m benchmarks.query_must [--rules 1000 100000 1000000] [--chunks 1000 10000 100000] [--rounds 5]

Every round runs all rows after one another; a ratio is the median of the rounds' ratios [least..most]. Answers are
compared before anything is timed. Goals: at 100,000 rules the mask at least 100x and the ids at least 1,000x as fast as
the plain loop; the decision on 15 chunks at most 2x as long as the plain loop.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter, thread_time

import ahocorasick
import numpy as np

from benchmarks.parts.pairs import Work, in_turn, processor_ms, ratio, verdict
from rag_core.filters.query_must import QueryMust
from rag_core.index.collection import Snapshot
from rag_core.index.embed import normalise
from rag_core.index.search import CollectionIndex
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.requery import STRATEGIES, Requery
from rag_core.rules.index import RuleIndex
from rag_core.rules.match import decide
from rag_core.rules.rule import Rule, parse_rule, read_rule
from rag_core.types import Candidates, Chunk, Hit, Query

CLASSES = (
    ("cleric", "clerics", "druid", "druids", "monk", "monks"),
    ("fighter", "fighters", "paladin", "paladins", "ranger", "rangers", "bard", "bards"),
    ("magic-user", "magic-users", "illusionist", "illusionists"),
    ("thief", "thieves", "assassin", "assassins"),
)
PLACES = ("forest", "hills", "swamp", "desert", "coast", "tundra", "jungle", "plain")
QUERIES = (
    "What does a 7th level cleric need to roll to hit armor class 6?",
    "A fighter with armor class 3 meets a thief with armor class 9 in the forest, who hits first?",
    "How does a ranger of level 12 track an illusionist through the swamp?",
    "What is the weight of a rope?",
)
WITHOUT_REGEX = 200_000  # rules from which compiling a pattern per group takes too long
DIMENSION = 384


def made_rules(count: int, rng: random.Random) -> list[Rule]:
    """Rules as templates write them: class and armor class, class and level, place; about 2,300 different ones."""
    made = []
    for _ in range(count):
        n, group = rng.randint(-10, 20), list(rng.choice(CLASSES))
        kinds = (
            [group, [f"armor class {n}", f"ac {n}"]],
            [group, [f"level {abs(n)}"]],
            [[rng.choice(PLACES), rng.choice(PLACES)], [f"tier {abs(n)}"]],
        )
        made.append(parse_rule({"contain_one_of": rng.choice(kinds)}, "benchmark"))
    return made


def plain_loop(groups: Sequence[Sequence[Sequence[str]]], query: str) -> list[bool]:
    """The original's way: each term `in` the lower-cased query."""
    text = query.lower()
    return [all(any(term in text for term in group) for group in rule) for rule in groups]


def hit_set_loop(automaton: ahocorasick.Automaton, groups: Sequence[Sequence[Sequence[str]]], query: str) -> list[bool]:
    """All terms found in one scan; then a loop over the rules with a set."""
    held = {term for _, term in automaton.iter(query.lower())}
    return [all(not held.isdisjoint(group) for group in rule) for rule in groups]


def regex_loop(patterns: Sequence[Sequence[re.Pattern[str]]], query: str) -> list[bool]:
    """A compiled pattern per group, with word boundaries."""
    text = query.lower()
    return [all(pattern.search(text) for pattern in rule) for rule in patterns]


def boundary_patterns(groups: Sequence[Sequence[Sequence[str]]]) -> list[list[re.Pattern[str]]]:
    known: dict[tuple[str, ...], re.Pattern[str]] = {}
    for rule in groups:
        for group in rule:
            if tuple(group) not in known:
                terms = "|".join(map(re.escape, group))
                known[tuple(group)] = re.compile(rf"(?<![\w-])(?:{terms})(?!\w)")
    return [[known[tuple(group)] for group in rule] for rule in groups]


def fresh_queries(rng: random.Random) -> list[str]:
    """The queries, worded so that nothing was remembered of them."""
    return [f"{query} {rng.random()}" for query in QUERIES]


def corpus_wide(count: int, rounds: int) -> None:
    rng = random.Random(count)
    rules = made_rules(count, rng)
    groups = [rule.contain_one_of for rule in rules]
    started = perf_counter()
    index = RuleIndex(rules)
    built = perf_counter() - started
    automaton = ahocorasick.Automaton()
    for term in {term for rule in groups for group in rule for term in group}:
        automaton.add_word(term, term)
    automaton.make_automaton()
    for query in QUERIES:
        assert plain_loop(groups, query) == hit_set_loop(automaton, groups, query)
        expected = [decide(rule, query).satisfied for rule in rules[:5000]]
        assert index.mask(query)[:5000].tolist() == expected
        assert set(index.satisfied_rules(query).tolist()) == set(index.rule_of[index.mask(query)].tolist())
    rows: dict[str, Work] = {
        "plain loop": lambda _: [plain_loop(groups, query) for query in QUERIES],
        "pyahocorasick hit set, loop": lambda _: [hit_set_loop(automaton, groups, query) for query in QUERIES],
    }
    if count <= WITHOUT_REGEX:
        patterns = boundary_patterns(groups)
        rows["compiled regex per group"] = lambda _: [regex_loop(patterns, query) for query in QUERIES]
    rows["compiled index, mask"] = lambda _: [index.mask(query) for query in fresh_queries(rng)]
    rows["compiled index, ids"] = lambda _: [index.satisfied_rules(query) for query in fresh_queries(rng)]
    found = in_turn(rows, rounds, processor_ms)
    print(f"{count:,} rules ({len(index.rules):,} different, index built in {built:.1f} s)")
    for name, times in found.items():
        faster, each = ratio(found["plain loop"], times), median(times) / len(QUERIES)
        goal = {"compiled index, mask": 100, "compiled index, ids": 1000}.get(name) if count == 100_000 else None
        said = "" if goal is None else verdict(faster.median >= goal, f"{goal:,}×")
        print(f"  {name:<30} {each:>10.4f} ms {count / each / 1000:>12.2f} M rules/s {faster}{said}")


def result_list(rounds: int) -> None:
    """The 15 chunks of a result list: the decision alone, and the whole stage with verdicts, reasons and drops."""
    rng = random.Random(15)
    rules = [
        parse_rule({"contain_one_of": [list(group), [f"armor class {n}", f"ac {n}"]]}, "benchmark")
        for n in range(4, 9)
        for group in CLASSES[:3]
    ]
    groups = [rule.contain_one_of for rule in rules]
    hits = tuple(Hit(Chunk(f"c{at}", query_must=rule.as_mapping()), at + 1) for at, rule in enumerate(rules))
    query = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"
    known = [query, *(f"{query} {n}" for n in range(64))]

    def stage(text: str) -> object:
        return QueryMust().apply(Candidates(Query("q", text), hits))

    rows: dict[str, Work] = {
        "plain loop": lambda _: [plain_loop(groups, text) for text in known],
        "decide, the query read before": lambda _: [[decide(rule, text) for rule in rules] for text in known],
        "decide, reading query and rules": lambda _: [
            [decide(rule, text) for rule in map(read_rule, raws)] for text in [f"{one} {rng.random()}" for one in known]
        ],
        "stage QueryMust, verdicts noted": lambda _: [stage(f"{text} {rng.random()}") for text in known],
    }
    raws = [hit.chunk.query_must for hit in hits]
    found = in_turn(rows, rounds, processor_ms)
    print("15 chunks of a result list")
    for name, times in found.items():
        slower = ratio(times, found["plain loop"])
        said = verdict(slower.median <= 2, "at most 2×") if name == "decide, the query read before" else ""
        print(f"  {name:<34} {median(times) / len(known) * 1000:>8.1f} us {slower}{said}")


class OneVector:
    """An embedder that is not asked: the query's vector is drawn once."""

    name, dimension, window, batch = "drawn", DIMENSION, 100, 100

    def embed(self, texts: Sequence[str], progress: object = None) -> np.ndarray:
        """Vectors that depend on nothing but the texts' lengths."""
        rng = np.random.default_rng(len(texts[0]))
        return normalise(rng.normal(size=(len(texts), DIMENSION)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """One each."""
        return [1 for _ in texts]


def refill(count: int, rounds: int) -> None:
    """What refill adds to QueryMust on the first 15, by strategy; one chunk in five carries a rule that drops it."""
    rng = np.random.default_rng(count)
    vectors = normalise(rng.normal(size=(count, DIMENSION)))
    noisy = rng.random(count) < 0.21
    rule = parse_rule({"contain_one_of": [["druid"], ["ac 9"]]}, "benchmark").as_mapping()
    chunks = tuple(Chunk(f"c{row:07}", query_must=rule if noisy[row] else None) for row in range(count))
    snapshot = Snapshot("made", chunks, vectors, "drawn", DIMENSION, "f", "r")
    index = CollectionIndex(snapshot, OneVector())
    query = "a cleric to hit armor class 6"
    asked = Candidates(Query("q", query))
    found: dict[str, list[float]] = {name: [] for name in ("QueryMust alone", *STRATEGIES)}
    lists = {}
    for _ in range(rounds * 3):
        for name in found:
            stage = QueryMust() if name == "QueryMust alone" else Requery(strategy=name)
            before = Dense(depth=15, index=index)(asked)
            started = thread_time()
            after = stage(before)
            found[name].append((thread_time() - started) * 1000)
            lists[name] = [replace(hit, notes={}) for hit in after.hits]
    assert lists["deepen"] == lists["exclude"] == lists["prefilter"]
    assert len(lists["deepen"]) == 15
    print(f"refill to 15, {count:,} chunks, {noisy.mean():.0%} with a rule that drops them")
    alone = median(found["QueryMust alone"])
    for name, times in found.items():
        print(f"  {name:<16} {median(times):>8.2f} ms, added {median(times) - alone:>8.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rules", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--chunks", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for count in options.rules:
        corpus_wide(count, options.rounds)
    result_list(options.rounds)
    for count in options.chunks:
        refill(count, options.rounds)


if __name__ == "__main__":
    main()
