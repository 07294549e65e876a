"""TeamFilter: from a query to the teams it means, why, and only their part of the structure.

The strategies are small objects beside this module and are asked in turn; the result is the union of what they find.
Built once per structure; a query costs what its own words touch. Safe to share between threads: nothing changes after
it is built but the memory of past queries.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

from rag_core.entities.strategies import (
    AliasStrategy,
    EntityMatch,
    EntitySettings,
    ItemStrategy,
    Strategy,
    TeamNameStrategy,
    Tunable,
    judge_ability,
    judge_member,
    vocabulary,
)
from rag_core.entities.structure import Structure, parse_structure, read
from rag_core.errors import InputError
from rag_core.text import fold

REMEMBERED = 512  # queries
THRESHOLDS = 64
_log = logging.getLogger(__name__)


CHARACTERS_PER_TOKEN = 4
"""The rule of thumb for English text in the common byte-pair encodings; names of an invented language cost more.
Shares hardly depend on it, since both sides are counted alike."""


def structure_tokens(entities: Mapping[str, Any]) -> int:
    """Tokens of entities as they stand in a prompt, one line of JSON: characters / 4, rounded up."""
    return -(-len(json.dumps(entities, ensure_ascii=False)) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class StructurePart:
    """The entities that are sent, of how many that were named (0: the query names none) and that there are; tokens."""

    entities: Mapping[str, Any]
    named: int
    of: int
    tokens: int
    full: int

    @property
    def share(self) -> float:
        """The part of the tokens that is saved, 0 to 1."""
        return 1 - self.tokens / self.full if self.full else 0.0

    def to_text(self) -> str:
        """One line: "2 of 48 entities sent, 95.8% of the tokens saved", and what is not sent or not named."""
        left = (self.named or self.of) - len(self.entities)
        return (
            f"{len(self.entities)} of {self.of} entities sent, {self.share:.1%} of the tokens saved"
            + ("" if self.named else "; the query names none")
            + (f"; {left} more do not fit the budget" if left else "")
        )


def _inside(matches: Sequence[EntityMatch], words: Sequence[str]) -> tuple[EntityMatch, ...]:
    """The matches whose words stand in the query only inside a longer match of other teams, itself word by word."""
    runs: dict[tuple[str, ...], set[str]] = {}
    for match in matches:
        if len(match.words) > 1 and match.score == match.confidence * 100 == 100:
            runs.setdefault(match.words, set()).add(match.team)
    lost = []
    for match in matches:
        covered: set[int] = set()
        for run, teams in runs.items():
            if match.team not in teams and len(run) > len(match.words) and set(match.words) <= set(run):
                starts = (at for at in range(len(words)) if tuple(words[at : at + len(run)]) == run)
                covered |= {at for start in starts for at in range(start, start + len(run))}
        if covered and all(at in covered for at, word in enumerate(words) if word in match.words):
            lost.append(match)
    return tuple(lost)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query was read as, every match in the order of the strategies, and the teams they lead to, sorted.

    `inside` are matches that do not count: their words stand only inside a longer name of another team.
    """

    query: str
    words: tuple[str, ...]  # the query's words without stop words
    matches: tuple[EntityMatch, ...]
    teams: tuple[str, ...]
    inside: tuple[EntityMatch, ...] = ()

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
        words = self._vocabulary
        self.strategies: tuple[Strategy, ...] = (
            ItemStrategy("operative", (*words.members, *words.by_role), judge_member),
            ItemStrategy("ability", words.abilities, judge_ability),
            AliasStrategy(self.structure, words, self.settings),
            TeamNameStrategy(self.structure, words, self.settings),
        )
        if strategies is not None:
            self.strategies = tuple(strategies)
        self.teams = tuple(entity.name for entity in self.structure.entities)
        self._data = {entity.name: entity.data for entity in self.structure.entities}
        self._forget()
        self._full_tokens = structure_tokens(self._data)
        items = len(self._vocabulary.members) + len(self._vocabulary.abilities)
        facts = {"entities": len(self.teams), "items": items, "milliseconds": (perf_counter() - started) * 1000}
        _log.info("team_filter_initialized", extra=facts)

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
        every = tuple(match for strategy in self.strategies for match in strategy.match(query_lower, query_words))
        inside = _inside(every, read(query_lower).words)
        matches = tuple(match for match in every if match not in inside)
        return Explanation(query, query_words, matches, tuple(sorted({match.team for match in matches})), inside)

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

    def part(self, teams: Sequence[str], budget: int | None = None) -> StructurePart:
        """What of the structure is sent for those teams (all for none): whole entities, as many as fit the budget.

        `budget` is in tokens. An entity that does not fit is passed over for the next; a team is never cut in two.
        """
        entities, tokens = self.filter_structure(teams), 0
        if budget is None:
            tokens = structure_tokens(entities) if teams else self._full_tokens
            return StructurePart(entities, len(teams), len(self.teams), tokens, self._full_tokens)
        sent: dict[str, Any] = {}
        for name, data in entities.items():
            size = structure_tokens({name: data})
            if tokens + size <= budget:
                sent[name], tokens = data, tokens + size
        return StructurePart(sent, len(teams), len(self.teams), tokens, self._full_tokens)

    def is_misspelt(self, word: str) -> bool:
        """Whether a folded word counts as one that may be a misspelt or a new name: neither ordinary nor known."""
        return self._vocabulary.misspelt(word, self.settings)


def filter_teams_for_query(query: str, structure: Structure | Mapping[str, Any]) -> dict[str, Any]:
    """The part of the structure that the query needs: its teams' entities, or all of them where it names none.

    For many queries build one TeamFilter and keep it.
    """
    team_filter = TeamFilter(structure)
    return team_filter.filter_structure(team_filter.extract_relevant_teams(query))
