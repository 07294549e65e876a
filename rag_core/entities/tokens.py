"""How many tokens a structure costs in a prompt: an estimate, four characters a token of its compact JSON.

Four characters a token is the rule of thumb for English text in the common byte-pair encodings; names in an invented
language cost more. Shares (what a query saves) hardly depend on it, since both sides are counted alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Tokens of a text: its characters / 4, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def structure_tokens(entities: Mapping[str, Any]) -> int:
    """Tokens of entities as they stand in a prompt: one line of JSON."""
    return estimate_tokens(json.dumps(entities, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Saving:
    """Tokens of the full and of the filtered structure."""

    full: int
    filtered: int

    @property
    def share(self) -> float:
        """The part of the tokens that is saved, 0 to 1."""
        return 1 - self.filtered / self.full if self.full else 0.0
