"""The check of rules: of proposed ones before they are stored, and of those that stand (lint).

Proposals come from templates, a language model, a file or a person; all pass the same check. A finding of lint of
severity error loses an answer or cannot be meant; a warning deserves a look; a note tells how a rule behaves. Storing
is the collection's (rag_core.index.rules), repairing is left to people.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from rag_core.errors import RuleError
from rag_core.rules.index import RuleIndex
from rag_core.rules.match import (
    JOINING_WORDS,
    RulePart,
    RuleVerdict,
    conditions,
    decide,
    find_term,
    forms,
    read_query,
    reason_text,
)
from rag_core.rules.rule import Group, Rule, parse_rule, read_rule
from rag_core.rules.siblings import sibling_families
from rag_core.rules.slots import phrase_forms
from rag_core.rules.templates import TemplateFamily, propose, shipped_families
from rag_core.text import some, tokenize
from rag_core.types import Case, Chunk

SEVERITIES = ("error", "warning", "note")
MOST_PAIRS = 200_000  # of different rules compared within one family
LEAST_ENUMERATED = 3

Words = frozenset[str]

# ---------------------------------------------------------------- before storing


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposal that is not stored, and why: `kind` for machines, `reason` for people."""

    chunk_id: str
    kind: str  # unreadable | unknown-chunk | torn-group | siblings-alike | drops-relevant | answer
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check says: rules that may be stored, by chunk; refusals; and warnings about what passes."""

    accepted: Mapping[str, Rule]
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Each refusal and warning as a line."""
        refused = [f"refused {refusal.chunk_id}: {refusal.reason}" for refusal in self.refused]
        return [*refused, *(f"warning: {text}" for text in self.warnings)]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        accepted = {identity: rule.as_mapping() for identity, rule in self.accepted.items()}
        refused = [asdict(refusal) for refusal in self.refused]
        return {"accepted": accepted, "refused": refused, "warnings": list(self.warnings)}


def template_proposals(chunks: Iterable[Chunk], families: Sequence[TemplateFamily] | None = None) -> dict[str, Any]:
    """Chunk id → the rule its title's template writes, for the chunks a template fits."""
    proposed = ((chunk.id, propose(chunk.title, families)) for chunk in chunks)
    return {identity: proposal.rule.as_mapping() for identity, proposal in proposed if proposal is not None}


def check_proposals(
    proposals: Mapping[str, Any],
    chunks: Sequence[Chunk],
    cases: Sequence[Case] = (),
    min_grade: int = 1,
    families: Sequence[TemplateFamily] | None = None,
    unread: Iterable[Refusal] = (),
) -> Checked:
    """Check proposed rules (chunk id → rule as in a file) against the corpus they are for and the labels there are.

    A rule passes if it parses, does not ask for alternatives together, is not the rule of a sibling under another
    title, and admits its chunk for every query the chunk is labelled relevant for. `unread` are the refusals there
    were before: a model's answers that could not be read.
    """
    titles = {chunk.id: chunk.title for chunk in chunks}
    parsed: dict[str, Rule] = {}
    refused = list(unread)
    for identity, raw in proposals.items():
        if identity not in titles:
            refused.append(Refusal(identity, "unknown-chunk", "there is no chunk of that id"))
            continue
        try:
            parsed[identity] = raw if isinstance(raw, Rule) else parse_rule(raw, f"chunk {identity[:80]}")
        except RuleError as error:
            refused.append(Refusal(identity, "unreadable", str(error)))

    lost: dict[str, list[str]] = defaultdict(list)
    for case, identity, verdict in _lost(parsed, cases, min_grade):
        lost[identity].append(f"{case.query.id} ({reason_text(verdict)})")
    alternatives = template_alternatives(families)
    for identity, rule in list(parsed.items()):
        torn = torn_apart(rule, titles[identity], alternatives)
        if torn:
            refused.append(Refusal(identity, "torn-group", _torn_text(torn)))
        elif identity in lost:
            reason = f"drops the chunk where it is labelled relevant: {some(lost[identity], joint='; ')}"
            refused.append(Refusal(identity, "drops-relevant", reason))
        if torn or identity in lost:
            del parsed[identity]

    warnings: list[str] = []
    standing = {chunk.id: own for chunk in chunks if isinstance(own := read_rule(chunk.query_must), Rule)}
    accepted = dict(parsed)
    for _, twins in _twins({**standing, **parsed}, sibling_families(titles, families)):
        proposed = [identity for identity in twins if identity in parsed]
        if proposed and len({titles[identity] for identity in twins}) == 1:
            warnings.append(f"{', '.join(twins[:5])} have one title and one rule: nothing tells them apart")
            continue
        for identity in proposed:
            other = next(twin for twin in twins if twin != identity)
            reason = f"is the rule of its sibling {other} too: nothing would tell the two apart"
            refused.append(Refusal(identity, "siblings-alike", reason))
            del accepted[identity]
    return Checked(accepted, tuple(refused), tuple(warnings))


@dataclass(frozen=True, slots=True)
class ProposalPreview:
    """A proposed rule beside one labelled query: the verdict and the chunk's grade there (None: no label)."""

    query_id: str
    verdict: RuleVerdict
    grade: int | None


def preview(identity: str, rule: Rule, cases: Iterable[Case]) -> tuple[ProposalPreview, ...]:
    """The rule's verdict on every query."""
    return tuple(
        ProposalPreview(case.query.id, decide(rule, case.query.text), case.grades.get(identity)) for case in cases
    )


# ---------------------------------------------------------------- what both look at


def _lost(rules: Mapping[str, Rule], cases: Iterable[Case], min_grade: int) -> Iterator[tuple[Case, str, RuleVerdict]]:
    """Each chunk that its rule drops from a query it is labelled relevant for."""
    for case in cases:
        for identity, grade in case.grades.items():
            if grade >= min_grade and identity in rules:
                verdict = decide(rules[identity], case.query.text)
                if not verdict.satisfied:
                    yield case, identity, verdict


def _twins(rules: Mapping[str, Rule], siblings: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    """(family, chunks) of siblings with the same rule: nothing tells them apart."""
    for name, ids in siblings.items():
        same: dict[Rule, list[str]] = defaultdict(list)
        for identity in ids:
            if identity in rules:
                same[rules[identity]].append(identity)
        yield from ((name, twins) for twins in same.values() if len(twins) > 1)


def torn_apart(rule: Rule, title: str, alternatives: Iterable[Words]) -> tuple[Group, ...]:
    """The groups of the rule that hold alternatives of one another and so should be one group; empty where none do.

    A group is an OR, several groups are an AND: a rule that asks for clerics, druids and monks each in a group of its
    own fails every query that names one. Alternatives are the groups that templates and other rules write, and
    enumerations of three or more in the chunk's own title.
    """
    groups = [*rule.contain_one_of, *((term,) for term in rule.contain_all_of)]
    if len(groups) < 2:
        return ()
    held = [[_forms(term) for term in group] for group in groups]
    known = [(words, 2) for words in alternatives] + [(words, LEAST_ENUMERATED) for words in _enumerations(title)]
    for words, least in known:
        torn = [group for group, own in zip(groups, held, strict=True) if not any(map(words.isdisjoint, own))]
        if len(torn) >= least:
            return tuple(torn)
    return ()


def _torn_text(torn: Sequence[Group]) -> str:
    return f"asks for {' and '.join(' / '.join(group[:3]) for group in torn)} together, expected them in one group"


def template_alternatives(families: Sequence[TemplateFamily] | None = None) -> tuple[Words, ...]:
    """The sets of words that templates treat as alternatives: literal groups, and all values of one capture."""
    sets: list[Words] = []
    for family in shipped_families() if families is None else families:
        groups = family.rule.get("contain_one_of", [])
        literal = [group for group in groups if not any("{" in str(term) for term in group)]
        sets += [_words(map(str, group)) for group in literal]
        sets += [_words(term for terms in values.values() for term in terms) for values in family.terms.values()]
    return tuple(dict.fromkeys(sets))


def rule_alternatives(rules: Iterable[Rule]) -> tuple[Words, ...]:
    """The groups of rules as sets of alternatives."""
    groups = dict.fromkeys(group for rule in rules for group in rule.contain_one_of if len(group) > 1)
    return tuple(_words(group) for group in groups)


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


# ---------------------------------------------------------------- lint


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
    """All findings on the chunks' rules, gravest first; `cases` are the queries with their labels.

    What is said the same of several chunks is one finding.
    """
    read = {chunk.id: read_rule(chunk.query_must) for chunk in chunks}
    rules = {identity: rule for identity, rule in read.items() if isinstance(rule, Rule)}
    titles = {chunk.id: chunk.title for chunk in chunks}
    siblings = sibling_families({identity: titles[identity] for identity in rules}, families)
    alternatives = (*template_alternatives(families), *rule_alternatives(dict.fromkeys(rules.values())))
    findings: list[RuleFinding] = []
    for identity, problem in read.items():
        if isinstance(problem, str):
            text = f"cannot be read, so it drops nothing: {problem}"
            findings.append(RuleFinding("unreadable", "error", text, (identity,)))
    for case, identity, verdict in _lost(rules, cases, min_grade):
        text = f"drops a chunk labelled {case.grades[identity]}: {reason_text(verdict)}"
        findings.append(RuleFinding("drops-relevant", "error", text, (identity,), case.query.id))
    for identity, rule in rules.items():
        torn = torn_apart(rule, titles[identity], alternatives)
        if torn:
            findings.append(RuleFinding("torn-group", "error", _torn_text(torn), (identity,)))
    for name, twins in _twins(rules, siblings):
        severity = "warning" if len({titles[identity] for identity in twins}) == 1 else "error"
        text = f"is the same on {len(twins)} siblings of family {name!r:.120}"
        findings.append(RuleFinding("siblings-alike", severity, text, tuple(twins)))
    findings += [*_overlapping(rules, siblings), *_never_and_always(rules, siblings, cases), *_said_otherwise(rules)]

    together: dict[RuleFinding, list[str]] = defaultdict(list)
    for one in findings:
        together[replace(one, chunks=())] += one.chunks
    merged = [replace(finding, chunks=tuple(dict.fromkeys(ids))) for finding, ids in together.items()]
    return tuple(sorted(merged, key=lambda finding: SEVERITIES.index(finding.severity)))


def _overlapping(rules: Mapping[str, Rule], siblings: Mapping[str, Sequence[str]]) -> Iterator[RuleFinding]:
    """Siblings of which one is admitted by every query that admits the other, or which share a term in every part."""
    for name, ids in siblings.items():
        by_rule = {rules[identity]: identity for identity in reversed(ids)}
        if len(by_rule) * (len(by_rule) - 1) // 2 > MOST_PAIRS:
            text = f"family {name!r:.120} has {len(by_rule):,} different rules, too many to compare pair by pair"
            yield RuleFinding("not-compared", "note", text)
            continue
        for (rule, first), (other, second) in combinations(by_rule.items(), 2):
            if _implies(rule, other) or _implies(other, rule):
                wider, narrower = (second, first) if _implies(rule, other) else (first, second)
                text = f"admits {wider} whenever it admits {narrower}: the family's rules overlap"
                yield RuleFinding("siblings-overlap", "warning", text, (wider, narrower))
                continue
            mine, theirs = conditions(rule), conditions(other)
            worded = len(mine) == len(theirs) and all(part.number is None for part in (*mine, *theirs))
            if worded and all(set(a.terms) & set(b.terms) for a, b in zip(mine, theirs, strict=True)):
                text = "shares a term in every part with its sibling: one wording can admit both"
                yield RuleFinding("siblings-overlap", "note", text, (first, second))


def _implies(rule: Rule, other: Rule) -> bool:
    """Whether every query that satisfies the first surely satisfies the second: each part is no narrower than some."""
    return all(any(_no_narrower(wide, narrow) for narrow in conditions(rule)) for wide in conditions(other))


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


def _never_and_always(
    rules: Mapping[str, Rule], siblings: Mapping[str, Sequence[str]], cases: Sequence[Case]
) -> Iterator[RuleFinding]:
    """Rules that drop their chunk from every query there is, and rules that drop it from none; one finding a family."""
    if not cases:
        return
    index = RuleIndex(list(rules.values()))
    counts = Counter(number for case in cases for number in index.satisfied_rules(case.query.text).tolist())
    family_of = {identity: name for name, members in siblings.items() for identity in members}
    never: dict[str, list[str]] = defaultdict(list)
    always: dict[str, list[str]] = defaultdict(list)
    for identity, number in zip(rules, index.rule_of.tolist(), strict=True):
        if counts[number] == 0:
            never[family_of.get(identity, identity)].append(identity)
        elif counts[number] == len(cases):
            always[family_of.get(identity, identity)].append(identity)
    for members in never.values():
        text = f"admits none of the {len(cases)} queries"
        yield RuleFinding("never-admits", "note", text, tuple(members))
    for members in always.values():
        text = f"drops its chunk from none of the {len(cases)} queries"
        yield RuleFinding("never-drops", "warning", text, tuple(members))


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
