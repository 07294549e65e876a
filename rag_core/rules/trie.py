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
            for word in plain.starts:
                self._odd.setdefault(word, []).append((plain, number))
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
        for start, token in enumerate(query.tokens):
            if token.text in self._root or token.text.endswith("s"):
                found.update(self._from(start, query))
        return found

    def _from(self, start: int, query: Reading) -> Iterator[int]:
        """The terms that begin at a token. A state is a node, the place of its word, and whether that is a plural."""
        states = [(node, start, plural) for node, plural in _children(self._root, query.tokens[start].text)]
        while states:
            node, at, plural = states.pop()
            if not plural:
                yield from node.get(END, ())
            following = query.solid[at + 1]
            if following == len(query.tokens) or query.tokens[following].sentence != query.tokens[at].sentence:
                continue
            if is_number(query.tokens[following]):
                yield from _closing(node, following, query)
            if not plural:
                text = query.tokens[following].text
                states += [(child, following, many) for child, many in _children(node, text)]


def _closing(node: Node, at: int, query: Reading) -> Iterator[int]:
    """The terms that a number of the list at a place closes."""
    for place in number_list(query.tokens, at):
        yield from node.get(query.tokens[place].text, {}).get(END, ())


def _children(node: Node, text: str) -> Iterator[tuple[Node, bool]]:
    """The nodes a word of the query leads to: its own, and those of the words it may be the plural of."""
    if text in node:
        yield node[text], False
    for single in singulars(text):
        if single in node:
            yield node[single], True


def singulars(text: str) -> list[str]:
    """The words that `plurals` makes this one of, itself excepted."""
    if len(text) < 3 or not text.endswith("s"):
        return []
    found = [text[:-1]]
    if text.endswith("es"):
        found.append(text[:-2])
    if text.endswith("ies"):
        found.append(text[:-3] + "y")
    return [word for word in found if len(word) > 1]
