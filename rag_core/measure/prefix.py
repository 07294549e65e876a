"""Pipelines that begin alike run their common beginning once: a tree of stages, walked depth first per query.

Two stages are the same step where their settings are equal and they hold the very same handles: one index asked through
two handles is asked twice, since settings do not say which store a handle reads. What a list is worth is for scores.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

from rag_core.stage import Stage, flatten
from rag_core.types import Candidates


@dataclass
class _Node:
    """A stage after a path of stages; `ends` are the pipelines that stop here."""

    stage: Stage | None
    ends: list[int] = field(default_factory=list)
    next: list[_Node] = field(default_factory=list)

    def after(self, stage: Stage) -> _Node:
        """The node of a stage behind this one; made where there is none."""
        for node in self.next:
            if node.stage is not None and same_step(node.stage, stage):
                return node
        self.next.append(_Node(stage))
        return self.next[-1]


@dataclass(frozen=True)
class Tree:
    """Several pipelines with their shared beginnings; `results` runs them all on one list."""

    root: _Node
    count: int

    @property
    def steps(self) -> int:
        """How many stages run per query."""
        return sum(1 for _ in _nodes(self.root))

    def results(self, start: Candidates) -> list[Candidates]:
        """What each pipeline makes of the list, in the order of the pipelines; every shared step runs once."""
        found: list[Candidates] = [start] * self.count
        waiting = [(self.root, start)]
        while waiting:
            node, before = waiting.pop()
            after = before if node.stage is None else node.stage(before)
            for pipeline in node.ends:
                found[pipeline] = after
            waiting += [(child, after) for child in reversed(node.next)]
        return found


def tree_of(pipelines: Sequence[Stage]) -> Tree:
    """The tree of these pipelines."""
    root = _Node(None)
    for number, pipeline in enumerate(pipelines):
        node = root
        for stage in flatten(pipeline):
            node = node.after(stage)
        node.ends.append(number)
    return Tree(root, len(pipelines))


def same_step(one: Stage, other: Stage) -> bool:
    """Whether two stages do the same to every list: equal settings, and identical handles (index, judge, look-up)."""
    if type(one) is not type(other) or one != other:
        return False
    handles = [f.name for f in fields(one) if not f.compare]
    return all(getattr(one, name) is getattr(other, name) for name in handles)


def _nodes(node: _Node) -> Iterator[_Node]:
    for child in node.next:
        yield child
        yield from _nodes(child)
