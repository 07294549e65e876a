"""Deciding a rule against a query: a verdict that names, for each part of the rule, what matched and where.

`decide` is the plain evaluation; index.py is its fast twin for a whole corpus. Sentences about a verdict are in
explain.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag_core.errors import InputError
from rag_core.rules.model import Group, NumberIn, Rule
from rag_core.rules.numbers import in_range
from rag_core.rules.reading import Reading, Spans, compiled, find_substring, find_term, read_query
from rag_core.rules.trie import TermTree

Words = frozenset[str]

MODES = ("token", "substring")
FEW = 12  # terms that are looked for one by one; one walk for all costs about as much


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

    @property
    def span(self) -> tuple[int, int] | None:
        """From the first to the last matched character of the query, or None."""
        if not self.spans:
            return None
        return min(start for start, _ in self.spans), max(end for _, end in self.spans)


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
    return (
        *(RulePart("contain_one_of", group) for group in rule.contain_one_of),
        *(RulePart("contain_all_of", (term,)) for term in rule.contain_all_of),
        *(RulePart("contain", (term,)) for term in (rule.contain,) if term is not None),
        *(RulePart("number_in", _labels(element), number=element) for element in rule.number_in),
        *(RulePart("when_named", element.one_of, among=element.among) for element in rule.when_named),
    )


def _labels(element: NumberIn) -> Group:
    return tuple(term for group in element.labels for term in group)


@lru_cache(maxsize=16384)
def _plan(rule: Rule) -> tuple[tuple[tuple[RulePart, Words], ...], RuleVerdict]:
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
    touched = mode != "token"
    first = _first_token if mode == "token" else _first_substring
    for at, (part, last_words) in enumerate(pairs):
        if part.number is not None:
            parts[at] = _in_range(part, part.number, query)
        elif mode != "token" or not last_words.isdisjoint(words):
            parts[at] = _when_named(part, query, first) if part.among else first(part, query)
        else:
            continue
        touched = True
    if not touched:
        return untouched
    return RuleVerdict(all([part.satisfied for part in parts]), tuple(parts), mode)


def _when_named(part: RulePart, query: Reading, first: Callable[[RulePart, Reading], RulePart]) -> RulePart:
    """The part with its own term where the query holds one, else with the value of its kind that the query names."""
    own = first(RulePart("contain_one_of", part.terms), query)
    if own.term is not None:
        return RulePart(part.key, part.terms, own.term, own.spans, among=part.among)
    return RulePart(part.key, part.terms, among=part.among, named=first(RulePart("among", part.among), query).term)


def _first(
    part: RulePart, terms: Sequence[str], query: Reading, find: Callable[[str, Reading], Spans | None]
) -> RulePart:
    """The part with the first of the terms that stands in the query, or as it is."""
    for term in terms:
        spans = find(term, query)
        if spans is not None:
            return RulePart(part.key, part.terms, term, spans)
    return part


def _first_substring(part: RulePart, query: Reading) -> RulePart:
    return _first(part, part.terms, query, find_substring)


def _first_token(part: RulePart, query: Reading) -> RulePart:
    """`_first` in token mode, found once per query for all rules that share the part."""
    key = (part.key, part.terms)
    known = query.remembered.get(key)
    if not isinstance(known, RulePart):
        known = query.remembered[key] = _first(part, _worth_a_look(part.terms, query), query, find_term)
    return known


def _worth_a_look(terms: Group, query: Reading) -> Sequence[str]:
    """The terms whose words are all in the query; of very many those that one walk over the query finds."""
    words = query.words
    some = [term for term in terms if compiled(term).needs <= words]
    if len(some) <= FEW:
        return some
    tree = TermTree()
    for number, term in enumerate(some):
        tree.add(term, number)
    held = tree.held(query)
    return [term for number, term in enumerate(some) if number in held]


def _in_range(part: RulePart, number: NumberIn, query: Reading) -> RulePart:
    hit, given = in_range(number, query)
    if hit is None:
        return RulePart(part.key, part.terms, number=number, given=given)
    return RulePart(part.key, part.terms, hit.term, hit.spans, number, given)
