"""Deeds: every write, paid call and job of a page or a command passes here: who, for whom, when, allowed or not.

    with perform(Deed(DELETE_COLLECTION, person, about="rules"), workspace):
        delete_collection(workspace, "rules")

The right is asked when the deed is done, not when its button was drawn; while it is done the workspace is shared, which
a restore waits for (store/holding.py). Each deed, refused ones too, leaves one line in
the workspace's `deeds.jsonl`, which is only ever added to: names and ids, never a key, never the text of a chunk or a
question. Labels leave none, since every label event says who pressed, by what authority and when.
"""

from __future__ import annotations

import getpass
import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from rag_core.errors import Cancelled, InputError
from rag_core.files import append_line
from rag_core.journal import NAME, redacted
from rag_core.llm.allowance import Allowance, spending
from rag_core.roles import ADMIN, ANNOTATOR, VIEWER, Person
from rag_core.settings import calls_a_day
from rag_core.store import holding
from rag_core.store.events import COMMAND, IMPORT, JUDGE, PAGE, Signature, is_reserved, now

FILE = "deeds.jsonl"
LONGEST = 200  # characters of a name in the log
DONE, REFUSED, FAILED, CANCELLED = "done", "refused", "failed", "cancelled"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of deed: its name in the log, the least role, and how a sentence calls it after "to".

    `actor` is the authority that its label events name, where that is not simply the page or the command.
    """

    name: str
    least: str
    words: str
    logged: bool = True
    actor: str | None = None
    alone: bool = False  # the workspace is needed alone, not shared
    paid: bool = False  # calls of a model are made, which count against the person's of the day

    def refusal(self, person: Person) -> str:
        """'' or the sentence why this person may not."""
        if person.is_at_least(self.least):
            return ""
        return f"your role is {person.role or 'none'}, expected {self.least} to {self.words}"


LOOK = Kind("look", VIEWER, "look", logged=False)
SEE_STATUS = Kind("see status", ADMIN, "see the status of the server", logged=False)

LABEL = Kind("label", ANNOTATOR, "label", logged=False)
ADJUDICATE = Kind("adjudicate", ANNOTATOR, "decide between labels")
IMPORT_LABELS = Kind("import labels", ANNOTATOR, "bring in labels of your own", actor=IMPORT)
IMPORT_FOR_OTHERS = Kind("import labels for others", ADMIN, "bring in labels in another name than yours", actor=IMPORT)
UNDO_IMPORT = Kind("undo import", ANNOTATOR, "take back labels you brought in")
UNDO_ANY_IMPORT = Kind("undo another's import", ADMIN, "take back labels that somebody else brought in")
RESET_LABELS = Kind("reset labels", ADMIN, "take back all labels of a project")
JUDGE_LABELS = Kind("judge labels", ADMIN, "have a model propose labels", actor=JUDGE)
ASK_MODEL = Kind("ask model", ANNOTATOR, "ask a model that costs money", paid=True)

READ_FILES = Kind("read files", ADMIN, "read files of the server")
INGEST = Kind("ingest", ADMIN, "change collections")
CONNECT = Kind("connect", ADMIN, "connect collections")
DELETE_COLLECTION = Kind("delete collection", ADMIN, "delete collections")
CHANGE_WORDS = Kind("change words", ADMIN, "change keywords and synonyms")
CHANGE_RULES = Kind("change rules", ADMIN, "change rules")
UNDO_RULES = Kind("undo rules", ADMIN, "take rules back")
CHANGE_STRUCTURE = Kind("change structure", ADMIN, "change structures")
CHANGE_SET = Kind("change eval set", ADMIN, "change eval sets")
CHANGE_PROJECT = Kind("change project", ADMIN, "change projects")
SAVE_PIPELINE = Kind("save pipeline", ADMIN, "change pipelines of the workspace")
SEARCH_SETTINGS = Kind("search settings", ADMIN, "search over settings")
JUDGE_HELD_OUT = Kind("judge on held-out", ADMIN, "look at held-out questions, which is counted for everybody")

KEEP_RUN = Kind("keep run", ANNOTATOR, "keep runs")
NOTE_RUN = Kind("note run", ANNOTATOR, "add notes to runs")
DELETE_RUN = Kind("delete run", ADMIN, "delete runs")
DELETE_HISTORY = Kind("delete history", ADMIN, "delete questions of the history")
CANCEL_JOB = Kind("cancel job", VIEWER, "stop work of your own")
CANCEL_ANY_JOB = Kind("cancel another's job", ADMIN, "stop somebody else's work")
CLEAR_CACHE = Kind("clear cache", ADMIN, "clear caches")
BACK_UP = Kind("back up", ADMIN, "make back-ups")
RESTORE = Kind("restore", ADMIN, "restore back-ups", alone=True)
SALVAGE = Kind("salvage", ADMIN, "salvage a damaged label store", alone=True)

KINDS: tuple[Kind, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""Every kind of deed above."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that a person wants done. `about` names what it is done to, `whose` another person it concerns.

    `pressed_at` is the clock of whoever pressed, now where it is not known; `by` is PAGE or COMMAND.
    """

    kind: Kind
    person: Person
    about: str = ""
    whose: str = ""
    by: str = PAGE
    pressed_at: str = field(default_factory=now)

    @property
    def signature(self) -> Signature:
        """What label events of this deed say of it."""
        return Signature(self.person.name, self.kind.actor or self.by, self.pressed_at)


@dataclass(slots=True)
class Performed:
    """A deed that is being done. `result` is a name or count that the log is to hold, as the batch of an import."""

    deed: Deed
    result: str = ""

    @property
    def signature(self) -> Signature:
        """What label events of this deed say of it."""
        return self.deed.signature


@contextmanager
def perform(deed: Deed, workspace: Path) -> Iterator[Performed]:
    """The block does the deed, if its person may: else an InputError of one sentence. What became of it is logged."""
    arrived, began = now(), perf_counter()
    performed = Performed(deed)
    outcome, error = FAILED, ""
    try:
        if refusal := deed.kind.refusal(deed.person):
            outcome = REFUSED
            raise InputError(refusal)
        shared = nullcontext() if deed.kind.alone else _sharing(workspace)
        with shared, spending(allowance_of(deed.person, workspace)) if deed.kind.paid else nullcontext():
            yield performed
        outcome = DONE
    except BaseException as failure:
        outcome = CANCELLED if isinstance(failure, Cancelled | KeyboardInterrupt) else outcome
        error = type(failure).__name__ if outcome == FAILED else ""
        raise
    finally:
        if deed.kind.logged or outcome == REFUSED:
            said = {"about": deed.about, "whose": deed.whose, "result": performed.result, "error": error}
            _add(
                workspace,
                {"at": arrived, "pressed_at": deed.pressed_at, "by": deed.by, "who": deed.person.name[:LONGEST]}
                | {"role": deed.person.role, "deed": deed.kind.name, "outcome": outcome}
                | {name: redacted(value)[:LONGEST] for name, value in said.items() if value}
                | {"seconds": round(perf_counter() - began, 3)},
            )


def allowance_of(person: Person, workspace: Path) -> Allowance | None:
    """How many calls of a model a person may make in a day; None for admins, who may set it."""
    return None if person.is_at_least(ADMIN) else Allowance(workspace, person.name, calls_a_day())


def _sharing(workspace: Path) -> AbstractContextManager[object]:
    """The workspace held beside others while a deed is done, so that no restore takes it away meanwhile."""
    holding.refuse_missing(workspace)
    return closing(holding.share(workspace)) if _is_used(workspace) else nullcontext()


def _is_used(workspace: Path) -> bool:
    """Whether there is a workspace that holds anything yet; else it is left as it is."""
    return workspace.is_dir() and any(workspace.iterdir())


def allow(deed: Deed, workspace: Path) -> None:
    """Nothing, or the InputError that refuses the deed, logged; for what is begun later or elsewhere, as a job."""
    if deed.kind.refusal(deed.person):
        with perform(deed, workspace):
            pass


def _add(workspace: Path, line: dict[str, Any]) -> None:
    """One whole line at the end of the log, where there is a workspace."""
    if not _is_used(workspace):
        return
    try:
        append_line(workspace / FILE, json.dumps(line, ensure_ascii=False))
    except OSError:  # a full disk must not stop the deletion that makes room
        logging.getLogger(NAME).warning("a deed could not be logged")


def log(workspace: Path) -> list[dict[str, Any]]:
    """The deeds done and refused in a workspace, oldest first; a line cut short by a crash is passed over."""
    path = workspace / FILE
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def import_kind(person: Person, annotators: Iterable[str]) -> Kind:
    """Which deed it is to bring in labels of these annotators; reserved names are nobody's own."""
    own = all(name == person.name and not is_reserved(name) for name in annotators)
    return IMPORT_LABELS if own else IMPORT_FOR_OTHERS


def undo_kind(person: Person, authors: Iterable[str | None]) -> Kind:
    """Which deed it is to take back a batch that these people brought in; None is somebody who is not known."""
    return UNDO_IMPORT if all(author == person.name for author in authors) else UNDO_ANY_IMPORT


def cancel_kind(person: Person, starter: str) -> Kind:
    """Which deed it is to stop a job that `starter` began."""
    return CANCEL_JOB if starter == person.name else CANCEL_ANY_JOB


def person_of_this_machine() -> Person:
    """Who runs a command: the user of this machine, admin of a workspace that they can open."""
    try:
        return Person(getpass.getuser(), ADMIN)
    except (OSError, KeyError):
        return Person("unknown", ADMIN)


def command(kind: Kind, about: str, workspace: Path, whose: str = "") -> AbstractContextManager[Performed]:
    """The deed of a command, to be done in a `with` block."""
    return perform(Deed(kind, person_of_this_machine(), about, whose, COMMAND), workspace)
