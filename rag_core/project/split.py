"""Which questions a project may choose on, and which it holds out: decided once for each question, and never moved.

What the set declares wins. Every other question goes by a hash of its family (near-duplicates, or the family that the
set names) and the project's salt, over all questions, labelled or not, as long as that side has room for it (large
families first): a side is never left all but empty by chance; the side is written down at first sight, so that
no label, tag, seed or threshold moves it. Later members take their family's side. A family found on both sides leaves
the held-out figures. How often the held-out questions were looked at is in ledger.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rag_core.errors import InputError
from rag_core.eval_sets.split import near_duplicates
from rag_core.files import write_whole
from rag_core.project.project import DECLARED, SIDES_FILE, Project, SplitRule, save
from rag_core.stage import Pipeline
from rag_core.types import Case, Query

DEV, HELD_OUT = "dev", "held_out"
SIDES = {"dev": DEV, "test": HELD_OUT, HELD_OUT: HELD_OUT}
"""What queries call their side, by the side they are on."""


@dataclass(frozen=True)
class Sides:
    """The sides of a project's questions by id. `straddling` ids were held out, but their family is on both sides."""

    dev: tuple[str, ...]
    held_out: tuple[str, ...]
    examples: tuple[str, ...] = ()
    straddling: tuple[str, ...] = ()
    declared: bool = False
    name: str = ""  # the salt: what the ledger calls this split, whatever questions join it
    families: Mapping[str, str] = field(default_factory=dict)  # question id → its family

    @property
    def fingerprint(self) -> str:
        """A short hash of which questions are held out."""
        return hashlib.sha256(json.dumps(sorted(self.held_out)).encode()).hexdigest()[:16]

    def cases(self, cases: Sequence[Case], side: str) -> list[Case]:
        """The cases on one side, in their order."""
        wanted = set(getattr(self, side))
        return [case for case in cases if case.query.id in wanted]


def split_of(project: Project, queries: Sequence[Query]) -> Sides:
    """The sides of these questions; those never seen before are decided now and written down."""
    path = project.state / SIDES_FILE
    known = read_sides(path)
    sides, families = decide(queries, known, project.split, set(project.examples))
    if any(side != known.get(query) for query, side in sides.items()):
        write_whole(path, json.dumps({**known, **sides}, ensure_ascii=False, indent=0))
    on: dict[str, set[str]] = {}
    for query, side in sides.items():
        on.setdefault(families[query], set()).add(side)
    straddling = {query for query, side in sides.items() if side == HELD_OUT and len(on[families[query]]) > 1}
    declared = any(query.metadata.get("split") in SIDES for query in queries)
    if declared:  # whoever declares a split answers for it
        straddling = set()
    examples = set(project.examples)
    ids = [query.id for query in queries]
    return Sides(
        dev=tuple(id_ for id_ in ids if sides.get(id_) == DEV),
        held_out=tuple(id_ for id_ in ids if sides.get(id_) == HELD_OUT and id_ not in straddling),
        examples=tuple(id_ for id_ in ids if id_ in examples),
        straddling=tuple(id_ for id_ in ids if id_ in straddling),
        declared=declared,
        name=project.split.salt,
        families=families,
    )


def reset_held_out(project: Project, share: float | None = None) -> Project:
    """Draw the sides anew with another salt: a visible act, for held-out questions that were looked at too often.

    Sides that the set declares stay. The old sides are kept beside the new ones, and the ledger as it is: its looks
    were at the old held-out questions, so the new ones start without any. Pipelines chosen until now were chosen on
    some of the new held-out questions. `share` is the share held out from now on, as before where it is None.
    """
    held_out = project.split.held_out if share is None else share
    if not 0 < held_out < 1:
        raise InputError(f"the share held out is {held_out}, expected a number between 0 and 1")
    path = project.state / SIDES_FILE
    kept = len(list(project.state.glob("split-*.json"))) + 1
    if path.is_file():
        path.rename(project.state / f"split-{kept}.json")
    salt = f"{project.labels}-{kept + 1}"
    return save(project, split=replace(project.split, salt=salt, held_out=held_out))


def questions_that_chose(project: Project, sides: Sides, pipeline: Pipeline) -> set[str] | None:
    """The questions that a pipeline was chosen on: the dev side of the split that its spec names.

    Of a split that was drawn anew since, the old dev side. None where the split is none of this project's.
    """
    said = pipeline.chosen_on
    if said is None:
        return set()
    if said.split == sides.name:
        return set(sides.dev)
    for number in range(1, len(list(project.state.glob("split-*.json"))) + 1):
        if said.split in (f"{project.labels}-{number}", *((project.labels, project.name) if number == 1 else ())):
            known = read_sides(project.state / f"split-{number}.json")
            return {query for query, side in known.items() if side == DEV}
    return None


def families_of(queries: Sequence[Query]) -> int:
    """How many families the questions come in: those that ask the same in other words are one."""
    return len(_families(queries))


def decide(
    queries: Sequence[Query], known: Mapping[str, str], rule: SplitRule, examples: set[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """(side by question id, family by question id) of every question that is no example.

    Known sides stand. Without `declared` in the rule a declared side counts all the same where it is given: the set
    knows more than a hash does.
    """
    asked = [query for query in queries if query.id not in examples]
    sides: dict[str, str] = {}
    families: dict[str, str] = {}
    new: list[tuple[Query, ...]] = []
    for group in _families(asked):
        name = min(query.id for query in group)
        settled = next((known[query.id] for query in group if query.id in known), None)
        for query in group:
            families[query.id] = name
            side = SIDES.get(str(query.metadata.get("split") or "")) or known.get(query.id) or settled
            if side is not None:
                sides[query.id] = side
        if rest := tuple(query for query in group if query.id not in sides):
            new.append(rest)

    # Twelve questions are often five families: chance alone leaves one of them on dev as likely as not.
    room = {HELD_OUT: len(asked) * rule.held_out, DEV: len(asked) * (1 - rule.held_out)}
    for side in sides.values():
        room[side] -= 1
    by_chance = []  # a number from 0 to 1 that salt and family alone decide
    for group in new:
        digest = hashlib.sha256(f"{rule.salt}\n{families[group[0].id]}".encode()).hexdigest()
        by_chance.append((int(digest[:13], 16) / 16.0**13, group))
    for chance, group in sorted(by_chance, key=lambda drawn: (-len(drawn[1]), drawn[0])):
        drawn, other = (HELD_OUT, DEV) if chance < rule.held_out else (DEV, HELD_OUT)
        side = other if room[drawn] <= len(group) / 2 and room[other] > room[drawn] else drawn
        room[side] -= len(group)
        sides |= {query.id: side for query in group}
    return sides, families


def _families(queries: Sequence[Query]) -> list[tuple[Query, ...]]:
    """The questions by the family they name; those that name none, by near-duplicates."""
    named: dict[str, list[Query]] = {}
    unnamed: list[Query] = []
    for query in queries:
        family = query.metadata.get("family")
        if family:
            named.setdefault(str(family), []).append(query)
        else:
            unnamed.append(query)
    return [*map(tuple, named.values()), *near_duplicates(unnamed)]


def read_sides(path: Path) -> dict[str, str]:
    """The sides that were written down; nothing where the file is missing, cut short or not ours."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {str(query): side for query, side in document.items() if side in (DEV, HELD_OUT)}


__all__ = ["DECLARED", "DEV", "HELD_OUT", "Sides", "decide", "read_sides", "split_of"]
