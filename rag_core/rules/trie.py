"""Which of many terms a query holds, found in one walk over the query: the scan of the rule index.

Terms share a tree of words. A term that holds a filler or crosses a sentence end itself is looked up by its first word
and checked by `occurrences`, the plain way. Token mode only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_core.rules.reading import Reading, Term, compiled, is_number, number_list, occurrences
from rag_core.text import FILLERS

END = ""  # the key of a node under which the number of the term that ends there stands; no word is empty

Node = dict[str, Any]


class TermTree:
    """Terms by their words; a term is known by the number it was added with."""

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
        node.setdefault(END, []).append(number)

    def held(self, query: Reading) -> set[int]:
        """The numbers of all terms that stand in the query."""
        found: set[int] = set()
        for word in query.places:
            for term, number in self._odd.get(word, ()):
                held = number not in found and term.needs <= query.words
                if held and next(occurrences(term, query), None) is not None:
                    found.add(number)
        for start, words in enumerate(query.forms):
            states = [(self._root[word], start) for word in words if word in self._root]
            if states:
                found.update(_ended(states, query))
        return found


def _ended(states: list[tuple[Node, int]], query: Reading) -> Iterator[int]:
    """The terms that go on from these states to their end; a state is a node and the place of its word."""
    while states:
        node, at = states.pop()
        yield from node.get(END, ())
        following = query.solid[at + 1]
        if following == len(query.tokens) or query.tokens[following].sentence != query.tokens[at].sentence:
            continue
        if is_number(query.tokens[following]):
            for place in number_list(query.tokens, following):
                yield from node.get(query.tokens[place].text, {}).get(END, ())
        states += [(node[word], following) for word in query.forms[following] if word in node]
