"""Embedders for benchmarks that do not measure embedding: one gives back vectors it was handed, one draws them."""

from __future__ import annotations

import zlib

import numpy as np

from rag_core.index.embed import Vectors, normalise


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


class DrawnEmbedder:
    """Vectors drawn by the hash of the first text they are asked for: for memory and storing, not for meaning."""

    name, dimension, window, batch = "drawn", 384, 256, 512

    def embed(self, texts, progress=None):
        """One drawn vector a text."""
        dice = np.random.default_rng(zlib.crc32(texts[0].encode()))
        return normalise(dice.normal(size=(len(texts), self.dimension)))

    def count_tokens(self, texts):
        """Its words."""
        return [len(text.split()) for text in texts]
