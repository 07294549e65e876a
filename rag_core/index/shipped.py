"""Vectors that come with an eval set, so that its first ingest and its queries embed nothing: an embedder that knows
some texts.

A file holds the SHA-256 of each embedded text and its vector, for one model. A text it does not know goes to the model
itself, so a file that is out of date costs time, never correctness.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rag_core.errors import InputError
from rag_core.files import write_whole
from rag_core.index.embed import Embedder, Progress, Vectors
from rag_core.index.store import text_hash

FILE = "vectors.npz"


class ShippedVectors:
    """An embedder that takes the vectors of a file where it has them, and asks another embedder for the rest."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self._known = _read(path, embedder)
        self.name, self.dimension, self.window = embedder.name, embedder.dimension, embedder.window
        self.batch = 512  # known vectors cost nothing, so a commit may hold many

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors in the order of the texts."""
        hashes = [text_hash(text) for text in texts]
        unknown = [text for text, hashed in zip(texts, hashes, strict=True) if hashed not in self._known]
        made = (
            dict(zip(map(text_hash, unknown), self._embedder.embed(unknown, progress), strict=True)) if unknown else {}
        )
        return np.stack([self._known[hashed] if hashed in self._known else made[hashed] for hashed in hashes])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the model counts them."""
        return self._embedder.count_tokens(texts)


def _read(path: Path, embedder: Embedder) -> dict[str, Vectors]:
    """The vectors of a file by text hash; none where it was made with another model."""
    try:
        with np.load(path, allow_pickle=False) as held:
            model, hashes, vectors = str(held["model"]), held["hashes"], held["vectors"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path} is no file of vectors ({type(error).__name__}), expected one made by write_vectors"
        ) from None
    if model != embedder.name or vectors.shape[1:] != (embedder.dimension,):
        return {}
    return dict(zip(hashes.tolist(), vectors, strict=True))


def write_vectors(path: Path, texts: Iterable[str], embedder: Embedder, progress: Progress | None = None) -> int:
    """Embed the texts and write their vectors; what the file already holds is not embedded again. Returns how many."""
    known = ShippedVectors(embedder, path) if path.is_file() else embedder
    by_hash = {text_hash(text): text for text in texts}
    vectors = known.embed(list(by_hash.values()), progress)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, model=np.array(embedder.name), hashes=np.array(list(by_hash)), vectors=vectors)
    write_whole(path, buffer.getvalue())
    return len(by_hash)
