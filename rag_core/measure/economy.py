"""What the kept chunks cost a reader: tokens of context, how many of them carry something relevant, how many are noise.

Tokens are estimated (a quarter of the characters of the text); a model's own count differs by some per cent, the same
for every pipeline. Lists without texts have no economy and say so. What the tokens cost in money is for the model
client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rag_core.llm.prompt import estimate_tokens
from rag_core.types import Grades, Hit


@dataclass(frozen=True, slots=True)
class Economy:
    """Tokens of the kept chunks by label, and how many chunks carry them. Sums over queries are `total`."""

    relevant: int = 0  # tokens of relevant chunks
    irrelevant: int = 0  # of chunks judged irrelevant
    unjudged: int = 0
    relevant_chunks: int = 0
    without_text: int = 0  # kept chunks whose text is not known: not in any figure

    @property
    def tokens(self) -> int:
        """All tokens kept."""
        return self.relevant + self.irrelevant + self.unjudged

    @property
    def relevant_per_1000(self) -> float | None:
        """Relevant chunks per 1,000 tokens of context; None where no text was kept."""
        return 1000 * self.relevant_chunks / self.tokens if self.tokens else None

    @property
    def noise(self) -> float | None:
        """Share of the tokens in chunks without a relevant label; unjudged ones count as noise, as in SetP."""
        return (self.irrelevant + self.unjudged) / self.tokens if self.tokens else None

    @property
    def noise_known(self) -> float | None:
        """Share of the tokens that stand in chunks judged irrelevant: the least the noise can be."""
        return self.irrelevant / self.tokens if self.tokens else None

    def to_json(self) -> dict[str, Any]:
        """Counts and shares as one flat mapping."""
        names = ("tokens", *self.__slots__, "relevant_per_1000", "noise", "noise_known")
        return {name: getattr(self, name) for name in names}


def economy_of(hits: Sequence[Hit], grades: Grades, min_grade: int = 1) -> Economy:
    """The economy of what was kept; a chunk that came twice counts once."""
    relevant = irrelevant = unjudged = chunks = without = 0
    for hit in {hit.chunk.id: hit for hit in hits}.values():
        grade = grades.get(hit.chunk.id)
        if not hit.chunk.text:
            without += 1
            continue
        tokens = estimate_tokens(hit.chunk.text)
        if grade is None:
            unjudged += tokens
        elif grade >= min_grade:
            relevant, chunks = relevant + tokens, chunks + 1
        else:
            irrelevant += tokens
    return Economy(relevant, irrelevant, unjudged, chunks, without)


def total(parts: Iterable[Economy]) -> Economy:
    """The sum over queries: shares of it weigh every token the same (micro)."""
    sums = [0] * len(Economy.__slots__)
    for part in parts:
        for at, name in enumerate(Economy.__slots__):
            sums[at] += getattr(part, name)
    return Economy(*sums)
