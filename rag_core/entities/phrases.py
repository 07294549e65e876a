"""Find phrases (aliases, team names) in a query: word by word the same, or misspelt.

Misspelt is judged by two rules. A word of 4 or 5 letters: same length, same first letter, one letter different; the
ratio says too much there ("works" is 89 like "orks", "orkz" only 75). A word of 6 letters and more: rapidfuzz's ratio
at or above the threshold. Neither an ordinary word nor a word of the structure is ever taken as misspelt, so only words
without an exact hit come here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from rag_core.entities.near import NearStrings
from rag_core.entities.reading import StructureReading, key, read

SHORT_WORD = (4, 5)  # letters


class Phrase(NamedTuple):
    """A phrase to find, and whether it may be misspelt (initials may not)."""

    text: str
    fuzzy: bool = True


class PhraseHit(NamedTuple):
    """A phrase that was found: its number, the query's words, the ratio (100 where exact) and whether it was exact."""

    number: int
    words: tuple[str, ...]
    score: float
    exact: bool


def one_letter_off(word: str, name: str) -> bool:
    """Whether two words of 4 or 5 letters share length and first letter and differ in exactly one letter."""
    if len(word) != len(name) or len(word) not in SHORT_WORD or word[0] != name[0]:
        return False
    return sum(a != b for a, b in zip(word, name, strict=True)) == 1


class PhraseFinder:
    """Finds phrases in a reading; `misspelt` says which words may be misspelt names."""

    def __init__(self, phrases: Sequence[Phrase], misspelt: Callable[[str], bool], threshold: float) -> None:
        self._readings = [read(phrase.text) for phrase in phrases]
        self._misspelt = misspelt
        self._threshold = threshold
        self._exact: dict[tuple[str, ...], list[int]] = {}
        for number, reading in enumerate(self._readings):
            self._exact.setdefault(reading.keys, []).append(number)
        fuzzy = [number for number, phrase in enumerate(phrases) if phrase.fuzzy]
        self._lengths = sorted({len(reading.words) for reading in self._readings})
        self._short = self._short_words(fuzzy)
        self._whole = NearStrings([(number, self._text(number)) for number in fuzzy])
        self._runs = {
            length: NearStrings([(n, self._text(n)) for n in fuzzy if len(self._readings[n].words) == length])
            for length in self._lengths
            if length > 1
        }

    def at(self, threshold: float) -> PhraseFinder:
        """The same finder with another threshold; the index is shared."""
        other = copy.copy(self)
        other._threshold = threshold
        return other

    def find(self, reading: StructureReading) -> list[PhraseHit]:
        """The best hit of every phrase in the query, by phrase number."""
        best: dict[int, PhraseHit] = {}
        for hit in (*self._find_exact(reading), *self._find_misspelt(reading)):
            if hit.number not in best or hit.score > best[hit.number].score:
                best[hit.number] = hit
        return [best[number] for number in sorted(best)]

    def _text(self, number: int) -> str:
        return " ".join(self._readings[number].words)

    def _short_words(self, fuzzy: Sequence[int]) -> dict[tuple[int, str], list[int]]:
        """Phrases of one word of 4 or 5 letters, by length and first letter."""
        found: dict[tuple[int, str], list[int]] = {}
        for number in fuzzy:
            words = self._readings[number].words
            if len(words) == 1 and len(words[0]) in SHORT_WORD:
                found.setdefault((len(words[0]), words[0][0]), []).append(number)
        return found

    def _find_exact(self, reading: StructureReading) -> Iterator[PhraseHit]:
        """Phrases whose words stand in the query side by side, singular or plural."""
        for length in self._lengths:
            for start in range(len(reading.words) - length + 1):
                for number in self._exact.get(reading.keys[start : start + length], ()):
                    yield PhraseHit(number, reading.words[start : start + length], 100.0, True)

    def _find_misspelt(self, reading: StructureReading) -> Iterator[PhraseHit]:
        odd = [self._misspelt(word) for word in reading.words]
        for word in dict.fromkeys(word for word, is_odd in zip(reading.words, odd, strict=True) if is_odd):
            yield from self._close_word(word)
        for length in self._runs:
            runs = range(len(reading.words) - length + 1)
            starts = (start for start in runs if any(odd[start : start + length]))
            for run in dict.fromkeys((reading.words[s : s + length], tuple(odd[s : s + length])) for s in starts):
                yield from self._close_run(length, *run)

    def _close_word(self, word: str) -> Iterator[PhraseHit]:
        """Phrases one word may be: short words by their own rule, long ones by ratio against the whole phrase."""
        if len(word) in SHORT_WORD:
            for number in self._short.get((len(word), word[0]), ()):
                if one_letter_off(word, self._text(number)):
                    yield PhraseHit(number, (word,), fuzz.ratio(word, self._text(number)), False)
        elif len(word) > SHORT_WORD[-1]:
            for number, score in self._whole.close(word, self._threshold):
                yield PhraseHit(number, (word,), score, False)

    def _close_run(self, length: int, words: tuple[str, ...], odd: tuple[bool, ...]) -> Iterator[PhraseHit]:
        """Phrases of as many words whose every word is the same or misspelt, and whose whole ratio is high enough."""
        for number, score in self._runs[length].close(" ".join(words), self._threshold):
            target = self._readings[number]
            if all(map(self._same_or_misspelt, words, odd, target.words, target.keys)):
                yield PhraseHit(number, words, score, False)

    def _same_or_misspelt(self, word: str, odd: bool, name: str, name_key: str) -> bool:
        if key(word) == name_key:
            return True
        return odd and (fuzz.ratio(word, name) >= self._threshold or one_letter_off(word, name))
