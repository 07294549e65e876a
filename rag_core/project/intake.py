"""How a project's source comes in: documents that are ingested, a Chroma collection that is mirrored, recorded lists.

What was wanted is kept beside the project in `intake.json`, never a key: so an intake that was interrupted resumes, and
a later one brings the source up to date, without being told again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import monotonic
from typing import Any

from rag_core.child import Say, ask
from rag_core.errors import InputError, SurroundingsError
from rag_core.eval_sets.reading import LISTS
from rag_core.eval_sets.writing import NAME
from rag_core.files import decode, read_text, write_whole
from rag_core.index.collection import folder_of
from rag_core.index.foreign import Connected, connect
from rag_core.index.foreign_place import ForeignPlace, named_place
from rag_core.index.handles import ingest_embedder
from rag_core.index.ingest import IngestLook, IngestReport, ingest, look
from rag_core.project.project import (
    ALIASES,
    COLLECTION,
    Project,
    ProjectSource,
    init_project,
    open_project,
    project_names,
    save,
)
from rag_core.project.project import LISTS as RECORDED
from rag_core.records import dump_lists
from rag_core.settings import chroma_settings
from rag_core.sources.mapping import OWN, read_log

FILE = "intake.json"
DROPS = "dropped"
LARGE = 500_000  # bytes of documents whose ingest is worth a process of its own
GIVES_WAY, TOLD_EVERY = 10, 0.1  # steps of niceness of that process; seconds between two words of it
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents to ingest and how they are read (index.ingest.read_documents); `model` '' is the collection's, else the
    bundled one.
    """

    paths: tuple[str, ...] = ()
    header_level: int = 3
    split_long: bool | None = None
    columns: tuple[tuple[str, str], ...] = ()  # (field of a chunk, column)
    model: str = ""
    dimension: int | None = None
    skip_bad: bool = False

    @property
    def reading(self) -> dict[str, Any]:
        """How the documents are read, as read_documents takes it."""
        return {
            "header_level": self.header_level,
            "columns": dict(self.columns),
            "split_long": self.split_long,
            "skip_bad": self.skip_bad,
        }

    def with_more(self, more: Documents) -> Documents:
        """Further documents, read as `more` says, beside those that came in before."""
        return replace(
            more,
            paths=tuple(dict.fromkeys((*self.paths, *more.paths))),
            columns=tuple({**dict(self.columns), **dict(more.columns)}.items()),
            model=more.model or self.model,
            dimension=more.dimension or self.dimension,
        )


@dataclass(frozen=True, slots=True)
class Chroma:
    """A collection of a Chroma store to mirror; `fields` None: which metadata means what is proposed from the data."""

    collection: str
    path: str = ""
    url: str = ""
    cloud: bool = False
    in_place: bool = False
    model: str = ""
    fields: tuple[tuple[str, str], ...] | None = None

    @property
    def place(self) -> ForeignPlace:
        """Where the store is, with the environment's key; an InputError where several or none are named."""
        if bool(self.path) + bool(self.url) + self.cloud > 1:
            raise InputError("several places are given, expected one of a folder, an address and Chroma Cloud")
        return named_place(
            Path(self.path) if self.path else None, self.url, self.cloud, self.in_place, **asdict(chroma_settings())
        )


Intake = Documents | Chroma
KINDS: Mapping[str, type[Documents] | type[Chroma]] = {"documents": Documents, "chroma": Chroma}


def intake_of(project: Project) -> Intake | None:
    """What was last wanted of this project's source; None where nothing was, or it cannot be read any more."""
    path = project.state / FILE
    if not path.is_file():
        return None
    try:
        said = json.loads(read_text(path))
        fields = {name: _tuples(value) for name, value in said.items() if name != "kind"}
        return KINDS[said["kind"]](**fields)
    except (ValueError, KeyError, TypeError, AttributeError, InputError):
        return None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def check_intake(workspace: Path, name: str, intake: Intake) -> None:
    """Nothing, or an InputError that says what is missing before anything is begun; `name` is the collection's."""
    folder_of(workspace, name)
    if isinstance(intake, Chroma):
        _ = intake.place
        return
    if not intake.paths:
        raise InputError("no document was given, expected a folder, a file or dropped files")
    missing = next((path for path in intake.paths if not Path(path).expanduser().exists()), None)
    if missing is not None:
        raise InputError(f"{missing[:200]} is not there, expected a file or folder")
    ingest_embedder(workspace, name, intake.model, intake.dimension)


def collection_of(project: Project) -> str:
    """The collection that a project's documents are in or will be in."""
    return project.source.name if project.source.kind == COLLECTION else project.name


def take_in(project: Project, intake: Intake, progress: Progress | None = None) -> IngestReport | Connected:
    """Bring documents or a foreign collection in; what is done when it is interrupted stays done and is not repeated.

    The project names its source before the work begins, so that an interrupted one can be found and resumed. What is
    refused for what it holds was never wanted: doing the same again would be refused again.
    """
    name = collection_of(project)
    check_intake(project.workspace, name, intake)
    kind = next(kind for kind, type_ in KINDS.items() if isinstance(intake, type_))
    wanted = project.state / FILE
    before = read_text(wanted) if wanted.is_file() else None
    write_whole(wanted, json.dumps({"kind": kind, **asdict(intake)}, ensure_ascii=False, indent=1) + "\n")
    if project.source != ProjectSource(COLLECTION, name):
        save(project, source=ProjectSource(COLLECTION, name))
    try:
        with _said_of_dropped(project.workspace):
            if isinstance(intake, Chroma):
                named = None if intake.fields is None else dict(intake.fields)
                place, model = intake.place, intake.model
                return connect(place, intake.collection, name, project.workspace, model, progress, fields=named)
            embedder = ingest_embedder(project.workspace, name, intake.model, intake.dimension)
            return ingest(intake.paths, name, project.workspace, embedder, progress=progress, **intake.reading)
    except InputError:
        save(project, source=project.source)
        if before is None:
            wanted.unlink()
        else:
            write_whole(wanted, before)
        raise


def take_in_beside(project: Project, order: Intake, progress: Progress | None = None) -> IngestReport | Connected:
    """The same beside a server that people wait for: large documents by a child, which gives way, and its memory goes.

    A SurroundingsError where the child ends without a word.
    """
    if isinstance(order, Chroma) or sum(map(_size, order.paths)) <= LARGE:
        return take_in(project, order, progress)
    request = {"project": project.name, "workspace": str(project.workspace.resolve()), "order": asdict(order)}
    report = None
    try:
        for value in ask("rag_core.project", request, os.environ):
            if isinstance(value, list):
                if progress is not None:
                    progress(*value)
            else:
                report = IngestReport(**{name: _tuples(given) for name, given in value.items()})
    except EOFError:
        report = None
    if report is None:
        raise SurroundingsError("the process that read the documents ended; what is done is kept, do it again")
    return report


def take_in_child(request: Mapping[str, Any], say: Say) -> None:
    """The child's part: how far it is, as [done, total], and last what the ingest did."""
    with suppress(AttributeError, OSError):  # where a system has no niceness, it is as loud as the server
        os.nice(GIVES_WAY)
    told = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal told
        if done >= total or monotonic() - told >= TOLD_EVERY:
            told = monotonic()
            say([done, total])

    order = Documents(**{name: _tuples(value) for name, value in request["order"].items()})
    report = take_in(open_project(request["project"], Path(request["workspace"])), order, progress)
    say({field.name: getattr(report, field.name) for field in fields(IngestReport)})


def _size(path: str) -> int:
    place = Path(path).expanduser()
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file())


def seen(workspace: Path, name: str, intake: Documents) -> IngestLook:
    """What taking the documents in would do to a collection, with nothing embedded or written."""
    embedder = ingest_embedder(workspace, name, intake.model, intake.dimension)
    with _said_of_dropped(workspace):
        return look(intake.paths, name, workspace, embedder, **intake.reading)


@contextmanager
def _said_of_dropped(workspace: Path) -> Iterator[None]:
    """Reading: what is wrong with a dropped file names it as the person does, and not where the server keeps it."""
    try:
        yield
    except InputError as error:
        place = re.escape(str((workspace / DROPS).resolve()))
        said = re.sub(rf"{place}/[^/\s]+(/|(?=\s|$))", lambda found: "" if found[1] else "what was dropped", str(error))
        raise type(error)(said) from None


def take_lists(
    project: Project, content: bytes, name: str, preset: str = OWN, paths: Mapping[str, str] | None = None
) -> Project:
    """Make recorded lists (JSONL, docs/formats.md), or a log that a preset or `paths` read, the project's source and
    questions.

    Whole file or nothing: own lists are kept as they are written, where none has a text that another lost; those of a
    log as `read_log` reads them.
    """
    if project.shipped:
        raise InputError(f"project {project.name} is a shipped one, expected one of your own to bring lists to")
    lists = read_log(content, name, preset, paths)
    text = (
        decode(content, name)
        if lists.preset == OWN and not paths and not lists.filled
        else "".join(f"{row}\n" for row in dump_lists(lists.cases))
    )
    write_whole(project.folder / LISTS, text)
    return save(project, source=ProjectSource(RECORDED))


def keep_dropped(workspace: Path, folder: str, files: Iterable[tuple[str, bytes]]) -> Path:
    """Put dropped files (name, content) into the workspace, once more replaces; names that lead elsewhere are refused.

    They stay there under the project's name, so that a second ingest of them embeds nothing.
    """
    place = workspace / DROPS / folder
    for name, content in files:
        if not re.fullmatch(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]{0,199}", name):
            raise InputError(f"a dropped file is called {name[:80]!r}, expected a plain file name")
        if not (place / name).is_file() or (place / name).read_bytes() != content:
            write_whole(place / name, content)
    return place.resolve()


def own_dropped(workspace: Path, folder: str, project: Project, intake: Documents) -> Documents:
    """The intake with files that were dropped before the project had its name moved to where the project keeps its."""
    staged = (workspace / DROPS / folder).resolve()
    if str(staged) not in intake.paths:
        return intake
    files = [(file.name, file.read_bytes()) for file in sorted(staged.iterdir()) if file.is_file()]
    kept = keep_dropped(workspace, project.name, files)
    for file in staged.iterdir():
        file.unlink()
    staged.rmdir()
    return replace(intake, paths=tuple(str(kept) if path == str(staged) else path for path in intake.paths))


def proposed_name(path: str, workspace: Path) -> str:
    """A free name for a project that is made from this path: the file's or folder's own, made plain."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).expanduser().stem).strip("-._")[:50].lower() or "project"
    taken, number, name = {*project_names(workspace), *ALIASES}, 2, plain
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    return name


def begin_project(workspace: Path, name: str) -> Project:
    """A project of one's own without a source yet; an InputError where the name is none or taken."""
    if NAME.fullmatch(name) and name in project_names(workspace):
        raise InputError(f"there is a project {name} already, expected another name")
    return init_project(workspace, name)
