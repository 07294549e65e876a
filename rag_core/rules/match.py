"""Deciding a rule against a query: where its terms and numbers stand, the verdict, and the verdict in words.

A query is read once for all rules. `decide` is the plain evaluation, for the chunks of a list; index.py is its fast
twin for a whole corpus. Every span is in the original query, ready to be highlighted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from rag_core.errors import InputError
from rag_core.rules.rule import Group, NumberIn, Rule, Term, compiled
from rag_core.text import FILLERS, Token, is_number, tokenize

Span = tuple[int, int]
Spans = tuple[Span, ...]

MODES = ("token", "substring")
JOINING_WORDS = ("and", "or")
MAX_SUMS = 4_000  # sums tried before the chunk is simply kept
FEW = 12  # terms that are looked for one by one; one walk for all costs about as much
_WHITE_SPACE = re.compile(r"\s+")
_SIBILANTS = ("s", "x", "z", "ch", "sh", "o")  # what takes -es in the plural
_VOWELS = "aeiou"

# ---------------------------------------------------------------- a query, read once


@lru_cache(maxsize=65536)
def forms(word: str) -> tuple[str, ...]:
    """The word, then what it may be the regular English plural of, then its own regular plural.

    Only for words of letters, where the plural has three or more ("ACs" is "AC"). Two words are forms of each other or
    neither is: "class" and "classes", "body" and "bodies", never "princess" and "princes".
    """
    if not word.isalpha():
        return (word,)
    every = [word]
    if len(word) > 2 and word.endswith("s") and not word.endswith("ss"):
        every.append(word[:-1])
    if len(word) > 3 and word.endswith("es") and word[:-2].endswith(_SIBILANTS):
        every.append(word[:-2])
    if len(word) > 4 and word.endswith("ies") and word[-4] not in _VOWELS:
        every.append(word[:-3] + "y")
    if len(word) > 1 and not word.endswith("s"):
        every.append(word + "s")
    if len(word) > 1 and word.endswith(_SIBILANTS):
        every.append(word + "es")
    if len(word) > 2 and word.endswith("y") and word[-2] not in _VOWELS:
        every.append(word[:-1] + "ies")
    return tuple(every)


@dataclass(frozen=True)
class Reading:
    """A query with its tokens, where each word stands, and its text for substring mode.

    With `plurals` a token stands for all its `forms`: terms are then compared word by word as they are.
    """

    text: str
    tokens: tuple[Token, ...]
    plurals: bool = True

    @cached_property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """What each token may be as a word of a term."""
        return tuple(forms(token.text) if self.plurals else (token.text,) for token in self.tokens)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Word of a term → positions of the tokens that are it."""
        places: dict[str, list[int]] = {}
        for at, words in enumerate(self.forms):
            for word in words:
                places.setdefault(word, []).append(at)
        return places

    @cached_property
    def words(self) -> frozenset[str]:
        """The different words of terms that it holds."""
        return frozenset(self.places)

    @cached_property
    def solid(self) -> list[int]:
        """For each position, and the end, the first position from there on that is no filler."""
        solid = [len(self.tokens)] * (len(self.tokens) + 1)
        for at in range(len(self.tokens) - 1, -1, -1):
            solid[at] = solid[at + 1] if self.tokens[at].text in FILLERS else at
        return solid

    @cached_property
    def remembered(self) -> dict[Any, Any]:
        """What was found out about this query and may be asked again: parts of rules, numbers given for a label."""
        return {}

    @cached_property
    def commas(self) -> list[int]:
        """How many of the tokens before each position, and the end, have a comma before them."""
        return [0, *accumulate(token.joint == "," for token in self.tokens)]

    @cached_property
    def squeezed(self) -> tuple[str, list[Span]]:
        """The lower-cased text with each run of white space as one space, and each character's original span."""
        spans = [(at, at + 1) for at, character in enumerate(self.text) for _ in character.lower()]
        lowered = self.text.lower()
        pieces: list[str] = []
        kept: list[Span] = []
        end = 0
        for run in _WHITE_SPACE.finditer(lowered):
            pieces += [lowered[end : run.start()], " "]
            kept += [*spans[end : run.start()], (spans[run.start()][0], spans[run.end() - 1][1])]
            end = run.end()
        return "".join(pieces) + lowered[end:], kept + spans[end:]


@lru_cache(maxsize=256)
def read_query(text: str, plurals: bool = True) -> Reading:
    """The query read once, however many rules look at it; with `plurals` a word is its singular and plural too."""
    return Reading(text, tokenize(text), plurals)


# ---------------------------------------------------------------- where a term stands


def find_substring(term: str, query: Reading) -> Spans | None:
    """Where the lower-cased term stands in the lower-cased query, or None: the literal rule of the original design."""
    text, spans = query.squeezed
    wanted = _WHITE_SPACE.sub(" ", term.lower())
    at = text.find(wanted)
    return None if at < 0 else ((spans[at][0], spans[at + len(wanted) - 1][1]),)


def find_term(term: str, query: Reading) -> Spans | None:
    """Where the term's tokens stand in a row in the query (fillers between them skipped), or None."""
    positions = next(occurrences(compiled(term), query), None)
    return None if positions is None else spans_of(positions, query.tokens)


def occurrences(term: Term, query: Reading) -> Iterator[list[int]]:
    """The token positions of every occurrence of the term, by where it begins.

    Fillers between its tokens are skipped, sentence ends are not crossed but where the term itself has one.
    """
    tokens = query.tokens
    for start in query.places.get(term.texts[0], ()):
        row = [start]
        for index in range(1, len(term.texts)):
            at = _next_place(term.texts[index], query, row[-1] + 1)
            if at == len(tokens) or (tokens[at].sentence != tokens[row[-1]].sentence and not term.breaks[index]):
                break
            if term.texts[index] not in query.forms[at]:
                last = index == len(term.texts) - 1 and term.ends_in_number and is_number(tokens[at])
                listed = number_list(tokens, at) if last else ()
                at = next((place for place in listed if tokens[place].text == term.texts[index]), -1)
                if at < 0:
                    break
            row.append(at)
        else:
            yield row


def _next_place(word: str, query: Reading, at: int) -> int:
    """The first position from `at` on that is no filler, or is the filler that the word itself is."""
    solid = query.solid[at]
    if word not in FILLERS:
        return solid
    places = query.places.get(word, [])
    later = bisect_left(places, at)
    return min(places[later], solid) if later < len(places) else solid


def number_list(tokens: Sequence[Token], at: int) -> list[int]:
    """The positions of the numbers joined by and, or, comma, slash or as a range, from the one at `at` on."""
    places = [at]
    while True:
        next_at = places[-1] + 1
        while next_at < len(tokens) and tokens[next_at].text in JOINING_WORDS:
            next_at += 1
        if next_at == len(tokens) or not is_number(tokens[next_at]):
            return places
        joined = next_at > places[-1] + 1 or tokens[next_at].joint
        if not joined or tokens[next_at].sentence != tokens[at].sentence:
            return places
        places.append(next_at)


def spans_of(positions: Sequence[int], tokens: Sequence[Token]) -> Spans:
    """The spans of an occurrence: one, or two where its number stands further on in a list of numbers."""
    if len(positions) > 1 and any(is_number(token) for token in tokens[positions[-2] + 1 : positions[-1]]):
        head, last = tokens[positions[0]], tokens[positions[-1]]
        return (head.start, tokens[positions[-2]].end), (last.start, last.end)
    return ((tokens[positions[0]].start, tokens[positions[-1]].end),)


_END = ""  # the key of a node under which the number of the term that ends there stands; no word is empty

Node = dict[str, Any]


class TermTree:
    """Which of many terms a query holds, found in one walk over it; a term is known by the number it was added with.

    Terms share a tree of words. One that holds a filler or crosses a sentence end itself is looked up by its first word
    and checked by `occurrences`, the plain way.
    """

    def __init__(self) -> None:
        self._root: Node = {}
        self._odd: dict[str, list[tuple[Term, int]]] = {}

    def add(self, term: str, number: int) -> None:
        """Add a term; two terms of the same words may share a number or not, all are found."""
        plain = compiled(term)
        if any(plain.breaks) or any(text in FILLERS for text in plain.texts[1:]):
            self._odd.setdefault(plain.texts[0], []).append((plain, number))
            return
        node = self._root
        for text in plain.texts:
            node = node.setdefault(text, {})
        node.setdefault(_END, []).append(number)

    def held(self, query: Reading) -> set[int]:
        """The numbers of all terms that stand in the query."""
        numbers: set[int] = set()
        for word in query.places:
            for term, number in self._odd.get(word, ()):
                held = number not in numbers and term.needs <= query.words
                if held and next(occurrences(term, query), None) is not None:
                    numbers.add(number)
        for start, words in enumerate(query.forms):
            states = [(self._root[word], start) for word in words if word in self._root]
            if states:
                numbers.update(self._ended(states, query))
        return numbers

    def _ended(self, states: list[tuple[Node, int]], query: Reading) -> Iterator[int]:
        """The terms that go on from these states to their end; a state is a node and the place of its word."""
        while states:
            node, at = states.pop()
            yield from node.get(_END, ())
            following = query.solid[at + 1]
            if following == len(query.tokens) or query.tokens[following].sentence != query.tokens[at].sentence:
                continue
            if is_number(query.tokens[following]):
                for place in number_list(query.tokens, following):
                    yield from node.get(query.tokens[place].text, {}).get(_END, ())
            states += [(node[word], following) for word in query.forms[following] if word in node]


# ---------------------------------------------------------------- numbers that belong to a label


class LabelledNumber(NamedTuple):
    """A number the query gives: its value, the label's term it was read from (or several), and the spans of both."""

    value: float
    term: str
    spans: Spans


def numbers_for(labels: Group, query: Reading) -> list[LabelledNumber]:
    """Every number the query gives for one of the labels, in the order of labels and text; looked for once per query.

    A number belongs to the label it follows (fillers allowed) or directly precedes; what stays ambiguous counts, so
    that a chunk is rather kept than dropped.
    """
    known: list[LabelledNumber] | None = query.remembered.get(labels)
    if known is not None:
        return known
    numbers: list[LabelledNumber] = []
    for term in dict.fromkeys(labels):
        for positions in occurrences(compiled(term), query):
            for at in _numbers_of(positions[0], positions[-1], query):
                token = query.tokens[at]
                spans = (*spans_of(positions, query.tokens), (token.start, token.end))
                numbers.append(LabelledNumber(token.value or 0.0, term, tuple(sorted(spans))))
    query.remembered[labels] = numbers
    return numbers


def _numbers_of(first: int, last: int, query: Reading) -> list[int]:
    """The positions of the numbers of a label that stands at first … last."""
    tokens = query.tokens
    after: list[int] = []
    following = query.solid[last + 1]
    if following < len(tokens) and is_number(tokens[following]) and tokens[following].sentence == tokens[last].sentence:
        after = number_list(tokens, following)
    before: list[int] = []
    at: int | None = first - 1
    if first and tokens[first - 1].sentence == tokens[first].sentence and tokens[first].joint != ",":
        while at is not None and tokens[at].value is not None:
            before.append(at)
            at = _joined_before(at, tokens)
    # A following number wins, but an ordinal always binds forward, and after a comma it may belong to what comes next
    # ("12 intelligence, 14 wisdom"): then both count.
    if after and before and not tokens[before[0]].ordinal:
        across_comma = query.commas[after[0] + 1] > query.commas[last + 1]
        return before + after if across_comma else after
    return before + after


def _joined_before(at: int, tokens: Sequence[Token]) -> int | None:
    """The number of the same kind that is joined to the one at `at` from before; a bare comma joins ordinals only."""
    place = at - 1
    while place >= 0 and tokens[place].text in JOINING_WORDS:
        place -= 1
    if place < 0 or tokens[place].sentence != tokens[at].sentence:
        return None
    if tokens[place].value is None or tokens[place].ordinal != tokens[at].ordinal:
        return None
    mark = tokens[at].joint
    return place if place < at - 1 or (mark and (mark != "," or tokens[at].ordinal)) else None


def in_range(element: NumberIn, query: Reading) -> tuple[LabelledNumber | None, tuple[float, ...]]:
    """The number, or the sum of one per label, that lies in the range, or None; and those the query gives, in order.

    Any combination of numbers may make a sum.
    """
    numbers = [numbers_for(labels, query) for labels in element.labels]
    if not element.summed:
        values = tuple(number.value for number in numbers[0])
        return next((number for number in numbers[0] if element.holds(number.value)), None), values
    sums: dict[float, LabelledNumber] = {0.0: LabelledNumber(0.0, "", ())}
    for addends in numbers:
        different = {number.value: number for number in reversed(addends)}
        if len(sums) * len(different) > MAX_SUMS:
            return _added(next(iter(sums.values())), addends[0]), tuple(sorted(sums))
        pairs = [(total, number) for total in sums.values() for number in different.values()]
        sums = {total.value + number.value: _added(total, number) for total, number in reversed(pairs)}
    return next((total for total in sums.values() if element.holds(total.value)), None), tuple(sorted(sums))


def _added(total: LabelledNumber, number: LabelledNumber) -> LabelledNumber:
    term = f"{total.term} + {number.term}" if total.term else number.term
    return LabelledNumber(total.value + number.value, term, total.spans + number.spans)


# ---------------------------------------------------------------- the verdict


@dataclass(frozen=True, slots=True)
class RulePart:
    """One condition of a rule and what the query gave for it.

    `key` is the rule's key, `terms` the alternatives (one of them is enough). `term` and `spans` name the term that
    matched and its places in the query; both are empty where none did. `number` is the condition of `number_in`,
    `given` the numbers (or sums) the query gave for it. `among` are the values of a condition of `when_named`, `named`
    the one of them that the query holds: where it holds none, nothing is asked for.
    """

    key: str
    terms: Group
    term: str | None = None
    spans: Spans = ()
    number: NumberIn | None = None
    given: tuple[float, ...] = ()
    among: Group = ()
    named: str | None = None

    @property
    def satisfied(self) -> bool:
        """Whether the query holds it, or need not."""
        return self.term is not None or (bool(self.among) and self.named is None)


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Whether a query satisfies a rule: every part must."""

    satisfied: bool
    parts: tuple[RulePart, ...]
    mode: str

    @property
    def missing(self) -> tuple[RulePart, ...]:
        """The parts the query does not hold."""
        return tuple(part for part in self.parts if not part.satisfied)


@lru_cache(maxsize=16384)
def conditions(rule: Rule) -> tuple[RulePart, ...]:
    """The rule's parts in the order of its keys, not yet decided."""
    labels = [tuple(term for group in element.labels for term in group) for element in rule.number_in]
    return (
        *(RulePart("contain_one_of", group) for group in rule.contain_one_of),
        *(RulePart("contain_all_of", (term,)) for term in rule.contain_all_of),
        *(RulePart("contain", (term,)) for term in (rule.contain,) if term is not None),
        *(RulePart("number_in", terms, number=one) for terms, one in zip(labels, rule.number_in, strict=True)),
        *(RulePart("when_named", element.one_of, among=element.among) for element in rule.when_named),
    )


@lru_cache(maxsize=16384)
def _plan(rule: Rule) -> tuple[tuple[tuple[RulePart, frozenset[str]], ...], RuleVerdict]:
    """What deciding a rule needs of it alone.

    Its parts, each with the last words of its terms: a query without one of them holds none of the terms. And the
    verdict on every query that touches no part, which is the most frequent one.
    """
    parts = conditions(rule)
    pairs = tuple((part, frozenset(compiled(term).texts[-1] for term in (*part.terms, *part.among))) for part in parts)
    return pairs, RuleVerdict(all(part.satisfied for part in parts), parts, "token")


def decide(rule: Rule, query_text: str, mode: str = "token", plurals: bool = True) -> RuleVerdict:
    """The verdict of a rule on the user's original query; numbers are read by tokens in both modes.

    With `plurals` a word matches its regular singular and plural; in substring mode only before and behind a number.
    """
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}, expected one of {', '.join(MODES)}")
    query = read_query(query_text, plurals)
    words = query.words
    pairs, untouched = _plan(rule)
    parts = list(untouched.parts)
    touched = False
    for at, (part, last_words) in enumerate(pairs):
        if part.number is None and mode == "token" and last_words.isdisjoint(words):
            continue
        parts[at] = _decided(part, query, mode)
        touched = True
    return RuleVerdict(all([part.satisfied for part in parts]), tuple(parts), mode) if touched else untouched


def _decided(part: RulePart, query: Reading, mode: str) -> RulePart:
    """The part with what the query gives for it; of a group of terms, once per query for all rules that share it."""
    if part.number is not None:
        number, values = in_range(part.number, query)
        if number is None:
            return RulePart(part.key, part.terms, number=part.number, given=values)
        return RulePart(part.key, part.terms, number.term, number.spans, part.number, values)
    key = part.key, part.terms, part.among, mode
    known: RulePart | None = query.remembered.get(key)
    if known is None:
        term, spans = _first(part.terms, query, mode)
        if term is not None:
            known = RulePart(part.key, part.terms, term, spans, among=part.among)
        elif part.among:
            known = RulePart(part.key, part.terms, among=part.among, named=_first(part.among, query, mode)[0])
        else:
            known = part
        query.remembered[key] = known
    return known


def _first(terms: Group, query: Reading, mode: str) -> tuple[str | None, Spans]:
    """The first of the terms that stands in the query, and where."""
    find = find_substring
    if mode == "token":
        find = find_term
        # those whose words are all in the query; of very many those that one walk over it finds
        terms = tuple(term for term in terms if compiled(term).needs <= query.words)
        if len(terms) > FEW:
            tree = TermTree()
            for number, term in enumerate(terms):
                tree.add(term, number)
            terms = tuple(terms[number] for number in sorted(tree.held(query)))
    hits = ((term, spans) for term in terms if (spans := find(term, query)) is not None)
    return next(hits, (None, ()))


# ---------------------------------------------------------------- the verdict in words


def reason_text(verdict: RuleVerdict) -> str:
    """Why the verdict drops the chunk, e.g. "no word of: armor class 7 / ac 7 / a.c. 7"; empty where it does not."""
    reasons = []
    for part in verdict.missing:
        if part.number is None:
            named = f" (the query names {part.named})" if part.named is not None else ""
            reasons.append(f"no word of: {' / '.join(part.terms)}{named}")
        elif part.given:
            numbers = ", ".join(f"{number:g}" for number in part.given[:5])
            reasons.append(f"no number in range for: {chip_text(part)} (the query says {numbers})")
        else:
            reasons.append(f"no number for: {chip_text(part)}")
    return "; ".join(reasons)


def would_stay_text(verdict: RuleVerdict) -> str:
    """What would have kept the chunk, e.g. "would stay if the query held one of: armor class 6, ac 6"."""
    wanted = []
    for part in verdict.missing:
        if part.number is not None:
            wanted.append(f"a number for {chip_text(part)}")
        else:
            wanted.append(f"one of: {', '.join(part.terms)}" if len(part.terms) > 1 else part.terms[0])
    return f"would stay if the query held {'; and '.join(wanted)}" if wanted else ""


def chip_text(part: RulePart) -> str:
    """A part of a rule in a few words: what it asks for, "intelligence / int from 10 to 13"."""
    element = part.number
    if element is None:
        return " / ".join(part.terms) + (f" (where one of {len(part.among)} is named)" if part.among else "")
    label = " + ".join(group[0] for group in element.labels) if element.summed else " / ".join(element.labels[0])
    if element.maximum is None:
        return f"{label} of at least {element.minimum:g}"
    if element.minimum is None:
        return f"{label} of at most {element.maximum:g}"
    if element.minimum == element.maximum:
        return f"{label} of {element.minimum:g}"
    return f"{label} from {element.minimum:g} to {element.maximum:g}"
