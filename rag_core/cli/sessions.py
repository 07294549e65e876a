"""What a command works on: a project by name, an eval set, a collection or a function, opened as one Session.

`--project` (else WINNOW_PROJECT, else the folder one stands in) names source, questions, labels and split. `--eval-set`
replaces its questions and labels, `--collection` and `--source` its source. What is named is asked, or the command
refuses: recorded lists carry their own chunks, so they go with no other source.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Collection, Common
from rag_core.cli.output import ProgressBar, echo
from rag_core.cli.replay import chosen, fingerprints_of
from rag_core.errors import InputError, WinnowError
from rag_core.eval_sets.facts import made_counts, made_said
from rag_core.eval_sets.reading import LISTS as LISTS_FILE
from rag_core.eval_sets.reading import folder_of, folders, load_set
from rag_core.eval_sets.writing import META, QUERIES
from rag_core.index.collection import list_collections
from rag_core.index.foreign import has_changed
from rag_core.project.deeds import person_of_this_machine
from rag_core.project.project import (
    ALIASES,
    CALLABLE,
    COLLECTION,
    FILE,
    LISTS,
    NOTHING,
    Project,
    ProjectSource,
    open_project,
)
from rag_core.project.runs import looked
from rag_core.project.session import Session
from rag_core.sources.callable_source import CallOptions
from rag_core.stage import Pipeline
from rag_core.text import counted
from rag_core.types import Case
from rag_core.workbench import bring_up_to_date, brings_vectors

VARIABLE = "WINNOW_PROJECT"
ALL = "all"
"""Every question, also those that chose a pipeline."""
PROJECT_HELP = "A project by name or folder; else WINNOW_PROJECT, else the folder one stands in."
ProjectName = typer.Option(None, "--project", help=PROJECT_HELP)
EvalSetName = typer.Option(None, "--eval-set", help="Questions and labels of this eval set (a name or a folder).")
SourceName = typer.Option(None, "--source", help="module:function that searches, in place of the project's source.")
Approximate = typer.Option(False, "--approximate", help="Search with Chroma in a child process instead of exactly.")


@dataclass(frozen=True)
class Calling(Common):
    """The options that say how a function that searches is called."""

    python: Path | None = typer.Option(None, "--python", help="The Python of the environment that --source runs in.")
    score: str = typer.Option("", "--score", help="What its scores are: distance, similarity, score …; default: seen.")
    metric: str = typer.Option("", "--metric", help="Of distances: cosine, l2 (squared), ip; default: seen.")
    seconds: float = typer.Option(60.0, "--seconds", min=0.1, help="For one question, in another Python.")
    pass_env: list[str] = typer.Option([], "--pass-env", help="A variable of Winnow's own to hand on, by name.")

    @property
    def options(self) -> CallOptions:
        """As a source keeps them; the module is found where the command runs."""
        python = "" if self.python is None else os.path.abspath(self.python.expanduser())  # a link stays one
        folder = os.getcwd() if python else ""
        return CallOptions(python, self.score, self.metric, self.seconds, folder, tuple(self.pass_env))


@dataclass(frozen=True)
class WorksOn(Calling):
    """The options that say what a command works on."""

    project: str | None = ProjectName
    eval_set: str | None = EvalSetName
    collection: str | None = Collection
    source: str | None = SourceName

    def session(self, min_grade: int | None = None, approximate: bool = False) -> Session:
        """The session of what was named."""
        return open_session(
            self.folder,
            self.project,
            self.eval_set,
            self.collection,
            self.source,
            min_grade,
            approximate,
            self.options,
        )

    def refuse_beside(self, lists: Path) -> None:
        """An InputError where a source or questions are named beside a file of recorded lists."""
        named = {
            "--project": self.project,
            "--eval-set": self.eval_set,
            "--collection": self.collection,
            "--source": self.source,
        }
        for option, value in named.items():
            if value is not None:
                raise InputError(
                    f"got the recorded lists {lists} and {option} {value[:80]}, expected one of the two: "
                    "lists carry their own chunks, rules and labels"
                )


def project_named(project: str | None) -> str | None:
    """The project that is meant: the one named, else that of WINNOW_PROJECT, else the folder one stands in."""
    named = project or os.environ.get(VARIABLE, "").strip()
    if named:
        return named
    here = Path.cwd()
    is_set = (here / META).is_file() and any((here / one).is_file() for one in (QUERIES, LISTS_FILE))
    return f"{here}/" if is_set or ((here / META).is_file() and (here / FILE).is_file()) else None


@dataclass(frozen=True)
class InProject(Common):
    """A project, and the workspace it is in."""

    project: str | None = ProjectName

    def opened(self) -> Project | None:
        """The project that is meant, or None where none is."""
        named = project_named(self.project)
        return open_project(named, self.folder) if named else None


@dataclass(frozen=True)
class LabelOptions(InProject):
    """Whose labels a command works on: those of an eval set, else of a project."""

    eval_set: str | None = typer.Option(None, "--eval-set", help="Whose labels.")

    @property
    def name(self) -> str:
        """The name under which the labels are kept; an InputError where none is named."""
        project = None if self.eval_set else self.opened()
        name = self.eval_set or (project.labels if project else None)
        if name is None:
            raise InputError("no eval set is named, expected --eval-set NAME or --project NAME")
        return name


def open_session(
    workspace: Path,
    project: str | None = None,
    eval_set: str | None = None,
    collection: str | None = None,
    source: str | None = None,
    min_grade: int | None = None,
    approximate: bool = False,
    call: CallOptions | None = None,
) -> Session:
    """The session of what is named, its source up to date; an InputError where nothing or too much is."""
    found = _project(workspace, project, eval_set, collection, source, call)
    if found.source.kind == NOTHING:
        raise InputError(f"project {found.name} has no source, expected --collection NAME or --source module:function")
    _bring_up(workspace, found, project)
    session = Session(found, min_grade=min_grade, approximate=approximate)
    if collection is None:  # one that is named is asked as it stands
        session.refresh(ProgressBar("embedded"))
    return session


def _project(
    workspace: Path,
    project: str | None,
    eval_set: str | None,
    collection: str | None,
    source: str | None,
    call: CallOptions | None,
) -> Project:
    """The project that the options make, in this order: project, over it the eval set, over that the source."""
    if collection is not None and source is not None:
        raise InputError("got --collection and --source, expected one thing to search")
    meant = project_named(project)
    base = open_project(meant, workspace) if meant is not None else None
    if eval_set is not None:
        if ALIASES.get(eval_set, eval_set) not in folders(workspace):
            folder_of(eval_set, workspace)  # one that is not there is told with the sets that are
        is_folder = Path(eval_set).is_dir() and "/" in eval_set
        questions = open_project(f"{eval_set}/" if is_folder else eval_set, workspace)
        if base is None or questions.folder == base.folder:
            base = questions
        elif base.source.kind == LISTS and collection is None and source is None:
            raise InputError(
                f"project {base.name} has recorded lists of its own questions, expected --eval-set {eval_set[:80]} "
                "with --collection NAME, or without a project"
            )
        else:
            base = replace(questions, source=base.source, pipelines=base.pipelines, baseline=base.baseline)
    if base is None:
        if collection is None and source is None:
            raise InputError(
                "nothing to work on is named, expected --project NAME, --eval-set NAME, --collection NAME or "
                "--source module:function"
            )
        name, nowhere = str(collection or source), workspace / "projects" / "-"
        base = Project(name, name, nowhere, nowhere, workspace, ProjectSource(), labels="")  # no labels of anybody
    if collection is not None:
        base = replace(base, source=ProjectSource(COLLECTION, collection))
    if source is not None:
        base = replace(base, source=ProjectSource(CALLABLE, source, call))
    return base


def _bring_up(workspace: Path, project: Project, named: str | None) -> None:
    """Make a demo's collection that is not there yet, and say where the store behind a mirror was written to since."""
    if project.source.kind != COLLECTION:
        return
    name = project.source.name
    if name in folders(workspace) and name not in {one.name for one in list_collections(workspace)}:
        shipped = load_set(name, workspace)
        if brings_vectors(shipped):
            bring_up_to_date(shipped, workspace, ProgressBar("embedded"))
    with suppress(WinnowError):  # what is wrong with the collection is said when it is opened
        if has_changed(workspace, name):
            sys.stderr.write(f"warning: the Chroma store behind {name} has changed; connect it again\n")


def narrowed(
    session: Session,
    split: str | None = None,
    tag: str | None = None,
    names: Sequence[str] | None = None,
    first: int | None = None,
) -> list[Case]:
    """Only the questions of a side (dev, test), with a tag, of those ids, the first N; an InputError for none."""
    cases = list(session.cases)
    if split is not None and split != ALL:
        declared = [case for case in cases if case.query.metadata.get("split") == split]
        sides = {"dev": session.split.dev, "test": session.split.held_out, "held_out": session.split.held_out}
        wanted = {case.query.id for case in declared} or set(sides.get(split, ()))
        cases = [case for case in cases if case.query.id in wanted]
        if not cases:
            raise InputError(
                f"eval set {session.project.labels} has no query in split {split[:40]!r}, expected dev, test or all"
            )
    cases = chosen([case for case in cases if tag is None or tag in case.query.tags], list(names or ()), first)
    if not cases:
        raise InputError(f"eval set {session.project.labels} has no query with tag {tag!r}, expected one that it has")
    return cases


def looks_said(count: int) -> str:
    """How many looks at held-out questions a result is the last of, and how to take none."""
    return f"{counted(count, 'look', 'looks')} by now; --split dev takes none"


def stands_on(
    session: Session, pipelines: Sequence[Pipeline], cases: Sequence[Case], *, looked_at: bool = False
) -> dict[str, Any]:
    """`fingerprints` and `split` of a result: what its figures stand on, and on which side its questions are.

    With `looked_at` it is written down that figures over held-out questions are shown; `looks` is how many there were.
    """
    prints = {**session.fingerprints(), "pipeline": fingerprints_of(pipelines)}
    by = person_of_this_machine().name
    looks = {"looks": looked(session, pipelines, cases, by, "command line")} if looked_at else {}
    if not session.cases:  # a question of one's own stands on no side
        return {"fingerprints": prints, "split": None, **looks}
    split, asked = session.split, {case.query.id for case in cases}
    if said := made_said(cases):
        echo(f"of {len(cases)} questions: {said}", err=True)
    sides = {side: len(asked & set(getattr(split, side))) for side in ("dev", "held_out", "examples")}
    mixed = session.flattered(pipelines, cases)
    if looks.get("looks"):
        echo(f"{sides['held_out']} of {len(cases)} questions are held out: {looks_said(looks['looks'])}", err=True)
    return {
        "project": session.project.name,
        "fingerprints": prints,
        "chosen_on": {one.called: asdict(one.chosen_on) for one in pipelines if one.chosen_on is not None},
        **({"notices": mixed} if mixed else {}),
        "split": {"fingerprint": split.fingerprint, "declared": split.declared, **sides},
        **made_counts(cases),
        **looks,
    }
