"""Dev/test split and k folds over queries: seeded, stratified by tags, near-duplicate queries always on one side.

A setting chosen on dev queries and judged on a rephrasing of one of them would be judged on what it was chosen for, so
near-duplicates move as one group. The same queries and seed give the same split on every machine and in any order of
the input: chance comes from a hash of seed and query id. Who may look at the test side, and how often, is not decided
here.

Sources: Sechidis, Tsoumakas and Vlahavas 2011 (iterative stratification); Xiao, Wang, Lin and Yu 2008 (prefix filter).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil

from rag_core.errors import InputError
from rag_core.text import fold, words
from rag_core.types import Query

NEAR_DUPLICATE = 0.8
"""Least Jaccard similarity of two queries' word sets at which they count as one question asked twice."""

_SLACK = 1e-9  # 0.8 · 5 is 4.000000000000001 in some orders of rounding

Group = tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Query ids to choose on (dev) and to judge on (test), in the order of the input."""

    dev: tuple[str, ...]
    test: tuple[str, ...]
    seed: int


def split_queries(queries: Sequence[Query], test_share: float = 0.3, seed: int = 0) -> Split:
    """One dev/test split with about `test_share` of the queries, and of every tag's, on the test side.

    InputError for a share outside 0 to 1, a repeated query id, or fewer than two groups of near-duplicates.
    """
    if not 0 < test_share < 1:
        raise InputError(f"test_share is {test_share}, expected more than 0 and less than 1")
    dev, test = _parts(queries, [1 - test_share, test_share], seed)
    return Split(dev, test, seed)


def fold_queries(queries: Sequence[Query], count: int = 5, seed: int = 0) -> list[Split]:
    """`count` splits whose test sides share no query and together hold every query; dev is the rest.

    InputError for a count below 2, a repeated query id, or fewer groups of near-duplicates than folds.
    """
    if count < 2:
        raise InputError(f"folds is {count}, expected at least 2")
    tests = _parts(queries, [1 / count] * count, seed)
    ids = [query.id for query in queries]
    return [Split(tuple(id_ for id_ in ids if id_ not in held), test, seed) for test in tests for held in [set(test)]]


def near_duplicates(queries: Sequence[Query], threshold: float = NEAR_DUPLICATE) -> list[Group]:
    """The queries in groups: two that read the same after folding, or whose word sets overlap enough, share one.

    Being near is passed on: a near b and b near c puts all three together. Groups and members are in input order.
    """
    leader = list(range(len(queries)))

    def find(position: int) -> int:
        while leader[position] != position:
            leader[position] = position = leader[leader[position]]
        return position

    for one, other in _near_pairs(queries, threshold):
        first, second = sorted((find(one), find(other)))
        leader[second] = first
    groups: dict[int, list[Query]] = defaultdict(list)
    for position, query in enumerate(queries):
        groups[find(position)].append(query)
    return [tuple(group) for group in groups.values()]


def _near_pairs(queries: Sequence[Query], threshold: float) -> Iterator[tuple[int, int]]:
    """Positions of queries that are near: of equal text by look-up, the others by sharing a rare word first."""
    first_with: dict[str, int] = {}
    for position, query in enumerate(queries):
        yield first_with.setdefault(" ".join(fold(query.text).split()), position), position
    found = [frozenset(words(query.text)) for query in queries]
    often = Counter(word for one in found for word in one)
    holders: dict[str, list[int]] = defaultdict(list)
    for position, one in enumerate(found):
        prefix = _prefix(one, often, threshold)
        for other in {other for word in prefix for other in holders[word]}:
            if len(one & found[other]) >= threshold * len(one | found[other]) - _SLACK:
                yield other, position
        for word in prefix:
            holders[word].append(position)


def _prefix(found: frozenset[str], often: Mapping[str, int], threshold: float) -> list[str]:
    """The rarest words of a set, so many that any set similar enough shares one of them."""
    rarest_first = sorted(found, key=lambda word: (often[word], word))
    return rarest_first[: len(found) - ceil(threshold * len(found) - _SLACK) + 1]


def _parts(queries: Sequence[Query], shares: Sequence[float], seed: int) -> list[tuple[str, ...]]:
    """The query ids in as many parts as there are shares, no part empty."""
    _check_ids(queries)
    groups = near_duplicates(queries)
    if len(groups) < len(shares):
        raise InputError(
            f"a split into {len(shares)} parts got {len(groups)} groups of near-duplicate queries, "
            f"expected at least {len(shares)}"
        )
    placed = _stratify(groups, shares, seed)
    _fill_empty(placed)
    parts = [{query.id for group in part for query in group} for part in placed]
    return [tuple(query.id for query in queries if query.id in part) for part in parts]


def _check_ids(queries: Sequence[Query]) -> None:
    repeated = [id_ for id_, times in Counter(query.id for query in queries).items() if times > 1]
    if repeated:
        raise InputError(f"query id {repeated[0]!r:.80} is there more than once, expected every id once")


def _stratify(groups: Sequence[Group], shares: Sequence[float], seed: int) -> list[list[Group]]:
    """Place the groups, those of the rarest tag first, each where its tag is most wanted, then where queries are."""
    placed: list[list[Group]] = [[] for _ in shares]
    have: list[Counter[str]] = [Counter() for _ in shares]  # per part: queries by tag, and all of them under ""
    totals = sum((_tags(group) for group in groups), Counter[str]())
    rarity = sorted(totals, key=lambda tag: (tag == "", totals[tag], tag))

    def place(group: Group) -> tuple[int, int, str]:
        rarest = next(at for at, tag in enumerate(rarity) if _tags(group)[tag])
        return rarest, -len(group), _chance(seed, min(query.id for query in group))

    for group in sorted(groups, key=place):
        tag = rarity[place(group)[0]]
        part = max(
            range(len(shares)),
            key=lambda at: (
                round(shares[at] * totals[tag] - have[at][tag], 9),
                round(shares[at] * totals[""] - have[at][""], 9),
                _chance(seed, f"part {at}"),
            ),
        )
        placed[part].append(group)
        have[part] += _tags(group)
    return placed


def _tags(group: Group) -> Counter[str]:
    """How many of the group's queries have each tag, and under "" how many queries it has."""
    return Counter(tag for query in group for tag in {*query.tags, ""})


def _fill_empty(placed: list[list[Group]]) -> None:
    """Give an empty part the smallest group of the part with the most, so that no side is left without a query."""
    for part in placed:
        if not part:
            donor = max(placed, key=len)
            smallest = min(donor, key=lambda group: (len(group), min(query.id for query in group)))
            donor.remove(smallest)
            part.append(smallest)


def _chance(seed: int, text: str) -> str:
    """A number by chance that only seed and text decide, as hexadecimal digits of one length."""
    return blake2b(f"{seed} {text}".encode(), digest_size=8).hexdigest()
