"""Which families of chunks crowd out answers: candidates for rules, measured from result lists and from the corpus.

A family is a set of near-duplicate titles (siblings.py). Its share is how many of the first k places of the lists it
takes; crowding is the part of them that labels do not call relevant. Writing the rules is for templates, people or a
model; checking them is in proposals.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.rules.siblings import sibling_families
from rag_core.rules.templates import TemplateFamily, propose
from rag_core.types import Case, Chunk, Hit

Named = Mapping[str, tuple[str, ...]]

LEAST = 3  # chunks that make a family worth a rule
LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class Crowd:
    """A family and what of the first k places of the result lists it takes.

    `share` is of all places of all lists, `crowding` the share that no label calls relevant, `lists` the number of
    lists in which it stands at all, `most` the most places it takes in one. `template` names the template that would
    write its rules, if one does.
    """

    name: str
    chunks: tuple[str, ...]
    examples: tuple[str, ...]
    with_rule: int
    template: str = ""
    share: float = 0.0
    crowding: float = 0.0
    lists: int = 0
    most: int = 0

    def to_text(self) -> str:
        """One line."""
        return (
            f"{self.crowding:6.1%} crowding, {self.share:6.1%} of places: {self.name} ({len(self.chunks)} chunks, "
            f"{self.with_rule} with rules, template {self.template or 'none'})"
        )


def suggest(
    chunks: Sequence[Chunk],
    cases: Sequence[Case] = (),
    k: int = 15,
    min_grade: int = 1,
    families: Sequence[TemplateFamily] | None = None,
    least: int = LEAST,
    named: Named | None = None,
) -> tuple[Crowd, ...]:
    """The families of the corpus, those that crowd the lists most first; without lists the largest first.

    `cases` bring result lists (captures) and labels; a chunk without a label counts as not relevant. `named` is what
    `families_of` found for these chunks, where it is at hand: finding them takes longest.
    """
    titles = {chunk.id: _line(chunk) for chunk in chunks}
    rules = {chunk.id for chunk in chunks if isinstance(read_rule(chunk.query_must), Rule)}
    named = families_of(chunks, families, least) if named is None else named
    lists = [(case, case.candidates.hits[:k]) for case in cases if case.candidates is not None]
    family_of = {identity: name for name, ids in named.items() for identity in ids}
    places, unwanted, lists_with, most = _places(lists, family_of, min_grade)
    total = max(1, sum(len(hits) for _, hits in lists))
    found = [
        Crowd(
            name=name,
            chunks=ids,
            examples=tuple(dict.fromkeys(titles[identity] for identity in ids))[:3],
            with_rule=sum(identity in rules for identity in ids),
            template=_template(ids, titles, families),
            share=places[name] / total,
            crowding=unwanted[name] / total,
            lists=lists_with[name],
            most=most[name],
        )
        for name, ids in named.items()
    ]
    return tuple(sorted(found, key=lambda crowd: (-crowd.crowding, -crowd.share, -len(crowd.chunks), crowd.name)))


def families_of(chunks: Sequence[Chunk], families: Sequence[TemplateFamily] | None = None, least: int = LEAST) -> Named:
    """Name → chunk ids of each family of at least `least` chunks with near-duplicate titles, largest first."""
    return sibling_families({chunk.id: _line(chunk) for chunk in chunks}, families, least)


def chunks_of(cases: Iterable[Case]) -> tuple[Chunk, ...]:
    """The different chunks of recorded lists: the corpus as far as captures know it."""
    hits = (hit for case in cases if case.candidates is not None for hit in case.candidates.hits)
    return tuple({hit.chunk.id: hit.chunk for hit in hits}.values())


def _line(chunk: Chunk) -> str:
    """What tells a chunk's family: its title, or the first line of its text where it has none."""
    first = next((line for line in chunk.text.splitlines() if line.strip()), "") if not chunk.title.strip() else ""
    return chunk.title or first[:LONGEST_LINE]


def _places(
    lists: Sequence[tuple[Case, Sequence[Hit]]], family_of: Mapping[str, str], min_grade: int
) -> tuple[Counter[str], Counter[str], Counter[str], Counter[str]]:
    """Per family: places taken, places taken without being relevant, lists it stands in, most places in one list."""
    places: Counter[str] = Counter()
    unwanted: Counter[str] = Counter()
    lists_with: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for case, hits in lists:
        here = Counter(family_of[hit.chunk.id] for hit in hits if hit.chunk.id in family_of)
        places += here
        lists_with += Counter(here.keys())
        most |= here
        unwanted += Counter(
            family_of[hit.chunk.id]
            for hit in hits
            if hit.chunk.id in family_of and case.grades.get(hit.chunk.id, 0) < min_grade
        )
    return places, unwanted, lists_with, most


def _template(ids: Sequence[str], titles: Mapping[str, str], families: Sequence[TemplateFamily] | None) -> str:
    proposal = propose(titles[ids[0]], families)
    return proposal.family if proposal is not None else ""


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """How many chunks carry rules: in all, unreadable ones, and per family (name, chunks, with a rule).

    `problem` is what is wrong with the first rule that cannot be read.
    """

    chunks: int
    with_rule: int
    unreadable: int
    families: tuple[tuple[str, int, int], ...]
    problem: str = ""

    def to_text(self) -> str:
        """One line."""
        first = f" ({self.problem})" if self.problem else ""
        return f"{self.with_rule} of {self.chunks} chunks carry rules, {self.unreadable} cannot be read{first}"


def coverage(
    chunks: Sequence[Chunk],
    families: Sequence[TemplateFamily] | None = None,
    least: int = LEAST,
    named: Named | None = None,
) -> RuleCoverage:
    """The share of a corpus that rules cover, by family of near-duplicate titles; `named` as in `suggest`."""
    read = {chunk.id: read_rule(chunk.query_must) for chunk in chunks}
    named = families_of(chunks, families, least) if named is None else named
    ruled = {identity for identity, rule in read.items() if isinstance(rule, Rule)}
    rows = tuple((name, len(ids), len(ruled.intersection(ids))) for name, ids in named.items())
    wrong = [f"chunk {identity}: {rule}" for identity, rule in read.items() if isinstance(rule, str)]
    return RuleCoverage(len(chunks), len(ruled), len(wrong), rows, wrong[0] if wrong else "")
