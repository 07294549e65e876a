"""A compiled index over the rules of a whole corpus: which chunks does a query admit?

The query is scanned once, only conditions it touches are counted, and a rule is satisfied when all its conditions were
touched. For corpus-wide work (prefilter, coverage, linting); the few chunks of a result list take `decide`, the plain
twin whose answers these equal. In substring mode the different rules are decided plainly, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag_core.rules.match import RulePart, RuleVerdict, conditions, decide
from rag_core.rules.model import Group, NumberIn, Rule
from rag_core.rules.numbers import in_range
from rag_core.rules.reading import Reading, compiled, read_query
from rag_core.rules.trie import TermTree

Positions = NDArray[np.int64]
SPARSE = 16
_NONE: Positions = np.empty(0, dtype=np.int64)


class _Lists:
    """Lists of numbers by number, packed: row i is `items[starts[i]:starts[i + 1]]`."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
        self.items = np.fromiter((item for row in rows for item in row), dtype=np.int64, count=int(self.starts[-1]))

    def of(self, rows: Iterable[int]) -> Positions:
        """The items of several rows, one after the other."""
        parts = [self.items[self.starts[row] : self.starts[row + 1]] for row in rows]
        return np.concatenate(parts) if parts else _NONE


class RuleIndex:
    """The rules of a corpus, by chunk position; chunks without a rule are admitted by every query."""

    def __init__(self, rules: Sequence[Rule | None]) -> None:
        """Build from one rule or None per chunk, in the order of the corpus."""
        different: dict[Rule, int] = {}
        numbered = [-1 if rule is None else different.setdefault(rule, len(different)) for rule in rules]
        self.rule_of = np.array(numbered, dtype=np.int64)
        self.unruled = np.flatnonzero(self.rule_of < 0).astype(np.int64)
        self.rules = tuple(different)
        """The different rules; `rule_of` says for each chunk which, or −1."""
        self._chunks = _inverted(numbered, len(different))
        self._index_conditions(self.rules)

    def _index_conditions(self, rules: Sequence[Rule]) -> None:
        """Number the different conditions, and find them by term, by label word, and the rules by condition."""
        found: dict[Group | NumberIn, int] = {}
        self._number_of = found
        rows = [{found.setdefault(part, len(found)) for part in _parts(rule)} for rule in rules]
        self._needed = np.array([len(row) for row in rows], dtype=np.int64)
        self._unneeding = np.flatnonzero(self._needed == 0).astype(np.int64)
        self._named: dict[
            int, list[tuple[int, int]]
        ] = {}  # among → (one_of, rule): broken by the first without the second
        for rule_number, rule in enumerate(rules):
            for element in rule.when_named:
                among, own = (found.setdefault(group, len(found)) for group in (element.among, element.one_of))
                self._named.setdefault(among, []).append((own, rule_number))
        self._rules_with = _Lists(_turned(rows, len(found)))
        self._tree = TermTree()
        self._numbers: dict[str, list[tuple[NumberIn, int]]] = {}
        terms: dict[str, int] = {}
        asked_by: list[list[int]] = []
        for condition, number in found.items():
            if isinstance(condition, NumberIn):
                self._add_number(condition, number)
                continue
            for term in dict.fromkeys(condition):
                if term not in terms:
                    terms[term] = len(terms)
                    self._tree.add(term, terms[term])
                    asked_by.append([])
                asked_by[terms[term]].append(number)
        self._conditions_with = _Lists(asked_by)

    def _add_number(self, element: NumberIn, number: int) -> None:
        """A number condition is looked at when the first word of its (first) label stands in the query."""
        for word in {compiled(term).texts[0] for term in element.labels[0]}:
            self._numbers.setdefault(word, []).append((element, number))

    def admitted(self, query: str) -> Positions:
        """The ascending positions of all chunks whose rule admits the query, those without a rule among them."""
        return np.sort(np.concatenate([self.unruled, self.satisfied(query)]))

    def mask(self, query: str, mode: str = "token", plurals: bool = True) -> NDArray[np.bool_]:
        """One boolean per chunk: whether the query admits it."""
        admits = np.zeros(len(self._needed) + 1, dtype=np.bool_)
        admits[self.satisfied_rules(query, mode, plurals)] = True
        admits[-1] = True  # what rule_of −1, no rule, points at
        return admits[self.rule_of]

    def satisfied(self, query: str) -> Positions:
        """The positions of the chunks that carry a rule which the query satisfies, rule by rule."""
        return self._chunks.of(self.satisfied_rules(query))

    def verdict(self, position: int, query: str) -> RuleVerdict | None:
        """What a chunk's rule lacks of the query: a verdict with the missing parts alone, or None without a rule."""
        if self.rule_of[position] < 0:
            return None
        rule = self.rules[self.rule_of[position]]
        if rule.when_named:
            decided = decide(rule, query)
            return RuleVerdict(decided.satisfied, decided.missing, "token")
        held = set(self._held(read_query(query)))
        parts = conditions(rule)
        missing = tuple(_lacking(part, query) for part in parts if self._number_of[_key(part)] not in held)
        return RuleVerdict(not missing, missing, "token")

    def satisfied_rules(self, query: str, mode: str = "token", plurals: bool = True) -> Positions:
        """The ascending numbers of the different rules that the query satisfies."""
        if mode != "token":
            holding = [number for number, rule in enumerate(self.rules) if decide(rule, query, mode, plurals).satisfied]
            return np.array(holding, dtype=np.int64)
        held = self._held(read_query(query, plurals))
        touched = self._rules_with.of(held)
        if len(touched) * SPARSE > len(self._needed):  # counting all rules beats sorting the touched ones
            satisfied = np.flatnonzero(np.bincount(touched, minlength=len(self._needed)) == self._needed)
        else:
            rules, counts = np.unique(touched, return_counts=True)
            satisfied = np.union1d(rules[counts == self._needed[rules]], self._unneeding)
        if not self._named:
            return satisfied
        known = set(held)
        broken = [rule for number in held for own, rule in self._named.get(number, ()) if own not in known]
        return np.setdiff1d(satisfied, np.array(broken, dtype=np.int64))

    def _held(self, query: Reading) -> list[int]:
        """The conditions the query holds, each once."""
        held = list(set(self._conditions_with.of(self._tree.held(query)).tolist()))
        touched = {pair for word in query.places for pair in self._numbers.get(word, ())}
        return held + [number for element, number in touched if in_range(element, query)[0] is not None]


def _parts(rule: Rule) -> list[Group | NumberIn]:
    """The conditions a query must hold, as values that can be compared: equal ones are decided once."""
    return [_key(part) for part in conditions(rule) if not part.among]


def _key(part: RulePart) -> Group | NumberIn:
    return part.terms if part.number is None else part.number


def _lacking(part: RulePart, query: str) -> RulePart:
    """A missing part with the numbers the query gave for it."""
    if part.number is None:
        return part
    return RulePart(part.key, part.terms, number=part.number, given=in_range(part.number, read_query(query))[1])


def _inverted(numbers: Sequence[int], count: int) -> _Lists:
    """For each number up to count, the positions where it stands."""
    order = np.argsort(np.array(numbers, dtype=np.int64), kind="stable")
    known = np.array(numbers, dtype=np.int64)[order] >= 0
    lists = _Lists([])
    lists.items = order[known].astype(np.int64)
    lengths = np.bincount(np.array(numbers, dtype=np.int64)[lists.items], minlength=count)
    lists.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return lists


def _turned(rows: Sequence[Iterable[int]], count: int) -> list[list[int]]:
    """Rows of numbers turned round: for each number, the rows that hold it."""
    turned: list[list[int]] = [[] for _ in range(count)]
    for row, numbers in enumerate(rows):
        for number in numbers:
            turned[number].append(row)
    return turned
