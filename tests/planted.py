"""Cases with labels of a known kind, for the tests of tuning: nothing to find, or a gap that ends what is relevant."""

import random

from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

TOPICS = [
    "kettle",
    "grinder",
    "boiler",
    "valve",
    "hopper",
    "scale",
    "filter",
    "pump",
    "steam",
    "tray",
    "basket",
    "lever",
    "spout",
    "tank",
    "hose",
    "wand",
]
"""Sixteen words, a question each."""


def case_of(number, distances, flags, total=None):
    """A recorded case with these distances and labels. Questions differ in every word."""
    query = Query(f"q{number}", f"topic{number} thing{number} matter{number}")
    hits = tuple(Hit(Chunk(f"c{at}"), at + 1, {"distance": float(one)}) for at, one in enumerate(distances))
    grades = {f"c{at}": int(flag) for at, flag in enumerate(flags)}
    return Case(query, grades, Candidates(query, hits, metric=Metric.COSINE, recorded=True), total)


def random_labels(seed, queries=60, length=15):
    """Lists whose labels have nothing to do with their distances; at least one chunk of each is relevant."""
    dice = random.Random(seed)
    cases = []
    for number in range(queries):
        distances = sorted(dice.uniform(0.2, 0.8) for _ in range(length))
        flags = [dice.random() < 0.3 for _ in range(length)]
        flags[dice.randrange(length)] = True
        cases.append(case_of(number, distances, flags))
    return cases


def planted_gap(seed, queries=60, length=15, noise=0.0):
    """Lists whose relevant chunks end at one clear gap of 0.1 to 0.2, after 3 to 9 chunks; other gaps are below 0.05."""
    dice = random.Random(seed)
    cases = []
    for number in range(queries):
        relevant = dice.randint(3, 9)
        steps = [dice.uniform(0, 0.05) for _ in range(length)]
        steps[relevant] = dice.uniform(0.1, 0.2)
        distances = [0.2 + sum(steps[: at + 1]) for at in range(length)]
        flags = [(at < relevant) != (dice.random() < noise) for at in range(length)]
        flags[0] = True
        cases.append(case_of(number, distances, flags))
    return cases
