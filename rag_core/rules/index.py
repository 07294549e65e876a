"""A compiled index over the rules of a whole corpus: which chunks does a query admit?

The query is scanned once, only conditions it touches are counted, and a rule is satisfied when all its conditions were
touched. For corpus-wide work (prefilter, linting); the few chunks of a result list take `decide`, the plain twin whose
answers these equal. In substring mode the different rules are decided plainly, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rag_core.rules.match import Reading, TermTree, conditions, decide, in_range, read_query
from rag_core.rules.rule import Group, NumberIn, Rule, compiled

Positions = NDArray[np.int64]
SPARSE = 16
_NONE: Positions = np.empty(0, dtype=np.int64)


class _Lists:
    """Lists of numbers by number, packed: row i is `items[starts[i]:starts[i + 1]]`; made of (row, item) pairs."""

    def __init__(self, pairs: Sequence[tuple[int, int]], rows: int) -> None:
        numbers = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.items: Positions = numbers[np.argsort(numbers[:, 0], kind="stable"), 1]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(numbers[:, 0], minlength=rows))])

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
        self.rules = tuple(different)
        """The different rules; `rule_of` says for each chunk which, or −1."""
        self._number_conditions()

    def _number_conditions(self) -> None:
        """Number the different conditions, and find them by term, by label word, and the rules by condition."""
        numbers: dict[Group | NumberIn, int] = {}
        needing: list[tuple[int, int]] = []  # (condition, rule)
        self._needed = np.zeros(len(self.rules), dtype=np.int64)
        # among → (one_of, rule): broken by the first without the second
        self._named: dict[int, list[tuple[int, int]]] = {}
        for at, rule in enumerate(self.rules):
            values = dict.fromkeys(part.number or part.terms for part in conditions(rule) if not part.among)
            self._needed[at] = len(values)
            needing += [(numbers.setdefault(value, len(numbers)), at) for value in values]
            for element in rule.when_named:
                among, own = (numbers.setdefault(group, len(numbers)) for group in (element.among, element.one_of))
                self._named.setdefault(among, []).append((own, at))
        self._unneeding = np.flatnonzero(self._needed == 0)
        self._rules_with = _Lists(needing, len(numbers))
        self._tree = TermTree()
        # A number condition is looked at when the first word of its (first) label stands in the query.
        self._numbers: dict[str, list[tuple[NumberIn, int]]] = {}
        terms: dict[str, int] = {}
        asking: list[tuple[int, int]] = []  # (term, condition)
        for condition, number in numbers.items():
            if isinstance(condition, NumberIn):
                for word in {compiled(term).texts[0] for term in condition.labels[0]}:
                    self._numbers.setdefault(word, []).append((condition, number))
                continue
            for term in dict.fromkeys(condition):
                if term not in terms:
                    terms[term] = len(terms)
                    self._tree.add(term, terms[term])
                asking.append((terms[term], number))
        self._conditions_with = _Lists(asking, len(terms))

    def mask(self, query: str, mode: str = "token", plurals: bool = True) -> NDArray[np.bool_]:
        """One boolean per chunk: whether the query admits it."""
        admits = np.zeros(len(self.rules) + 1, dtype=np.bool_)
        admits[self.satisfied_rules(query, mode, plurals)] = True
        admits[-1] = True  # what rule_of −1, no rule, points at
        return admits[self.rule_of]

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
