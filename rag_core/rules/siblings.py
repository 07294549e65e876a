"""Families of chunks with near-duplicate titles: siblings that rules must tell apart, and how much they crowd lists.

A title's shape is its words with every number made alike. Chunks are siblings where their shapes are equal, differ in
one word, share what stands before a dash or colon, or belong to one template. A family's share is how many of the first
k places of the lists it takes; crowding is the part of them that labels do not call relevant.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_core.rules.rule import Rule, read_rule
from rag_core.rules.templates import TemplateFamily, propose
from rag_core.text import tokenize
from rag_core.types import Case, Chunk

Shape = tuple[str, ...]
Named = Mapping[str, tuple[str, ...]]

NUMBER = "#"
LEAST = 3  # chunks that make a family worth a rule
LEAST_SHARED = 3  # words two shapes share besides the one they differ in
LEAST_HEAD = 2  # words before the dash or colon
LONGEST_LINE = 200
_HEAD = re.compile(r"^(.{3,200}?)(?:\s+[-–—|]\s+|:\s+)\S")


def shape_of(title: str) -> Shape:
    """The title's words, folded, with each number and ordinal as `#`."""
    return tuple(NUMBER if token.value is not None else token.text for token in tokenize(title))


def sibling_families(
    titles: Mapping[str, str], families: Sequence[TemplateFamily] | None = None, least: int = 2
) -> dict[str, tuple[str, ...]]:
    """Name → chunk ids of each family of at least `least` chunks, largest first; `titles` is chunk id → title.

    A family's name is the words its shapes begin with, or its first shape. A chunk belongs to one family at most.
    """
    members: dict[Shape, list[str]] = defaultdict(list)
    keys: dict[Shape, set[Hashable]] = {}
    for identity, title in titles.items():
        shape = shape_of(title)
        if shape and shape not in keys:  # one title tells what all of its shape share
            keys[shape] = _shared_keys(title, shape, families)
        if shape:
            members[shape].append(identity)
    joined = [[member for shape in group for member in members[shape]] for group in _joined(keys)]
    shapes = {identity: shape for shape, ids in members.items() for identity in ids}
    large = sorted((ids for ids in joined if len(ids) >= least), key=lambda ids: (-len(ids), ids[0]))
    named: dict[str, tuple[str, ...]] = {}
    for ids in large:
        begins, first = _beginning([shapes[identity] for identity in ids]), " ".join(shapes[ids[0]])
        named[begins if begins and begins not in named else first] = tuple(ids)
    return named


def _shared_keys(title: str, shape: Shape, families: Sequence[TemplateFamily] | None) -> set[Hashable]:
    """What a title shares with its siblings: its template, its head, its shape with one word left open."""
    keys: set[Hashable] = set()
    proposal = propose(title, families)
    if proposal is not None:
        keys.add(("template", proposal.family))
    head = _HEAD.match(title)
    if head is not None and len(shape_of(head.group(1))) >= LEAST_HEAD:
        keys.add(("head", shape_of(head.group(1))))
    if len(shape) > LEAST_SHARED:
        keys |= {("open", shape[:at], shape[at + 1 :]) for at, word in enumerate(shape) if word != NUMBER}
    return keys


def _joined(keys: Mapping[Shape, Iterable[Hashable]]) -> list[list[Shape]]:
    """Shapes that share a key, directly or through others, together."""
    by_key: dict[Hashable, list[Shape]] = defaultdict(list)
    for shape, own in keys.items():
        for key in own:
            by_key[key].append(shape)
    groups: list[list[Shape]] = []
    seen: set[Shape] = set()
    for first in keys:
        if first in seen:
            continue
        seen.add(first)
        group = [first]
        for shape in group:  # grows while it is walked
            fresh = {other for key in keys[shape] for other in by_key.pop(key, ()) if other not in seen}
            seen |= fresh
            group += sorted(fresh)
        groups.append(group)
    return groups


def _beginning(shapes: Sequence[Shape]) -> str:
    """The words that all shapes begin with, "…" after them where they go on; nothing where they are too few."""
    least, most = min(shapes), max(shapes)
    same = next((at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), len(least))
    if same == len(least) == len(most):
        return " ".join(least)
    return " ".join((*least[:same], "…")) if same >= LEAST_HEAD else ""


# ---------------------------------------------------------------- which of them crowd result lists


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


def families_of(chunks: Sequence[Chunk], families: Sequence[TemplateFamily] | None = None) -> Named:
    """Name → chunk ids of each family of near-duplicate titles that is worth a rule, largest first."""
    return sibling_families({chunk.id: _line(chunk) for chunk in chunks}, families, LEAST)


def suggest(
    chunks: Sequence[Chunk],
    cases: Sequence[Case] = (),
    k: int = 15,
    min_grade: int = 1,
    families: Sequence[TemplateFamily] | None = None,
    named: Named | None = None,
) -> tuple[Crowd, ...]:
    """The families of the corpus, those that crowd the lists most first; without lists the largest first.

    `cases` bring result lists (captures) and labels; a chunk without a label counts as not relevant. `named` is what
    `families_of` found for these chunks, where it is at hand: finding them takes longest.
    """
    titles = {chunk.id: _line(chunk) for chunk in chunks}
    rules = {chunk.id for chunk in chunks if isinstance(read_rule(chunk.query_must), Rule)}
    named = families_of(chunks, families) if named is None else named
    family_of = {identity: name for name, ids in named.items() for identity in ids}
    places: Counter[str] = Counter()
    unwanted: Counter[str] = Counter()
    lists_with: Counter[str] = Counter()
    most: Counter[str] = Counter()
    total = 0
    for case in cases:
        hits = case.candidates.hits[:k] if case.candidates is not None else ()
        total += len(hits)
        members = [hit.chunk.id for hit in hits if hit.chunk.id in family_of]
        here = Counter(family_of[identity] for identity in members)
        places += here
        lists_with += Counter(here.keys())
        most |= here
        unwanted += Counter(family_of[one] for one in members if case.grades.get(one, 0) < min_grade)
    crowds = [
        Crowd(
            name=name,
            chunks=ids,
            examples=tuple(dict.fromkeys(titles[identity] for identity in ids))[:3],
            with_rule=len(rules.intersection(ids)),
            template=proposal.family if (proposal := propose(titles[ids[0]], families)) is not None else "",
            share=places[name] / max(1, total),
            crowding=unwanted[name] / max(1, total),
            lists=lists_with[name],
            most=most[name],
        )
        for name, ids in named.items()
    ]
    return tuple(sorted(crowds, key=lambda crowd: (-crowd.crowding, -crowd.share, -len(crowd.chunks), crowd.name)))


def _line(chunk: Chunk) -> str:
    """What tells a chunk's family: its title, or the first line of its text where it has none."""
    first = next((line for line in chunk.text.splitlines() if line.strip()), "") if not chunk.title.strip() else ""
    return chunk.title or first[:LONGEST_LINE]


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


def coverage(chunks: Sequence[Chunk], crowds: Iterable[Crowd]) -> RuleCoverage:
    """The share of a corpus that rules cover, by family as `suggest` gives them, largest first."""
    read = {chunk.id: read_rule(chunk.query_must) for chunk in chunks}
    wrong = [f"chunk {identity}: {rule}" for identity, rule in read.items() if isinstance(rule, str)]
    ruled = sum(isinstance(rule, Rule) for rule in read.values())
    rows = sorted(((crowd.name, len(crowd.chunks), crowd.with_rule) for crowd in crowds), key=lambda row: -row[1])
    return RuleCoverage(len(chunks), ruled, len(wrong), tuple(rows), wrong[0] if wrong else "")
