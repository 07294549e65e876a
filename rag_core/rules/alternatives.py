"""The four-group mistake: words of which a query names one, each in a group of its own, so that it must name all.

A group is an OR, several groups are an AND. Clerics, druids and monks of one table belong in one group; a rule that
asks for each of them fails every query that names one. Two sources say which words are alternatives: groups that
templates and other rules write, and enumerations of three or more in the chunk's own title.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from rag_core.rules.model import Group, Rule
from rag_core.rules.reading import JOINING_WORDS, forms
from rag_core.rules.templates import TemplateFamily, shipped_families
from rag_core.text import Token, tokenize

Words = frozenset[str]
LEAST_ENUMERATED = 3


def template_alternatives(families: Sequence[TemplateFamily] | None = None) -> tuple[Words, ...]:
    """The sets of words that templates treat as alternatives: literal groups, and all values of one capture."""
    found: list[Words] = []
    for family in shipped_families() if families is None else families:
        groups = family.rule.get("contain_one_of", [])
        literal = [group for group in groups if not any("{" in str(term) for term in group)]
        found += [_words(map(str, group)) for group in literal]
        found += [_words(term for terms in values.values() for term in terms) for values in family.terms.values()]
    return tuple(dict.fromkeys(found))


def rule_alternatives(rules: Iterable[Rule]) -> tuple[Words, ...]:
    """The groups of rules as sets of alternatives."""
    groups = dict.fromkeys(group for rule in rules for group in rule.contain_one_of if len(group) > 1)
    return tuple(_words(group) for group in groups)


def torn_apart(rule: Rule, title: str, alternatives: Iterable[Words]) -> tuple[Group, ...]:
    """The groups of the rule that hold alternatives of one another and so should be one group; empty where none do."""
    groups = [*rule.contain_one_of, *((term,) for term in rule.contain_all_of)]
    if len(groups) < 2:
        return ()
    forms = [[_forms(term) for term in group] for group in groups]
    known = [(words, 2) for words in alternatives] + [(words, LEAST_ENUMERATED) for words in _enumerations(title)]
    for words, least in known:
        torn = [group for group, own in zip(groups, forms, strict=True) if not any(map(words.isdisjoint, own))]
        if len(torn) >= least:
            return tuple(torn)
    return ()


def cannot_both_hold(rule: Rule) -> bool:
    """Whether two number conditions of the same labels have ranges that exclude each other: only a query that gives
    two numbers for the label satisfies both.
    """
    for one, other in combinations(rule.number_in, 2):
        if one.labels != other.labels or one.summed != other.summed:
            continue
        low = max((limit for limit in (one.minimum, other.minimum) if limit is not None), default=None)
        high = min((limit for limit in (one.maximum, other.maximum) if limit is not None), default=None)
        if low is not None and high is not None and low > high:
            return True
    return False


def _words(terms: Iterable[str]) -> Words:
    return frozenset(form for term in terms for form in _forms(term))


def _forms(term: str) -> Words:
    """A term as its words, the last also in its other number, so that "Clerics" and "cleric" meet."""
    words = [token.text for token in tokenize(term)]
    return frozenset(" ".join([*words[:-1], last]) for last in forms(words[-1])) if words else Words()


def _enumerations(title: str) -> Iterator[Words]:
    """The sets of words that the title lists with commas, and, or or &: "clerics, druids and monks"."""
    run: list[str] = []
    joined = False
    for token in tokenize(title):
        if token.text in JOINING_WORDS:
            joined = True
            continue
        if run and not (joined or token.joint in (",", "&", "/")):
            yield _words(run)
            run = []
        run.append(token.text)
        joined = False
    yield _words(run)


def contains_term(outer: Sequence[Token], inner: Sequence[Token]) -> bool:
    """Whether the words of one term stand in a row inside another, longer one."""
    texts, wanted = [token.text for token in outer], [token.text for token in inner]
    ends = len(texts) - len(wanted) + 1
    return len(wanted) < len(texts) and any(texts[at : at + len(wanted)] == wanted for at in range(ends))
