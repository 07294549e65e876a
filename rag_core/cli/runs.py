"""`runs`: list, show, compare, note, export, import and delete the runs of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Common
from rag_core.compare.compare import verdict_words
from rag_core.compare.run_file import (
    changed_besides,
    compare_pipelines,
    dump_run,
    load_run,
    not_comparable,
    read_run,
    summary_of,
)
from rag_core.errors import InputError
from rag_core.files import write_whole
from rag_core.measure.experiment import shown
from rag_core.project import deeds
from rag_core.report import report_html
from rag_core.store.database import open_store
from rag_core.store.runs import RunStore

app, runs = Commands(), Commands("Runs: what an evaluation found, kept as it was.", no_args_is_help=True)
app.add_typer(runs, name="runs")


def store_run(run: Any, folder: Path) -> str:
    """Keep a run in the workspace's store; its id."""
    with deeds.command(deeds.KEEP_RUN, run.id, folder), open_store(folder) as store:
        return RunStore(store).save(run.document, summary_of(run))


def find_run(wanted: str, folder: Path) -> Any:
    """The run of a file, else the stored run of that id or beginning of an id."""
    if Path(wanted).is_file() or wanted.endswith(".json"):
        return load_run(Path(wanted))
    with open_store(folder, create=False) as store:
        return read_run(RunStore(store).document(wanted), f"run {wanted[:80]}")


def notes_on(wanted: str, run_id: str, folder: Path) -> list[tuple[str, str, str]]:
    """(at, author, note) of each note on a stored run; a run file carries none."""
    if Path(wanted).is_file():
        return []
    with open_store(folder, create=False) as store:
        return [(note.at, note.author, note.note) for note in RunStore(store).notes(run_id)]


@app.command()
def report(
    common: Common,
    run: str = typer.Argument(..., help="A run file, or a stored run's id."),
    out: Path = typer.Option(..., "--out", help="The HTML file to write."),
) -> None:
    """Write a run as one self-contained HTML file: means, differences, reasons, settings. It opens offline."""
    found = find_run(run, common.folder)
    text = report_html(found, notes_on(run, found.id, common.folder))
    write_whole(out, text)
    facts = {"out": str(out), "run": found.id, "bytes": len(text.encode())}
    common.say(facts, f"run {found.id} → {out}")


RunId = typer.Argument(..., help="A run's id (its beginning will do).")


@contextmanager
def _store(folder: Path) -> Iterator[RunStore]:

    with open_store(folder) as store:
        yield RunStore(store)


@runs.command("list")
def list_runs(
    common: Common,
    eval_set: str | None = typer.Option(None, "--eval-set", help="Only runs of this eval set."),
) -> None:
    """The stored runs, newest first."""
    with _store(common.folder) as store:
        found = store.listed(eval_set)
    lines = []
    for one in found:
        best = "  ".join(f"{entry['name']} {shown(entry.get('SetF'))}" for entry in one.summary.get("pipelines", ()))
        notes = f"  {one.notes} notes" if one.notes else ""
        lines.append(f"{one.id}  {one.at}  {one.eval_set}  {one.name}  SetF: {best}{notes}")
    nothing = "no run yet; keep one with: python -m rag_core evaluate --eval-set NAME --pipeline SPEC --save-run"
    rows = [{name: getattr(one, name) for name in one.__slots__} for one in found]
    common.say({"runs": rows}, "\n".join(lines) or nothing)


@runs.command("show")
def show_run(
    common: Common,
    run: str = typer.Argument(..., help="A run's id, its beginning, or a run file."),
) -> None:
    """One run: its means, its settings, what it depended on, and the notes on it."""
    found = find_run(run, common.folder)
    notes = notes_on(run, found.id, common.folder)
    lines = [f"{found.id}  {found.document['at']}  {found.document['eval_set']}  {found.name}"]
    for one in found.pipelines:
        figures = "  ".join(f"{name} {shown(one.means.get(name))}" for name in ("SetP", "SetR", "SetF"))
        lines.append(f"  {one.name}: {figures} over {one.means.get('queries_scored')} of {len(one.queries)} queries")
    lines += [f"  {name} {value}" for name, value in found.fingerprints.items()]
    lines += [f"  {at} {author}: {note}" for at, author, note in notes]
    rows = [{"at": at, "author": author, "note": note} for at, author, note in notes]
    common.say({"run": found.document, "intact": found.intact, "notes": rows}, "\n".join(lines))


@runs.command("compare")
def compare_runs(
    common: Common,
    first: str = typer.Argument(..., help="The earlier run: an id or a file."),
    second: str = typer.Argument(..., help="The later run: an id or a file."),
    measure: str = typer.Option("SetF", "--measure", "-m", help="The measure to compare."),
    pipeline: str | None = typer.Option(None, "--pipeline", help="The pipeline of both; default: the first of each."),
) -> None:
    """Two runs: the difference, or the sentence why there is none to tell."""
    runs = [find_run(one, common.folder) for one in (first, second)]
    why_not = not_comparable(*runs)
    if why_not:
        common.say({"comparable": False, "sentence": why_not, "comparison": None}, why_not)
        return
    found = compare_pipelines(runs[0], runs[1], measure, pipeline)
    changed = changed_besides(*runs)
    words = "\n".join([verdict_words(found), *(f"besides: {one}" for one in changed)])
    facts = {"comparable": True, "sentence": words, "comparison": found.to_json(), "besides": changed}
    common.say(facts, words)


@runs.command("note")
def note_run(
    common: Common,
    run: str = RunId,
    text: str = typer.Argument(..., help="The note; notes are added, never changed."),
    author: str = typer.Option("", "--author", help="Who says it; default: the user of this machine."),
) -> None:
    """Add a note to a run."""
    with deeds.command(deeds.NOTE_RUN, run, common.folder) as performed, _store(common.folder) as store:
        chosen = performed.result = store.add_note(run, author or performed.deed.person.name, text)
    common.say({"run": chosen, "note": text}, f"noted on {chosen}")


@runs.command("export")
def export_run(
    common: Common,
    run: str = RunId,
    out: Path = typer.Option(..., "--out", help="The run file to write."),
) -> None:
    """Write a stored run as a run file, which a gate or a colleague reads."""
    found = find_run(run, common.folder)
    write_whole(out, dump_run(found))
    common.say({"run": found.id, "out": str(out)}, f"run {found.id} → {out}")


@runs.command("import")
def import_run(
    common: Common,
    file: Path = typer.Argument(..., help="A run file."),
) -> None:
    """Keep a run file in the workspace; one that was changed since it was made is refused."""
    found = load_run(file)
    if not found.intact:
        raise InputError(f"{file} was changed since it was made (its id does not fit), expected it as it was written")
    common.say({"run": store_run(found, common.folder)}, f"run {found.id} kept in the workspace")


@runs.command("delete")
def delete_run(
    common: Common,
    run: str = RunId,
) -> None:
    """Take a run and its notes out of the workspace, for good."""
    with deeds.command(deeds.DELETE_RUN, run, common.folder) as performed, _store(common.folder) as store:
        chosen = performed.result = store.delete(run)
    common.say({"deleted": chosen}, f"deleted {chosen}")
