"""How well a filter finds the teams that labelled queries mean: precision and recall, together and per strategy.

Two means stand side by side. Macro: per query, then the mean; a query that means no team and finds none counts 1, one
that finds nothing it should counts precision 0. Micro: over all (query, team) pairs. A query that means eight teams
weighs eight times in micro, once in macro.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rag_core.entities.filter import TeamFilter
from rag_core.entities.structure import read
from rag_core.errors import InputError, RecordError
from rag_core.files import lines, parse_json, read_text
from rag_core.text import fold


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and the teams it means; `half` is dev or test where the file says so."""

    id: str
    query: str
    teams: tuple[str, ...]
    kind: str = ""
    half: str = ""


@dataclass(frozen=True, slots=True)
class Miss:
    """A labelled query that went wrong: teams found that are not meant, and meant that were not found."""

    labelled: LabelledQuery
    extra: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A labelled query whose teams changed: those that came and those that went."""

    labelled: LabelledQuery
    came: tuple[str, ...]
    went: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Macro and micro precision and recall over `queries` labelled queries; None where nothing was found or meant."""

    queries: int
    precision: float | None
    recall: float | None
    micro_precision: float | None
    micro_recall: float | None
    misses: tuple[Miss, ...]


def read_labelled(path: Path) -> list[LabelledQuery]:
    """The labelled queries of a JSONL file with `query` and `teams` (optional `id`, `kind`, `half`).

    A RecordError names file and line.
    """
    found = []
    for number, line in lines(read_text(path)):
        where = f"{path} line {number}"
        row = parse_json(line, where)
        if not isinstance(row, dict) or not isinstance(row.get("query"), str):
            raise RecordError(f"{where} has no query, expected an object with query and teams")
        teams = row.get("teams")
        if not isinstance(teams, list) or not all(isinstance(team, str) for team in teams):
            raise RecordError(f"{where}: teams is {str(teams)[:80]!r}, expected a list of entity names")
        texts = {key: str(row.get(key, "")) for key in ("kind", "half")}
        found.append(LabelledQuery(str(row.get("id", f"q{number}")), row["query"], tuple(sorted(set(teams))), **texts))
    return found


def agreement(team_filter: TeamFilter, labelled: Sequence[LabelledQuery], strategy: str | None = None) -> Agreement:
    """Precision and recall of the teams found by all strategies, or by one alone."""
    if not labelled:
        raise InputError("there are no labelled queries, expected at least one")
    pairs = [(frozenset(_found(team_filter, row.query, strategy)), frozenset(row.teams)) for row in labelled]
    right = sum(len(found & meant) for found, meant in pairs)
    misses = tuple(
        Miss(row, tuple(sorted(found - meant)), tuple(sorted(meant - found)))
        for row, (found, meant) in zip(labelled, pairs, strict=True)
        if found != meant
    )
    return Agreement(
        queries=len(pairs),
        precision=mean(len(found & meant) / len(found) if found else float(not meant) for found, meant in pairs),
        recall=mean(len(found & meant) / len(meant) if meant else 1.0 for found, meant in pairs),
        micro_precision=_share(right, sum(len(found) for found, _ in pairs)),
        micro_recall=_share(right, sum(len(meant) for _, meant in pairs)),
        misses=misses,
    )


def changes(before: TeamFilter, after: TeamFilter, labelled: Iterable[LabelledQuery]) -> list[Change]:
    """The labelled queries whose teams change from one filter to the other: what came and what went."""
    changed = []
    for row in labelled:
        old, new = set(_found(before, row.query)), set(_found(after, row.query))
        if old != new:
            changed.append(Change(row, tuple(sorted(new - old)), tuple(sorted(old - new))))
    return changed


def _found(team_filter: TeamFilter, query: str, strategy: str | None = None) -> Collection[str]:
    explanation = team_filter.explain(query)
    return explanation.teams if strategy is None else explanation.by_strategy().get(strategy, ())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


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
