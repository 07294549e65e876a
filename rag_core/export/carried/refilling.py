"""Refill: rounds down the list that was handed over, until enough chunks pass their rules."""

from __future__ import annotations

from typing import Any

from rag_core.export.carried.rule_matching import lacking
from rag_core.export.carried.rule_reading import read_rule


def by_rule(settings: dict[str, Any], query: str, given: list[Any], left: list[int]) -> dict[int, str]:
    """Chunks whose own rule the query does not satisfy; a rule that cannot be read drops nothing."""
    found = {}
    for at in left:
        rule = read_rule(given[at].get("query_must"))
        missing = lacking(rule, query, settings["mode"], settings["plurals"]) if rule is not None else []
        if missing:
            found[at] = "; ".join(missing)
    return found


def refilled(
    settings: dict[str, Any], query: str, given: list[Any], distances: list[Any], left: list[int], order: str
) -> tuple[list[int], dict[int, str]]:
    """The places in final order, and why those that go do: by rule, behind k, came before, or not read."""
    k = settings["k"]
    rounds = len(left) + 1 if settings["strategy"] == "prefilter" else settings["max_iterations"]
    unique, reasons = _first_comings(given, left)
    passed: list[int] = []
    read = 0
    while len(passed) < k and read < len(unique) and rounds:
        batch = unique[read : read + k]
        gone = by_rule(settings["rules"], query, given, batch)
        reasons.update(gone)
        passed += [at for at in batch if at not in gone]
        read, rounds = read + len(batch), rounds - 1
    if order == "distance" and all(distances[at] is not None for at in passed):
        passed.sort(key=lambda at: distances[at])
    for place, at in enumerate(passed[k:], k + 1):
        reasons[at] = f"position {place} of those that pass > k {k}"
    reasons.update({at: "not read" for at in unique[read:]})
    return [*passed, *(at for at in left if at not in set(passed))], reasons


def _first_comings(given: list[Any], left: list[int]) -> tuple[list[int], dict[int, str]]:
    """The places of each chunk's first coming, and a reason for the others; chunks without an id are all different."""
    seen: set[Any] = set()
    first, again = [], {}
    for at in left:
        name = given[at].get("id")
        if name is not None and name in seen:
            again[at] = "the chunk came before in this list"
            continue
        seen.add(name)
        first.append(at)
    return first, again
