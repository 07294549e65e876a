"""TeamFilter: from a query to the teams it means, why, and only their part of the structure.

The strategies are small objects beside this module and are asked in turn; the result is the union of what they find.
Built once per structure; a query costs what its own words touch. Safe to share between threads: nothing changes after
it is built but the memory of past queries.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

from rag_core.entities.alias import AliasStrategy
from rag_core.entities.found import FoundEntities, ItemIndex, item_matches
from rag_core.entities.match import EntityMatch, EntitySettings, Strategy, Tunable
from rag_core.entities.operative import OperativeStrategy
from rag_core.entities.reading import key, read
from rag_core.entities.structure import Structure, parse_structure
from rag_core.entities.team_name import TeamNameStrategy
from rag_core.entities.tokens import Saving, structure_tokens
from rag_core.entities.vocabulary import VocabularyItem, vocabulary
from rag_core.errors import InputError
from rag_core.text import fold

ENOUGH = 2  # words of a longer name


class AbilityStrategy:
    """Finds abilities by name; it looks only at those that share a word with the query."""

    name = "ability"

    def __init__(self, abilities: Sequence[VocabularyItem]) -> None:
        self._index = ItemIndex([item for item in abilities if item.kept], lambda item: (item.kept, _needed(item)))

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The abilities the query names, each with every team that owns it."""
        reading, present = read(query_lower), frozenset(map(key, query_words))
        found = ((item, judge_ability(item, present)) for item in self._index.candidates(present))
        return [match for item, why in found if why for match in item_matches(self.name, item, why, reading)]


def _needed(item: VocabularyItem) -> int:
    return min(ENOUGH, len(set(item.kept)))


def judge_ability(item: VocabularyItem, present: frozenset[str]) -> FoundEntities | None:
    """What of the ability's name is in the query, or None where that is not enough."""
    kept = frozenset(item.kept)
    shared = kept & present
    if len(shared) < _needed(item):
        return None
    left_out = f" (left out as stop words: {', '.join(item.stopped)})" if item.stopped else ""
    return FoundEntities(shared, f"{len(shared)} of {len(kept)} words{left_out}")


REMEMBERED = 512  # queries
THRESHOLDS = 64
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query was read as, every match in the order of the strategies, and the teams they lead to, sorted."""

    query: str
    words: tuple[str, ...]  # the query's words without stop words
    matches: tuple[EntityMatch, ...]
    teams: tuple[str, ...]

    def by_strategy(self) -> dict[str, tuple[str, ...]]:
        """Per strategy that matched, the teams it found on its own, sorted."""
        found: dict[str, set[str]] = {}
        for match in self.matches:
            found.setdefault(match.strategy, set()).add(match.team)
        return {strategy: tuple(sorted(teams)) for strategy, teams in found.items()}


class TeamFilter:
    """Finds the entities a query names. `structure`: a Structure, or parsed data in the form of a structure file."""

    def __init__(
        self,
        structure: Structure | Mapping[str, Any],
        settings: EntitySettings | None = None,
        strategies: Sequence[Strategy] | None = None,
    ) -> None:
        started = perf_counter()
        self.structure = structure if isinstance(structure, Structure) else parse_structure(structure)
        self.settings = settings or EntitySettings()
        self._vocabulary = vocabulary(self.structure, self.settings)
        self.strategies = tuple(strategies) if strategies is not None else self._four_strategies()
        self.teams = tuple(entity.name for entity in self.structure.entities)
        self._data = {entity.name: entity.data for entity in self.structure.entities}
        self._forget()
        self._full_tokens = structure_tokens(self._data)
        items = len(self._vocabulary.members) + len(self._vocabulary.abilities)
        facts = {"entities": len(self.teams), "items": items, "milliseconds": (perf_counter() - started) * 1000}
        _log.info("team_filter_initialized", extra=facts)

    def _four_strategies(self) -> tuple[Strategy, ...]:
        words = self._vocabulary
        return (
            OperativeStrategy(words.members),
            AbilityStrategy(words.abilities),
            AliasStrategy(self.structure, words, self.settings),
            TeamNameStrategy(self.structure, words, self.settings),
        )

    def extract_relevant_teams(self, query: str) -> list[str]:
        """The teams the query names, sorted; empty where it names none."""
        return list(self.explain(query).teams)

    def explain(self, query: str) -> Explanation:
        """All matches of all strategies in the query, with words, scores, reasons and confidence."""
        if not isinstance(query, str):
            raise InputError(f"the query is {type(query).__name__}, expected text")
        started = perf_counter()
        explanation = self._remembered(query)
        facts = {"teams": explanation.teams, "matches": len(explanation.matches)}
        _log.info("teams_extracted", extra={**facts, "milliseconds": (perf_counter() - started) * 1000})
        return explanation

    def _explain(self, query: str) -> Explanation:
        query_lower = fold(query)
        query_words = self._vocabulary.without_stop_words(read(query_lower).words)
        matches = tuple(match for strategy in self.strategies for match in strategy.match(query_lower, query_words))
        return Explanation(query, query_words, matches, tuple(sorted({match.team for match in matches})))

    def at(self, threshold: float) -> TeamFilter:
        """The same filter with another threshold for misspelt names (0 to 100)."""
        return self if threshold == self.settings.threshold else self._at(threshold)

    def _with_threshold(self, threshold: float) -> TeamFilter:
        other = copy.copy(self)
        other.settings = replace(self.settings, threshold=threshold)
        other.strategies = tuple(s.at(threshold) if isinstance(s, Tunable) else s for s in self.strategies)
        other._forget()
        return other

    def _forget(self) -> None:
        """Start with an empty memory of past queries."""
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._explain)
        self._at = lru_cache(maxsize=THRESHOLDS)(self._with_threshold)

    def filter_structure(self, teams: Iterable[str]) -> dict[str, Any]:
        """The entities of those teams as they were given, in the structure's order; all of them for no teams."""
        wanted = [teams] if isinstance(teams, str) else list(teams)
        for team in wanted:
            if team not in self._data:
                raise InputError(f"there is no entity {str(team)[:80]!r} in the structure, expected one of its names")
        return {name: copy.deepcopy(dict(self._data[name])) for name in self.teams if not wanted or name in wanted}

    def saving(self, teams: Iterable[str]) -> Saving:
        """Tokens of the full structure and of the part for those teams (tokens.py says how they are counted)."""
        wanted = list(teams)
        filtered = structure_tokens(self.filter_structure(wanted)) if wanted else self._full_tokens
        return Saving(self._full_tokens, filtered)

    def is_misspelt(self, word: str) -> bool:
        """Whether a folded word counts as one that may be a misspelt or a new name: neither ordinary nor known."""
        return self._vocabulary.misspelt(word, self.settings)


def filter_teams_for_query(query: str, structure: Structure | Mapping[str, Any]) -> dict[str, Any]:
    """The part of the structure that the query needs: its teams' entities, or all of them where it names none.

    For many queries build one TeamFilter and keep it.
    """
    team_filter = TeamFilter(structure)
    return team_filter.filter_structure(team_filter.extract_relevant_teams(query))
