"""The plain twin of the four strategies: every rule as written, over every item, every word against every name.

Slow and short on purpose. Tests hold the indexed strategies to these answers, the benchmark measures against them; the
product never runs this.
"""

from __future__ import annotations

from typing import NamedTuple

from rapidfuzz import fuzz

from rag_core.entities.strategies import EntitySettings, Vocabulary, VocabularyItem, all_aliases, own_names, vocabulary
from rag_core.entities.structure import Structure, StructureReading, key, read
from rag_core.text import fold


class PlainMatch(NamedTuple):
    """What decides: the team, the strategy, the item and the score."""

    team: str
    strategy: str
    item: str
    score: float


class PlainScan:
    """The four strategies without any index."""

    def __init__(self, structure: Structure, settings: EntitySettings | None = None) -> None:
        self._settings = settings or EntitySettings()
        self._words: Vocabulary = vocabulary(structure, self._settings)
        self._aliases = list(all_aliases(structure))
        self._alias_readings = [read(alias.phrase) for alias in self._aliases]
        self._teams = [(team, read(phrase)) for phrase, team in own_names(structure, self._words, self._settings)]

    def matches(self, query: str) -> set[PlainMatch]:
        """Every match of every strategy."""
        reading = read(fold(query))
        present = set(map(key, self._words.without_stop_words(reading.words)))
        found: set[PlainMatch] = set()
        for item in (*self._words.members, *self._words.by_role):
            if _member(item, present, reading.keys):
                found |= {PlainMatch(team, "operative", item.name, 100.0) for team in item.teams}
        for item in self._words.abilities:
            if _ability(item, present):
                found |= {PlainMatch(team, "ability", item.name, 100.0) for team in item.teams}
        return found | self._alias_matches(reading) | self._team_matches(reading)

    def _alias_matches(self, reading: StructureReading) -> set[PlainMatch]:
        found = set()
        for alias, phrase in zip(self._aliases, self._alias_readings, strict=True):
            score = self._phrase_score(phrase, reading, fuzzy=alias.kind != "initials")
            found |= {PlainMatch(team, "alias", alias.item, score) for team in alias.teams if score is not None}
        return found

    def _team_matches(self, reading: StructureReading) -> set[PlainMatch]:
        best: dict[str, float] = {}
        for team, phrase in self._teams:
            score = self._phrase_score(phrase, reading, fuzzy=True)
            if score is not None:
                best[team] = max(score, best.get(team, 0.0))
        return {PlainMatch(team, "team_name", team, score) for team, score in best.items()}

    def _phrase_score(self, phrase: StructureReading, reading: StructureReading, fuzzy: bool) -> float | None:
        """The best score of a phrase in the query: 100 for the same words, else of its misspellings, else None."""
        length = len(phrase.words)
        runs = range(len(reading.words) - length + 1)
        if any(reading.keys[start : start + length] == phrase.keys for start in runs):
            return 100.0
        if not fuzzy:
            return None
        scores = [self._word_score(word, phrase) for word in reading.words]
        if length > 1:
            scores += [self._run_score(reading, start, phrase) for start in runs]
        return max((score for score in scores if score is not None), default=None)

    def _word_score(self, word: str, phrase: StructureReading) -> float | None:
        name = " ".join(phrase.words)
        if not self._words.misspelt(word, self._settings):
            return None
        score = fuzz.ratio(word, name)
        if len(word) in (4, 5):
            return score if len(phrase.words) == 1 and _one_letter(word, name) else None
        return score if len(word) >= 6 and score >= self._settings.threshold else None

    def _run_score(self, reading: StructureReading, start: int, phrase: StructureReading) -> float | None:
        misspelt = 0
        for at, (name, name_key) in enumerate(zip(phrase.words, phrase.keys, strict=True), start):
            if reading.keys[at] == name_key:
                continue
            word = reading.words[at]
            alike = fuzz.ratio(word, name) >= self._settings.threshold or _one_letter(word, name)
            if not alike or not self._words.misspelt(word, self._settings):
                return None
            misspelt += 1
        score = fuzz.ratio(" ".join(reading.words[start : start + len(phrase.words)]), " ".join(phrase.words))
        return score if misspelt and score >= self._settings.threshold else None


def _one_letter(word: str, name: str) -> bool:
    same_shape = len(word) == len(name) and len(word) in (4, 5) and word[0] == name[0]
    return same_shape and len([1 for a, b in zip(word, name, strict=True) if a != b]) == 1


def _in_order(keys: tuple[str, ...], query: tuple[str, ...]) -> bool:
    return any(query[start : start + len(keys)] == keys for start in range(len(query) - len(keys) + 1))


def _member(item: VocabularyItem, present: set[str], query: tuple[str, ...]) -> bool:
    if not item.kept or (len(item.kept) == 1 and item.roles):
        return False
    if _in_order(item.keys, query):
        return True
    if item.roles and len(item.kept) <= 2:
        return _in_order(item.kept, query)
    if any(key in present for key in item.distinctive) and len(item.kept) > 2:
        return True
    shared = len(set(item.kept) & present)
    return not item.roles and shared >= (1 if len(item.kept) <= 2 else 2)


def _ability(item: VocabularyItem, present: set[str]) -> bool:
    kept = set(item.kept)
    return bool(kept) and len(kept & present) >= min(len(kept), 2)
