"""Strings near a misspelt word: every one whose rapidfuzz ratio reaches a threshold, found without comparing them all.

The ratio of two strings is 200 · (longest common subsequence) / (sum of lengths). It cannot reach the threshold where
the lengths differ too much, nor where the two share too few letters whatever their order; both bounds are cheap, and
only what passes them is compared. Exact: the result is that of comparing every pair.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz

BUCKETS = 32  # letters are counted by code point modulo this; letters that share a bucket only loosen the bound
SLACK = 1e-6  # of the ratio, so that rounding never loses an exact hit of the threshold


def length_bounds(length: int, threshold: float) -> tuple[int, int]:
    """Lengths a string may have to reach `threshold` (0 to 100) against one of `length` characters."""
    if threshold <= 0:
        return 0, 1 << 30
    return int(length * threshold / (200 - threshold)), int(length * (200 - threshold) / threshold) + 1


class NearStrings:
    """Numbered strings, sorted by length, with how often each holds the letters of a bucket."""

    def __init__(self, strings: Sequence[tuple[int, str]]) -> None:
        ordered = sorted(strings, key=lambda pair: (len(pair[1]), pair[0]))
        self._numbers = [number for number, _ in ordered]
        self._strings = [string for _, string in ordered]
        self._lengths = [len(string) for string in self._strings]
        self._sizes = np.array(self._lengths, dtype=np.int32)
        self._counts = np.zeros((BUCKETS, len(ordered)), dtype=np.uint8)
        for position, string in enumerate(self._strings):
            for bucket, count in _buckets(string).items():
                self._counts[bucket, position] = min(count, 255)

    def close(self, word: str, threshold: float) -> list[tuple[int, float]]:
        """(number, ratio) of every string whose ratio to `word` is at least the threshold, by number."""
        low, high = length_bounds(len(word), threshold)
        start, stop = bisect_left(self._lengths, low), bisect_right(self._lengths, high)
        if start == stop:
            return []
        buckets = _buckets(word)
        wanted = np.array([[min(count, 255)] for count in buckets.values()], dtype=np.uint8)
        shared = np.minimum(self._counts[list(buckets), start:stop], wanted).sum(axis=0, dtype=np.uint16)
        reach = shared >= ((threshold - SLACK) / 200) * (self._sizes[start:stop] + len(word))
        positions = (reach.nonzero()[0] + start).tolist()
        scored = ((self._numbers[at], fuzz.ratio(word, self._strings[at])) for at in positions)
        return sorted(pair for pair in scored if pair[1] >= threshold)


def _buckets(text: str) -> dict[int, int]:
    """Bucket → how many letters of the text fall into it."""
    return Counter(ord(letter) % BUCKETS for letter in text)
