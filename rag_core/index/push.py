"""Rules written back into the Chroma store that a collection was connected from, and taken back.

Only what was set here (batches of rules that stand) is written, only into the metadata key that holds rules there, and
only on request; documents, vectors and every other key stay. What a chunk had before is kept in the collection's folder
before the first write. One page of chunks is one update, which Chroma keeps whole or not at all; a push that was killed
between two pages is ended by the next one, or by its undoing, which say so. A value that somebody else wrote meanwhile
is left, and named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.files import read_text, write_whole
from rag_core.index.collection import folder_of
from rag_core.index.embed import Progress
from rag_core.index.foreign import COPIES, collection_named, folder_stamp
from rag_core.index.foreign_place import ForeignPlace, reached
from rag_core.index.lock import writing
from rag_core.index.store import opened
from rag_core.rules.rule import parse_text

KEPT = "rule_pushes.json"
PAGE = 500  # chunks read and written at a time
KEY = "query_must"
"""The metadata key that rules are written under where the mirror knows of none."""

WRAPPER = "query_must"
"""What the wrapper calls the rule, whatever the metadata key is called."""

JSON, PYTHON = "json", "python"
WRITING, DONE, UNDOING, UNDONE = "writing", "done", "undoing", "undone"
ENDED = {WRITING: DONE, UNDOING: UNDONE}
FORMS = ("auto", "plain", "wrapper")


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One chunk's metadata value before and after a push; None is no value."""

    chunk: str
    before: Any
    after: str | None


@dataclass(frozen=True)
class RulePush:
    """One push: where to, what it changes, how far it is, and what was found on the way."""

    number: int  # 0: nothing was written
    at: str
    place: str
    collection: str
    key: str
    form: str
    changes: tuple[RuleChange, ...]
    state: str
    missing: tuple[str, ...] = ()  # chunks with rules that the store no longer has
    left: tuple[str, ...] = ()  # chunks whose value somebody else has changed: not touched
    ended: str = ""  # what an earlier push, found half done, became
    unchanged: int = field(default=0)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        changes = [{"chunk": one.chunk, "before": one.before, "after": one.after} for one in self.changes]
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "changes": changes}

    def to_text(self) -> str:
        """A line a change (the first twenty), what was left alone, and what was done."""
        lines = [self.ended] if self.ended else []
        for one in self.changes[:20]:
            lines.append(f"{one.chunk}\n  - {_shown(one.before)}\n  + {_shown(one.after)}")
        if len(self.changes) > 20:
            lines.append(f"… and {len(self.changes) - 20} more")
        lines += [f"{chunk} is no longer in the store" for chunk in self.missing[:20]]
        lines += [f"{chunk} was changed by somebody else and is left as it is" for chunk in self.left[:20]]
        said = {
            DONE: "written",
            UNDONE: "as before",
            "": "would change",
            WRITING: "half written",
            UNDOING: "half undone",
        }
        count = len(self.changes) - len(self.left)
        changed = f"{count} chunks {said[self.state]}, {self.unchanged} have their rule already"
        return "\n".join([*lines, f"{self.place} · {self.collection} · {self.key}: {changed}"])


def _shown(value: Any) -> str:
    text = "no rule" if value is None else str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def push_rules(
    workspace: Path,
    name: str,
    place: ForeignPlace,
    *,
    form: str = "auto",
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RulePush:
    """Write the rules set here into the store, in the form that it uses (the wrapper where it has none).

    `dry_run` reads, tells the changes and writes nothing (of a folder a copy is read). InputErrors and StoreErrors.
    """
    if form not in FORMS:
        raise InputError(f"the form of rules is {form[:40]!r}, expected one of {', '.join(FORMS)}")
    with _store(workspace, name, place, dry_run) as (collection, folder, origin):
        ended = "" if dry_run else _settle(collection, folder, progress)
        wanted = _wanted(folder)
        key = str(dict(origin.get("fields") or {}).get("query_must") or KEY)
        stored = _values(collection, list(wanted), key)
        style = _style(collection, key, form)
        changes = [
            RuleChange(chunk, stored[chunk], None if rule is None else _written(rule, style))
            for chunk, rule in wanted.items()
            if chunk in stored and _read(stored[chunk]) != rule
        ]
        missing = tuple(chunk for chunk in wanted if chunk not in stored)
        push = RulePush(
            number=0,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            place=str(origin["place"]),
            collection=str(origin["collection"]),
            key=key,
            form=" ".join(style),
            changes=tuple(changes),
            state="",
            missing=missing,
            ended=ended,
            unchanged=len(wanted) - len(changes) - len(missing),
        )
        if dry_run or not changes:
            return push
        push = replace(push, number=1 + max((one.number for one in pushes(workspace, name)), default=0), state=WRITING)
        _keep(folder, push)
        return _write(collection, folder, push, progress)


def undo_push(
    workspace: Path, name: str, place: ForeignPlace, *, progress: Progress | None = None, number: int | None = None
) -> RulePush:
    """Give every chunk of a push (the last one standing) the value that it had before; an InputError without one."""
    with _store(workspace, name, place, False) as (collection, folder, _):
        half = [one for one in _kept(folder) if one.state in ENDED]
        ended = ""
        if half and half[-1].state == UNDOING:
            ended = _settle(collection, folder, progress)
        standing = [one for one in _kept(folder) if one.state in (DONE, WRITING) and number in (None, one.number)]
        if not standing:
            if ended:
                return replace(_kept(folder)[-1], ended=ended)
            raise InputError(f"no push of rules of collection {name} stands, expected one to undo")
        last = standing[-1]
        if last.state == WRITING:
            ended = f"push {last.number} was found half written and is undone"
        push = replace(last, state=UNDOING, ended=ended)
        _keep(folder, push)
        return _write(collection, folder, push, progress)


def pushes(workspace: Path, name: str) -> list[RulePush]:
    """Every push of a collection's rules, oldest first; one that is writing or undoing was killed there."""
    return _kept(folder_of(workspace, name))


@contextmanager
def _store(
    workspace: Path, name: str, place: ForeignPlace, reading: bool
) -> Iterator[tuple[Any, Path, dict[str, Any]]]:
    """(the store's collection, the mirror's folder, where it came from), with the mirror locked against other writers.

    Afterwards the mirror knows the folder's new state, where it knew the one of before.
    """
    folder = folder_of(workspace, name)
    with opened(folder) as file:
        origin = dict(json.loads(file.meta().get("origin_facts", "{}")))
    if not origin:
        raise InputError(f"collection {name} was not connected from Chroma, expected one that was")
    if place.said != origin["place"]:
        raise InputError(f"collection {name} was connected from {origin['place']}, expected that and not {place.said}")
    was = folder_stamp(place)
    there = place if reading or place.path is None else replace(place, in_place=True)
    with writing(folder), reached(there, Path(workspace) / COPIES / f"{name}-push") as client:
        yield collection_named(client, str(origin["collection"]), place), folder, origin
    if not reading and was and was == origin.get("stamp"):
        with writing(folder), opened(folder, write=True) as file:
            facts = {**file.meta(), "origin_facts": json.dumps({**origin, "stamp": folder_stamp(place)})}
            file.switch([], [], facts)


def _wanted(folder: Path) -> dict[str, Any]:
    """Chunk → rule (None: taken away) as batches that stand have set it here."""
    wanted: dict[str, Any] = {}
    with opened(folder) as file:
        for *_, after, undone in file.rule_batches():
            if not undone:
                wanted |= after
    if not wanted:
        raise InputError("no rule was set here, expected rules that were applied (rules propose, rules apply)")
    return wanted


def _values(collection: Any, chunks: Sequence[str], key: str) -> dict[str, Any]:
    """The stored value of each chunk that the store has; None where it has none."""
    values: dict[str, Any] = {}
    for start in range(0, len(chunks), PAGE):
        page = collection.get(ids=list(chunks[start : start + PAGE]), include=["metadatas"])
        for identity, metadata in zip(page["ids"], page["metadatas"] or [None] * len(page["ids"]), strict=True):
            values[identity] = (metadata or {}).get(key)
    return values


def _style(collection: Any, key: str, form: str) -> tuple[str, str]:
    """(json or python, plain or wrapper): what most rules of the store are written in; else JSON, wrapped."""
    page = collection.get(limit=PAGE, include=["metadatas"])
    values = [value for metadata in page["metadatas"] or () if isinstance(value := (metadata or {}).get(key), str)]
    python = sum(not _is_json(value) and _read(value) is not None for value in values)
    wrapped = sum(_is_wrapped(_parsed(value)) for value in values)
    wrapper = "wrapper" if 2 * wrapped >= len(values) else "plain"
    return PYTHON if 2 * python > len(values) else JSON, wrapper if form == "auto" else form


def _written(rule: Mapping[str, Any], style: tuple[str, str]) -> str:
    value = {WRAPPER: dict(rule)} if style[1] == "wrapper" else dict(rule)
    return str(value) if style[0] == PYTHON else json.dumps(value, ensure_ascii=False)


def _read(value: Any) -> Any:
    """The rule in a stored value, unwrapped; None where there is none to be read."""
    parsed = _parsed(value) if isinstance(value, str) else value
    return parsed[WRAPPER] if _is_wrapped(parsed) else parsed


def _is_wrapped(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {WRAPPER}


def _parsed(text: str) -> Any:
    """JSON, or Python's own way to write a dict; None where it is neither."""
    try:
        return parse_text(text, "the rule")
    except (WinnowError, RecursionError):
        return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _settle(collection: Any, folder: Path, progress: Progress | None) -> str:
    """End what an earlier push or undoing that was killed had begun; what it became, '' where there was none."""
    half = [one for one in _kept(folder) if one.state in ENDED]
    for push in half:
        _write(collection, folder, push, progress)
    halves = {WRITING: "written", UNDOING: "undone"}
    return "; ".join(f"push {one.number} was half {halves[one.state]} and is now {ENDED[one.state]}" for one in half)


def _write(collection: Any, folder: Path, push: RulePush, progress: Progress | None) -> RulePush:
    """Bring every chunk of a push to its value after it (before it, while undoing), a page an update, and keep that."""
    undoing, left = push.state == UNDOING, list[str]()
    for start in range(0, len(push.changes), PAGE):
        page = push.changes[start : start + PAGE]
        stored = _values(collection, [one.chunk for one in page], push.key)
        fresh: list[tuple[str, Any]] = []
        for one in page:
            old, new = (one.after, one.before) if undoing else (one.before, one.after)
            if one.chunk in stored and stored[one.chunk] == old:
                fresh.append((one.chunk, new))
            elif stored.get(one.chunk) != new or one.chunk not in stored:
                left.append(one.chunk)
        if fresh:
            collection.update(ids=[chunk for chunk, _ in fresh], metadatas=[{push.key: value} for _, value in fresh])
        if progress is not None:
            progress(min(start + PAGE, len(push.changes)), len(push.changes))
    ended = replace(push, state=ENDED[push.state], left=tuple(left))
    _keep(folder, ended)
    return ended


def _kept(folder: Path) -> list[RulePush]:
    path = folder / KEPT
    if not path.is_file():
        return []
    try:
        rows = json.loads(read_text(path))
        return [
            RulePush(
                **{
                    **row,
                    "changes": tuple(RuleChange(**one) for one in row["changes"]),
                    "missing": tuple(row["missing"]),
                    "left": tuple(row["left"]),
                }
            )
            for row in rows
        ]
    except (ValueError, TypeError, KeyError):
        raise StoreError(f"{path} is damaged, so what was pushed is not known; a back-up has it") from None


def _keep(folder: Path, push: RulePush) -> None:
    """Write the push among those that are kept; on disk when this returns."""
    others = [one for one in _kept(folder) if one.number != push.number]
    rows = [one.to_json() for one in [*others, replace(push, ended="")]]
    write_whole(folder / KEPT, json.dumps(rows, ensure_ascii=False).encode())
