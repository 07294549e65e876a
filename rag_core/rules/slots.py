"""Rules from slots: what near-duplicate titles differ in is what a question must name.

A family is a set of chunks whose titles are alike but for one or more slots: a number ("Armor Class 6"), a code
("Type C"), a list ("clerics, druids and monks") or words ("Dragon, Black"). Each member's rule asks for its own values
with their synonyms, never for what all titles share. Numbers, codes and the lists beside them are asked for always
(`strict`); words only where the question names some value of their slot (`named`), since many questions name none.
Without a model, and the same for the same chunks. What is not solved: file names, slots that stand in metadata alone.
The effect on labelled questions is in slot_check.py; storing is the collection's (rag_core.index.rules).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from rag_core.errors import InputError
from rag_core.rules.match import decide
from rag_core.rules.model import Group, NumberIn, Rule, WhenNamed
from rag_core.rules.parsing import MAX_TERMS, read_rule
from rag_core.text import FILLERS, STOP_WORDS, Token, tokenize, words
from rag_core.types import Chunk

NUMBER, CODE = "#", "@"
"""How a unit that is a number (or a range), and one that is a code, reads in a title's shape."""

JOINERS = ("and", "or")
_OUTLINE = re.compile(r"^\s*(?:[IVXLC]+|[A-Z]|\d+)(?:\.(?:[IVXLC]+|[A-Z]|\d+))*[.)]\s+(?=\S)")
_BRACKETS = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]")
_SEGMENT = re.compile(r":|\||[>›»]|\s[-–—/]\s|\t|;")
_ROMAN = re.compile(r"(?=[IVXLC]{2,})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


class Unit(NamedTuple):
    """A word (with what a hyphen joins to it), a number, a range or a code of a title.

    `gap` is the mark before it: "" a space, "," a comma, "-" what parts segments (a colon, a dash between spaces).
    """

    text: str
    kind: str  # word | number | code
    gap: str
    low: float | None = None
    high: float | None = None  # of a range: the same as `low` for one number, None for "19+"

    @property
    def mask(self) -> str:
        """The unit in a shape: numbers and codes are alike."""
        return {"number": NUMBER, "code": CODE}.get(self.kind, self.text)

    @property
    def content(self) -> bool:
        """Whether it is a word that tells something."""
        return self.kind == "word" and len(self.text) > 1 and self.text not in STOP_WORDS and self.text not in FILLERS


@dataclass(frozen=True, slots=True)
class Title:
    """A title's units, and apart from them what stands in its brackets, each bracket with units of its own."""

    text: str
    units: tuple[Unit, ...]
    brackets: tuple[tuple[Unit, ...], ...]
    numbered: bool = False  # whether a "#" stands before one of its numbers


def read_title(text: str) -> Title:
    """The title in units."""
    brackets = [found for pair in _BRACKETS.findall(text) if (found := " ".join(pair).strip())]
    core = _BRACKETS.sub(" ", text).strip() or text
    core = _OUTLINE.sub("", core, count=1)
    within = tuple(units for bracket in brackets if (units := units_of(bracket)))
    return Title(text, units_of(core), within, bool(re.search(r"#\s*\d", core)))


def units_of(text: str) -> tuple[Unit, ...]:
    """A text in units."""
    tokens = tokenize(text)
    shouting = text.upper() == text
    found: list[Unit] = []
    at = 0
    while at < len(tokens):
        gap = _gap(text[tokens[at - 1].end : tokens[at].start]) if at else ""
        unit, at = _unit(text, tokens, at, gap, shouting)
        found.append(unit)
    return tuple(found)


def _unit(text: str, tokens: tuple[Token, ...], at: int, gap: str, shouting: bool) -> tuple[Unit, int]:
    """The unit that begins at a token, and the place after it."""
    token = tokens[at]
    if token.value is not None and not token.ordinal:
        return _number(text, tokens, at, gap)
    if token.ordinal:
        return Unit(token.text, "number", gap, token.value, token.value), at + 1
    raw = text[token.start : token.end]
    roman = not shouting and bool(_ROMAN.fullmatch(raw))
    if any(character.isdigit() for character in token.text) or roman or (len(raw) == 1 and raw.isupper()):
        return Unit(token.text, "code", gap), at + 1
    words = [token.text]
    while at + 1 < len(tokens) and text[tokens[at].end : tokens[at + 1].start] in ("-", "‐", "‑"):
        at += 1
        words.append(tokens[at].text)
    return Unit(" ".join(words), "word", gap), at + 1


def _number(text: str, tokens: tuple[Token, ...], at: int, gap: str) -> tuple[Unit, int]:
    """A number, or the range it begins: "6-10", "6 to 10", "19+"."""
    token, low = tokens[at], tokens[at].value
    for width in (1, 2):
        end = at + width
        if end >= len(tokens) or tokens[end].value is None or tokens[end].ordinal:
            continue
        between = text[token.end : tokens[end].start].strip().casefold()
        if between in ("-", "–", "‐", "‑", "to") and (width == 2) == (between == "to"):
            return Unit(f"{token.text}-{tokens[end].text}", "number", gap, low, tokens[end].value), end + 1
    if text[token.end :].startswith("+"):
        return Unit(f"{token.text}+", "number", gap, low, None), at + 1
    return Unit(token.text, "number", gap, low, low), at + 1


def _gap(between: str) -> str:
    if _SEGMENT.search(between):
        return "-"
    return "," if "," in between else ""


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
    singles = [single for single in _singulars(word) if plural(single) == word]
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


POLICIES = ("strict", "named")
LEAST = 3  # members of a family, and values of a slot of words
LONGEST = 30  # units of a title that is looked at, and
LONGEST_LINE = 120  # characters of a first line that may be a heading
LONGEST_SLOT = 12  # of a stretch that is left open: what keeps 100,000 titles a matter of a minute
WIDEST = 12  # whole numbers of a range that are written out one by one
BOUND = 0.9  # share of a label's uses behind one and the same word, from which that word belongs to the label
NEAR = 0.45  # of the way from any two texts to equal ones; seen: tables .49 to .96, numbered things .12 to .36
HOMOGENEOUS = 60.0  # likeness of any two texts from which it tells no family from the rest
COMMON = 0.05  # share of the chunks that hold a word which then tells nothing by itself
_COUNTERS = """
part chapter section table figure fig page appendix step volume vol no nr number example note item paragraph article
clause rule lesson exercise version release edition question slide line row
"""
COUNTERS = frozenset(_COUNTERS.split())
"""Labels that number a text's places and not its subject: a question that wants the text rarely gives them."""
LETTERS_THAT_ARE_WORDS = ("a", "i")
_TOTALS = ("total", "sum", "together", "combined")
_HEADS = ("of", "for", "from", "to", "with", "against", "in", "on", "by")

Span = tuple[int, int]
Synonyms = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a family's titles differ. `labels` are the words before a number, `values` how many there are."""

    name: str
    kind: str  # number | code | list | word
    policy: str  # strict | named
    values: int
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family: its title and its value in each slot, '' where its title has none."""

    chunk_id: str
    title: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlotEvidence:
    """Why this is a family: how alike its texts are beside any texts of the corpus (medians, 0 … 100), rules it has."""

    likeness: float
    any_texts: float
    with_rule: int


@dataclass(frozen=True, slots=True)
class Condition:
    """What one slot asks of a question, by policy. Where `named` is None, nothing is asked under that policy.

    That is so for open ranges and sums of numbers, which can only be asked for strictly.
    """

    slot: int
    strict: Group | NumberIn
    named: WhenNamed | None


@dataclass(frozen=True)
class SlotFamily:
    """Near-duplicate chunks, the slots that tell them apart, and a proposed rule for each; nothing is stored.

    `without` says of the members that get no rule why. `parents` have the family's constant title without a slot,
    `repeated` are members whose title another one has too: their rules are equal.
    """

    name: str
    slots: tuple[Slot, ...]
    members: tuple[Member, ...]
    evidence: SlotEvidence
    conditions: Mapping[str, tuple[Condition, ...]] = field(repr=False)
    without: Mapping[str, str] = field(default_factory=dict)
    parents: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Chunk id → proposed rule, as the slots' policies have it."""
        made = {identity: self._rule(conditions) for identity, conditions in self.conditions.items()}
        return {identity: rule for identity, rule in made.items() if rule is not None}

    @property
    def policy(self) -> str:
        """`strict` where every slot is, `named` where none is, else `mixed`."""
        policies = {slot.policy for slot in self.slots}
        return policies.pop() if len(policies) == 1 else "mixed"

    def with_policy(self, policy: str) -> SlotFamily:
        """The family with one policy for all its slots, as far as their kinds allow."""
        return replace(self, slots=tuple(replace(slot, policy=policy) for slot in self.slots))

    def _rule(self, conditions: Sequence[Condition]) -> Rule | None:
        groups: list[Group] = []
        numbers: list[NumberIn] = []
        named: list[WhenNamed] = []
        for condition in conditions:
            if self.slots[condition.slot].policy == "named":
                named += [condition.named] if condition.named is not None else []
            elif isinstance(condition.strict, NumberIn):
                numbers.append(condition.strict)
            else:
                groups.append(condition.strict)
        if not (groups or numbers or named):
            return None
        return Rule(contain_one_of=tuple(groups), number_in=tuple(numbers), when_named=tuple(named))

    def to_json(self) -> dict[str, Any]:
        """The family as plain data."""
        return {
            "name": self.name,
            "policy": self.policy,
            "slots": [
                {
                    "name": slot.name,
                    "kind": slot.kind,
                    "policy": slot.policy,
                    "values": slot.values,
                    "labels": list(slot.labels),
                }
                for slot in self.slots
            ],
            "members": [
                {"chunk": one.chunk_id, "title": one.title, "values": list(one.values)} for one in self.members
            ],
            "rules": {identity: rule.as_mapping() for identity, rule in self.rules.items()},
            "without": dict(self.without),
            "parents": list(self.parents),
            "repeated": list(self.repeated),
            "evidence": {
                "likeness": round(self.evidence.likeness, 1),
                "any_texts": round(self.evidence.any_texts, 1),
                "with_rule": self.evidence.with_rule,
            },
        }

    def to_text(self) -> str:
        """The family in a few lines: pattern, slots with their policies, one rule as an example."""
        lines = [
            f"{self.name}: {len(self.rules)} rules for {len(self.members)} chunks (texts alike "
            f"{self.evidence.likeness:.0f}, any two {self.evidence.any_texts:.0f})"
        ]
        lines += [
            f"  {slot.name}: {slot.kind}, {slot.values} values, "
            + ("always asked for" if slot.policy == "strict" else "asked for where a question names one of them")
            for slot in self.slots
        ]
        for member in self.members:
            if member.chunk_id in self.rules:
                rule = self.rules[member.chunk_id].as_json()
                lines.append(f"  e.g. {member.title}: {rule if len(rule) < 300 else rule[:299] + '…'}")
                break
        for reason, count in Counter(self.without.values()).items():
            lines.append(f"  {count} without a rule: {reason}")
        return "\n".join(lines)


def propose(chunks: Sequence[Chunk], synonyms: Synonyms | None = None) -> list[SlotFamily]:
    """The families of a corpus with a rule for each member, the largest first.

    `synonyms` gives other words for a value ("plain" → "grassland"); they count as the value itself.
    """
    corpus = _Corpus(chunks, synonyms or {})
    families, left = _bracket_families(corpus)
    shapes = _shapes(left)
    taken: set[int] = set()
    for key, some in _choices(shapes):
        rest = [shape for shape in some if shape.number not in taken]
        family = _family(corpus, rest, key) if _large_enough(rest) else None
        if family is not None and family.rules and _alike(family):
            taken |= {shape.number for shape in rest}
            families.append(family)
    for shape in shapes:
        if shape.number not in taken and shape.varying and len(shape.rows) >= LEAST:
            family = _family(corpus, [shape], None)
            if family is not None and family.rules:
                families.append(family)
    return sorted(families, key=lambda family: (-len(family.members), family.name))


def _alike(family: SlotFamily) -> bool:
    """Whether a family's texts are as alike as any two; only where words make the family, which chance does too."""
    numbered = any(slot.kind in ("number", "code") for slot in family.slots)
    return numbered or family.evidence.likeness >= min(family.evidence.any_texts, HOMOGENEOUS)


def named_so(families: Sequence[SlotFamily], name: str | None) -> list[SlotFamily]:
    """The families whose name holds the words; an InputError lists some there are."""
    members = [family for family in families if name is None or name.casefold() in family.name.casefold()]
    if name is not None and not members:
        names = "; ".join(family.name for family in families[:20]) or "none"
        raise InputError(f"there is no family {name[:80]!r}, expected one of {names}")
    return members


def rules_to_store(families: Iterable[SlotFamily], chunks: Iterable[Chunk], replacing: bool = False) -> dict[str, Rule]:
    """The families' rules for chunks that carry none that can be read; when `replacing`, for all their chunks."""
    standing = {chunk.id for chunk in chunks if not replacing and isinstance(read_rule(chunk.query_must), Rule)}
    proposed = {identity: rule for family in families for identity, rule in family.rules.items()}
    return {identity: rule for identity, rule in proposed.items() if identity not in standing}


def repeated_titles(chunks: Iterable[Chunk]) -> dict[str, tuple[str, ...]]:
    """Title → the chunks that share it, the most first: what tells those apart is not in their titles."""
    by_title: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        if chunk.title.strip():
            by_title[chunk.title.strip()].append(chunk.id)
    shared = [(title, tuple(ids)) for title, ids in by_title.items() if len(ids) > 1]
    return dict(sorted(shared, key=lambda pair: (-len(pair[1]), pair[0])))


# ---------------------------------------------------------------- the corpus


@dataclass(frozen=True, slots=True)
class _Row:
    """A title and the chunks that have it; `own` of its units are the title's, the others the first line's."""

    title: Title
    chunks: tuple[int, ...]
    own: int


class _Corpus:
    """The chunks with their titles in units, and what their texts say of words and of the labels of numbers."""

    def __init__(self, chunks: Sequence[Chunk], synonyms: Synonyms) -> None:
        # By id, so that the families are the same in whatever order the chunks come.
        self.chunks = chunks = sorted(chunks, key=lambda chunk: chunk.id)
        self.synonyms = {" ".join(words(value)): tuple(others) for value, others in synonyms.items()}
        self.rows = list(_rows(chunks))
        self.texts = [words(f"{chunk.title}\n{chunk.text}") for chunk in chunks]
        self.holding = Counter(word for text in self.texts for word in set(text))

    @cached_property
    def before_numbers(self) -> Counter[tuple[str, ...]]:
        """How often each run of up to four words stands before a number in the texts, fillers right before it aside.

        Where a text repeats its own title, that says nothing about how people speak.
        """
        counts: Counter[tuple[str, ...]] = Counter()
        for chunk, text in zip(self.chunks, self.texts, strict=True):
            own = len(words(chunk.title))
            titled = {tuple(_before(text, at)) for at in range(own) if text[at].lstrip("-").isdigit()}
            for at in range(own, len(text)):
                run = tuple(_before(text, at, own)) if text[at].lstrip("-").isdigit() else ()
                if run not in titled:
                    counts.update(run[start:] for start in range(len(run)))
        return counts

    def knows(self, word: str) -> bool:
        """Whether some chunk holds the word."""
        return word in self.holding

    def common(self, word: str) -> bool:
        """Whether so many chunks hold the word that it tells nothing by itself."""
        return self.holding[word] > max(LEAST, COMMON * len(self.chunks))

    def label(self, run: Sequence[str]) -> str:
        """The end of a run of words that labels a number in the texts: "armor class" of "opponent armor class".

        A word belongs to it as long as what follows it hardly ever stands without it before a number.
        """
        start = len(run) - 1
        while start > 0 and len(run[start]) > 1 and run[start - 1] not in STOP_WORDS and run[start - 1].isalpha():
            label = tuple(run[start:])
            uses = self.before_numbers[label]
            if uses < LEAST or self.before_numbers[(run[start - 1], *label)] < BOUND * uses:
                break
            start -= 1
        return " ".join(run[start:])

    def meant_by(self, label: str) -> list[str]:
        """What an acronym stands for in some title, both spellings: "armor class" for "ac"; empty for other labels."""
        counts: Counter[str] = Counter()
        if label.isalpha() and 2 <= len(label) <= 4:
            for row in self.rows:
                title = [word for unit in row.title.units for word in unit.text.split()]
                for at in range(len(title) - len(label) + 1):
                    run = title[at : at + len(label)]
                    if "".join(word[0] for word in run) == label and all(len(word) > 1 for word in run):
                        counts[" ".join(run)] += not STOP_WORDS.intersection(run)
        often = max(counts.values(), default=0)
        return [spelling for run in sorted(counts) if 0 < counts[run] == often for spelling in spellings(run)]

    @cached_property
    def any_texts(self) -> float:
        """How alike two texts of the corpus are, by the median of pairs spread over it."""
        return _likeness([self.chunks[at].text for at in _spread(range(len(self.chunks)), 24)])


def _rows(chunks: Sequence[Chunk]) -> Iterable[_Row]:
    """The different titles with their chunks; where several share one, as paths often are, with their first lines.

    A title that three or more chunks share tells none of them apart, but their first lines may.
    """
    by_title: dict[str, list[int]] = defaultdict(list)
    for at, chunk in enumerate(chunks):
        by_title[chunk.title.strip()].append(at)
    for title, ids in by_title.items():
        by_line: dict[str, list[int]] = defaultdict(list)
        for at in ids if len(ids) >= LEAST or not title else ():
            by_line[_first_line(chunks[at])].append(at)
        if len(by_line.keys() - {""}) < LEAST:
            by_line = {"": ids}
        for line, some in by_line.items():
            own = read_title(title)
            read = read_title(f"{title} - {line}" if title and line else title or line)
            if read.units:
                yield _Row(read, tuple(some), len(own.units) if title else 0)


def _first_line(chunk: Chunk) -> str:
    """The first line that is short enough to be a heading, without marks; '' where it is a sentence of the text."""
    first = next((found for line in chunk.text.splitlines() if (found := line.strip("#*=->| \t"))), "")
    return first if len(first) <= LONGEST_LINE and not first.endswith(".") else ""


def _before(text: Sequence[str], at: int, start: int = 0) -> list[str]:
    """Up to four words before a place, without the fillers right before it."""
    end = at
    while end > start and text[end - 1] in FILLERS:
        end -= 1
    return list(text[max(start, end - 4) : end])


def _spread(places: Sequence[int], count: int) -> list[int]:
    """At most `count` of the places, evenly spread: the same on every run."""
    if len(places) <= count:
        return list(places)
    return [places[at * len(places) // count] for at in range(count)]


def _likeness(texts: Sequence[str]) -> float:
    pairs = combinations([text[:600] for text in texts], 2)
    return median([fuzz.token_sort_ratio(one, other) for one, other in pairs] or [0.0])


# ---------------------------------------------------------------- shapes, and what they differ in


@dataclass(frozen=True, slots=True)
class _Shape:
    """Titles that are equal but for their numbers and codes; `varying` are the places of those that differ."""

    number: int
    elements: tuple[str, ...]  # each with the gap before it
    varying: tuple[int, ...]
    rows: tuple[_Row, ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.rows[0].title.units


_Key = tuple[tuple[str, ...], tuple[str, ...], str]
"""What shapes that differ in one stretch share: the elements before it, those after it, the gap it begins with."""


def _bracket_families(corpus: _Corpus) -> tuple[list[SlotFamily], list[_Row]]:
    """The families of titles that differ in their brackets alone, and the titles that are in none of them.

    A question rarely says what stands in brackets, so it is asked for only where a question names some such value.
    """
    by_core: dict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in corpus.rows:
        if len(row.title.brackets) == 1:
            by_core[_elements(row)].append(row)
    families: list[SlotFamily] = []
    taken: set[int] = set()
    for core, rows in by_core.items():
        if core and len(rows) >= LEAST:
            within = [replace(row, title=_bracket_as_segment(row.title), own=len(core)) for row in rows]
            counted = [shape for shape in _shapes(within) if shape.varying and 2 * len(shape.rows) >= len(rows)]
            family = _family(corpus, counted, None) if counted else None
            if family is None or not family.rules:
                shapes = [_Shape(at, _elements(row), (), (row,)) for at, row in enumerate(within)]
                family = _family(corpus, shapes, (core, (), "-"))
            if family is not None and family.rules:
                families.append(family)
                taken |= {row.chunks[0] for row in rows}
    return families, [row for row in corpus.rows if row.chunks[0] not in taken]


def _elements(row: _Row) -> tuple[str, ...]:
    return tuple(unit.gap + unit.text for unit in row.title.units)


def _bracket_as_segment(title: Title) -> Title:
    first, *others = title.brackets[0]
    return Title(title.text, (*title.units, first._replace(gap="-"), *others), ())


def _shapes(rows: Sequence[_Row]) -> list[_Shape]:
    groups: dict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in rows:
        units = row.title.units
        if 0 < len(units) <= LONGEST:
            groups[tuple(unit.gap + unit.mask for unit in units)].append(row)
    shapes: list[_Shape] = []
    for masks, alike in groups.items():
        places = [at for at, mask in enumerate(masks) if mask.lstrip(",-") in (NUMBER, CODE)]
        varying = tuple(at for at in places if len({row.title.units[at].text for row in alike}) > 1)
        first = alike[0].title.units
        elements = tuple(mask if at in varying else first[at].gap + first[at].text for at, mask in enumerate(masks))
        shapes.append(_Shape(len(shapes), elements, varying, tuple(alike)))
    return shapes


def _choices(shapes: Sequence[_Shape]) -> list[tuple[_Key, list[_Shape]]]:
    """Every way to leave a stretch of words open in which several shapes differ, the best first."""
    by_key: dict[_Key, list[_Shape]] = defaultdict(list)
    for shape in shapes:
        for start, end in _open_spans(shape):
            key = shape.elements[:start], shape.elements[end:], shape.units[start].gap
            by_key[key].append(shape)
    choices = [(key, some) for key, some in by_key.items() if _large_enough(some)]
    return sorted(choices, key=lambda choice: (-_worth(*choice), choice[0]))


def _open_spans(shape: _Shape) -> Iterable[Span]:
    """The stretches that may be a slot: words of their own, with a word that tells something left outside."""
    units, size = shape.units, len(shape.units)
    content = [unit.content or unit.kind == "code" for unit in units]
    for start in range(size):
        for end in range(start + 1, min(size, start + LONGEST_SLOT) + 1):
            if end - 1 in shape.varying:
                break
            if content[start] and content[end - 1] and any(content[:start] + content[end:]):
                yield start, end


def _large_enough(shapes: Sequence[_Shape]) -> bool:
    """Three values make a slot of words; two where each has numbers of its own and so repeats the other's."""
    numbered = all(shape.varying and len(shape.rows) >= LEAST for shape in shapes)
    return len(shapes) >= (2 if numbered else LEAST)


def _worth(key: _Key, shapes: Sequence[_Shape]) -> float:
    """How many titles a slot covers; a third where all that is shared is an adjective ("Giant Rat", "Giant Bat")."""
    before, after, gap = key
    head = bool(after) or bool(gap) or before[-1].lstrip(",-") in _HEADS
    first = shapes[0].units
    shared = sum(unit.content for unit in (*first[: len(before)], *first[len(first) - len(after) :]))
    return sum(len(shape.rows) for shape in shapes) * (1.0 if head else 0.34) * (1 + shared) / 2


# ---------------------------------------------------------------- slots of a family


@dataclass(frozen=True, slots=True)
class _Place:
    """A slot while its family is built: where each title has it (by shape), its kind, whether it is a segment alone."""

    kind: str
    spans: Mapping[int, Span]  # shape's number → places in the title's units
    alone: bool = False


def _family(corpus: _Corpus, shapes: Sequence[_Shape], key: _Key | None) -> SlotFamily | None:
    """The family of shapes that differ in an open stretch (none: in numbers alone), or None where it makes no rule."""
    places: list[_Place] = []
    if key is not None:
        open_spans = {shape.number: (len(key[0]), len(shape.elements) - len(key[1])) for shape in shapes}
        places += _word_places(shapes, open_spans)
    places += _number_places(shapes)
    if not places:
        return None
    rows = [(shape, row) for shape in shapes for row in shape.rows]
    slots = [_slot(corpus, place, rows, places) for place in places]
    numbered = any(slot.labels and slot.policy == "strict" for slot in slots)
    if not numbered or not _near_duplicates(corpus, shapes):  # a list is strict beside a number that is
        slots = [replace(slot, policy="named") for slot in slots]
    return _built(corpus, rows, places, slots)


def _near_duplicates(corpus: _Corpus, shapes: Sequence[_Shape]) -> bool:
    """Whether titles that differ in a number have texts that differ in little else: tables, and not "Apollo 11".

    A question about a table names its number; one about things that are numbered often asks for all of them.
    """
    if corpus.any_texts >= HOMOGENEOUS:
        return True
    found = []
    for shape in shapes:
        if shape.varying:
            some = [corpus.chunks[row.chunks[0]].text for row in shape.rows]
            found.append(_likeness([some[at] for at in _spread(range(len(some)), 10)]))
    return bool(found) and median(found) >= corpus.any_texts + NEAR * (100.0 - corpus.any_texts)


def _word_places(shapes: Sequence[_Shape], spans: Mapping[int, Span]) -> list[_Place]:
    """The slots of an open stretch: a list, or its parts between commas and dashes, a part of two that cross as two."""
    units = {shape.number: shape.units for shape in shapes}
    numbered = any(shape.varying for shape in shapes)
    lists = sum(_is_list(units[number][start:end]) for number, (start, end) in spans.items())
    if 2 * lists >= len(spans):
        return [_Place("list", spans, alone=True)]
    parts = {number: _parts(units[number], span) for number, span in spans.items()}
    if sum(len(one) > 1 for one in parts.values()) < 2:
        parts = {number: [span] for number, span in spans.items()}
    places: list[_Place] = []
    for at in range(max(map(len, parts.values()))):
        some = {number: one[at] for number, one in parts.items() if len(one) > at}
        some = _without_shared_ends(some, units)
        if 2 * sum(_is_list(units[number][start:end]) for number, (start, end) in some.items()) >= len(some):
            places.append(_Place("list", some, alone=True))
            continue
        alone = all(_stands_alone(units[number], span, numbered) for number, span in some.items())
        places += [_Place("word", one, alone) for one in _crossing(some, units)]
    return [place for place in places if len(_values(place, units)) > 1 or len(place.spans) < len(spans)]


def _is_list(units: Sequence[Unit]) -> bool:
    """Whether words are enumerated: joined by and, or, or several commas."""
    joined = any(unit.text in JOINERS for unit in units[1:-1])
    return joined or sum(unit.gap == "," for unit in units[1:]) > 1


def _parts(units: Sequence[Unit], span: Span) -> list[Span]:
    """A stretch cut where a comma or a dash stands; not inside an enumeration."""
    start, end = span
    cuts = [at for at in range(start + 1, end) if units[at].gap and units[at].text not in JOINERS]
    return list(zip([start, *cuts], [*cuts, end], strict=True))


def _without_shared_ends(spans: Mapping[int, Span], units: Mapping[int, Sequence[Unit]]) -> dict[int, Span]:
    """The stretches without the words all of them begin or end with: "Acid Damage", "Fire Damage"."""
    found = dict(spans)
    while len({_value(units[n], span) for n, span in found.items()}) > 1 and all(b - a > 1 for a, b in found.values()):
        if len({units[number][end - 1].text for number, (_, end) in found.items()}) == 1:
            found = {number: (start, end - 1) for number, (start, end) in found.items()}
        elif len({units[number][start].text for number, (start, _) in found.items()}) == 1:
            found = {number: (start + 1, end) for number, (start, end) in found.items()}
        else:
            break
    return found


def _stands_alone(units: Sequence[Unit], span: Span, numbered: bool) -> bool:
    """Whether a stretch is a segment of its title; between commas only where a number follows ("Bard, level 3")."""
    start, end = span
    left = units[start].gap if start else "edge"
    right = units[end].gap if end < len(units) else "edge"
    return bool(left and right) and (numbered or "-" in (left, right))


def _crossing(spans: Mapping[int, Span], units: Mapping[int, Sequence[Unit]]) -> list[dict[int, Span]]:
    """The stretches as two slots where their first (or last) word and the rest cross: adult, young × black, blue."""
    long = {number: span for number, span in spans.items() if span[1] - span[0] > 1}
    best: tuple[int, list[dict[int, Span]]] | None = None
    for at_end in (False, True):
        cut = {number: (end - 1 if at_end else start + 1) for number, (start, end) in long.items()}
        left = {number: (long[number][0], cut[number]) for number in long}
        right = {number: (cut[number], long[number][1]) for number in long}
        firsts, seconds = (len({_value(units[n], span) for n, span in side.items()}) for side in (left, right))
        pairs = len({_value(units[n], span) for n, span in long.items()})
        crosses = min(firsts, seconds) > 1 and max(firsts, seconds) <= 0.6 * len(long) and max(firsts, seconds) < pairs
        if (
            len(long) >= 4
            and len(long) >= 0.8 * len(spans)
            and crosses
            and (best is None or firsts + seconds < best[0])
        ):
            best = firsts + seconds, [left, right]
    return best[1] if best is not None else [dict(spans)]


def _number_places(shapes: Sequence[_Shape]) -> list[_Place]:
    """A slot for each number or code that differs, counted from the title's end, where joined shapes are alike."""
    found: dict[tuple[int, str], dict[int, Span]] = defaultdict(dict)
    for shape in shapes:
        at = 0
        varying = list(shape.varying)
        while at < len(varying):
            first = last = varying[at]
            kind = shape.units[first].kind
            if kind == "code" and at + 1 < len(varying) and varying[at + 1] == first + 1:  # "A 10", "B 20": one code
                last, at = first + 1, at + 1
            found[(len(shape.units) - last, kind)][shape.number] = (first, last + 1)
            at += 1
    return [_Place(kind, spans) for (_, kind), spans in sorted(found.items(), reverse=True)]


def _value(units: Sequence[Unit], span: Span) -> str:
    return " ".join(unit.text for unit in units[span[0] : span[1]])


def _values(place: _Place, units: Mapping[int, Sequence[Unit]]) -> list[str]:
    return sorted({_value(units[number], span) for number, span in place.spans.items()})


_Rows = Sequence[tuple[_Shape, _Row]]


def _slot(corpus: _Corpus, place: _Place, rows: _Rows, places: Sequence[_Place]) -> Slot:
    """The slot as it is shown: its name, its labels where it is a number, and the policy its kind is proposed."""
    mine = [(shape, row) for shape, row in rows if shape.number in place.spans]
    values = {_value(row.title.units, place.spans[shape.number]) for shape, row in mine}
    behind_title = any(place.spans[shape.number][0] >= row.own for shape, row in mine)
    if place.kind not in ("number", "code"):
        beside = any(other.kind in ("number", "code") for other in places)
        policy = "strict" if place.kind == "list" and beside and not behind_title else "named"
        return Slot(place.kind, place.kind, policy, len(values))
    shape, row = mine[0]
    start, end = place.spans[shape.number]
    run = _run_before(row.title.units, start, shape, places) or _run_behind(row.title.units, end, shape, places)
    labels = _labels(corpus, place, mine, run)
    dated = sum(value.isdigit() and 1000 <= int(value) <= 2100 for value in values) >= 0.8 * len(values)
    optional = behind_title or row.title.numbered or dated or (bool(run) and run[-1] in COUNTERS)
    name = labels[0] if labels else place.kind
    return Slot(name, place.kind, "named" if optional else "strict", len(values), labels)


def _run_before(units: Sequence[Unit], at: int, shape: _Shape, places: Sequence[_Place]) -> list[str]:
    """The words before a number, back to a mark or another slot."""
    others = {place for one in places for place in range(*one.spans.get(shape.number, (0, 0)))}
    run: list[str] = []
    gap = "" if units[at].gap == "," else units[at].gap  # "Weapon, +2"
    while at > 0 and len(run) < 6 and not gap and at - 1 not in others and units[at - 1].kind != "number":
        at -= 1
        run.insert(0, units[at].text)
        gap = units[at].gap
    while run and run[0] in STOP_WORDS and len(run) > 1:
        run.pop(0)
    return run


def _run_behind(units: Sequence[Unit], at: int, shape: _Shape, places: Sequence[_Place]) -> list[str]:
    """The words behind a number that begins its title: "500 ml bottle", "6: Armor Class"."""
    others = {place for one in places for place in range(*one.spans.get(shape.number, (0, 0)))}
    run: list[str] = []
    while at < len(units) and at not in others and units[at].kind == "word" and (not run or not units[at].gap):
        run.append(units[at].text)
        at += 1
    return run


def _labels(corpus: _Corpus, place: _Place, rows: _Rows, run: Sequence[str]) -> tuple[str, ...]:
    """What may stand before the number: the title's own label, what the texts say instead, spellings, acronyms."""
    split = [word for word in " ".join(run).split() if word not in FILLERS]
    while split and split[-1] in STOP_WORDS and len(split[-1]) > 1:
        split.pop()
    if not split:
        return ()
    found = [corpus.label(split)]
    if place.kind == "number":
        found += _labels_in_texts(corpus, place, rows)
    variants = [variant for label in found for variant in spellings(label)]
    acronyms = [initials(label.split()) for label in (found[0], " ".join(split[-2:]))]
    short = [*(one for one in acronyms if one), *abbreviations(found[0])]
    every = dict.fromkeys([*variants, *short, *corpus.meant_by(found[0])])
    return tuple(label for label in every if not any(label.endswith(" " + other) for other in every))


def _labels_in_texts(corpus: _Corpus, place: _Place, rows: _Rows) -> list[str]:
    """Labels before a member's number in its own text, where most members agree: "AC" under "armor class"."""
    seen: Counter[str] = Counter()
    sampled = _spread(range(len(rows)), 60)
    for shape, row in (rows[at] for at in sampled):
        value = _value(row.title.units, place.spans[shape.number])
        chunk = row.chunks[0]
        own, text = len(words(corpus.chunks[chunk].title)), corpus.texts[chunk]
        runs = [_before(text, at, own) for at in range(own, len(text)) if text[at] == value]
        seen.update({corpus.label(run) for run in runs if run and run[-1].isalpha() and run[-1] not in STOP_WORDS})
    return [label for label, count in sorted(seen.items()) if count >= max(LEAST, 0.6 * len(sampled))]


# ---------------------------------------------------------------- what a value asks of a question


def _built(corpus: _Corpus, rows: _Rows, places: Sequence[_Place], slots: Sequence[Slot]) -> SlotFamily | None:
    """The family with its members, and for each the conditions of its values."""
    frames = [_frames(corpus, place, rows, places) if place.kind in ("word", "list") else {} for place in places]
    numbers = [
        _numbers_among(place, rows, slot.labels) if slot.labels else ()
        for place, slot in zip(places, slots, strict=True)
    ]
    frequent = [_word_counts(place, rows) for place in places]
    members: list[Member] = []
    conditions: dict[str, tuple[Condition, ...]] = {}
    without: dict[str, str] = {}
    for shape, row in rows:
        units = row.title.units
        spans = [place.spans.get(shape.number) for place in places]
        values = tuple("" if span is None else _value(units, span) for span in spans)
        made: list[Condition] = []
        for at, (place, span) in enumerate(zip(places, spans, strict=True)):
            if span is None:
                continue
            if place.kind in ("word", "list"):
                made += _word_condition(corpus, at, place, row, span, frames[at], frequent[at])
            else:
                others = [other for one, other in zip(places, spans, strict=True) if other and one.kind == "word"]
                beside = [_value(units, other) for other in others if _only_label(units, other[1], span[0], slots[at])]
                made += _number_condition(corpus, at, place, row, span, (slots[at].labels, beside), numbers[at])
        for chunk in row.chunks:
            members.append(Member(corpus.chunks[chunk].id, corpus.chunks[chunk].title, values))
        rule, problem = _tried(slots, made, row)
        for chunk in row.chunks:
            if rule:
                conditions[corpus.chunks[chunk].id] = tuple(made)
            else:
                without[corpus.chunks[chunk].id] = problem
    texts = [corpus.chunks[rows[at][1].chunks[0]].text for at in _spread(range(len(rows)), 10)]
    repeated = [corpus.chunks[chunk].id for _, row in rows if len(row.chunks) > 1 for chunk in row.chunks]
    ruled = sum(isinstance(read_rule(corpus.chunks[chunk].query_must), Rule) for _, row in rows for chunk in row.chunks)
    return SlotFamily(
        name=_pattern(rows, places, slots),
        parents=_parents(corpus, rows, places),
        slots=tuple(slots),
        members=tuple(members),
        evidence=SlotEvidence(_likeness(texts), corpus.any_texts, ruled),
        conditions=conditions,
        without=without,
        repeated=tuple(repeated),
    )


def _tried(slots: Sequence[Slot], conditions: Sequence[Condition], row: _Row) -> tuple[bool, str]:
    """Whether the conditions make a rule that the chunk's own title, asked as a question, satisfies."""
    if not conditions:
        return False, "its title has no value that can be asked for"
    asked = tuple(one for one in conditions if not (isinstance(one.strict, NumberIn) and one.strict.summed))
    alone = SlotFamily("", tuple(slots), (), SlotEvidence(0, 0, 0), {"": asked})
    for policy in POLICIES:
        rule = alone.with_policy(policy).rules.get("")
        if rule is not None and not decide(rule, row.title.text).satisfied:
            return False, "its own title would not satisfy the rule"
    return True, ""


def _pattern(rows: _Rows, places: Sequence[_Place], slots: Sequence[Slot]) -> str:
    """The title of the first member with each slot's kind in its place."""
    shape, row = max(rows, key=lambda pair: sum(pair[0].number in place.spans for place in places))
    shown: list[str] = []
    starts = {place.spans[shape.number][0]: at for at, place in enumerate(places) if shape.number in place.spans}
    at, units = 0, row.title.units
    while at < len(units):
        mark = {",": ", ", "-": " - "}.get(units[at].gap, " ") if shown else ""
        if at in starts:
            place = starts[at]
            shown.append(f"{mark}{{{slots[place].kind}}}")
            at = places[place].spans[shape.number][1]
        else:
            shown.append(mark + units[at].text)
            at += 1
    return "".join(shown)


def _parents(corpus: _Corpus, rows: _Rows, places: Sequence[_Place]) -> tuple[str, ...]:
    """The chunks whose title is the family's without its slots ("Dragon" beside "Dragon, Black")."""
    shape, row = rows[0]
    inside = {at for place in places for at in range(*place.spans.get(shape.number, (0, 0)))}
    shared = [unit.text for at, unit in enumerate(row.title.units) if at not in inside]
    return tuple(
        corpus.chunks[chunk].id
        for other in corpus.rows
        if [unit.text for unit in other.title.units] == shared
        for chunk in other.chunks
    )


def _word_counts(place: _Place, rows: _Rows) -> Counter[str]:
    """In how many different values of a slot each word stands; under "" how many values there are."""
    values = {_value(row.title.units, place.spans[shape.number]) for shape, row in rows if shape.number in place.spans}
    return Counter(word for value in values for word in {"", *value.split()})


def _word_condition(
    corpus: _Corpus,
    at: int,
    place: _Place,
    row: _Row,
    span: Span,
    frames: Mapping[str, Sequence[str]],
    frequent: Counter[str],
) -> list[Condition]:
    """What a value of words asks for: itself, a word of it that hardly another has, what stands in its brackets.

    A value that this one ends with is no other value: "giant strength" beside "hill giant strength".
    """
    units = row.title.units[span[0] : span[1]]
    beside = {word for unit in (*row.title.units[: span[0]], *row.title.units[span[1] :]) for word in unit.text.split()}
    terms: list[str] = []
    for item in enumerated(units) if place.kind == "list" else [units]:
        said = [word for unit in item for word in unit.text.split()]
        own = " ".join(said)
        terms += [*phrase_forms(said, corpus.knows), *corpus.synonyms.get(own, ())]
        rare = [word for word in said if frequent[word] <= max(1, 0.1 * frequent[""]) and len(word) > 2]
        rare = [word for word in rare if len(said) > 1 and word not in STOP_WORDS | beside and not word.isdigit()]
        if place.kind == "list":
            rare = [word for word in rare if not corpus.common(word)]
        for word in rare:
            terms += [*phrase_forms([word], corpus.knows), *corpus.synonyms.get(word, ())]
    for bracket in row.title.brackets:
        alias = [word for unit in bracket for word in unit.text.split() if word not in STOP_WORDS]
        terms += phrase_forms(alias, corpus.knows) if alias and len(alias) <= 4 else ()
        terms += [word for word in alias if not corpus.common(word) and frequent[word] == 0 and len(word) > 2]
    terms = [term for term in dict.fromkeys(terms) if len(term) > 1][: MAX_TERMS // 4]
    if not terms:
        return []
    mine = _value(row.title.units, span)
    others = [value for value in frames if not mine.endswith(" " + value)]
    among = tuple(dict.fromkeys(term for value in others for term in frames[value]))
    if len(among) > MAX_TERMS - MAX_TERMS // 4 or not set(among) - set(terms):
        return [Condition(at, tuple(terms), None)]
    return [Condition(at, tuple(terms), WhenNamed(tuple(terms), among))]


def enumerated(units: Sequence[Unit]) -> list[Sequence[Unit]]:
    """The members of an enumeration, without its joining words and without a count before one ("0 level halflings")."""
    items: list[list[Unit]] = [[]]
    for unit in units:
        if unit.text in JOINERS or (unit.gap == "," and items[-1]):
            items.append([])
        if unit.text not in JOINERS and unit.text not in FILLERS:
            items[-1].append(unit)
    return [item for item in items if item]


def _frames(corpus: _Corpus, place: _Place, rows: _Rows, places: Sequence[_Place]) -> dict[str, list[str]]:
    """How a question names some value of a slot: the value alone where it is a segment, else beside its next word.

    "Black" is an everyday word and "black dragon" is not: what only stands near a value must not count as naming it.
    """
    frames: dict[str, list[str]] = defaultdict(list)
    for shape, row in rows:
        if shape.number not in place.spans:
            continue
        units, (start, end) = row.title.units, place.spans[shape.number]
        terms = frames[_value(units, (start, end))]
        value = [word for unit in units[start:end] for word in unit.text.split()]
        if place.kind == "list":
            items = [[word for unit in item for word in unit.text.split()] for item in enumerated(units[start:end])]
            terms += [form for item in items for form in phrase_forms(item, corpus.knows)]
        elif place.alone and (len(value) > 1 or not corpus.common(value[0]) or len(places) > 1):
            terms += phrase_forms(value, corpus.knows)
        else:
            terms += _framed(corpus, units, start, end, value)
    return dict(frames)


def _framed(corpus: _Corpus, units: Sequence[Unit], start: int, end: int, value: Sequence[str]) -> list[str]:
    """A value with the word before it and with the word behind it; behind a comma or "of" also turned round."""
    found: list[str] = []
    if end < len(units) and units[end].gap != "-":
        found += _with_head(corpus, value, units[end], turned=units[end].gap == ",")
    before = start - 1
    while before >= 0 and not (units[before].content or units[before].kind == "code"):
        before -= 1
    if before >= 0 and not found and units[start].gap == "-":
        found += _with_head(corpus, value, units[before], turned=True)
    elif before >= 0 and not any(unit.gap == "-" for unit in units[before + 1 : start + 1]):
        between = [unit.text for unit in units[before + 1 : start]]
        head = units[before].text.split()
        found.append(" ".join([*head, *between, *value]))
        if units[start].gap == "," or between[:1] == ["of"]:
            found += _with_head(corpus, value, units[before])
    return found


def _with_head(corpus: _Corpus, value: Sequence[str], head: Unit, turned: bool = False) -> list[str]:
    forms = list(phrase_forms([*value, *head.text.split()], corpus.knows))
    return [*forms, " ".join([*head.text.split(), *value])] if turned else forms


def _number_condition(
    corpus: _Corpus, at: int, place: _Place, row: _Row, span: Span, said: tuple[Group, Sequence[str]], among: Group
) -> list[Condition]:
    """What a number, a range or a code asks for: its label with it, or the word before that label ("cleric 7")."""
    labels, beside = said
    unit = row.title.units[span[1] - 1]
    run = [one.text for one in row.title.units[: span[0]]]
    if not labels:
        return []
    if place.kind == "number" and (summed := _summed(corpus, run)) is not None and unit.low is not None:
        return [Condition(at, NumberIn(summed, unit.low, unit.high, summed=True), None)]
    terms = _ways_to_say(place, row, span, labels)
    if terms is None:
        return [Condition(at, NumberIn(((*labels, *beside),), unit.low, unit.high), None)]
    if place.kind == "number":
        terms = (*terms, *(f"{value} {number}" for value in beside for number in _written_out(unit) or ()))
    named = WhenNamed(terms, among) if len(among) + len(terms) <= MAX_TERMS - 20 and among else None
    return [Condition(at, terms, named)]


def _only_label(units: Sequence[Unit], start: int, end: int, slot: Slot) -> bool:
    """Whether nothing but a number's label stands between two places of a title."""
    return " ".join(unit.text for unit in units[start:end]) in slot.labels


def _ways_to_say(place: _Place, row: _Row, span: Span, labels: Group) -> Group | None:
    """Label and number in every way questions say them; None for a range that is open or too wide to be written out."""
    units = row.title.units
    values = _written_out(units[span[1] - 1]) if place.kind == "number" else [_value(units, span)]
    if values is None:
        return None
    found = [f"{label} {value}" for value in values for label in labels]
    found += [form for value in values if value.isdigit() for form in counted_forms(labels[0], int(value))]
    if place.kind == "code":
        found += [f"{many} {value}" for value in values for label in labels for many in phrase_forms(label.split())]
        found += [value for value in values if value not in LETTERS_THAT_ARE_WORDS]  # "types B and H"
    else:
        found += [value for value in values if len(value.lstrip("-")) > 2]  # a year, the number of a model
    if place.kind == "number" and (units[span[0]].gap == "," or span[0] == 0):  # "Weapon, +2", "500 ml bottle"
        found += [f"{value} {many}" for value in values for label in labels for many in phrase_forms(label.split())]
    return tuple(dict.fromkeys(found))


def _numbers_among(place: _Place, rows: _Rows, labels: Group) -> Group:
    """Every number of a slot, as questions say it."""
    mine = [(row, place.spans[shape.number]) for shape, row in rows if shape.number in place.spans]
    return tuple(dict.fromkeys(form for row, span in mine for form in _ways_to_say(place, row, span, labels) or ()))


def _written_out(unit: Unit) -> list[str] | None:
    """The numbers of a unit as texts; None for a range that is open or too wide."""
    if unit.low is None or unit.high is None:
        return None
    if unit.low == unit.high:
        return [unit.text]
    low, high = int(unit.low), int(unit.high)
    if (low, high) != (unit.low, unit.high) or not 0 <= high - low < WIDEST:
        return None
    return [str(number) for number in range(low, high + 1)]


def _summed(corpus: _Corpus, run: Sequence[str]) -> tuple[Group, ...] | None:
    """The labels of a number that is a sum, "intelligence and wisdom total", with short forms that the corpus knows."""
    if len(run) < 4 or run[-1] not in _TOTALS or run[-3] not in ("and", "plus"):
        return None
    return tuple(
        tuple(dict.fromkeys([label, *(short for short in (label[:3],) if corpus.knows(short))]))
        for label in (run[-4], run[-2])
    )
