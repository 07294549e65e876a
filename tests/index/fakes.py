"""A tiny embedder for tests that are not about meaning: deterministic unit vectors from a hash, and it counts its work."""

import hashlib

import numpy as np

from rag_core.index.embed import normalise


class HashEmbedder:
    window = 50
    batch = 4

    def __init__(self, name="hash-16", dimension=16):
        self.name = name
        self.dimension = dimension
        self.embedded = []

    def vector(self, text):
        seed = int.from_bytes(hashlib.sha256(f"{self.name}{text}".encode()).digest()[:8], "big")
        return np.random.default_rng(seed).normal(size=self.dimension)

    def embed(self, texts, progress=None):
        self.embedded += texts
        return normalise(np.array([self.vector(text) for text in texts]).reshape(len(texts), self.dimension))

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]
