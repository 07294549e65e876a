"""Rules of a project's source: applied as one batch, taken back as one, whatever the source is.

Rules of a collection are metadata of its chunks (rag_core.index.rules). Recorded lists and functions are never written
to: their rules lie over them in the project's `rules.json`, {"version": 1, "rules": {chunk id: rule}, "batches": […]}.
Checking rules before they are applied is in rag_core.rules.check.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.files import read_text, write_whole
from rag_core.index.foreign import origin_of
from rag_core.index.foreign_place import ForeignPlace, named_place_of
from rag_core.index.lock import writing
from rag_core.index.rules import RuleBatch, Undone, apply_rules, rule_batches, undo_rules
from rag_core.project.project import COLLECTION, Project
from rag_core.rules.rule import Rule
from rag_core.settings import chroma_settings

OVERLAY = "rules.json"
VERSION = 1


def overlay_of(project: Project) -> Mapping[str, Any]:
    """The rules that lie over a project's source: {chunk id: rule as in a file, None where one was taken away}."""
    rules: Mapping[str, Any] = _read(project)["rules"]
    return rules


def apply(project: Project, rules: Mapping[str, Rule | None], about: str) -> RuleBatch:
    """Apply rules (None takes a chunk's rule away) as one batch, whole or not at all; an InputError says why not."""
    if project.source.kind == COLLECTION:
        return apply_rules(project.workspace, project.source.name, rules, about)
    if not rules:
        raise InputError("there is no rule to store, expected at least one")
    after = {identity: None if rule is None else rule.as_mapping() for identity, rule in rules.items()}
    with writing(project.state):
        kept = _read(project)
        before = {identity: kept["rules"][identity] for identity in after if identity in kept["rules"]}
        batch = RuleBatch(len(kept["batches"]) + 1, datetime.now(UTC).isoformat(timespec="seconds"), about, len(after))
        kept["rules"] |= after
        kept["batches"].append({**asdict(batch), "before": before, "after": after})
        _write(project, kept)
    return batch


def undo(project: Project, number: int | None = None) -> Undone:
    """Take a batch back (the last one standing, without a number); chunks changed since keep what they have."""
    if project.source.kind == COLLECTION:
        return undo_rules(project.workspace, project.source.name, number)
    with writing(project.state):
        kept = _read(project)
        standing = [batch for batch in kept["batches"] if not batch["undone"]]
        batch = next((one for one in reversed(standing) if number in (None, one["number"])), None)
        if batch is None:
            numbers = ", ".join(str(one["number"]) for one in standing) or "none"
            raise InputError(f"there is no batch of rules {number or ''} to undo, expected one of {numbers}")
        rules, before, after = kept["rules"], batch["before"], batch["after"]
        restored = [identity for identity in after if rules.get(identity) == after[identity]]
        for identity in restored:
            if identity in before:
                rules[identity] = before[identity]
            else:
                rules.pop(identity, None)
        batch["undone"] = True
        _write(project, kept)
    return Undone(batch["number"], tuple(restored), tuple(one for one in after if one not in restored))


def store_of(workspace: Path, collection: str) -> ForeignPlace:
    """The Chroma store a collection was connected from, reached as the settings say; an InputError where it was not."""
    return named_place_of(origin_of(workspace, collection), **asdict(chroma_settings()))


def batches(project: Project) -> tuple[RuleBatch, ...]:
    """Every batch of rules of the project's source, oldest first."""
    if project.source.kind == COLLECTION:
        return rule_batches(project.workspace, project.source.name)
    fields = RuleBatch.__dataclass_fields__
    return tuple(RuleBatch(**{name: batch[name] for name in fields}) for batch in _read(project)["batches"])


def _read(project: Project) -> dict[str, Any]:
    path = project.state / OVERLAY
    if not path.is_file():
        return {"version": VERSION, "rules": {}, "batches": []}
    try:
        kept = json.loads(read_text(path))
    except ValueError:
        raise InputError(f"{path} is not valid JSON, expected the rules that a page or command wrote") from None
    if not isinstance(kept, dict) or kept.get("version") != VERSION:
        raise InputError(f"{path} has no version {VERSION}, expected the rules that a page or command wrote")
    return kept


def _write(project: Project, kept: Mapping[str, Any]) -> None:
    write_whole(project.state / OVERLAY, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
