"""What a strategy is and what it finds: a match with its words, score, reason and confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rag_core.errors import InputError

TEAM_MATCH_THRESHOLD = 80.0
MIN_WORD_LENGTH = 4
DISTINCTIVE_WORD_LENGTH = 6


@dataclass(frozen=True, slots=True)
class EntitySettings:
    """What may be tuned; each with a plain meaning."""

    threshold: float = TEAM_MATCH_THRESHOLD  # least rapidfuzz ratio (0 to 100) of a misspelt name
    min_word_length: int = MIN_WORD_LENGTH  # shorter names are skipped, shorter words never count as misspelt
    distinctive_word_length: int = DISTINCTIVE_WORD_LENGTH  # from here one word can stand for a long name

    def __post_init__(self) -> None:
        for name, low, high in (("threshold", 0, 100), ("min_word_length", 1, 50), ("distinctive_word_length", 1, 50)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InputError(f"{name} is {value!r}, expected a number from {low} to {high}")


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """One reason to believe that the query means a team."""

    team: str
    strategy: str  # operative | ability | alias | team_name
    item: str  # the member, ability, alias or team name that was found, as the structure spells it
    words: tuple[str, ...]  # the query's words that matched, folded
    score: float  # 0 to 100: 100 where the words are the same, else the rapidfuzz ratio
    reason: str
    confidence: float  # 0 to 1: score / 100 × share of the item's words that were found; × 0.9 through initials


class Strategy(Protocol):
    """One way to find teams; a new one is one object with `name` and `match`."""

    @property
    def name(self) -> str:
        """What matches carry as their strategy."""

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The matches in a lower-cased query; `query_words` are its words without stop words, in order."""


@runtime_checkable
class Tunable(Protocol):
    """A strategy whose threshold for misspelt names can be moved without building it again."""

    def at(self, threshold: float) -> Strategy:
        """The same strategy with another threshold."""
