"""Lint the rules of a corpus: against the queries it should answer, against labels, and against one another.

A finding of severity error loses an answer or cannot be meant; a warning deserves a look; a note tells how a rule
behaves. Checks that look at one rule alone are in `rule_findings`. Repairing is left to people.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rag_core.rules.alternatives import (
    Words,
    cannot_both_hold,
    contains_term,
    rule_alternatives,
    template_alternatives,
    torn_apart,
)
from rag_core.rules.explain import reason_text
from rag_core.rules.index import RuleIndex
from rag_core.rules.match import RulePart, conditions, decide
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.rules.reading import find_substring, find_term, read_query
from rag_core.rules.siblings import sibling_families
from rag_core.rules.slots import phrase_forms
from rag_core.rules.templates import TemplateFamily
from rag_core.text import some, tokenize
from rag_core.types import Case, Chunk

SEVERITIES = ("error", "warning", "note")
MOST_PAIRS = 200_000  # of different rules compared within one family


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One finding: its kind, how grave it is, a sentence, the chunks it concerns and the query that shows it."""

    kind: str
    severity: str
    text: str
    chunks: tuple[str, ...] = ()
    query: str = ""

    def to_text(self) -> str:
        """One line, with at most three of the chunks."""
        query = f" (query {self.query})" if self.query else ""
        return f"{self.severity} {self.kind}: {some(self.chunks)} {self.text}{query}"


def lint_rules(
    chunks: Sequence[Chunk],
    cases: Sequence[Case] = (),
    min_grade: int = 1,
    families: Sequence[TemplateFamily] | None = None,
) -> tuple[RuleFinding, ...]:
    """All findings on the chunks' rules, gravest first; `cases` are the queries with their labels."""
    read = {chunk.id: read_rule(chunk.query_must) for chunk in chunks}
    rules = {identity: rule for identity, rule in read.items() if isinstance(rule, Rule)}
    titles = {chunk.id: chunk.title for chunk in chunks}
    siblings = sibling_families({identity: titles[identity] for identity in rules}, families)
    alternatives = (*template_alternatives(families), *rule_alternatives(dict.fromkeys(rules.values())))
    found = [
        *_unreadable(read),
        *_drop_relevant(rules, cases, min_grade),
        *(one for identity, rule in rules.items() for one in rule_findings(identity, rule, titles, alternatives)),
        *_alike(rules, siblings, titles),
        *_overlapping(rules, siblings),
        *_never_and_always(rules, siblings, cases),
        *_inside_words(rules, cases),
        *_said_otherwise(rules),
    ]
    return tuple(sorted(_together(found), key=lambda finding: SEVERITIES.index(finding.severity)))


def _together(found: Iterable[RuleFinding]) -> list[RuleFinding]:
    """Findings that say the same of several chunks as one."""
    chunks: dict[RuleFinding, list[str]] = defaultdict(list)
    for one in found:
        chunks[RuleFinding(one.kind, one.severity, one.text, (), one.query)] += one.chunks
    return [
        RuleFinding(one.kind, one.severity, one.text, tuple(dict.fromkeys(ids)), one.query)
        for one, ids in chunks.items()
    ]


def rule_findings(
    identity: str, rule: Rule, titles: Mapping[str, str], alternatives: Iterable[Words]
) -> Iterator[RuleFinding]:
    """What is doubtful about one rule by itself."""
    torn = torn_apart(rule, titles.get(identity, ""), alternatives)
    if torn:
        groups = " and ".join(" / ".join(group[:3]) for group in torn)
        yield RuleFinding("torn-group", "error", f"asks for {groups} together, expected them in one group", (identity,))
    if cannot_both_hold(rule):
        text = "has number ranges for one label that exclude each other; only a query with two numbers passes"
        yield RuleFinding("ranges-exclude", "warning", text, (identity,))
    for part in conditions(rule):
        yield from _redundant(identity, part)


def _redundant(identity: str, part: RulePart) -> Iterator[RuleFinding]:
    """Terms of a group that another term of it makes superfluous."""
    if part.number is not None:
        return
    tokens = {term: tokenize(term) for term in part.terms}
    for longer, shorter in ((a, b) for a in tokens for b in tokens if a != b):
        if contains_term(tokens[longer], tokens[shorter]):
            text = f"has the term {longer!r} beside {shorter!r}, which it contains: it adds nothing"
            yield RuleFinding("term-in-term", "note", text, (identity,))


def _unreadable(read: Mapping[str, Rule | str | None]) -> Iterator[RuleFinding]:
    for identity, rule in read.items():
        if isinstance(rule, str):
            yield RuleFinding("unreadable", "error", f"cannot be read, so it drops nothing: {rule}", (identity,))


def _drop_relevant(rules: Mapping[str, Rule], cases: Sequence[Case], min_grade: int) -> Iterator[RuleFinding]:
    """Rules that drop a chunk from a query it is labelled relevant for."""
    for case in cases:
        for identity, grade in case.grades.items():
            verdict = decide(rules[identity], case.query.text) if identity in rules else None
            if verdict is not None and grade >= min_grade and not verdict.satisfied:
                text = f"drops a chunk labelled {grade}: {reason_text(verdict)}"
                yield RuleFinding("drops-relevant", "error", text, (identity,), case.query.id)


def _alike(
    rules: Mapping[str, Rule], siblings: Mapping[str, Sequence[str]], titles: Mapping[str, str]
) -> Iterator[RuleFinding]:
    """Siblings with the same rule: nothing tells them apart; under one title that is only a warning."""
    for name, ids in siblings.items():
        same: dict[Rule, list[str]] = defaultdict(list)
        for identity in ids:
            same[rules[identity]].append(identity)
        for twins in same.values():
            if len(twins) > 1:
                one_title = len({titles[identity] for identity in twins}) == 1
                text = f"is the same on {len(twins)} siblings of family {name!r:.120}"
                yield RuleFinding("siblings-alike", "warning" if one_title else "error", text, tuple(twins))


def _overlapping(rules: Mapping[str, Rule], siblings: Mapping[str, Sequence[str]]) -> Iterator[RuleFinding]:
    """Siblings of which one is admitted by every query that admits the other, or which share a term in every part."""
    for name, ids in siblings.items():
        by_rule = {rules[identity]: identity for identity in reversed(ids)}
        if len(by_rule) * (len(by_rule) - 1) // 2 > MOST_PAIRS:
            text = f"family {name!r:.120} has {len(by_rule):,} different rules, too many to compare pair by pair"
            yield RuleFinding("not-compared", "note", text)
            continue
        for (one, first), (other, second) in combinations(by_rule.items(), 2):
            if _implies(one, other) or _implies(other, one):
                wider, narrower = (second, first) if _implies(one, other) else (first, second)
                text = f"admits {wider} whenever it admits {narrower}: the family's rules overlap"
                yield RuleFinding("siblings-overlap", "warning", text, (wider, narrower))
            elif _share_every_part(one, other):
                text = "shares a term in every part with its sibling: one wording can admit both"
                yield RuleFinding("siblings-overlap", "note", text, (first, second))


def _implies(one: Rule, other: Rule) -> bool:
    """Whether every query that satisfies the first surely satisfies the second: each part is no narrower than some."""
    return all(any(_no_narrower(wide, narrow) for narrow in conditions(one)) for wide in conditions(other))


def _no_narrower(wide: RulePart, narrow: RulePart) -> bool:
    if (wide.number is None) != (narrow.number is None) or (narrow.among and not wide.among):
        return False
    if wide.among:  # what need not be named admits more: any narrower way to name the value, or fewer values that ask
        return set(wide.terms) >= set(narrow.terms) and (not narrow.among or set(narrow.among) >= set(wide.among))
    if wide.number is None or narrow.number is None:
        return set(wide.terms) >= set(narrow.terms)
    a, b = wide.number, narrow.number
    low = a.minimum is None or (b.minimum is not None and b.minimum >= a.minimum)
    high = a.maximum is None or (b.maximum is not None and b.maximum <= a.maximum)
    return a.labels == b.labels and a.summed == b.summed and low and high


def _share_every_part(one: Rule, other: Rule) -> bool:
    mine, theirs = conditions(one), conditions(other)
    if len(mine) != len(theirs) or any(part.number is not None for part in (*mine, *theirs)):
        return False
    return all(set(a.terms) & set(b.terms) for a, b in zip(mine, theirs, strict=True))


def _never_and_always(
    rules: Mapping[str, Rule], siblings: Mapping[str, Sequence[str]], cases: Sequence[Case]
) -> Iterator[RuleFinding]:
    """Rules that drop their chunk from every query given, and rules that drop it from none; one finding a family."""
    if not cases:
        return
    ids = list(rules)
    index = RuleIndex(list(rules.values()))
    counts = Counter(number for case in cases for number in index.satisfied_rules(case.query.text).tolist())
    admitted = {identity: counts[int(number)] for identity, number in zip(ids, index.rule_of, strict=True)}
    family_of = {identity: name for name, members in siblings.items() for identity in members}
    for kind, count, text in (
        ("never-admits", 0, f"admits none of the {len(cases)} queries"),
        ("never-drops", len(cases), f"drops its chunk from none of the {len(cases)} queries"),
    ):
        of_family: dict[str, list[str]] = defaultdict(list)
        for identity in ids:
            if admitted[identity] == count:
                of_family[family_of.get(identity, identity)].append(identity)
        severity = "warning" if kind == "never-drops" else "note"
        for members in of_family.values():
            yield RuleFinding(kind, severity, text, tuple(members))


def _inside_words(rules: Mapping[str, Rule], cases: Sequence[Case]) -> Iterator[RuleFinding]:
    """Terms that stand in a query only as part of other words or numbers: what substring mode would match."""
    holders: dict[str, list[str]] = defaultdict(list)
    for identity, rule in rules.items():
        for term in dict.fromkeys(term for part in conditions(rule) if part.number is None for term in part.terms):
            holders[term].append(identity)
    for term, ids in holders.items():
        for case in cases:
            query = read_query(case.query.text)
            if find_substring(term, query) and find_term(term, query) is None:
                text = f"has the term {term!r}, which a query holds only inside other words: substring mode matches it"
                yield RuleFinding("inside-words", "note", text, tuple(ids), case.query.id)
                break


def _said_otherwise(rules: Mapping[str, Rule]) -> Iterator[RuleFinding]:
    """Terms that a question in singular, in plural or with other fillers does not satisfy: irregular plurals mostly."""
    holders: dict[RulePart, list[str]] = defaultdict(list)
    for identity, rule in rules.items():
        for part in conditions(rule):
            if part.number is None:
                holders[part].append(identity)
    for part, ids in holders.items():
        for term in part.terms:
            words = term.split()
            for said in (*phrase_forms(words)[1:], " of the ".join((" ".join(words[:-1]), words[-1]))):
                query = read_query(said.removeprefix(" of the "))
                if not any(find_term(other, query) for other in part.terms):
                    text = f"asks for {term!r} and is not satisfied by {said!r}: that is a term of its own"
                    yield RuleFinding("said-otherwise", "warning", text, tuple(ids))
