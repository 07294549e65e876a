"""Suggest aliases from past queries: words nobody knows that keep turning up with the same teams.

A past query is its text and the teams it was about (labels, or what a person chose). Suggestions are for a person to
accept; nothing is learned in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rag_core.entities.filter import TeamFilter
from rag_core.entities.reading import read
from rag_core.text import fold


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An alias to consider: in `count` queries, and in `share` of all that held the word these teams were meant."""

    alias: str
    teams: tuple[str, ...]
    count: int
    share: float  # 0 to 1


def suggest_aliases(
    team_filter: TeamFilter,
    past: Iterable[tuple[str, Collection[str]]],
    least_count: int = 2,
    least_share: float = 0.8,
) -> list[Suggestion]:
    """Words that are neither ordinary nor known and went with one set of teams, the most frequent first.

    `past`: (query, teams meant). A query whose teams the filter finds already still counts: its word may be a nickname.
    """
    seen: Counter[str] = Counter()
    together: dict[str, Counter[tuple[str, ...]]] = {}
    for query, teams in past:
        for word in {word for word in read(fold(query)).words if team_filter.is_misspelt(word)}:
            seen[word] += 1
            if teams:
                together.setdefault(word, Counter())[tuple(sorted(teams))] += 1
    found = [
        Suggestion(word, teams, count, count / seen[word])
        for word, counted in together.items()
        for teams, count in counted.most_common(1)
        if count >= least_count and count / seen[word] >= least_share
    ]
    return sorted(found, key=lambda suggestion: (-suggestion.count, suggestion.alias))
