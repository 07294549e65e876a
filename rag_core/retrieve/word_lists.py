"""Keyword and synonym lists: what a question's words are normalised to, and what official terms they stand for.

Reading the files people edit, and finding phrases in a text by whole words. The stages that use them are
in rewrite.py; taking keywords from headers is done at ingest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.files import parse_json, parse_yaml, read_text
from rag_core.text import Token, tokenize

SHORTEST = 4  # characters of a keyword
LONGEST = 200  # characters of a keyword, term or word
MOST = 20_000  # entries of a file
LARGEST = 200_000  # bytes of a file: a YAML of that size is read in about two seconds

Phrase = tuple[str | None, ...]
"""The folded words of a phrase; None stands for any number."""


@dataclass(frozen=True, eq=False)
class Keywords:
    """Keywords in the capitals of the documents. "Accurate x" and "Lethal 5+" also stand for other numbers and for the
    bare name, "TEAM - ABILITY" also for either side.
    """

    names: tuple[str, ...] = ()
    _spelt: Mapping[Phrase, tuple[str, ...]] = field(init=False, repr=False)
    _starts: Mapping[str, tuple[Phrase, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        spelt: dict[Phrase, tuple[str, ...]] = {}
        for forms in (_whole, _parts):
            for name in self.names:
                for phrase, spelling in forms(name):
                    spelt.setdefault(phrase, spelling)
        object.__setattr__(self, "_spelt", spelt)
        object.__setattr__(self, "_starts", by_first_word(spelt))

    def normalised(self, text: str) -> tuple[str, tuple[str, ...]]:
        """The text with every known keyword in its capitals, longest first, and the keywords found, as they now stand.

        Nothing but capitals changes.
        """
        tokens = tokenize(text)
        found = list(found_phrases(tokens, self._starts))
        written = text
        for start, phrase in reversed(found):
            place = range(start, start + len(phrase))
            for at, word, spelling in reversed(list(zip(place, phrase, self._spelt[phrase], strict=True))):
                token = tokens[at]
                if word is not None:
                    written = written[: token.start] + spelling + written[token.end :]
        said = tokenize(written)
        spans = [(said[start].start, said[start + len(phrase) - 1].end) for start, phrase in found]
        return written, tuple(dict.fromkeys(written[start:stop] for start, stop in spans))


@dataclass(frozen=True, eq=False)
class Synonyms:
    """Official term → the words users say for it."""

    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _meant: Mapping[Phrase, tuple[str, ...]] = field(init=False, repr=False)
    _starts: Mapping[str, tuple[Phrase, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        meant: dict[Phrase, tuple[str, ...]] = {}
        for term, words in self.terms.items():
            for word in words:
                phrase = words_of(word)
                meant[phrase] = (*meant.get(phrase, ()), term)
        object.__setattr__(self, "_meant", meant)
        object.__setattr__(self, "_starts", by_first_word(meant))

    def expansions(self, text: str) -> tuple[tuple[str, str], ...]:
        """(official term, the user's word that stands for it) in the order of the text; terms it holds are left out.

        Whole words only; of overlapping words the longest counts.
        """
        tokens = tokenize(text)
        found: dict[str, str] = {}
        for start, phrase in found_phrases(tokens, self._starts):
            said = text[tokens[start].start : tokens[start + len(phrase) - 1].end]
            for term in self._meant[phrase]:
                official = words_of(term)
                if not any(_stands_at(tokens, at, official) for at in range(len(tokens))):
                    found.setdefault(term, said)
        return tuple(found.items())


def words_of(text: str) -> Phrase:
    """The folded words of a text."""
    return tuple(token.text for token in tokenize(text))


def by_first_word(phrases: Iterable[Phrase]) -> dict[str, tuple[Phrase, ...]]:
    """First word → the phrases that begin with it, the longest first."""
    found: dict[str, list[Phrase]] = {}
    for phrase in phrases:
        found.setdefault(str(phrase[0]), []).append(phrase)
    return {word: tuple(sorted(some, key=len, reverse=True)) for word, some in found.items()}


def found_phrases(tokens: Sequence[Token], starts: Mapping[str, Sequence[Phrase]]) -> Iterator[tuple[int, Phrase]]:
    """(place of its first token, phrase) of each phrase from left to right, the longest at each place, none inside
    another and none over the end of a sentence.
    """
    at = 0
    while at < len(tokens):
        fitting = (phrase for phrase in starts.get(tokens[at].text, ()) if _stands_at(tokens, at, phrase))
        phrase = next(fitting, None)
        if phrase is not None:
            yield at, phrase
        at += len(phrase) if phrase else 1


def _stands_at(tokens: Sequence[Token], at: int, phrase: Phrase) -> bool:
    """Whether a phrase begins there, within one sentence; its None is any number, or the letter x."""
    some = tokens[at : at + len(phrase)]
    return (
        len(some) == len(phrase)
        and some[0].sentence == some[-1].sentence
        and all(
            token.text == word if word is not None else token.value is not None or token.text == "x"
            for token, word in zip(some, phrase, strict=True)
        )
    )


def _whole(name: str) -> Iterator[tuple[Phrase, tuple[str, ...]]]:
    """A keyword as it stands, a number in it standing for any, and its bare name where it ends in one."""
    tokens = tokenize(name)
    if not tokens:
        return
    spelling = tuple(name[token.start : token.end] for token in tokens)
    phrase = tuple(
        None if at and (token.value is not None or token.text == "x") else token.text for at, token in enumerate(tokens)
    )
    yield phrase, spelling
    bare = phrase[: next((at for at, word in enumerate(phrase) if word is None), len(phrase))]
    if len(bare) < len(phrase) and len(" ".join(spelling[: len(bare)])) >= SHORTEST:
        yield bare, spelling[: len(bare)]


def _parts(name: str) -> Iterator[tuple[Phrase, tuple[str, ...]]]:
    """The sides of "TEAM - ABILITY" that are long enough."""
    sides = re.split(r"\s+[-\u2013\u2014]\s+", name)
    for side in sides if len(sides) > 1 else ():
        if len(side) >= SHORTEST:
            yield from _whole(side)


def read_keywords(path: Path) -> Keywords:
    """The keywords of a YAML or JSON file: `keywords: [...]` or a bare list; an InputError names what is wrong."""
    return parse_keywords(_read(path), str(path))


def parse_keywords(value: Any, where: str) -> Keywords:
    """Keywords from plain values."""
    listed = value.get("keywords") if isinstance(value, Mapping) and set(value) <= {"keywords", "version"} else value
    return Keywords(tuple(dict.fromkeys(_texts([] if listed is None else listed, f"{where} keywords"))))


def read_synonyms(path: Path) -> Synonyms:
    """The synonyms of a YAML or JSON file, `official term: [user words]`; an InputError names what is wrong."""
    return parse_synonyms(_read(path), str(path))


def parse_synonyms(value: Any, where: str) -> Synonyms:
    """Synonyms from plain values."""
    if not isinstance(value, Mapping) or len(value) > MOST:
        raise InputError(f"{where} is no mapping, expected `official term: [user words]`, at most {MOST:,} of them")
    return Synonyms(
        {_text(term, where): tuple(_texts(words, f"{where} {term!r:.60}")) for term, words in value.items()}
    )


def _read(path: Path) -> Any:
    text = read_text(path, limit=LARGEST)
    return (parse_json if path.suffix == ".json" else parse_yaml)(text, str(path)) or {}


def _texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or len(value) > MOST:
        raise InputError(f"{where} is of type {type(value).__name__}, expected a list of at most {MOST:,} texts")
    return [_text(one, where) for one in value]


def _text(value: Any, where: str) -> str:
    """A term as text without space around it; a number is taken as its text."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not 0 < len(text) <= LONGEST or not tokenize(text):
        raise InputError(f"{where} has {value!r:.60}, expected a text with a word, of at most {LONGEST} characters")
    return text
