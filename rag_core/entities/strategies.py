"""The four strategies: which names of a structure a query holds.

Operative: a member's full name in order always counts. Else a role word ("gunner") asks for more: of a name of two
words all of them side by side, of a longer name one distinctive word. A name without a role word needs one of its one
or two words, and of a longer name one distinctive word or two words. Ability: its one word, or two of its words.

Alias and team_name: names stand on word boundaries ("guard" is not in "safeguard"), in singular or plural, and may be
misspelt. A synonym ("orcs") leads to what its target ("orks") leads to. Initials are given by the structure, or made
from names of three words and more where they are nobody else's and no word; they are never guessed from a misspelling.
Of an entity's own name a distinctive word is enough ("Nemesis" for Nemesis Claw).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, runtime_checkable

from rapidfuzz import fuzz, process

from rag_core.entities.structure import Structure, StructureReading, key, ordinary_words, read
from rag_core.errors import InputError

TEAM_MATCH_THRESHOLD = 80.0
MIN_WORD_LENGTH = 4
DISTINCTIVE_WORD_LENGTH = 6
SHORT_NAME = 2  # words
ENOUGH = 2  # words of a longer ability
SHORT_WORD = (4, 5)  # letters
INITIALS_FROM = 3  # words of a name
INITIALS_CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class EntitySettings:
    """What may be tuned; each with a plain meaning."""

    threshold: float = TEAM_MATCH_THRESHOLD  # least rapidfuzz ratio (0 to 100) of a misspelt name
    min_word_length: int = MIN_WORD_LENGTH  # shorter names are skipped, shorter words never count as misspelt
    distinctive_word_length: int = DISTINCTIVE_WORD_LENGTH  # from here one word can stand for a long name

    def __post_init__(self) -> None:
        for name, low, high in (("threshold", 0, 100), ("min_word_length", 1, 50), ("distinctive_word_length", 1, 50)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InputError(f"{name} is {value!r}, expected a number from {low} to {high}")


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """One reason to believe that the query means a team."""

    team: str
    strategy: str  # operative | ability | alias | team_name
    item: str  # the member, ability, alias or team name that was found, as the structure spells it
    words: tuple[str, ...]  # the query's words that matched, folded
    score: float  # 0 to 100: 100 where the words are the same, else the rapidfuzz ratio
    reason: str
    confidence: float  # 0 to 1: score / 100 × share of the item's words that were found; × 0.9 through initials


class Strategy(Protocol):
    """One way to find teams; a new one is one object with `name` and `match`."""

    @property
    def name(self) -> str:
        """What matches carry as their strategy."""

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The matches in a lower-cased query; `query_words` are its words without stop words, in order."""


@runtime_checkable
class Tunable(Protocol):
    """A strategy whose threshold for misspelt names can be moved without building it again."""

    def at(self, threshold: float) -> Strategy:
        """The same strategy with another threshold."""


# ---------------------------------------------------------------- the words of a structure, read once


@dataclass(frozen=True, slots=True)
class VocabularyItem:
    """A member or an ability, read once: `keys` of all its words, `kept` of those that are no stop words."""

    name: str
    teams: tuple[str, ...]
    keys: tuple[str, ...]
    kept: tuple[str, ...]
    stopped: tuple[str, ...]  # the stop words that were left out
    roles: frozenset[str]  # keys among `kept` that are role words
    distinctive: frozenset[str]  # keys among `kept` of long words that are no role words


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Items, stop words with their keys, keys of role words, and the keys of every word the structure holds."""

    members: tuple[VocabularyItem, ...]
    by_role: tuple[VocabularyItem, ...]  # members again, called by a synonym of their role word
    abilities: tuple[VocabularyItem, ...]
    stop: frozenset[str]
    roles: frozenset[str]
    known: frozenset[str]

    def without_stop_words(self, words: Iterable[str]) -> tuple[str, ...]:
        """The words that tell something, in order."""
        return tuple(word for word in words if word not in self.stop and key(word) not in self.stop)

    def misspelt(self, word: str, settings: EntitySettings) -> bool:
        """Whether a word may be a misspelt name: letters only, long enough, no ordinary word and none we know."""
        plain = word.isalpha() and len(word) >= settings.min_word_length and key(word) not in self.known
        return plain and word not in ordinary_words() and key(word) not in ordinary_words()


def vocabulary(structure: Structure, settings: EntitySettings) -> Vocabulary:
    """Everything the strategies look up, computed once per structure."""
    stop = frozenset((*structure.stop_words, *map(key, structure.stop_words)))
    others: dict[str, list[str]] = {}  # key of a role word → its synonyms
    for synonym, role in structure.synonyms.items():
        if role in structure.role_words:
            others.setdefault(key(role), []).append(synonym)
    roles = frozenset(map(key, (*structure.role_words, *(word for words in others.values() for word in words))))
    members = [(name, name, entity.name) for entity in structure.entities for name in entity.members]
    abilities = [(name, name, entity.name) for entity in structure.entities for name in entity.abilities]
    # members as they are called with a synonym of their role word, "Mirebrand Healer" for Mirebrand Medic
    taken = {read(name).words for _, name, _ in members}
    by_role = [
        (said, name, team)
        for _, name, team in members
        for at, word in enumerate(read(name).keys)
        for other in others.get(word, ())
        if read(said := " ".join([*read(name).words[:at], other, *read(name).words[at + 1 :]])).words not in taken
    ]
    texts = [*structure.aliases, *structure.synonyms, *structure.role_words, *structure.stop_words]
    for entity in structure.entities:
        texts += [entity.name, *entity.members, *entity.abilities, *entity.aliases, *entity.initials]

    def items(names: Iterable[tuple[str, str, str]]) -> tuple[VocabularyItem, ...]:
        """One item per (words, name, entity), whoever owns it; two spellings of the same words are one item."""
        owners: dict[tuple[str, ...], tuple[str, StructureReading, dict[str, None]]] = {}
        for said, name, team in names:
            if len(name.strip()) >= settings.min_word_length:
                owners.setdefault(read(said).words, (name, read(said), {}))[2][team] = None
        made = []
        for name, reading, teams in owners.values():
            pairs = list(zip(reading.words, reading.keys, strict=True))
            kept = [(word, k) for word, k in pairs if word not in stop and k not in stop]
            long = settings.distinctive_word_length
            made.append(
                VocabularyItem(
                    name=name,
                    teams=tuple(teams),
                    keys=reading.keys,
                    kept=tuple(k for _, k in kept),
                    stopped=tuple(word for word, k in pairs if word in stop or k in stop),
                    roles=frozenset(k for _, k in kept if k in roles),
                    distinctive=frozenset(k for word, k in kept if len(word) >= long and k not in roles),
                )
            )
        return tuple(made)

    known = frozenset(k for text in texts for k in read(text).keys)
    return Vocabulary(items(members), items(by_role), items(abilities), stop, roles, known)


# ---------------------------------------------------------------- members and abilities

Judged = tuple[frozenset[str], str]
"""What of an item stands in a query (keys), and why that is enough."""


class ItemStrategy:
    """Finds members or abilities by name; it looks only at those that share a word with the query."""

    def __init__(
        self,
        name: str,
        items: Iterable[VocabularyItem],
        judge: Callable[[VocabularyItem, frozenset[str], StructureReading], Judged | None],
    ) -> None:
        self.name = name
        self._judge = judge
        self._items = tuple(items)
        self._with: dict[str, list[int]] = {}
        for number, item in enumerate(self._items):
            for word in set(item.kept):
                self._with.setdefault(word, []).append(number)

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The items the query names, each with every team that owns it.

        Confidence is the share of the item's words that stand in the query.
        """
        reading, present = read(query_lower), frozenset(map(key, query_words))
        matches: list[EntityMatch] = []
        for number in sorted({number for word in present for number in self._with.get(word, ())}):
            item = self._items[number]
            judged = self._judge(item, present, reading)
            if judged is None:
                continue
            keys, reason = judged
            pairs = zip(reading.words, reading.keys, strict=True)
            words = tuple(dict.fromkeys(word for word, word_key in pairs if word_key in keys))
            confidence = round(len(keys) / len(set(item.kept)), 3)
            matches += [
                EntityMatch(team, self.name, item.name, words, 100.0, reason, confidence) for team in item.teams
            ]
        return matches


def judge_member(item: VocabularyItem, present: frozenset[str], reading: StructureReading) -> Judged | None:
    """What of the member's name is in the query, or None where that is not enough."""
    kept = frozenset(item.kept)
    shared = kept & present
    if len(item.kept) == 1 and item.roles:  # a single role word is nobody's name
        return None
    if kept <= present and reading.holds(item.keys):
        return kept, "the full name, in order"
    if len(item.kept) <= SHORT_NAME and item.roles:
        together = kept <= present and reading.holds(item.kept)
        return (kept, "a name with a role word, its words side by side") if together else None
    if len(item.kept) <= SHORT_NAME:
        return (shared, f"{len(shared)} of {len(kept)} words of a short name") if shared else None
    distinctive = item.distinctive & present
    if distinctive:
        return shared, f"a distinctive word of a long name: {', '.join(sorted(distinctive))}"
    if not item.roles and len(shared) >= SHORT_NAME:
        return shared, f"{len(shared)} words of a long name"
    return None


def judge_ability(item: VocabularyItem, present: frozenset[str], reading: StructureReading) -> Judged | None:
    """What of the ability's name is in the query, or None where that is not enough."""
    kept = frozenset(item.kept)
    shared = kept & present
    if len(shared) < min(ENOUGH, len(kept)):
        return None
    left_out = f" (left out as stop words: {', '.join(item.stopped)})" if item.stopped else ""
    return shared, f"{len(shared)} of {len(kept)} words{left_out}"


# ---------------------------------------------------------------- phrases, exact or misspelt


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
    """Finds phrases in a query: word by word the same, or misspelt, by two rules.

    A word of 4 or 5 letters: same length, same first letter, one letter different; the ratio says too much there
    ("works" is 89 like "orks", "orkz" only 75). A word of 6 letters and more: rapidfuzz's ratio at or above the
    threshold. Neither an ordinary word nor a word of the structure is ever taken as misspelt.
    """

    def __init__(self, phrases: Sequence[tuple[str, bool]], vocabulary: Vocabulary, settings: EntitySettings) -> None:
        """`phrases` are texts and whether each may be misspelt (initials may not)."""
        self._readings = [read(text) for text, _ in phrases]
        self._vocabulary, self._settings = vocabulary, settings
        self._threshold = settings.threshold
        self._exact: dict[tuple[str, ...], list[int]] = {}
        for number, reading in enumerate(self._readings):
            self._exact.setdefault(reading.keys, []).append(number)
        self._lengths = sorted({len(reading.words) for reading in self._readings})
        # what may be misspelt: all as text by number, and by its count of words
        self._whole = {n: " ".join(self._readings[n].words) for n, (_, fuzzy) in enumerate(phrases) if fuzzy}
        self._runs: dict[int, dict[int, str]] = {}
        for number, text in self._whole.items():
            self._runs.setdefault(len(self._readings[number].words), {})[number] = text

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

    def _find_exact(self, reading: StructureReading) -> Iterator[PhraseHit]:
        """Phrases whose words stand in the query side by side, singular or plural."""
        for length in self._lengths:
            for start in range(len(reading.words) - length + 1):
                for number in self._exact.get(reading.keys[start : start + length], ()):
                    yield PhraseHit(number, reading.words[start : start + length], 100.0, True)

    def _find_misspelt(self, reading: StructureReading) -> Iterator[PhraseHit]:
        """Phrases that one word may be, and those whose words are each the same as a run's or misspelt."""
        odd = [self._vocabulary.misspelt(word, self._settings) for word in reading.words]
        for word in dict.fromkeys(word for word, is_odd in zip(reading.words, odd, strict=True) if is_odd):
            if len(word) in SHORT_WORD:
                for number, text in self._runs.get(1, {}).items():
                    if one_letter_off(word, text):
                        yield PhraseHit(number, (word,), fuzz.ratio(word, text), False)
            elif len(word) > SHORT_WORD[-1]:
                for number, score in self._close(word, self._whole):
                    yield PhraseHit(number, (word,), score, False)
        for length in (length for length in self._lengths if length > 1):
            starts = (s for s in range(len(reading.words) - length + 1) if any(odd[s : s + length]))
            for words, may in dict.fromkeys((reading.words[s : s + length], (*odd[s : s + length],)) for s in starts):
                for number, score in self._close(" ".join(words), self._runs.get(length, {})):
                    name = self._readings[number]
                    if all(map(self._same_or_misspelt, words, may, name.words, name.keys)):
                        yield PhraseHit(number, words, score, False)

    def _close(self, text: str, phrases: dict[int, str]) -> list[tuple[int, float]]:
        """(number, ratio) of the phrases whose ratio to a text is at least the threshold, by number."""
        near = process.extract(text, phrases, scorer=fuzz.ratio, score_cutoff=self._threshold, limit=None)
        return sorted((number, score) for _, score, number in near)

    def _same_or_misspelt(self, word: str, odd: bool, name: str, name_key: str) -> bool:
        if key(word) == name_key:
            return True
        return odd and (fuzz.ratio(word, name) >= self._threshold or one_letter_off(word, name))


class PhraseStrategy:
    """What finds entities by phrases; its threshold can be moved."""

    def __init__(self, phrases: Sequence[tuple[str, bool]], vocabulary: Vocabulary, settings: EntitySettings) -> None:
        self._finder = PhraseFinder(phrases, vocabulary, settings)

    def at(self, threshold: float) -> Self:
        """The same strategy with another threshold for misspelt names."""
        other = copy.copy(self)
        other._finder = self._finder.at(threshold)
        return other


def name_reason(name: str, exact: bool) -> str:
    """Why a name counts: word by word the same, or misspelt."""
    return "the same words, singular or plural" if exact else f"close to {name!r}; no ordinary word, no word known here"


# ---------------------------------------------------------------- aliases and own names


@dataclass(frozen=True, slots=True)
class Alias:
    """One way to say teams: the phrase, what it says, the teams, and how it came (alias | synonym | initials)."""

    phrase: str
    item: str
    teams: tuple[str, ...]
    kind: str = "alias"


class AliasStrategy(PhraseStrategy):
    """Finds entities by aliases, synonyms and initials."""

    name = "alias"

    def __init__(self, structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> None:
        self._aliases = list(all_aliases(structure))
        super().__init__([(alias.phrase, alias.kind != "initials") for alias in self._aliases], vocabulary, settings)

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """One match per team of every alias in the query; stop words belong to aliases, so the whole query is read."""
        matches: list[EntityMatch] = []
        for hit in self._finder.find(read(query_lower)):
            alias, share, reason = (
                self._aliases[hit.number],
                1.0,
                name_reason(self._aliases[hit.number].phrase, hit.exact),
            )
            if alias.kind == "synonym":
                reason = f"{alias.phrase!r} is a synonym of {alias.item!r}: {reason}"
            elif alias.kind == "initials":
                share, reason = INITIALS_CONFIDENCE, f"initials of {alias.item!r}"
            confidence = round(hit.score / 100 * share, 3)
            matches += [
                EntityMatch(team, self.name, alias.item, hit.words, hit.score, reason, confidence)
                for team in alias.teams
            ]
        return matches


def all_aliases(structure: Structure) -> Iterator[Alias]:
    """Shared aliases, then the entities' own, then synonyms, then initials, given or made.

    Made are the first letters of names of three words and more: nobody else's, no ordinary word, no stop word.
    """
    owners: dict[str, dict[str, None]] = {}  # what a synonym may point to → its teams
    for alias, teams in structure.aliases.items():
        yield Alias(alias, alias, tuple(teams))
        owners.setdefault(alias, {}).update(dict.fromkeys(teams))
    for entity in structure.entities:
        yield from (Alias(alias, alias, (entity.name,)) for alias in entity.aliases)
        for name in (entity.name, *entity.aliases, *entity.members, *entity.abilities):
            owners.setdefault(name, {})[entity.name] = None
    for word, item in structure.synonyms.items():
        if item in owners:  # a synonym of a role word leads to members, in the vocabulary
            yield Alias(word, item, tuple(owners[item]), "synonym")
    for entity in structure.entities:
        yield from (Alias(initials, entity.name, (entity.name,), "initials") for initials in entity.initials)
    made = [(entity, "".join(word[0] for word in read(entity.name).words)) for entity in structure.entities]
    count = Counter(initials for _, initials in made)
    for entity, initials in made:
        free = count[initials] == 1 and initials not in ordinary_words() and initials not in structure.stop_words
        if len(initials) >= INITIALS_FROM and free and not entity.initials:
            yield Alias(initials, entity.name, (entity.name,), "initials")


class TeamNameStrategy(PhraseStrategy):
    """Finds entities by their own names, or by a distinctive word of one."""

    name = "team_name"

    def __init__(self, structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> None:
        self._names = list(own_names(structure, vocabulary, settings))
        super().__init__([(phrase, True) for phrase, _ in self._names], vocabulary, settings)

    def match(self, query_lower: str, query_words: Sequence[str]) -> list[EntityMatch]:
        """The entities the query names, each by what is most alike; stop words belong to names."""
        best: dict[str, EntityMatch] = {}
        for hit in self._finder.find(read(query_lower)):
            phrase, team = self._names[hit.number]
            whole = phrase == team
            reason = name_reason(phrase, hit.exact) if whole else f"{phrase!r}, a distinctive word of its name"
            share = 1.0 if whole else 1 / len(read(team).words)
            match = EntityMatch(team, self.name, team, hit.words, hit.score, reason, round(hit.score / 100 * share, 3))
            if team not in best or hit.score > best[team].score:  # the whole name comes first
                best[team] = match
        return list(best.values())


def own_names(structure: Structure, vocabulary: Vocabulary, settings: EntitySettings) -> Iterator[tuple[str, str]]:
    """(phrase, entity): every entity's name, then the distinctive words of the names of two words and more.

    Distinctive is what no other entity's name holds and is no role word, no stop word and nobody's alias: no ordinary
    English word either, but for a name's first word of six letters and more ("Angels" of Angels Of Death).
    """
    readings = {entity.name: read(entity.name) for entity in structure.entities}
    yield from ((name, name) for name in readings)
    holders = Counter(word for reading in readings.values() for word in set(reading.keys))
    other = {read(alias.phrase).keys for alias in all_aliases(structure)}
    for name, reading in readings.items():
        first = True
        for word in vocabulary.without_stop_words(reading.words):
            known = word in ordinary_words() or key(word) in ordinary_words()
            least = settings.distinctive_word_length if known else settings.min_word_length
            free = holders[key(word)] == 1 and key(word) not in vocabulary.roles and (key(word),) not in other
            if len(reading.words) > 1 and free and len(word) >= least and (first or not known):
                yield word, name
            first = False
