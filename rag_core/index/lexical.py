"""Word search over a collection: BM25 by bm25s, fed by the tokens that rules read, numbers and signs kept.

Built when the first query asks and kept beside the collection under what it depends on; a change of the texts makes a
new one. How its ranking meets the dense one is in rag_core.retrieve.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from rag_core.index.exact import greatest
from rag_core.index.where import Mask
from rag_core.text import words
from rag_core.types import Chunk, Hit

METHOD, K1, B = "lucene", 1.2, 0.75
"""Robertson and Zaragoza 2009, with the idf of Lucene, which is never negative (Kamphuis et al. 2020)."""

COMMON = 0.25
"""The share of the texts from which on a word is common."""

PREFIX = "lexical-"
_PROBE = "It's the A.C.-6 of 1,000 Über-Orks\u20145+ dmg, -2 or 3.5\u201310 (7th: 2d10)"
Scores = NDArray[np.float32]
Tokens = Callable[[str], list[str]]


@dataclass(frozen=True, eq=False)
class LexicalIndex:
    """The BM25 weight of every word in every text, word by word: texts `indices[a:b]` have weights `data[a:b]`."""

    count: int  # texts
    vocabulary: dict[str, int] = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    indices: NDArray[np.int32] = field(repr=False)
    data: Scores = field(repr=False)
    tokens: Tokens = words
    _common: dict[int, Scores] = field(default_factory=dict, init=False, repr=False)

    def scores(self, query: str) -> Scores:
        """The BM25 score of every text, 0 where it shares no word with the query; a repeated word counts again."""
        found = np.zeros(self.count, dtype=np.float32)
        for word in self.tokens(query):
            number = self.vocabulary.get(word)
            if number is None:
                continue
            start, stop = self.starts[number], self.starts[number + 1]
            if stop - start > self.count * COMMON:
                found += self._of_all(number)
            else:
                np.add.at(found, self.indices[start:stop], self.data[start:stop])
        return found

    def _of_all(self, number: int) -> Scores:
        """The weight of a common word in every text: added at a tenth of the time. Kept once it was asked for.

        There are at most 1 / COMMON times as many such words as a text has different words.
        """
        if number not in self._common:
            start, stop = self.starts[number], self.starts[number + 1]
            weights = np.zeros(self.count, dtype=np.float32)
            weights[self.indices[start:stop]] = self.data[start:stop]
            self._common[number] = weights
        return self._common[number]


def build_lexical(texts: Sequence[str], tokens: Tokens = words, k1: float = K1, b: float = B) -> LexicalIndex:
    """The word index of texts, in their order."""
    vocabulary: dict[str, int] = {}
    numbered = [[vocabulary.setdefault(word, len(vocabulary)) for word in tokens(text)] for text in texts]
    if not vocabulary:
        none = np.zeros(0, dtype=np.int32)
        return LexicalIndex(len(texts), {}, np.zeros(1, dtype=np.int64), none, none.astype(np.float32), tokens)
    import bm25s

    built = bm25s.BM25(method=METHOD, k1=k1, b=b)
    built.index((numbered, dict(vocabulary)), create_empty_token=False, show_progress=False)
    arrays = built.scores
    return LexicalIndex(
        count=len(texts),
        vocabulary=vocabulary,
        starts=np.asarray(arrays["indptr"], dtype=np.int64),
        indices=np.asarray(arrays["indices"], dtype=np.int32),
        data=np.asarray(arrays["data"], dtype=np.float32),
        tokens=tokens,
    )


def kept_lexical(texts: Sequence[str], fingerprint: str, folder: Path | None) -> LexicalIndex:
    """The word index of a collection's texts: from its folder where that holds it, else built and put there.

    `fingerprint` names the texts. Without a folder, or where it cannot be written, the index is in memory only.
    """
    if folder is None:
        return build_lexical(texts)
    path = folder / f"{PREFIX}{_key(fingerprint)}.npz"
    found = _read(path, len(texts))
    if found is None:
        found = build_lexical(texts)
        _write(path, found)
    return found


def _key(fingerprint: str) -> str:
    """What an index depends on: the texts, the weights, and how this version reads words."""
    parts = [fingerprint, METHOD, str(K1), str(B), *words(_PROBE)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _read(path: Path, count: int) -> LexicalIndex | None:
    """A stored index, or None where there is none of so many texts that is whole."""
    try:
        with np.load(path) as arrays:
            names = arrays["words"].tobytes().decode("utf-8").split("\n")
            starts, indices, data = (arrays[name] for name in ("starts", "indices", "data"))
            stored = int(arrays["count"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    vocabulary = {name: number for number, name in enumerate(names) if name}
    whole = len(starts) == len(vocabulary) + 1 and len(indices) == len(data) == int(starts[-1])
    if stored != count or not whole or (len(indices) and not 0 <= indices.min() <= indices.max() < count):
        return None
    return LexicalIndex(count, vocabulary, starts, indices, data)


def _write(path: Path, index: LexicalIndex) -> None:
    """Put the index into its file, whole or not at all, and drop those of earlier texts."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.npz")
    names = np.frombuffer("\n".join(index.vocabulary).encode("utf-8"), dtype=np.uint8)
    arrays: dict[str, Any] = {"starts": index.starts, "indices": index.indices, "data": index.data}
    try:
        np.savez(temporary, words=names, count=np.int64(index.count), **arrays)
        os.replace(temporary, path)
        for old in path.parent.glob(f"{PREFIX}*.npz"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:  # a folder that may only be read: the index serves from memory
        temporary.unlink(missing_ok=True)


class LexicalReader:
    """Reads one BM25 ranking of the chunks that share a word with the query, by (score, id), deeper on demand."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        rows_by_id: dict[str, int],
        scores: Scores,
        allowed: Mask | None,
        fingerprint: str,
    ) -> None:
        self.fingerprint = fingerprint
        self.store_queries = 1
        self._chunks = chunks
        self._rows_by_id = rows_by_id
        self._scores = scores
        self._eligible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
        self._rows: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.matching = int(np.count_nonzero(self._eligible > 0))

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based) of the full ranking; fewer where it ends."""
        if stop > len(self._rows) and len(self._rows) < self.matching:
            self._rows = _best(self._eligible, min(self.matching, max(stop, 2 * len(self._rows))))
        return tuple(self._hit(int(row), rank) for rank, row in enumerate(self._rows[start:stop], start + 1))

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The best `count` hits whose chunk id is not among `ids`; ranks are the full list's."""
        without = {self._rows_by_id[one] for one in ids if one in self._rows_by_id}
        hits = self.read(0, count + len(without))
        return tuple(hit for hit in hits if self._rows_by_id[hit.chunk.id] not in without)[:count]

    def scores_of(self, ids: Iterable[str]) -> dict[str, float]:
        """The BM25 score of chunks by id, whether the conditions admit them or not; 0 where no word is shared."""
        return {one: float(self._scores[self._rows_by_id[one]]) for one in ids if one in self._rows_by_id}

    def _hit(self, row: int, rank: int) -> Hit:
        return Hit(self._chunks[row], rank, {"bm25": float(self._scores[row])})


def _best(scores: Scores, count: int) -> NDArray[np.intp]:
    """The rows of the `count` greatest scores, by (score, row)."""
    rows = np.flatnonzero(scores >= greatest(scores, count))
    return np.asarray(rows[np.lexsort((rows, -scores[rows]))][:count], dtype=np.intp)
