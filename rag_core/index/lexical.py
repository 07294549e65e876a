"""Word search over a collection: BM25 over the words that rules read, numbers and signs kept.

What costs time is kept: how often each word stands in each text, counted when documents are ingested and left beside
the collection under what it depends on. An analyzer (rag_core.text) makes terms of those words and BM25 weighs them,
with no text read again. How the ranking meets the dense one is in rag_core.retrieve.
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

from rag_core.index.scan import greatest
from rag_core.index.where import Mask
from rag_core.text import analysed, fold, words
from rag_core.types import Chunk, Hit

K1, B = 1.2, 0.75
COMMON = 0.25
"""The share of the texts from which on a term is common."""

PREFIX = "lexical-"
_PROBE = "It's the A.C.-6 of 1,000 Über-Orks\u20145+ dmg, -2 or 3.5\u201310 (7th: 2d10)"
TOGETHER = 20_000  # texts whose words are sorted at once: all of 1,000,000 took 7 GB
Scores = NDArray[np.float32]
Numbers = NDArray[np.int32]
Group = tuple[Numbers, Numbers, Numbers]  # words' numbers, rows and counts of different pairs
Tokens = Callable[[str], list[str]]


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often each word stands in each text, word by word: texts `rows[a:b]` hold it `counts[a:b]` times."""

    texts: int
    vocabulary: dict[str, int] = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    rows: Numbers = field(repr=False)
    counts: Numbers = field(repr=False)


@dataclass(frozen=True, eq=False)
class LexicalIndex:
    """The BM25 weight of every term in every text, term by term: texts `rows[a:b]` have weights `data[a:b]`."""

    texts: int
    terms: dict[str, int] = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    rows: Numbers = field(repr=False)
    data: Scores = field(repr=False)
    analyzer: str = "plain"
    tokens: Tokens = words
    _common: dict[int, Scores] = field(default_factory=dict, init=False, repr=False)

    def scores(self, query: str) -> Scores:
        """The BM25 score of every text, 0 where it shares no term with the query; a repeated term counts again."""
        total = np.zeros(self.texts, dtype=np.float32)
        for term in analysed(self.tokens(query), self.analyzer):
            number = self.terms.get(term)
            if number is None:
                continue
            start, stop = self.starts[number], self.starts[number + 1]
            if stop - start > self.texts * COMMON:
                total += self._of_all(number)
            else:
                np.add.at(total, self.rows[start:stop], self.data[start:stop])
        return total

    def _of_all(self, number: int) -> Scores:
        """The weight of a common term in every text: added at a tenth of the time. Kept once it was asked for.

        There are at most 1 / COMMON times as many such terms as a text has different ones.
        """
        if number not in self._common:
            start, stop = self.starts[number], self.starts[number + 1]
            weights = np.zeros(self.texts, dtype=np.float32)
            weights[self.rows[start:stop]] = self.data[start:stop]
            self._common[number] = weights
        return self._common[number]


def count_words(texts: Sequence[str], tokens: Tokens = words) -> WordCounts:
    """The words of texts, in their order. `tokens` reads a text between white space: no word reaches across it.

    What stands between white space is read once, however often it comes: a third of the time at 100,000 chunks.
    """
    vocabulary: dict[str, int] = {}
    known: dict[str, list[int]] = {}
    parts = []
    for start in range(0, max(1, len(texts)), TOGETHER):
        numbers: list[int] = []
        ends = [0]
        for text in texts[start : start + TOGETHER]:
            for piece in fold(text).split():
                if piece not in known:
                    known[piece] = [vocabulary.setdefault(word, len(vocabulary)) for word in tokens(piece)]
                numbers += known[piece]
            ends.append(len(numbers))
        rows = np.repeat(np.arange(start, start + len(ends) - 1), np.diff(ends))
        parts.append(_grouped(np.array(numbers, dtype=np.int64), rows, np.ones(len(rows), dtype=np.int32), len(texts)))
    return _joined(parts, vocabulary, len(texts))


def _grouped(numbers: NDArray[np.int64], rows: NDArray[Any], counts: Numbers, texts: int) -> Group:
    """The counts of (word's number, row) pairs, added up for each different pair, by word, then row."""
    pairs = numbers * texts + rows
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    word, row = np.divmod(pairs[firsts], max(1, texts))
    added = np.add.reduceat(counts[order], firsts, dtype=np.int32) if len(rows) else counts
    return word.astype(np.int32), row.astype(np.int32), added


def _joined(parts: Sequence[Group], vocabulary: dict[str, int], texts: int) -> WordCounts:
    """The counts of blocks of texts, in their order, word by word."""
    word, rows, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    starts = np.append(0, np.cumsum(np.bincount(word, minlength=len(vocabulary))))
    order = np.argsort(word, kind="stable")
    return WordCounts(texts, vocabulary, starts, rows[order], counts[order])


def weighed(
    words_of: WordCounts, analyzer: str = "plain", k1: float = K1, b: float = B, tokens: Tokens = words
) -> LexicalIndex:
    """The BM25 weights of the terms that an analyzer makes of the words, for Robertson's k1 and b.

    idf · tf / (tf + k1 · (1 − b + b · length / mean length)) with idf = ln(1 + (N − n + ½) / (n + ½)), which is never
    negative; lengths count what the analyzer leaves. Robertson and Zaragoza 2009, Kamphuis et al. 2020 (Lucene).
    In NumPy and not by bm25s, which is held to it in a test: it would read every text again for another analyzer, k1
    or b, and takes 2.5 times as long at 100,000 chunks.
    """
    if analyzer != "plain":  # words with one stem count together, stop words not at all
        terms: dict[str, int] = {}
        stems = analysed(words_of.vocabulary, analyzer)
        of_word = np.array([terms.setdefault(stem, len(terms)) if stem else -1 for stem in stems], dtype=np.int64)
        numbers = np.repeat(of_word, np.diff(words_of.starts))
        kept = numbers >= 0
        rows = words_of.rows[kept].astype(np.int64)
        group = _grouped(numbers[kept], rows, words_of.counts[kept], words_of.texts)
        words_of = _joined([group], terms, words_of.texts)
    lengths = np.bincount(words_of.rows, weights=words_of.counts, minlength=words_of.texts)
    mean = lengths.mean() if lengths.any() else 1.0
    texts_with = np.diff(words_of.starts)
    idf = np.log1p((words_of.texts - texts_with + 0.5) / (texts_with + 0.5))
    saturation = k1 * (1 - b + b * lengths / mean)
    data, below = np.repeat(idf, texts_with), saturation[words_of.rows]
    below += words_of.counts
    data *= words_of.counts
    data /= below  # in place: a million chunks have 40 million weights
    return LexicalIndex(
        words_of.texts, words_of.vocabulary, words_of.starts, words_of.rows, data.astype(np.float32), analyzer, tokens
    )


def kept_counts(texts: Sequence[str], fingerprint: str, folder: Path | None) -> WordCounts:
    """The words of a collection's texts: from its folder where that holds them, else counted and put there.

    `fingerprint` names the texts. Without a folder, or where it cannot be written, they are in memory only.
    """
    if folder is None:
        return count_words(texts)
    key = "\n".join([fingerprint, "counts", *words(_PROBE)])  # the texts, and how this version reads words
    path = folder / f"{PREFIX}{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
    stored = _read(path, len(texts))
    if stored is None:
        stored = count_words(texts)
        _write(path, stored)
    return stored


def _read(path: Path, texts: int) -> WordCounts | None:
    """Stored counts, or None where there are none of so many texts that are whole."""
    try:
        with np.load(path) as arrays:
            names = arrays["words"].tobytes().decode("utf-8").split("\n")
            starts, rows, counts = (arrays[name] for name in ("starts", "rows", "counts"))
            stored = int(arrays["texts"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    vocabulary = {name: number for number, name in enumerate(names) if name}
    whole = len(starts) == len(vocabulary) + 1 and len(rows) == len(counts) == int(starts[-1])
    if stored != texts or not whole or (len(rows) and not 0 <= rows.min() <= rows.max() < texts):
        return None
    return WordCounts(texts, vocabulary, starts, rows, counts)


def _write(path: Path, words_of: WordCounts) -> None:
    """Put the counts into their file, whole or not at all, and drop those of earlier texts."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.npz")
    names = np.frombuffer("\n".join(words_of.vocabulary).encode("utf-8"), dtype=np.uint8)
    arrays: dict[str, Any] = {"starts": words_of.starts, "rows": words_of.rows, "counts": words_of.counts}
    try:
        np.savez(temporary, words=names, texts=np.int64(words_of.texts), **arrays)
        os.replace(temporary, path)
        for old in path.parent.glob(f"{PREFIX}*.npz"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:  # a folder that may only be read: the counts serve from memory
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
            count = min(self.matching, max(stop, 2 * len(self._rows)))
            rows = np.flatnonzero(self._eligible >= greatest(self._eligible, count))
            self._rows = rows[np.lexsort((rows, -self._eligible[rows]))][:count]
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
