"""An embedder that gives back the vectors it was handed, for benchmarks that do not measure embedding."""

from __future__ import annotations

import numpy as np

from rag_core.index.embed import Vectors


class PreparedEmbedder:
    """Text → its prepared vector; a text without one is a KeyError."""

    name, window, batch = "synthetic", 8191, 64

    def __init__(self, vectors: dict[str, Vectors]) -> None:
        self._vectors = vectors
        self.dimension = len(next(iter(vectors.values())))

    def embed(self, texts, progress=None):
        """The prepared vectors of the texts."""
        return np.stack([self._vectors[text] for text in texts])

    def count_tokens(self, texts):
        """One token each: nothing is over the window."""
        return [1] * len(texts)
