"""Families of chunks whose titles are near-duplicates: the siblings that rules must tell apart, and that crowd lists.

A title's shape is its words with every number made alike. Chunks are siblings where their shapes are equal, differ in
one word, share what stands before a dash or colon, or belong to one template. Whether a family crowds out answers is
in suggest.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from rag_core.rules.templates import TemplateFamily, propose
from rag_core.text import tokenize

Shape = tuple[str, ...]

NUMBER = "#"
LEAST_SHARED = 3  # words two shapes share besides the one they differ in
LEAST_HEAD = 2  # words before the dash or colon
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
            keys[shape] = {*_title_keys(title, families), *_shape_keys(shape)}
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


def _title_keys(title: str, families: Sequence[TemplateFamily] | None) -> Iterator[Hashable]:
    """What a title shares with its siblings besides its shape: the template it belongs to, its head."""
    proposal = propose(title, families)
    if proposal is not None:
        yield "template", proposal.family
    head = _HEAD.match(title)
    if head is not None and len(shape_of(head.group(1))) >= LEAST_HEAD:
        yield "head", shape_of(head.group(1))


def _shape_keys(shape: Shape) -> Iterator[Hashable]:
    """The shape with one word left open, for each of its words."""
    if len(shape) > LEAST_SHARED:
        for at, word in enumerate(shape):
            if word != NUMBER:
                yield "open", shape[:at], shape[at + 1 :]


def _joined(keys: Mapping[Shape, Iterable[Hashable]]) -> list[list[Shape]]:
    """Shapes that share a key, directly or through others, together."""
    by_key: dict[Hashable, list[Shape]] = defaultdict(list)
    for shape, some in keys.items():
        for key in some:
            by_key[key].append(shape)
    groups: list[list[Shape]] = []
    seen: set[Shape] = set()
    for first in keys:
        if first in seen:
            continue
        seen.add(first)
        group = [first]
        for shape in group:  # grows while it is walked
            fresh = {one for key in keys[shape] for one in by_key.pop(key, ()) if one not in seen}
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
