"""An embedder that asks an OpenAI-compatible endpoint through the model client (rag_core.llm), which is handed in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from rag_core.errors import InputError
from rag_core.index.embed import Progress, Vectors, normalise

KNOWN = {
    "text-embedding-3-small": (1536, 8191),
    "text-embedding-3-large": (3072, 8191),
    "text-embedding-ada-002": (1536, 8191),
}
"""Model → (dimensions, tokens it reads), as published by OpenAI."""

BATCH = 128
BATCH_CHARACTERS = 400_000
CHARACTERS_PER_TOKEN = 4


class EmbeddingClient(Protocol):
    """What is needed of the model client."""

    def embed(self, texts: Sequence[str], dimension: int | None = None) -> list[list[float]]:
        """One vector per text, in order, of the given width."""


class OpenAIEmbedder:
    """Vectors from an endpoint's model. Dimensions and window are known for OpenAI's models, else to be given.

    Errors of the endpoint are EndpointErrors of the client; what was embedded before one is the caller's to keep.
    """

    batch = BATCH

    def __init__(
        self, client: EmbeddingClient, model: str, dimension: int | None = None, window: int | None = None
    ) -> None:
        known = KNOWN.get(model, (None, None))
        found = dimension or known[0]
        if found is None:
            raise InputError(f"the dimensions of model {model[:80]} are not known, expected them as a setting")
        self.name = model
        self.dimension: int = found
        self.window: int = window or known[1] or 8191
        self._client = client

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors of the texts, asked for in batches, in order."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start, stop in batches(texts):
            vectors[start:stop] = self._client.embed(texts[start:stop], self.dimension)
            if progress is not None:
                progress(stop, len(texts))
        return normalise(vectors)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate: four characters a token, rounded up."""
        return [-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts]


def batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(start, stop) of runs of at most 128 texts and 400,000 characters; a longer text stands alone."""
    start = characters = 0
    for position, text in enumerate(texts):
        full = position - start >= BATCH or characters + len(text) > BATCH_CHARACTERS
        if position > start and full:
            yield start, position
            start, characters = position, 0
        characters += len(text)
    if start < len(texts):
        yield start, len(texts)
