"""Forms of words and numbers that mean the same in a question: singular and plural, spellings, "5th" and "fifth".

English only, by rule and a short table of exceptions; a form too many keeps a chunk that could go, a form too few drops
one that is wanted. What a term matches is in match.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

SHORTEST = 3  # letters of a word that has a plural
_PAIRS = """
man/men woman/women child/children person/people mouse/mice louse/lice goose/geese tooth/teeth foot/feet ox/oxen
die/dice index/indices vertex/vertices matrix/matrices appendix/appendices criterion/criteria phenomenon/phenomena
analysis/analyses axis/axes basis/bases crisis/crises fungus/fungi
"""
_IRREGULAR = {single: many for single, many in (pair.split("/") for pair in _PAIRS.split())}
_COMPOUNDED = ("man", "woman", "foot", "tooth", "mouse", "child")  # "lizardman", "eyetooth"
_NOT_MEN = ("human", "roman", "german", "shaman", "talisman", "ottoman")
_VES = ("thief", "elf", "wolf", "warf", "loaf", "leaf", "half", "calf", "knife", "life", "wife")
_SINGULAR = {many: single for single, many in _IRREGULAR.items()}
_COUNTED = """
one/first two/second three/third four/fourth five/fifth six/sixth seven/seventh eight/eighth nine/ninth ten/tenth
eleven/eleventh twelve/twelfth thirteen/thirteenth fourteen/fourteenth fifteen/fifteenth sixteen/sixteenth
seventeen/seventeenth eighteen/eighteenth nineteen/nineteenth twenty/twentieth
"""
_NUMBERS = [pair.split("/") for pair in _COUNTED.split()]  # of 1, 2, …: as a cardinal, as an ordinal
_SHORT = {
    "level": ("lvl", "lv"),
    "version": ("ver",),
    "chapter": ("ch", "chap"),
    "section": ("sec",),
    "volume": ("vol",),
    "number": ("no", "nr"),
    "page": ("pg",),
    "temperature": ("temp",),
    "figure": ("fig",),
}
_SPELLINGS = (("our", "or"), ("ise", "ize"), ("yse", "yze"), ("isation", "ization"), ("tre", "ter"), ("grey", "gray"))


def plural(word: str) -> str:
    """The regular or known plural of an English noun."""
    for single, many in _IRREGULAR.items():
        compound = single in _COMPOUNDED and word.endswith(single) and not word.endswith(_NOT_MEN)
        if word == single or compound:
            return word[: len(word) - len(single)] + many
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith(_VES):
        return word.removesuffix("e")[:-1] + "ves"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def word_forms(word: str, known: Callable[[str], bool] = lambda _: True) -> tuple[str, ...]:
    """The word, then what it is the plural or the singular of; of several possible ones those that `known` knows."""
    if len(word) < SHORTEST or not word.isalpha():
        return (word,)
    singles = list(_singulars(word))
    some = [single for single in singles if known(single)]
    found = [word, *(some or singles[:1])]
    if not singles or not some:
        found.append(plural(word))
    return tuple(dict.fromkeys(found))


def _singulars(word: str) -> Iterator[str]:
    """What the word may be the plural of, the likeliest first."""
    irregular = next((many for many in _SINGULAR if word == many or (many == "men" and word.endswith("men"))), None)
    if irregular is not None:
        yield word[: len(word) - len(irregular)] + _SINGULAR[irregular]
        return
    if not word.endswith("s") or word.endswith(("ss", "us", "is")) or len(word) <= SHORTEST:
        return
    if word.endswith("ies"):
        yield word[:-3] + "y"
    if word.endswith("ves"):
        yield word[:-3] + "f"
        yield word[:-3] + "fe"
    if word.endswith(("ses", "xes", "zes", "ches", "shes")):
        yield word[:-2]
    yield word[:-1]


def phrase_forms(words: Sequence[str], known: Callable[[str], bool] = lambda _: True) -> tuple[str, ...]:
    """A phrase with its last word in each of its forms."""
    return tuple(" ".join([*words[:-1], last]) for last in word_forms(words[-1], known)) if words else ()


def spellings(phrase: str) -> tuple[str, ...]:
    """The phrase, and as it is spelt on the other side of the Atlantic: "armor class" and "armour class"."""
    found = [phrase]
    for british, american in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            found.append(re.sub(rf"(?<=\w\w\w){one}\b" if len(one) < 4 else rf"\b{one}\b", other, phrase))
    return tuple(dict.fromkeys(found))


def counted_forms(label: str, number: int) -> tuple[str, ...]:
    """How else a question counts by a label of one word: "5th", "fifth level", "level five".

    In "the 3rd and fifth level" the first has no label beside it, so "3rd" stands alone, and "third" with its "and".
    """
    if not 0 < number <= 99 or " " in label or len(label) < SHORTEST:
        return ()
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    found = [f"{number}{ending}"]
    if number <= len(_NUMBERS):
        cardinal, ordinal = _NUMBERS[number - 1]
        found += [f"{ordinal} {label}", f"{ordinal} and", f"{ordinal} or", f"{label} {cardinal}"]
    return tuple(found)


def abbreviations(label: str) -> tuple[str, ...]:
    """The usual short forms of a label: "lvl" for level."""
    return _SHORT.get(label, ())


def initials(words: Iterable[str]) -> str:
    """The acronym of a label of two or more words: "ac" for armor class; empty for others."""
    plain = [word for word in words if word.isalpha()]
    return "".join(word[0] for word in plain) if len(plain) > 1 and min(map(len, plain)) > 1 else ""
