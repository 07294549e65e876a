"""Rules from slots: what near-duplicate titles differ in is what a question must name.

A family is a set of chunks whose titles are alike but for one or more slots: a number ("Armor Class 6"), a code
("Type C"), a list ("clerics, druids and monks") or words ("Dragon, Black"). Each member's rule asks for its own values
with their synonyms, never for what all titles share. Numbers, codes and the lists beside them are asked for always
(`strict`); words only where the question names some value of their slot (`named`), since many questions name none.
Without a model, and the same for the same chunks. What is not solved: file names, slots that stand in metadata alone.
Storing the rules is the collection's (rag_core.index.rules).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from statistics import median
from typing import Any, NamedTuple

from rapidfuzz import fuzz

from rag_core.errors import InputError
from rag_core.rules.match import decide, reason_text
from rag_core.rules.rule import MAX_TERMS, Group, NumberIn, Rule, WhenNamed, read_rule
from rag_core.text import FILLERS, STOP_WORDS, Token, is_number, tokenize, words
from rag_core.types import Case, Chunk

# ---------------------------------------------------------------- titles in units

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


Units = Sequence[Unit]


@dataclass(frozen=True, slots=True)
class Title:
    """A title's units, and apart from them what stands in its brackets, each bracket with units of its own."""

    text: str
    units: tuple[Unit, ...]
    brackets: tuple[tuple[Unit, ...], ...]
    numbered: bool = False  # whether a "#" stands before one of its numbers


def read_title(text: str) -> Title:
    """The title in units."""
    core = _OUTLINE.sub("", _BRACKETS.sub(" ", text).strip() or text, count=1)
    brackets = tuple(units for pair in _BRACKETS.findall(text) if (units := units_of(" ".join(pair).strip())))
    return Title(text, units_of(core), brackets, bool(re.search(r"#\s*\d", core)))


def units_of(text: str) -> tuple[Unit, ...]:
    """A text in units."""
    tokens = tokenize(text)
    shouting = text.upper() == text
    units: list[Unit] = []
    at = 0
    while at < len(tokens):
        token, raw = tokens[at], text[tokens[at].start : tokens[at].end]
        between = text[tokens[at - 1].end : token.start] if at else ""
        gap = "-" if _SEGMENT.search(between) else "," if "," in between else ""
        roman = not shouting and bool(_ROMAN.fullmatch(raw))
        if is_number(token):
            unit, at = _number(text, tokens, at, gap)
        elif token.ordinal:
            unit = Unit(token.text, "number", gap, token.value, token.value)
        elif any(character.isdigit() for character in token.text) or roman or (len(raw) == 1 and raw.isupper()):
            unit = Unit(token.text, "code", gap)
        else:
            joined = [token.text]
            while at + 1 < len(tokens) and text[tokens[at].end : tokens[at + 1].start] in ("-", "‐", "‑"):
                at += 1
                joined.append(tokens[at].text)
            unit = Unit(" ".join(joined), "word", gap)
        units.append(unit)
        at += 1
    return tuple(units)


def _number(text: str, tokens: tuple[Token, ...], at: int, gap: str) -> tuple[Unit, int]:
    """A number, or the range it begins ("6-10", "6 to 10", "19+"), and the place of its last token."""
    token, low = tokens[at], tokens[at].value
    for end in (at + 1, at + 2):
        if end < len(tokens) and is_number(tokens[end]):
            between = text[token.end : tokens[end].start].strip().casefold()
            if between in ("-", "–", "‐", "‑", "to") and (end == at + 2) == (between == "to"):
                return Unit(f"{token.text}-{tokens[end].text}", "number", gap, low, tokens[end].value), end
    if text[token.end :].startswith("+"):
        return Unit(f"{token.text}+", "number", gap, low, None), at
    return Unit(token.text, "number", gap, low, low), at


def text_of(units: Iterable[Unit]) -> str:
    """The units as words."""
    return " ".join(unit.text for unit in units)


def enumerated(units: Units) -> list[Units]:
    """The members of an enumeration, without its joining words and without a count before one ("0 level halflings")."""
    items: list[list[Unit]] = [[]]
    for unit in units:
        if unit.text in JOINERS or (unit.gap == "," and items[-1]):
            items.append([])
        if unit.text not in JOINERS and unit.text not in FILLERS:
            items[-1].append(unit)
    return [item for item in items if item]


# ---------------------------------------------------------------- how else a question says a word or a number

_PAIRS = """
person/people louse/lice goose/geese ox/oxen die/dice index/indices vertex/vertices matrix/matrices appendix/appendices
criterion/criteria phenomenon/phenomena analysis/analyses axis/axes basis/bases crisis/crises fungus/fungi
"""
_ENDINGS = """
man/men foot/feet tooth/teeth mouse/mice child/children thief/thieves elf/elves wolf/wolves warf/warves loaf/loaves
leaf/leaves half/halves calf/calves knife/knives life/lives wife/wives
"""
_IRREGULAR = [tuple(pair.split("/")) for pair in _PAIRS.split()]
_IRREGULAR_ENDINGS = [tuple(pair.split("/")) for pair in _ENDINGS.split()]  # "lizardman", "werewolf"
_NOT_MEN = ("human", "roman", "german", "shaman", "talisman", "ottoman", "specimen")
_COUNTED = """
one/first two/second three/third four/fourth five/fifth six/sixth seven/seventh eight/eighth nine/ninth ten/tenth
eleven/eleventh twelve/twelfth thirteen/thirteenth fourteen/fourteenth fifteen/fifteenth sixteen/sixteenth
seventeen/seventeenth eighteen/eighteenth nineteen/nineteenth twenty/twentieth
"""
_NUMBERS = [pair.split("/") for pair in _COUNTED.split()]  # of 1, 2, …: as a cardinal, as an ordinal
_SHORT = """
level/lvl/lv version/ver chapter/ch/chap section/sec volume/vol number/no/nr page/pg temperature/temp figure/fig
"""
_SHORT_FORMS = {label: forms for label, *forms in (entry.split("/") for entry in _SHORT.split())}
_SPELLINGS = (("our", "or"), ("ise", "ize"), ("yse", "yze"), ("isation", "ization"), ("tre", "ter"), ("grey", "gray"))


def phrase_forms(phrase: Sequence[str]) -> tuple[str, ...]:
    """A phrase, and with its last word in its irregular other number; regular ones the matching of rules knows."""
    if not phrase:
        return ()
    last, forms = phrase[-1], [" ".join(phrase)]
    for one, other in (pair[::step] for pair in (*_IRREGULAR, *_IRREGULAR_ENDINGS) for step in (1, -1)):
        ending = (one, other) in _IRREGULAR_ENDINGS or (other, one) in _IRREGULAR_ENDINGS
        if last == one or (ending and last.endswith(one) and not last.endswith(_NOT_MEN)):
            forms.append(" ".join([*phrase[:-1], last[: len(last) - len(one)] + other]))
    return tuple(dict.fromkeys(forms))


def spellings(phrase: str) -> tuple[str, ...]:
    """The phrase, and as it is spelt on the other side of the Atlantic: "armor class" and "armour class"."""
    spelt = [phrase]
    for british, american in _SPELLINGS:
        for one, other in ((british, american), (american, british)):
            spelt.append(re.sub(rf"(?<=\w\w\w){one}\b" if len(one) < 4 else rf"\b{one}\b", other, phrase))
    return tuple(dict.fromkeys(spelt))


def counted_forms(label: str, number: int) -> tuple[str, ...]:
    """How else a question counts by a label of one word: "5th", "fifth level", "level five".

    In "the 3rd and fifth level" the first has no label beside it, so "3rd" stands alone, and "third" with its "and".
    """
    if not 0 < number <= 99 or " " in label or len(label) < 3:
        return ()
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    if number > len(_NUMBERS):
        return (f"{number}{ending}",)
    cardinal, ordinal = _NUMBERS[number - 1]
    return f"{number}{ending}", f"{ordinal} {label}", f"{ordinal} and", f"{ordinal} or", f"{label} {cardinal}"


# ---------------------------------------------------------------- families

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
MADE_FROM = "slots"

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
class Condition:
    """What one slot asks of a question, by policy. Where `named` is None, nothing is asked under that policy.

    That is so for open ranges and sums of numbers, which can only be asked for strictly.
    """

    slot: int
    strict: Group | NumberIn
    named: WhenNamed | None


def _rule_of(conditions: Iterable[Condition], policies: Sequence[str]) -> Rule | None:
    """The rule of a member's conditions under the policies of its slots, or None where they ask for nothing."""
    groups: list[Group] = []
    numbers: list[NumberIn] = []
    named: list[WhenNamed] = []
    for condition in conditions:
        if policies[condition.slot] == "named":
            named += [condition.named] if condition.named is not None else []
        elif isinstance(condition.strict, NumberIn):
            numbers.append(condition.strict)
        else:
            groups.append(condition.strict)
    if not (groups or numbers or named):
        return None
    return Rule(contain_one_of=tuple(groups), number_in=tuple(numbers), when_named=tuple(named))


@dataclass(frozen=True)
class SlotFamily:
    """Near-duplicate chunks, the slots that tell them apart, and a proposed rule for each; nothing is stored.

    Why it is a family: `likeness` is how alike its texts are, `any_texts` any two of the corpus (medians, 0 … 100);
    `with_rule` counts the members that carry a rule now. `without` says of those that get none why.
    """

    name: str
    slots: tuple[Slot, ...]
    members: tuple[Member, ...]
    likeness: float
    any_texts: float
    with_rule: int
    conditions: Mapping[str, tuple[Condition, ...]] = field(repr=False)
    without: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Chunk id → proposed rule, as the slots' policies have it."""
        policies = [slot.policy for slot in self.slots]
        made = {identity: _rule_of(conditions, policies) for identity, conditions in self.conditions.items()}
        return {identity: rule for identity, rule in made.items() if rule is not None}

    @property
    def policy(self) -> str:
        """`strict` where every slot is, `named` where none is, else `mixed`."""
        policies = {slot.policy for slot in self.slots}
        return policies.pop() if len(policies) == 1 else "mixed"

    def with_policy(self, policy: str) -> SlotFamily:
        """The family with one policy for all its slots, as far as their kinds allow."""
        return replace(self, slots=tuple(replace(slot, policy=policy) for slot in self.slots))

    def to_json(self) -> dict[str, Any]:
        """The family as plain data."""
        members = [{"chunk": one.chunk_id, "title": one.title, "values": list(one.values)} for one in self.members]
        likeness, any_texts = round(self.likeness, 1), round(self.any_texts, 1)
        return {
            "name": self.name,
            "policy": self.policy,
            "slots": [asdict(slot) for slot in self.slots],
            "members": members,
            "rules": {identity: rule.as_mapping() for identity, rule in self.rules.items()},
            "without": dict(self.without),
            "evidence": {"likeness": likeness, "any_texts": any_texts, "with_rule": self.with_rule},
        }

    def to_text(self) -> str:
        """The family in a few lines: pattern, slots with their policies, one rule as an example."""
        lines = [
            f"{self.name}: {len(self.rules)} rules for {len(self.members)} chunks (texts alike "
            f"{self.likeness:.0f}, any two {self.any_texts:.0f})"
        ]
        for slot in self.slots:
            when = "always asked for" if slot.policy == "strict" else "asked for where a question names one of them"
            lines.append(f"  {slot.name}: {slot.kind}, {slot.values} values, {when}")
        for member in [member for member in self.members if member.chunk_id in self.rules][:1]:
            rule = self.rules[member.chunk_id].as_json()
            lines.append(f"  e.g. {member.title}: {rule if len(rule) < 300 else rule[:299] + '…'}")
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
    for key, alike in _choices(shapes):
        rest = [shape for shape in alike if shape.number not in taken]
        family = _family(corpus, rest, key) if _large_enough(rest) else None
        if family is None:
            continue
        # Where words alone make the family, chance does too: its texts must be as alike as any two.
        numbered = any(slot.kind in ("number", "code") for slot in family.slots)
        if numbered or family.likeness >= min(family.any_texts, HOMOGENEOUS):
            taken |= {shape.number for shape in rest}
            families.append(family)
    for shape in shapes:
        if shape.number not in taken and shape.varying and len(shape.rows) >= LEAST:
            family = _family(corpus, [shape], None)
            families += [family] if family is not None else []
    return sorted(families, key=lambda family: (-len(family.members), family.name))


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


# ---------------------------------------------------------------- what they would do on labelled questions

ENOUGH = 5  # relevant chunks met before labels may make a slot of words strict


@dataclass(frozen=True, slots=True)
class WrongDrop:
    """A relevant chunk that its proposed rule would drop."""

    query_id: str
    chunk_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SlotCheck:
    """One family on labelled questions. Pairs are (question, member with a rule) that have a label.

    Wrong drops are counted, not equal verdicts: of many verdicts nearly all are easy. `listed` counts members in the
    first k places of the questions' lists, and what of them the rules drop.
    """

    family: str
    policy: str
    relevant: int
    wrong: tuple[WrongDrop, ...]
    irrelevant: int
    right: int
    listed: int = 0
    listed_dropped: int = 0

    def to_json(self) -> dict[str, Any]:
        """The counts as plain data, with each wrong drop."""
        return {
            "family": self.family,
            "policy": self.policy,
            "relevant": self.relevant,
            "wrong_drops": len(self.wrong),
            "irrelevant": self.irrelevant,
            "right_drops": self.right,
            "listed": self.listed,
            "listed_dropped": self.listed_dropped,
            "wrong": [{"query": one.query_id, "chunk": one.chunk_id, "reason": one.reason} for one in self.wrong],
        }

    def to_text(self) -> str:
        """One line, and one for each of the first wrong drops."""
        lines = [
            f"  {len(self.wrong)} of {self.relevant} relevant would be dropped wrongly, "
            f"{self.right} of {self.irrelevant} irrelevant rightly"
        ]
        if self.listed:
            lines[0] += f"; {self.listed_dropped} of the {self.listed} places it takes in lists would be free"
        lines += [f"    {one.query_id} would lose {one.chunk_id}: {one.reason}" for one in self.wrong[:3]]
        return "\n".join(lines)


def check(family: SlotFamily, cases: Sequence[Case], k: int = 15, min_grade: int = 1) -> SlotCheck:
    """What the family's rules would do on labelled questions, and in the first k places of those with a list.

    Questions made from slots are left out: they are no evidence for rules from slots.
    """
    relevant = irrelevant = right = listed = listed_dropped = 0
    wrong: list[WrongDrop] = []
    for case in cases:
        if case.query.made_from == MADE_FROM:
            continue
        for identity, grade in case.grades.items():
            if identity not in family.rules:
                continue
            verdict = decide(family.rules[identity], case.query.text)
            if grade < min_grade:
                irrelevant += 1
                right += not verdict.satisfied
                continue
            relevant += 1
            if not verdict.satisfied:
                wrong.append(WrongDrop(case.query.id, identity, reason_text(verdict)))
        hits = case.candidates.hits[:k] if case.candidates is not None else ()
        members = [hit.chunk.id for hit in hits if hit.chunk.id in family.rules]
        listed += len(members)
        listed_dropped += sum(not decide(family.rules[identity], case.query.text).satisfied for identity in members)
    return SlotCheck(family.name, family.policy, relevant, tuple(wrong), irrelevant, right, listed, listed_dropped)


def settled(family: SlotFamily, cases: Sequence[Case], min_grade: int = 1) -> SlotFamily:
    """The family with its words asked for strictly where labels vouch for that, else as it is.

    Labels vouch where at least ENOUGH relevant pairs meet the strict rules and none would be dropped; with so few, one
    wrong drop in two questions of another kind is not ruled out, so the choice is shown and can be taken back.
    """
    if family.policy == "strict":
        return family
    slots = tuple(replace(slot, policy="strict") if slot.kind in ("word", "list") else slot for slot in family.slots)
    strict = replace(family, slots=slots)
    vouched = check(strict, cases, min_grade=min_grade)
    return strict if vouched.relevant >= ENOUGH and not vouched.wrong else family


def safe(families: Sequence[SlotFamily], checks: Sequence[SlotCheck]) -> list[SlotFamily]:
    """The families whose rules can be stored as they are: none of them loses an answer of the checked questions.

    A rulebook is asked by the words of its titles, an encyclopedia often is not: where rules of words lose an answer,
    only those families of words remain that an answer vouches for.
    """
    doubtful = any(one.wrong for one in checks if one.policy == "named")
    return [
        family
        for family, one in zip(families, checks, strict=True)
        if not one.wrong and (one.relevant or one.policy != "named" or not doubtful)
    ]


def with_policy(family: SlotFamily, policy: str, cases: Sequence[Case], min_grade: int = 1) -> SlotFamily:
    """The family with every rule of that policy; `proposed` leaves it, `labels` lets labels decide."""
    if policy == "proposed":
        return family
    if policy == "labels":
        return settled(family, cases, min_grade)
    if policy not in POLICIES:
        raise InputError(f"--policy is {policy[:80]!r}, expected proposed, {', '.join(POLICIES)} or labels")
    return family.with_policy(policy)


# ---------------------------------------------------------------- the corpus


@dataclass(frozen=True, slots=True)
class _Row:
    """A title and the chunks that have it; `own` of its units are the title's, the others the first line's."""

    title: Title
    chunks: tuple[int, ...]
    own: int

    @property
    def elements(self) -> tuple[str, ...]:
        """Its units, each with the gap before it."""
        return tuple(unit.gap + unit.text for unit in self.title.units)


class _Corpus:
    """The chunks with their titles in units, and what their texts say of words and of the labels of numbers."""

    def __init__(self, chunks: Sequence[Chunk], synonyms: Synonyms) -> None:
        # By id, so that the families are the same in whatever order the chunks come.
        self.chunks = sorted(chunks, key=lambda chunk: chunk.id)
        self.synonyms = {" ".join(words(value)): tuple(others) for value, others in synonyms.items()}
        self.rows = list(self._rows())
        self.texts = [words(f"{chunk.title}\n{chunk.text}") for chunk in self.chunks]
        self.holding = Counter(word for text in self.texts for word in set(text))

    def _rows(self) -> Iterator[_Row]:
        """The different titles with their chunks; where several share one, as paths often are, with their first lines.

        A title that three or more chunks share tells none of them apart, but their first lines may, where they are
        short enough to be headings and no sentence of the text.
        """
        by_title: dict[str, list[int]] = defaultdict(list)
        for at, chunk in enumerate(self.chunks):
            by_title[chunk.title.strip()].append(at)
        for title, ids in by_title.items():
            by_line: dict[str, list[int]] = defaultdict(list)
            for at in ids if len(ids) >= LEAST or not title else ():
                marked = (line.strip("#*=->| \t") for line in self.chunks[at].text.splitlines())
                first = next((line for line in marked if line), "")
                by_line["" if len(first) > LONGEST_LINE or first.endswith(".") else first].append(at)
            if len(by_line.keys() - {""}) < LEAST:
                by_line = {"": ids}
            own = len(read_title(title).units) if title else 0
            for line, sharing in by_line.items():
                read = read_title(f"{title} - {line}" if title and line else title or line)
                if read.units:
                    yield _Row(read, tuple(sharing), own)

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
                title = text_of(row.title.units).split()
                for at in range(len(title) - len(label) + 1):
                    run = title[at : at + len(label)]
                    if "".join(word[0] for word in run) == label and all(len(word) > 1 for word in run):
                        counts[" ".join(run)] += not STOP_WORDS.intersection(run)
        often = max(counts.values(), default=0)
        return [spelling for run in sorted(counts) if 0 < counts[run] == often for spelling in spellings(run)]

    def likeness(self, places: Sequence[int], most: int) -> float:
        """How alike two of these chunks' texts are: the median of the pairs of `most` of them, evenly spread."""
        some = [places[at * len(places) // most] for at in range(most)] if len(places) > most else places
        pairs = combinations([self.chunks[at].text[:600] for at in some], 2)
        return median([fuzz.token_sort_ratio(one, other) for one, other in pairs] or [0.0])

    @cached_property
    def any_texts(self) -> float:
        """How alike two texts of the corpus are."""
        return self.likeness(range(len(self.chunks)), 24)


def _before(text: Sequence[str], at: int, start: int = 0) -> list[str]:
    """Up to four words before a place, without the fillers right before it."""
    end = at
    while end > start and text[end - 1] in FILLERS:
        end -= 1
    return list(text[max(start, end - 4) : end])


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
            by_core[row.elements].append(row)
    families: list[SlotFamily] = []
    taken: set[int] = set()
    for core, rows in by_core.items():
        if not core or len(rows) < LEAST:
            continue
        within = []  # the same titles with their bracket as a segment
        for row in rows:
            first, *others = row.title.brackets[0]
            units = (*row.title.units, first._replace(gap="-"), *others)
            within.append(replace(row, title=Title(row.title.text, units, ()), own=len(core)))
        counted = [shape for shape in _shapes(within) if shape.varying and 2 * len(shape.rows) >= len(rows)]
        family = _family(corpus, counted, None) if counted else None
        if family is None:
            shapes = [_Shape(at, row.elements, (), (row,)) for at, row in enumerate(within)]
            family = _family(corpus, shapes, (core, (), "-"))
        if family is not None:
            families.append(family)
            taken |= {row.chunks[0] for row in rows}
    return families, [row for row in corpus.rows if row.chunks[0] not in taken]


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
        elements = tuple(mask if at in varying else alike[0].elements[at] for at, mask in enumerate(masks))
        shapes.append(_Shape(len(shapes), elements, varying, tuple(alike)))
    return shapes


def _choices(shapes: Sequence[_Shape]) -> list[tuple[_Key, list[_Shape]]]:
    """Every way to leave a stretch of words open in which several shapes differ, the best first.

    A stretch begins and ends with words that tell something, and leaves one outside.
    """
    by_key: dict[_Key, list[_Shape]] = defaultdict(list)
    for shape in shapes:
        units, size = shape.units, len(shape.units)
        content = [unit.content or unit.kind == "code" for unit in units]
        for start in range(size):
            for end in range(start + 1, min(size, start + LONGEST_SLOT) + 1):
                if end - 1 in shape.varying:
                    break
                if content[start] and content[end - 1] and any(content[:start] + content[end:]):
                    by_key[shape.elements[:start], shape.elements[end:], units[start].gap].append(shape)
    choices = [(key, differing) for key, differing in by_key.items() if _large_enough(differing)]
    return sorted(choices, key=lambda choice: (-_worth(*choice), choice[0]))


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
    """A slot while its family is built: where each shape has it, its kind, whether it is a segment of its title."""

    kind: str
    spans: Mapping[int, Span]  # shape's number → places in the title's units
    alone: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A title of a family, and where it has each of the family's slots (None: not at all)."""

    row: _Row
    spans: tuple[Span | None, ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.row.title.units

    def slot_units(self, at: int) -> Units:
        """The units of its value in a slot, none where it has none."""
        return self.units[slice(*span)] if (span := self.spans[at]) is not None else ()

    def value(self, at: int) -> str:
        """Its value in a slot, '' where it has none."""
        return text_of(self.slot_units(at))

    @property
    def inside(self) -> set[int]:
        """The places of its units that stand in some slot."""
        return {place for span in self.spans if span is not None for place in range(*span)}


def _family(corpus: _Corpus, shapes: Sequence[_Shape], key: _Key | None) -> SlotFamily | None:
    """The family of shapes that differ in an open stretch (none: in numbers alone), or None where it makes no rule."""
    places: list[_Place] = []
    if key is not None:
        open_spans = {shape.number: (len(key[0]), len(shape.elements) - len(key[1])) for shape in shapes}
        places += _word_places(shapes, open_spans)
    places += _number_places(shapes)
    if not places:
        return None
    lines = [
        _Line(row, tuple(place.spans.get(shape.number) for place in places)) for shape in shapes for row in shape.rows
    ]
    slots = [_slot(corpus, at, places, lines) for at in range(len(places))]
    numbered = any(slot.labels and slot.policy == "strict" for slot in slots)
    if not numbered or not _near_duplicates(corpus, shapes):  # a list is strict beside a number that is
        slots = [replace(slot, policy="named") for slot in slots]
    return _built(corpus, lines, places, slots)


def _near_duplicates(corpus: _Corpus, shapes: Sequence[_Shape]) -> bool:
    """Whether titles that differ in a number have texts that differ in little else: tables, and not "Apollo 11".

    A question about a table names its number; one about things that are numbered often asks for all of them.
    """
    if corpus.any_texts >= HOMOGENEOUS:
        return True
    alike = [corpus.likeness([row.chunks[0] for row in shape.rows], 10) for shape in shapes if shape.varying]
    return bool(alike) and median(alike) >= corpus.any_texts + NEAR * (100.0 - corpus.any_texts)


def _word_places(shapes: Sequence[_Shape], spans: Mapping[int, Span]) -> list[_Place]:
    """The slots of an open stretch: a list, or its parts between commas and dashes, a part of two that cross as two."""
    units = {shape.number: shape.units for shape in shapes}
    numbered = any(shape.varying for shape in shapes)

    def listed(spans: Mapping[int, Span]) -> bool:
        """Whether most are enumerations: words joined by and, or, or several commas."""
        stretches = [units[number][start:end] for number, (start, end) in spans.items()]
        joined = [
            any(unit.text in JOINERS for unit in stretch[1:-1]) or sum(unit.gap == "," for unit in stretch[1:]) > 1
            for stretch in stretches
        ]
        return 2 * sum(joined) >= len(joined)

    if listed(spans):
        return [_Place("list", spans, alone=True)]
    parts: dict[int, list[Span]] = {}
    for number, (start, end) in spans.items():
        marked = (at for at in range(start + 1, end) if units[number][at].gap and units[number][at].text not in JOINERS)
        cuts = [start, *marked, end]
        parts[number] = list(pairwise(cuts))
    if sum(len(stretches) > 1 for stretches in parts.values()) < 2:
        parts = {number: [span] for number, span in spans.items()}
    places: list[_Place] = []
    for at in range(max(map(len, parts.values()))):
        part = {number: stretches[at] for number, stretches in parts.items() if len(stretches) > at}
        part = _without_shared_ends(part, units)
        if listed(part):
            places.append(_Place("list", part, alone=True))
            continue
        alone = all(_stands_alone(units[number], span, numbered) for number, span in part.items())
        places += [_Place("word", crossing, alone) for crossing in _crossing(part, units)]
    return [place for place in places if len(_values(place.spans, units)) > 1 or len(place.spans) < len(spans)]


def _values(spans: Mapping[int, Span], units: Mapping[int, Units]) -> set[str]:
    return {text_of(units[number][start:end]) for number, (start, end) in spans.items()}


def _without_shared_ends(spans: Mapping[int, Span], units: Mapping[int, Units]) -> dict[int, Span]:
    """The stretches without the words all of them begin or end with: "Acid Damage", "Fire Damage"."""
    left = dict(spans)
    while len(_values(left, units)) > 1 and all(end - start > 1 for start, end in left.values()):
        if len({units[number][end - 1].text for number, (_, end) in left.items()}) == 1:
            left = {number: (start, end - 1) for number, (start, end) in left.items()}
        elif len({units[number][start].text for number, (start, _) in left.items()}) == 1:
            left = {number: (start + 1, end) for number, (start, end) in left.items()}
        else:
            break
    return left


def _stands_alone(units: Units, span: Span, numbered: bool) -> bool:
    """Whether a stretch is a segment of its title; between commas only where a number follows ("Bard, level 3")."""
    start, end = span
    left = units[start].gap if start else "edge"
    right = units[end].gap if end < len(units) else "edge"
    return bool(left and right) and (numbered or "-" in (left, right))


def _crossing(spans: Mapping[int, Span], units: Mapping[int, Units]) -> list[dict[int, Span]]:
    """The stretches as two slots where their first (or last) word and the rest cross: adult, young × black, blue."""
    long = {number: span for number, span in spans.items() if span[1] - span[0] > 1}
    best: list[dict[int, Span]] = [dict(spans)]
    if len(long) < 4 or len(long) < 0.8 * len(spans):
        return best
    fewest, pairs = 2 * len(long), len(_values(long, units))
    for at_end in (False, True):
        cut = {number: (end - 1 if at_end else start + 1) for number, (start, end) in long.items()}
        left = {number: (start, cut[number]) for number, (start, _) in long.items()}
        right = {number: (cut[number], end) for number, (_, end) in long.items()}
        firsts, seconds = len(_values(left, units)), len(_values(right, units))
        crosses = min(firsts, seconds) > 1 and max(firsts, seconds) <= 0.6 * len(long) and max(firsts, seconds) < pairs
        if crosses and firsts + seconds < fewest:
            fewest, best = firsts + seconds, [left, right]
    return best


def _number_places(shapes: Sequence[_Shape]) -> list[_Place]:
    """A slot for each number or code that differs, counted from the title's end, where joined shapes are alike."""
    spans: dict[tuple[int, str], dict[int, Span]] = defaultdict(dict)
    for shape in shapes:
        varying = list(shape.varying)
        while varying:
            first = last = varying.pop(0)
            kind = shape.units[first].kind
            if kind == "code" and varying and varying[0] == first + 1:  # "A 10", "B 20": one code
                last = varying.pop(0)
            spans[(len(shape.units) - last, kind)][shape.number] = (first, last + 1)
    return [_Place(kind, placed) for (_, kind), placed in sorted(spans.items(), reverse=True)]


def _slot(corpus: _Corpus, at: int, places: Sequence[_Place], lines: Sequence[_Line]) -> Slot:
    """The slot as it is shown: its name, its labels where it is a number, and the policy its kind is proposed."""
    place = places[at]
    placed = [(line, span) for line in lines if (span := line.spans[at]) is not None]
    values = {line.value(at) for line, _ in placed}
    behind_title = any(start >= line.row.own for line, (start, _) in placed)
    if place.kind not in ("number", "code"):
        beside = any(other.kind in ("number", "code") for other in places)
        policy = "strict" if place.kind == "list" and beside and not behind_title else "named"
        return Slot(place.kind, place.kind, policy, len(values))
    first, span = placed[0]
    run = _label_run(first, span)
    labels = _labels(corpus, place.kind, run, [(line, line.value(at)) for line, _ in placed])
    dated = sum(value.isdigit() and 1000 <= int(value) <= 2100 for value in values) >= 0.8 * len(values)
    optional = behind_title or first.row.title.numbered or dated or (bool(run) and run[-1] in COUNTERS)
    name = labels[0] if labels else place.kind
    return Slot(name, place.kind, "named" if optional else "strict", len(values), labels)


def _label_run(line: _Line, span: Span) -> list[str]:
    """The words before a number, back to a mark or another slot; else those behind it: "500 ml bottle"."""
    units, others, (at, behind) = line.units, line.inside, span
    run: list[str] = []
    gap = "" if units[at].gap == "," else units[at].gap  # "Weapon, +2"
    while at > 0 and len(run) < 6 and not gap and at - 1 not in others and units[at - 1].kind != "number":
        at -= 1
        run.insert(0, units[at].text)
        gap = units[at].gap
    while len(run) > 1 and run[0] in STOP_WORDS:
        run.pop(0)
    if not run:
        while behind < len(units) and behind not in others and units[behind].kind == "word":
            if run and units[behind].gap:
                break
            run.append(units[behind].text)
            behind += 1
    return run


def _labels(corpus: _Corpus, kind: str, run: Sequence[str], valued: Sequence[tuple[_Line, str]]) -> tuple[str, ...]:
    """What may stand before the number: the title's own label, what the texts say instead, spellings, acronyms."""
    split = [word for word in " ".join(run).split() if word not in FILLERS]
    while split and split[-1] in STOP_WORDS and len(split[-1]) > 1:
        split.pop()
    if not split:
        return ()
    own = corpus.label(split)
    labels = [own]
    if kind == "number":
        # Labels before a member's number in its own text, where most members agree: "AC" under "armor class".
        seen: Counter[str] = Counter()
        sampled = [valued[at * len(valued) // 60] for at in range(60)] if len(valued) > 60 else valued
        for line, value in sampled:
            chunk = line.row.chunks[0]
            titled, text = len(words(corpus.chunks[chunk].title)), corpus.texts[chunk]
            runs = [_before(text, at, titled) for at in range(titled, len(text)) if text[at] == value]
            seen.update({corpus.label(run) for run in runs if run and run[-1].isalpha() and run[-1] not in STOP_WORDS})
        labels += [label for label, count in sorted(seen.items()) if count >= max(LEAST, 0.6 * len(sampled))]
    spelt = [variant for label in labels for variant in spellings(label)]
    acronyms = []
    for phrase in (own.split(), split[-2:]):
        plain = [word for word in phrase if word.isalpha()]
        if len(plain) > 1 and min(map(len, plain)) > 1:
            acronyms.append("".join(word[0] for word in plain))
    every = dict.fromkeys([*spelt, *acronyms, *_SHORT_FORMS.get(own, ()), *corpus.meant_by(own)])
    return tuple(label for label in every if not any(label.endswith(" " + other) for other in every))


# ---------------------------------------------------------------- what a value asks of a question


def _built(
    corpus: _Corpus, lines: Sequence[_Line], places: Sequence[_Place], slots: Sequence[Slot]
) -> SlotFamily | None:
    """The family with its members, and for each the conditions of its values; None where no rule comes of it."""
    naming = [_naming(corpus, at, places, lines, slots) for at in range(len(places))]
    # in how many different values of a slot each word stands; under "" how many values there are
    frequent: list[Counter[str]] = []
    for at in range(len(places)):
        values = {line.value(at) for line in lines if line.spans[at] is not None}
        frequent.append(Counter(word for value in values for word in {"", *value.split()}))
    members: list[Member] = []
    conditions: dict[str, tuple[Condition, ...]] = {}
    without: dict[str, str] = {}
    for line in lines:
        made: list[Condition] = []
        for at, (place, span) in enumerate(zip(places, line.spans, strict=True)):
            if span is None:
                continue
            if place.kind in ("word", "list"):
                made += _word_condition(corpus, at, place.kind, line, naming[at], frequent[at])
            else:
                # "cleric 7": a value with nothing but the label between it and the number
                worded = [(n, line.spans[n]) for n, other in enumerate(places) if other.kind == "word"]
                ends = [(line.value(n), other[1]) for n, other in worded if other is not None]
                beside = [value for value, end in ends if text_of(line.units[end : span[0]]) in slots[at].labels]
                among = tuple(dict.fromkeys(term for terms in naming[at].values() for term in terms))
                made += _number_condition(corpus, at, slots[at], line, span, beside, among)
        values_of = tuple(line.value(at) for at in range(len(places)))
        problem = _problem(made, len(slots), line)
        for chunk in (corpus.chunks[at] for at in line.row.chunks):
            members.append(Member(chunk.id, chunk.title, values_of))
            if problem:
                without[chunk.id] = problem
            else:
                conditions[chunk.id] = tuple(made)
    chunks = [corpus.chunks[at] for line in lines for at in line.row.chunks]
    family = SlotFamily(
        name=_pattern(lines, slots),
        slots=tuple(slots),
        members=tuple(members),
        likeness=corpus.likeness([line.row.chunks[0] for line in lines], 10),
        any_texts=corpus.any_texts,
        with_rule=sum(isinstance(read_rule(chunk.query_must), Rule) for chunk in chunks),
        conditions=conditions,
        without=without,
    )
    return family if family.rules else None


def _problem(conditions: Sequence[Condition], slots: int, line: _Line) -> str:
    """Why the conditions make no rule that the chunk's own title, asked as a question, satisfies; '' where they do."""
    if not conditions:
        return "its title has no value that can be asked for"
    told = [one for one in conditions if not (isinstance(one.strict, NumberIn) and one.strict.summed)]
    for policy in POLICIES:
        rule = _rule_of(told, [policy] * slots)
        if rule is not None and not decide(rule, line.row.title.text).satisfied:
            return "its own title would not satisfy the rule"
    return ""


def _pattern(lines: Sequence[_Line], slots: Sequence[Slot]) -> str:
    """The title of the first member that has most slots, with each slot's kind in its place."""
    line = max(lines, key=lambda line: sum(span is not None for span in line.spans))
    starts = {span[0]: (span[1], slot.kind) for span, slot in zip(line.spans, slots, strict=True) if span is not None}
    shown: list[str] = []
    at = 0
    while at < len(line.units):
        unit = line.units[at]
        mark = {",": ", ", "-": " - "}.get(unit.gap, " ") if shown else ""
        end, kind = starts.get(at, (at + 1, ""))
        shown.append(mark + (f"{{{kind}}}" if kind else unit.text))
        at = end
    return "".join(shown)


def _naming(
    corpus: _Corpus, at: int, places: Sequence[_Place], lines: Sequence[_Line], slots: Sequence[Slot]
) -> dict[str, list[str]]:
    """How a question names each value of a slot: a number as it is said, a value alone where it is a segment, else
    beside its next word.

    "Black" is an everyday word and "black dragon" is not: what only stands near a value must not count as naming it.
    """
    place, labels = places[at], slots[at].labels
    naming: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        span = line.spans[at]
        if span is None:
            continue
        terms = naming[line.value(at)]
        value = line.value(at).split()
        if place.kind not in ("word", "list"):
            terms += (_ways_to_say(place.kind, line.units, span, labels) or ()) if labels else ()
        elif place.kind == "list":
            terms += [form for item in enumerated(line.slot_units(at)) for form in phrase_forms(text_of(item).split())]
        elif place.alone and (len(value) > 1 or not corpus.common(value[0]) or len(places) > 1):
            terms += phrase_forms(value)
        else:
            terms += _framed(line.units, *span, value)
    return naming


def _framed(units: Units, start: int, end: int, value: Sequence[str]) -> list[str]:
    """A value with the word before it and with the word behind it; behind a comma or "of" also turned round."""

    def with_head(head: Unit, turned: bool) -> list[str]:
        forms = phrase_forms([*value, *head.text.split()])
        return [*forms, " ".join([*head.text.split(), *value])] if turned else list(forms)

    framed: list[str] = []
    if end < len(units) and units[end].gap != "-":
        framed += with_head(units[end], turned=units[end].gap == ",")
    before = start - 1
    while before >= 0 and not (units[before].content or units[before].kind == "code"):
        before -= 1
    if before >= 0 and not framed and units[start].gap == "-":
        framed += with_head(units[before], turned=True)
    elif before >= 0 and not any(unit.gap == "-" for unit in units[before + 1 : start + 1]):
        between = [unit.text for unit in units[before + 1 : start]]
        framed.append(" ".join([*units[before].text.split(), *between, *value]))
        if units[start].gap == "," or between[:1] == ["of"]:
            framed += with_head(units[before], turned=False)
    return framed


def _word_condition(
    corpus: _Corpus, at: int, kind: str, line: _Line, naming: Mapping[str, Sequence[str]], frequent: Counter[str]
) -> list[Condition]:
    """What a value of words asks for: itself, a word of it that hardly another has, what stands in its brackets.

    A value that this one ends with is no other value: "giant strength" beside "hill giant strength".
    """
    units, own = line.slot_units(at), line.value(at)
    start, end = line.spans[at] or (0, 0)
    beside = set(text_of((*line.units[:start], *line.units[end:])).split())
    terms: list[str] = []
    for item in enumerated(units) if kind == "list" else [units]:
        said = text_of(item).split()
        terms += [*phrase_forms(said), *corpus.synonyms.get(" ".join(said), ())]
        for word in said if len(said) > 1 else ():
            rare = frequent[word] <= max(1, 0.1 * frequent[""]) and not (kind == "list" and corpus.common(word))
            if rare and len(word) > 2 and word not in STOP_WORDS | beside and not word.isdigit():
                terms += [*phrase_forms([word]), *corpus.synonyms.get(word, ())]
    for bracket in line.row.title.brackets:
        alias = [word for word in text_of(bracket).split() if word not in STOP_WORDS]
        terms += phrase_forms(alias) if len(alias) <= 4 else ()
        terms += [word for word in alias if not corpus.common(word) and frequent[word] == 0 and len(word) > 2]
    asked = tuple([term for term in dict.fromkeys(terms) if len(term) > 1][: MAX_TERMS // 4])
    if not asked:
        return []
    others = [value for value in naming if not own.endswith(" " + value)]
    among = tuple(dict.fromkeys(term for value in others for term in naming[value]))
    if len(among) > MAX_TERMS - MAX_TERMS // 4 or not set(among) - set(asked):
        return [Condition(at, asked, None)]
    return [Condition(at, asked, WhenNamed(asked, among))]


def _number_condition(
    corpus: _Corpus, at: int, slot: Slot, line: _Line, span: Span, beside: Sequence[str], among: Group
) -> list[Condition]:
    """What a number, a range or a code asks for: its label with it, or the word before that label ("cleric 7")."""
    if not slot.labels:
        return []
    unit = line.units[span[1] - 1]
    run = [one.text for one in line.units[: span[0]]]
    # "intelligence and wisdom total": a sum of numbers, with short forms of their labels that the corpus knows
    summed = len(run) >= 4 and run[-1] in _TOTALS and run[-3] in ("and", "plus")
    if slot.kind == "number" and summed and unit.low is not None:
        labels = [(label, *(label[:3],) * (label[:3] in corpus.holding)) for label in (run[-4], run[-2])]
        groups = tuple(tuple(dict.fromkeys(group)) for group in labels)
        return [Condition(at, NumberIn(groups, unit.low, unit.high, summed=True), None)]
    terms = _ways_to_say(slot.kind, line.units, span, slot.labels)
    if terms is None:
        return [Condition(at, NumberIn(((*slot.labels, *beside),), unit.low, unit.high), None)]
    if slot.kind == "number":
        terms = (*terms, *(f"{value} {number}" for value in beside for number in _written_out(unit) or ()))
    named = WhenNamed(terms, among) if len(among) + len(terms) <= MAX_TERMS - 20 and among else None
    return [Condition(at, terms, named)]


def _ways_to_say(kind: str, units: Units, span: Span, labels: Group) -> Group | None:
    """Label and number in every way questions say them; None for a range that is open or too wide to be written out."""
    start, end = span
    values = _written_out(units[end - 1]) if kind == "number" else [text_of(units[start:end])]
    if values is None:
        return None
    said = [f"{label} {value}" for value in values for label in labels]
    said += [form for value in values if value.isdigit() for form in counted_forms(labels[0], int(value))]
    if kind == "code":
        said += [value for value in values if value not in LETTERS_THAT_ARE_WORDS]  # "types B and H"
    else:
        said += [value for value in values if len(value.lstrip("-")) > 2]  # a year, the number of a model
        if units[start].gap == "," or start == 0:  # "Weapon, +2", "500 ml bottle"
            said += [f"{value} {label}" for value in values for label in labels]
    return tuple(dict.fromkeys(said))


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
