"""Project: the one thing that is chosen. A folder as eval sets have them, plus `project.yaml`.

    <folder>/meta.yaml, queries.jsonl, qrels.tsv, lists.jsonl …   as in eval_sets/reading.py
             project.yaml                                         source, labels, split, baseline, pipelines, examples

Every eval set and every collection of a workspace opens as a project without such a file: what it would say is then
taken from what is there. What people do to a shipped project lies in an overlay in the workspace, which `reset` takes
away; a project of one's own keeps everything in its folder. What runs on a project is in session.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.eval_sets.reading import LISTS as LISTS_FILE
from rag_core.eval_sets.reading import SHIPPED, VERSION, EvalSet, folders, read_meta, read_set, title_of
from rag_core.eval_sets.writing import META, NAME, QRELS, QUERIES, copy_set
from rag_core.files import parse_yaml, read_text, write_whole, yaml_text
from rag_core.index.collection import list_collections
from rag_core.index.embed import WordsOnly
from rag_core.sources.callable_source import CallOptions
from rag_core.spec import SAVED
from rag_core.types import Query
from rag_core.workspace import resolve_workspace

FILE = "project.yaml"
FORMAT = 1
OVERLAYS = "projects"
SIDES_FILE = "split.json"
LEDGER_FILE = "looks.jsonl"
ALIASES = {"demo": "rulebook"}
COLLECTION, LISTS, CALLABLE, NOTHING = "collection", "lists", "callable", "none"
KINDS = (COLLECTION, LISTS, CALLABLE, NOTHING)
SIDES = ("A", "B", "C")
DECLARED, BY_HASH = "declared", "hash"
DEFAULT_PIPELINES = {"A": "asked-for", "B": "auto", "C": None}
BY_WORDS = "bm25"
"""A where nothing is embedded."""


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """Where a project's lists come from: a collection of the workspace, its own recorded lists, or a function."""

    kind: str = NOTHING
    name: str = ""
    call: CallOptions | None = None  # of a function

    @property
    def text(self) -> str:
        """The source in words."""
        words = {COLLECTION: f"collection {self.name}", LISTS: "recorded lists", CALLABLE: f"function {self.name}"}
        return words.get(self.kind, "no source yet")


@dataclass(frozen=True, slots=True)
class SplitRule:
    """How questions come to their side: as the set declares, else by a hash with this salt."""

    salt: str = ""
    held_out: float = 0.5
    by: str = BY_HASH


@dataclass(frozen=True)
class Project:
    """What `project.yaml` says, with everything it leaves out filled in. `state` is where changes are written."""

    name: str
    title: str
    folder: Path  # its questions and lists; may not be there yet
    state: Path
    workspace: Path
    source: ProjectSource
    labels: str  # the eval set's name in label events; never renamed
    split: SplitRule = SplitRule()
    baseline: str = "auto"
    pipelines: Mapping[str, str | None] = field(default_factory=lambda: dict(DEFAULT_PIPELINES))
    examples: tuple[str, ...] = ()  # question ids outside dev and held-out
    shipped: bool = False

    @cached_property
    def eval_set(self) -> EvalSet:
        """The questions with the labels that came with them; read once a project value."""
        if (self.folder / META).is_file():
            return read_set(self.folder)
        return EvalSet(self.labels, self.title, ())

    @cached_property
    def min_grade(self) -> int:
        """Relevant means a grade of at least this; known without reading a question."""
        return int(read_meta(self.folder).get("min_grade", 1)) if (self.folder / META).is_file() else 1

    @property
    def has_questions(self) -> bool:
        """Whether there is a question to measure with; cheaper than reading them."""
        return any((self.folder / one).is_file() for one in (QUERIES, LISTS_FILE))


def open_project(name: str | Path, workspace: Path | None = None) -> Project:
    """The project of that name (`demo` is rulebook), folder or collection; else an InputError lists all there are.

    Without a workspace it is the one that commands take: WINNOW_WORKSPACE, else `.winnow` here.
    """
    workspace = resolve_workspace(workspace)
    text = str(name).strip()
    text = ALIASES.get(text, text)
    known = folders(workspace)
    if text in known:
        return _of_folder(text, known[text], workspace)
    if ("/" in text or text in (".", "..")) and (Path(text) / META).is_file():
        folder = Path(text).resolve()
        return _of_folder(folder.name, folder, workspace)
    if text in {one.name for one in list_collections(workspace)}:
        return _of_folder(text, workspace / "eval_sets" / text, workspace)
    names = ", ".join(project_names(workspace))
    raise InputError(f"there is no project {text[:80]!r}, expected one of {names}, or a folder with {META}")


def project_names(workspace: Path) -> list[str]:
    """Every project by name: the demo first, then one's own, then the other shipped ones."""
    known = folders(workspace)
    own = [name for name, folder in known.items() if folder.parent != SHIPPED]
    bare = [one.name for one in list_collections(workspace) if one.name not in known]
    shipped = [name for name, folder in known.items() if folder.parent == SHIPPED]
    shipped.sort(key=lambda name: (name != ALIASES["demo"], name))
    return [*shipped[:1], *sorted({*own, *bare}), *shipped[1:]]


def title_of_project(name: str, workspace: Path) -> str:
    """The title of a project without reading its questions; its name where it cannot be read."""
    folder = folders(workspace).get(name)
    try:
        return title_of(folder, read_meta(folder)) if folder else name
    except InputError:
        return name


def _of_folder(name: str, folder: Path, workspace: Path) -> Project:
    """The project of an eval-set folder: what its file says, over it the overlay, the rest from what is there."""
    shipped = folder.parent == SHIPPED
    state = workspace / OVERLAYS / name if shipped else folder
    meta = read_meta(folder) if (folder / META).is_file() else {}
    said = {**_read(folder / FILE), **(_read(state / FILE) if state != folder else {})}
    labels = str(said.get("labels") or meta.get("name") or name)
    collections = {one.name: one.model for one in list_collections(workspace)}
    if "source" in said:
        source = _source(said["source"], name)
    elif (folder / LISTS_FILE).is_file():
        source = ProjectSource(LISTS)
    elif (folder / "corpus.jsonl").is_file():
        source = ProjectSource(COLLECTION, str(meta.get("name") or name))  # as bring_up_to_date calls it
    elif name in collections:
        source = ProjectSource(COLLECTION, name)
    else:
        source = ProjectSource()
    split = said.get("split") or {}
    if not isinstance(split, Mapping):
        raise InputError(f"{FILE} of {name} has split {split!r:.80}, expected a mapping with salt, held_out and from")
    pipelines = said.get("pipelines") or {}
    if not isinstance(pipelines, Mapping) or not set(pipelines) <= set(SIDES):
        raise InputError(f"{FILE} of {name} has pipelines {pipelines!r:.80}, expected names for {', '.join(SIDES)}")
    usual = DEFAULT_PIPELINES
    if source.kind == COLLECTION and collections.get(source.name) == WordsOnly.name:
        usual = {**usual, "A": BY_WORDS}
    return Project(
        name=name,
        title=title_of(folder, meta) if meta else name,
        folder=folder,
        state=state,
        workspace=workspace,
        source=source,
        labels=labels,
        split=SplitRule(
            salt=str(split.get("salt") or labels),
            held_out=_share(split.get("held_out", 0.5), name),
            by=_one_of(split.get("from", BY_HASH), (BY_HASH, DECLARED), "split.from", name),
        ),
        baseline=str(said.get("baseline") or "auto"),
        pipelines={**usual, **{side: entry and str(entry) for side, entry in pipelines.items()}},
        examples=tuple(map(str, said.get("examples") or ())),
        shipped=shipped,
    )


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    value = parse_yaml(read_text(path, limit=1_000_000), str(path))
    if not isinstance(value, Mapping) or value.get("version") != FORMAT:
        raise InputError(f"{path} has no version {FORMAT}, expected a mapping with version: {FORMAT}")
    return dict(value)


def _source(value: Any, name: str) -> ProjectSource:
    if not isinstance(value, Mapping) or value.get("kind") not in KINDS:
        raise InputError(f"{FILE} of {name} has source {value!r:.80}, expected kind: one of {', '.join(KINDS)}")
    call = value.get("call")
    try:
        options = CallOptions(**{**call, "variables": tuple(call.get("variables", ()))}) if call else None
    except (TypeError, AttributeError):
        raise InputError(f"{FILE} of {name} has call {call!r:.80}, expected what `winnow init` wrote") from None
    return ProjectSource(str(value["kind"]), str(value.get("name") or ""), options)


def _share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InputError(f"{FILE} of {name} has split.held_out {value!r:.40}, expected a share between 0 and 1")
    return float(value)


def _one_of(value: Any, known: Sequence[str], what: str, name: str) -> str:
    if value not in known:
        raise InputError(f"{FILE} of {name} has {what} {value!r:.40}, expected one of {', '.join(known)}")
    return str(value)


def save(project: Project, **changes: Any) -> Project:
    """The project with some fields changed, written to its state folder whole; what others wrote there stays."""
    changed = replace(project, **changes)
    said = _read(changed.state / FILE)
    written = {
        "source": {"kind": changed.source.kind, "name": changed.source.name}
        | ({"call": _plain_call(changed.source.call)} if changed.source.call else {}),
        "split": {"salt": changed.split.salt, "held_out": changed.split.held_out, "from": changed.split.by},
        "baseline": changed.baseline,
        "pipelines": dict(changed.pipelines),
        "examples": list(changed.examples),
    }
    kept = {key: written[key] for key in written if key in changes or key in said}
    if changed.state == changed.folder:
        kept = {"source": written["source"], **kept}
        if not (changed.folder / META).is_file():
            _write_meta(changed)
    document = {**said, "version": FORMAT, "name": changed.name, "labels": changed.labels, **kept}
    write_whole(changed.state / FILE, yaml_text(document))
    return changed


def _plain_call(call: CallOptions) -> dict[str, Any]:
    """What differs from the usual, as plain values."""
    usual = asdict(CallOptions())
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(call).items()
        if value != usual[key]
    }


def _write_meta(project: Project, min_grade: int = 1) -> None:
    meta = {"version": VERSION, "name": project.labels, "title": project.title, "min_grade": min_grade}
    write_whole(project.folder / META, yaml_text(meta))


def check_new(workspace: Path, name: str) -> None:
    """Nothing, or an InputError where the name is none or taken by another project."""
    if not NAME.fullmatch(name):
        raise InputError(f"the project's name is {name[:80]!r}, expected up to 64 of a-z, A-Z, 0-9, . _ -")
    if name in ALIASES or name in folders(workspace):
        raise InputError(f"there is a project {name} already, expected another name")


def init_project(
    workspace: Path,
    name: str,
    source: ProjectSource = ProjectSource(),
    title: str = "",
    questions: Sequence[Query] = (),
    min_grade: int = 1,
) -> Project:
    """Make a project of one's own; an InputError where the name is none or taken by another project."""
    check_new(workspace, name)
    folder = workspace / "eval_sets" / name
    said = " ".join((title or name).split())[:120]
    project = Project(name, said, folder, folder, workspace, source, labels=name, split=SplitRule(salt=name))
    _write_meta(project, min_grade)
    if questions:
        add_questions(project, questions)
    return save(project, source=source, split=project.split)


def copy_project(workspace: Path, name: str, new: str) -> Project:
    """A project of one's own that begins as a copy of another: questions, tags, labels in files, sides, pipelines.

    Every question keeps its side: what was chosen on stays so, or a copy would open what is held out.
    """
    old = open_project(name, workspace)
    if new in ALIASES:
        raise InputError(f"there is a project {new} already, expected another name")
    copy_set(workspace, old.folder.name, new)
    source = ProjectSource(COLLECTION, new) if (old.folder / "corpus.jsonl").is_file() else old.source
    made = open_project(new, workspace)
    if (old.state / SIDES_FILE).is_file():
        shutil.copyfile(old.state / SIDES_FILE, made.folder / SIDES_FILE)
    kept = {"baseline": old.baseline, "pipelines": old.pipelines, "examples": old.examples, "split": old.split}
    for file in (old.state / SAVED).glob("*.yaml"):
        write_whole(made.folder / SAVED / file.name, read_text(file))
    return save(made, source=source, **kept)


def check_takes_questions(project: Project) -> None:
    """Nothing, or the InputError why questions cannot be added to a project."""
    if project.shipped:
        raise InputError(f"project {project.name} is a shipped one, expected one of your own to add questions to")
    if (project.folder / LISTS_FILE).is_file():
        raise InputError(f"the questions of {project.name} come with its recorded lists, expected them added there")


def add_questions(
    project: Project, questions: Iterable[Query], labels: Mapping[str, Mapping[str, int]] | None = None
) -> int:
    """Add questions to a project of one's own, whole file or nothing; how many are new.

    A question whose id is there with the same text is passed over; with another text it is an InputError. `labels`,
    question id → chunk id → grade, come with the set's own ones; of questions that are new alone.
    """
    check_takes_questions(project)
    known = {case.query.id: case.query.text for case in project.eval_set.cases}
    new: dict[str, Query] = {}
    for query in questions:
        if known.get(query.id, query.text) != query.text:
            raise InputError(f"question id {query.id[:80]!r} is there with another text, expected a new id")
        if query.id not in known:
            new[query.id] = query
    rows = []
    path = project.folder / QUERIES
    before = read_text(path) if path.is_file() else ""
    for query in new.values():
        tags = {"tags": list(query.tags)} if query.tags else {}
        rows.append(json.dumps({"id": query.id, "query": query.text, **tags, **query.metadata}, ensure_ascii=False))
    if rows:
        if not (project.folder / META).is_file():
            _write_meta(project)
        ended = before if not before or before.endswith("\n") else before + "\n"
        write_whole(path, ended + "\n".join(rows) + "\n")
    graded = [f"{query}\t{chunk}\t{grade}" for query in new for chunk, grade in (labels or {}).get(query, {}).items()]
    if graded:
        path = project.folder / QRELS
        before = read_text(path) if path.is_file() else "query-id\tcorpus-id\tscore\n"
        write_whole(path, before.rstrip("\n") + "\n" + "\n".join(graded) + "\n")
    return len(rows)


def reset_overlay(project: Project) -> bool:
    """Take away what people did to a shipped project; whether there was anything.

    What stays: its labels (events: LabelStore.undo_all takes them back) and the ledger of held-out looks, since
    who has looked has looked.
    """
    if not project.shipped:
        raise InputError(
            f"project {project.name} is your own, expected a shipped one: only those go back to a beginning"
        )
    done = [path for path in project.state.iterdir() if path.name != LEDGER_FILE] if project.state.is_dir() else []
    for path in done:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return bool(done)
