"""`init`, `projects`, `project`, `held-out`: a project made, shown, reset, split; what pays on it, `judge`, `why`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import typer

from rag_core.cli.collections import FieldOption, ReadingOptions, record_fields
from rag_core.cli.options import Commands, Common, named_pairs
from rag_core.cli.output import ProgressBar
from rag_core.cli.sessions import PROJECT_HELP, Calling, WorksOn, open_session, project_named, stands_on
from rag_core.compare.why_not import why_not
from rag_core.errors import InputError, StoreError
from rag_core.eval_sets.queries import form_of, read_query_list
from rag_core.files import lines, read_text, write_whole
from rag_core.index.collection import list_collections
from rag_core.labelling.unusual import unusual_first
from rag_core.measure.experiment import shown, start_of
from rag_core.project import deeds, verdict
from rag_core.project.calibrate import calibrate, figures_of
from rag_core.project.ceilings import ceilings, moving_knobs
from rag_core.project.intake import Chroma, Documents, check_intake, proposed_name, take_in, take_lists
from rag_core.project.labels import unmet
from rag_core.project.ledger import looks
from rag_core.project.levers import crossed_levers
from rag_core.project.project import (
    BY_WORDS,
    CALLABLE,
    COLLECTION,
    LISTS,
    NOTHING,
    Project,
    ProjectSource,
    check_new,
    init_project,
    open_project,
    project_names,
    reset_overlay,
)
from rag_core.project.session import Session
from rag_core.project.split import reset_held_out, split_of
from rag_core.records import dump_lists, load_lists, parse_json_line
from rag_core.sources.callable_source import load_callable
from rag_core.sources.mapping import FIELDS, presets, read_log
from rag_core.spec import dump_pipeline
from rag_core.stage import Pipeline
from rag_core.store.database import has_store, open_store
from rag_core.store.exchange.formats import format_of, read_labels
from rag_core.store.exchange.line import parse_grades
from rag_core.store.exchange.planning import apply_import, plan_import
from rag_core.store.labels import LabelStore
from rag_core.types import Case, Query

app, project_app, held_out_app = (
    Commands(),
    Commands("One project: show, reset, split."),
    Commands("The held-out questions: who looked; draw anew."),
)
app.add_typer(project_app, name="project")
app.add_typer(held_out_app, name="held-out")

Name = typer.Argument(None, help=PROJECT_HELP)
FROM_HELP = (
    "A folder or file of documents, FILE.jsonl with recorded lists, chroma:DIR#COLLECTION, collection:NAME or "
    "module:function."
)
SHOWN = 200  # characters of a reason


@app.command()
def init(
    calling: Calling,
    reading: ReadingOptions,
    name: str = typer.Argument(..., help="The project's name."),
    source: str | None = typer.Option(None, "--from", help=FROM_HELP),
    questions: Path | None = typer.Option(None, "--questions", help="Questions: lines, CSV or JSONL."),
    labels: Path | None = typer.Option(None, "--labels", help="Labels in any format that `labels import` reads."),
    grades: str = typer.Option("", "--grades", help="What other grades than 0 to 3 mean in them, such as 4=3,-2=0."),
    title: str = typer.Option("", "--title", help="Shown in lists; default: the name."),
    model: str = typer.Option("", "--model", help="What embeds, where it is not the bundled model; none: words alone."),
    field: list[str] = FieldOption,
) -> None:
    """Make a project: bring its documents in or connect what is there, with questions and labels.

    Example: winnow init espresso --from manual/ --questions questions.csv --labels labels.csv
    """
    folder = calling.folder
    check_new(folder, name)
    # Whatever cannot be read is refused before anything is embedded or written.
    asked: list[Query] = []
    if questions is not None:
        text = read_text(questions)
        asked = read_query_list(text, form_of(text, questions.name), questions.name)
    judged: list[Any] = []
    if labels is not None:
        meant = parse_grades(grades)
        judged = read_labels(read_text(labels), format_of(labels.name), labels.name, grades=meant)
    fields = record_fields(field)
    wanted: ProjectSource | Documents | Chroma = ProjectSource()
    if source is not None:
        wanted = _wanted(folder, name, source, calling, reading.order([Path(source)], model), fields)
    made = wanted if isinstance(wanted, ProjectSource) else ProjectSource()
    if made.kind == LISTS and asked:
        raise InputError(f"{source} brings its own questions, expected no --questions beside recorded lists")
    with deeds.command(deeds.CHANGE_PROJECT, name, folder):
        project = init_project(folder, name, made, title, asked)
        if made.kind == LISTS:
            take_lists(project, Path(str(source)).read_bytes(), str(source))
        if not isinstance(wanted, ProjectSource):
            _take_in(project, wanted)
    stray = _labelled(open_project(name, folder), judged) if judged else ""
    if made.call is not None:
        stray = f"scores are {load_callable(made.name, made.call).scores}" + (f"; {stray}" if stray else "")
    _tell(calling, open_project(name, folder), {"note": stray} if stray else {})


@app.command("import")
def import_log(
    common: Common,
    file: Path = typer.Argument(..., help="A log or data set: JSON, JSONL, CSV or Parquet."),
    name: str = typer.Option("", "--as", help="The new project's name; default: the file's."),
    preset: str = typer.Option("auto", "--preset", help=f"auto, {', '.join(presets())}."),
    mapped: list[str] = typer.Option([], "--map", help=f"FIELD=PATH, also several: {', '.join(FIELDS)}."),  # noqa: B008
    like: str = typer.Option("", "--like", help="A project: questions whose lists are unlike its own come first."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be read; write nothing."),
) -> None:
    """Make a project of what another tool wrote down: questions, the chunks it got, references.

    Example: winnow import runs.jsonl --preset langsmith --as support
    """
    folder = common.folder
    lists = read_log(file.read_bytes(), file.name, preset, named_pairs(mapped, "--map", "PATH"))
    if dry_run:
        common.say(lists)
        return
    cases: Sequence[Case] = lists.cases
    if like:
        tuned = Session(open_project(like, folder))
        cases = unusual_first(cases, tuned.capture(tuned.pipeline("unfiltered")))
    name = name or proposed_name(str(file), folder)
    check_new(folder, name)
    with deeds.command(deeds.CHANGE_PROJECT, name, folder):
        project = init_project(folder, name, ProjectSource(LISTS), "")
        write_whole(project.folder / "lists.jsonl", "".join(f"{row}\n" for row in dump_lists(cases)))
    next_step = _next_step(open_project(name, folder))
    common.say(lists, f"{lists.to_text()}\nproject {name}; next: {next_step}", project=name)


def _wanted(
    workspace: Path, name: str, source: str, calling: Calling, documents: Documents, fields: Mapping[str, str] | None
) -> ProjectSource | Documents | Chroma:
    """What --from names, checked: a source that is asked as it is, or what is brought in under the project's name."""
    kind, _, rest = source.partition(":")
    there = {one.name for one in list_collections(workspace)}
    if kind == "collection":
        if rest not in there:
            listed = ", ".join(sorted(there)) or "none"
            raise InputError(f"there is no collection {rest[:80]!r}, expected one of {listed}")
        return ProjectSource(COLLECTION, rest)
    if kind != "chroma":
        if not Path(source).exists() and re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", source):
            return ProjectSource(CALLABLE, source, calling.options)
        if _is_lists(Path(source)):
            load_lists(Path(source))
            return ProjectSource(LISTS)
    if name in there:
        raise InputError(f"there is a collection {name} already, expected another name or --from collection:{name}")
    order: Documents | Chroma = documents
    if kind == "chroma":
        where, _, collection = rest.rpartition("#")
        if not where or not collection:
            raise InputError(f"--from is {source[:80]!r}, expected chroma:DIR#COLLECTION or chroma:http://…#COLLECTION")
        is_url = where.startswith(("http://", "https://"))
        order = Chroma(collection, "" if is_url else where, where if is_url else "", model=documents.model)
        order = replace(order, fields=None if fields is None else tuple(fields.items()))
    check_intake(workspace, name, order)
    return order


def _take_in(project: Project, order: Documents | Chroma) -> None:
    """Bring the source in; where it cannot be read there is no project either. One that was interrupted stays: the
    place Data resumes it.
    """
    foreign = isinstance(order, Chroma)
    try:
        with deeds.command(deeds.CONNECT if foreign else deeds.INGEST, project.name, project.workspace):
            take_in(project, order, ProgressBar("read" if foreign else "embedded"))
    except (InputError, StoreError):
        shutil.rmtree(project.folder)
        raise


def _is_lists(path: Path) -> bool:
    """Whether a file holds recorded lists and not chunks: its first record has candidates."""
    if path.suffix not in (".jsonl", ".ndjson") or not path.is_file():
        return False
    first = next((line for _, line in lines(read_text(path))), "{}")
    record = parse_json_line(first, f"{path} line 1")
    return isinstance(record, dict) and "candidates" in record


def _labelled(project: Project, lines: list[Any]) -> str:
    """Bring labels in as one batch; how many, and which of them meet nothing, in words."""
    with open_store(project.workspace) as store:
        labels = LabelStore(store)
        plan = plan_import(labels, project.labels, lines, "import")
        kind = deeds.import_kind(deeds.person_of_this_machine(), plan.annotators)
        with deeds.command(kind, project.name, project.workspace, ", ".join(plan.annotators)) as performed:
            done = apply_import(labels, plan, by=performed.signature)
            performed.result = f"{done.written} labels, {done.batch}"
    lost = unmet(lines, project)
    met = len(lines) - lost.queries - (0 if lost.missed else lost.chunks)
    return "; ".join([f"{met} of {len(lines)} labels count", *([lost.words] if lost.words else [])])


def _facts(project: Project) -> dict[str, Any]:
    """What a project is, without opening its source: cheap enough for a list."""
    return {
        "name": project.name,
        "title": project.title,
        "folder": str(project.folder),
        "shipped": project.shipped,
        "source": {key: value for key, value in asdict(project.source).items() if value is not None},
        "questions": len(project.eval_set.cases),
        "labelled": sum(bool(case.grades) for case in project.eval_set.cases),
        "pipelines": dict(project.pipelines),
        "baseline": project.baseline,
    }


def _line(facts: dict[str, Any]) -> str:
    own = "shipped" if facts["shipped"] else "your own"
    return f"{facts['name']}: {ProjectSource(**facts['source']).text}, {facts['questions']} questions, {own}"


def _tell(common: Common, project: Project, remarks: Mapping[str, str]) -> None:
    """Say what a project is, what there is to remark, and the one command that brings it further."""
    facts = _facts(project)
    said = {"next": _next_step(project), **remarks}
    lines = [_line(facts), *(f"{name}: {said[name]}" for name in ("note", "next") if name in said)]
    common.say(facts | said, "\n".join(lines))


def _next_step(project: Project) -> str:
    if project.source.kind == NOTHING:
        return f"winnow ingest FOLDER --collection {project.name}"
    if not project.has_questions:
        return f"winnow questions add FILE --project {project.name}"
    sides = split_of(project, [case.query for case in project.eval_set.cases])
    pipeline = BY_WORDS if project.pipelines["A"] == BY_WORDS else "fixed-15"
    return f"winnow evaluate --project {project.name} --pipeline {pipeline}" + (" --split dev" if sides.dev else "")


@app.command()
def projects(common: Common) -> None:
    """Every project: the demo, your own, and what else ships.

    Example: winnow projects --json
    """
    folder = common.folder
    found = [_facts(open_project(name, folder)) for name in project_names(folder)]
    common.say({"projects": found}, "\n".join(map(_line, found)))


@project_app.command("show")
def show(common: Common, name: str | None = Name) -> None:
    """A project: source, questions, labels, split, pipelines, and what its figures stand on now.

    Example: winnow project show demo
    """
    bare = open_project(_named(name), common.folder)
    if bare.source.kind == NOTHING:
        _tell(common, bare, {})
        return
    session = open_session(common.folder, _named(name))
    project, cases = session.project, session.cases
    facts = _facts(project) | {
        "labelled": sum(bool(case.grades) for case in cases),
        "labels": sum(len(case.grades) for case in cases),
        "chunks": len(session.source.chunks),
        "min_grade": session.min_grade,
        "saved_pipelines": session.pipeline_names(),
        **stands_on(session, [], cases),
    }
    split = facts["split"] or {"dev": 0, "held_out": 0, "examples": 0}
    words = [
        _line(facts),
        f"  {facts['chunks']} chunks, {facts['labels']} labels on {facts['labelled']} questions",
        f"  {split['dev']} dev, {split['held_out']} held out, {split['examples']} examples",
        *(f"  {key} {value}" for key, value in facts["fingerprints"].items() if value),
    ]
    common.say(facts, "\n".join(words))


@project_app.command("reset")
def reset(
    common: Common,
    name: str | None = Name,
    labels: bool = typer.Option(False, "--labels", help="Labels given here too, as a batch that `labels undo` undoes."),
) -> None:
    """Take away what was done to a shipped project, but for its looks; with --labels the labels given here too.

    Example: winnow project reset demo --labels
    """
    project = open_project(_named(name), common.folder)
    batch, count = f"reset-{uuid4().hex[:12]}", 0
    kind = deeds.RESET_LABELS if labels else deeds.CHANGE_PROJECT
    with deeds.command(kind, project.name, project.workspace) as performed:
        gone = reset_overlay(project)
        if labels and has_store(project.workspace):
            with open_store(project.workspace) as store:
                count = LabelStore(store).undo_all(project.labels, batch, batch, performed.signature)
        performed.result = f"{count} labels, {batch}" if count else ""
    facts = {"project": project.name, "reset": gone, "labels": count, "batch": batch if count else ""}
    words = f"{project.name} is as it ships" + ("" if gone or count else " already")
    common.say(facts, f"{words}; {count} labels taken back as batch {batch}" if count else words)


@held_out_app.command("reset")
def held_out_reset(
    common: Common,
    name: str | None = Name,
    share: float | None = typer.Option(None, "--held-out", help="The share held out from now on; default: as before."),
) -> None:
    """Draw the split anew, visibly: the ledger keeps the looks at the old one. What the set declares stays."""
    project = open_project(_named(name), common.folder)
    with deeds.command(deeds.CHANGE_PROJECT, project.name, project.workspace) as performed:
        reset_held_out(project, share)
        performed.result = "split drawn anew"
    show_split(common, project.name if project.shipped else str(project.folder) + "/")


@project_app.command("split")
@held_out_app.command("show")
def show_split(common: Common, name: str | None = Name) -> None:
    """Which questions are dev, held out, examples, decided once for each; and every look at the held-out ones."""
    project = open_project(_named(name), common.folder)
    sides, seen = split_of(project, [case.query for case in project.eval_set.cases]), looks(project.state)
    facts = {
        "project": project.name,
        "fingerprint": sides.fingerprint,
        "declared": sides.declared,
        "dev": list(sides.dev),
        "held_out": list(sides.held_out),
        "examples": list(sides.examples),
        "straddling": list(sides.straddling),
        "looks": [asdict(one) | {"now": one.split == sides.name} for one in seen],
    }
    now = [one for one in seen if one.split == sides.name]
    words = [
        f"{project.name}: {len(sides.dev)} dev, {len(sides.held_out)} held out, {len(sides.examples)} examples"
        + (", as the set declares" if sides.declared else ""),
        f"  {len(now)} looks at these held-out questions, {len(seen) - len(now)} at earlier ones",
        *(f"  {one.at}  {one.by}  {one.place}  {one.name or one.pipeline}" for one in now),
    ]
    common.say(facts, "\n".join(words))


def _named(name: str | None) -> str:
    meant = project_named(name)
    if meant is None:
        raise InputError("no project is named, expected a name, WINNOW_PROJECT or the folder of one")
    return meant


@app.command()
def why(
    works_on: WorksOn,
    question: str = typer.Argument(..., help="A question of the project by id or text, or one of your own."),
    chunk: str = typer.Argument(..., help="A chunk by id, title or part of a title."),
    pipeline: str = typer.Option(..., "--pipeline", "-p", help="Spec file, inline JSON or a name."),
) -> None:
    """What became of a chunk: its rank, the first stage that loses it, why, and what would keep it.

    Example: winnow why combat-1 "attack cleric ac7" --pipeline demo-tuned --project demo
    """
    session = works_on.session()
    case = next((one for one in session.cases if question in (one.query.id, one.query.text)), None)
    if case is None:
        if not session.live or re.fullmatch(r"\S*[\d_-]\S*", question):  # an id that is mistyped is no question
            raise InputError(
                f"project {session.project.name} has no question {question[:80]!r}, expected one of its own by id or "
                + ("text, or one of yours in words" if session.live else "text: its lists are recorded")
            )
        case = session.question(question)
    known = session.source.chunks
    if known and not any(chunk == one.id or chunk.lower() in one.title.lower() for one in known):
        raise InputError(f"no chunk has the id or a title with {chunk[:80]!r}, expected one of {len(known):,} chunks")
    ready = session.ready(session.pipeline(pipeline))
    # Asked anew and not from the captured list: what the source did not bring is looked up further down.
    found = why_not(ready, start_of(replace(case, candidates=None) if session.live else case), chunk)
    grade = case.grades.get(found.hit.chunk.id) if found.hit is not None else None
    facts = {"question": case.query.id, "query": case.query.text, **_told(found), "relevant": grade}
    facts |= stands_on(session, [ready], [case])
    works_on.say(facts, "\n".join(_why_lines(facts)))


def _at_stake(works_on: WorksOn, pipeline: str | None) -> tuple[Session, Pipeline]:
    """The session, and the pipeline that is named, else the project's A."""
    session = works_on.session()
    return session, session.pipeline(pipeline or session.project.pipelines["A"] or "unfiltered")


@app.command()
def advise(
    works_on: WorksOn,
    pipeline: str | None = typer.Option(None, "--pipeline", "-p", help="Whose search to look behind; default: A."),
) -> None:
    """Which lever pays on this project: search, rules, cut, learned filter or judge; how far each reaches or could.

    Example: winnow advise --project demo
    """
    session, chosen = _at_stake(works_on, pipeline)
    levered = crossed_levers(session, chosen)
    facts = {"project": session.project.name, **levered.to_json(), **stands_on(session, [chosen], session.dev)}
    works_on.say(facts, levered.to_text())


@app.command("calibrate")
def calibrate_pipeline(
    works_on: WorksOn,
    pipeline: str | None = typer.Option(None, "--pipeline", "-p", help="What is calibrated; default: A."),
    take: list[str] = typer.Option(None, "--take", help="A proposal by name, or all; may be repeated."),
    save: str = typer.Option("", "--save", help="Keep the pipeline with what is taken as one of the project's own."),
) -> None:
    """Analyzer, floor of a judge, plurals and the cut with its min and max, as the dev questions propose them.

    Example: winnow calibrate --project demo --pipeline hybrid --take all --save mine
    """
    session, chosen = _at_stake(works_on, pipeline)
    made = calibrate(session, chosen, ProgressBar("calibrated"))
    names = [one.name for one in made.proposals] if "all" in (take or ()) else list(take or ())
    facts = {"project": session.project.name, **made.to_json(), **stands_on(session, [chosen], session.dev)}
    lines = [made.to_text()]
    if names:
        taken = made.taken(names)
        dev = figures_of(session, taken, session.dev)
        facts["taken"] = {"names": names, "pipeline": dump_pipeline(taken), "dev": dev}
        lines.append(f"with {', '.join(names)}: SetF {shown(dev['SetF'])} on dev")
        if save:
            with deeds.command(deeds.CHANGE_PROJECT, session.project.name, session.workspace):
                session.save_pipeline(save, taken)
            lines.append(f"kept as {save}; judge it with: winnow judge {save} --project {session.project.name}")
    works_on.say(facts, "\n".join(lines))


@app.command()
def headroom(
    works_on: WorksOn,
    pipeline: str | None = typer.Option(None, "--pipeline", "-p", help="Whose last cut is at stake; default: A."),
) -> None:
    """What a perfect cut and filter would bring on the dev questions, what search lost, which scores and knobs matter.

    Example: winnow headroom --project demo --pipeline query-must-refill
    """
    session, chosen = _at_stake(works_on, pipeline)
    reached = ceilings(session, chosen)
    knobs = [
        {"knob": knob.label, "low": knob.low, "high": knob.high, "changes": moved, "of": reached.asked}
        for knob, moved in moving_knobs(session, chosen)
    ]
    facts = {"project": session.project.name, **reached.to_json(), "knobs": knobs}
    facts |= stands_on(session, [chosen], session.dev)
    lines = [f"  {k['knob']} from {k['low']:g} to {k['high']:g} matters to {k['changes']} of {k['of']}" for k in knobs]
    works_on.say(facts, "\n".join([reached.to_text(), *lines]))


@app.command()
def judge(
    works_on: WorksOn,
    a: str = typer.Argument(..., help="Pipeline A: spec file, inline JSON or a name."),
    b: str = typer.Argument("auto", help="Pipeline B; auto is the fair baseline: A with the best fixed k of dev."),
) -> None:
    """A against B on the held-out questions, in figures and one word; the look is written into the ledger.

    Example: winnow judge demo-tuned --project demo
    """
    session = works_on.session()
    first = session.pipeline(a)
    second = session.baseline(first) if b == "auto" else session.pipeline(b)
    said = verdict.judge(session, first, second, by=deeds.person_of_this_machine().name, place="judge")
    works_on.say(said.to_json(), said.to_text())


def _told(result: Any) -> dict[str, Any]:
    """What became of a chunk as plain values."""
    hit = result.hit
    return {
        "wanted": result.wanted,
        "outcome": result.outcome,
        "id": None if hit is None else hit.chunk.id,
        "title": None if hit is None else hit.chunk.title,
        "distance": None if hit is None else hit.distance,
        "rank": result.rank,
        "position": result.position,
        "stage": result.stage or None,
        "reason": result.reason or None,
        "would_keep": [asdict(one) for one in result.would_bring_back],
        "then": None if result.then is None else _told(result.then),
        "others": list(result.others),
    }


def _why_lines(facts: dict[str, Any]) -> Iterator[str]:
    if facts["id"] is None:
        yield f"{facts['wanted'][:SHOWN]}: {facts['reason']}"
        return
    yield f"{facts['title'] or facts['id']} · rank {facts['rank']}"
    if facts["outcome"] == "kept":
        yield f"  kept, place {facts['position']}"
    else:
        yield f"  {facts['outcome']} by {facts['stage']}: {str(facts['reason'])[:SHOWN]}"
    yield from (f"  {one['text']}" for one in facts["would_keep"])
    if facts["then"] is not None and facts["then"]["id"] is not None:
        yield from (f"  then{line}" for line in list(_why_lines(facts["then"]))[1:])
    if facts["others"]:
        yield f"  also fits: {', '.join(facts['others'][:10])}"
