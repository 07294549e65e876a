"""`eval-sets`: what sets exist, and making, tagging, copying and deleting those of one's own."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Common
from rag_core.cli.output import echo
from rag_core.errors import InputError
from rag_core.eval_sets import writing as set_writing
from rag_core.eval_sets.facts import facts_of, list_sets
from rag_core.eval_sets.queries import form_of, read_query_list, repeated_texts
from rag_core.eval_sets.reading import folder_of, folders, load_set
from rag_core.eval_sets.writing import change_tags, delete_set, existing_own
from rag_core.files import read_text
from rag_core.project import deeds
from rag_core.project.labels import counted
from rag_core.project.project import check_new, copy_project, init_project, open_project
from rag_core.store.database import has_store, open_store
from rag_core.store.exchange.planning import copy_labels
from rag_core.store.labels import LabelStore

app = Commands()
eval_sets = Commands("Eval sets: list, show, new, tag, copy, guidelines, delete.")
app.add_typer(eval_sets, name="eval-sets")

Name = typer.Argument(..., help="The eval set's name.")


@eval_sets.command("list")
def list_all(common: Common) -> None:
    """Every eval set with its counts: queries, judged ones, split, tags.

    Example: python -m rag_core eval-sets list --json
    """
    folder = common.folder
    found = list_sets(folder, lambda eval_set: counted(eval_set, folder))
    common.say({"eval_sets": [asdict(one) for one in found]}, "\n".join(one.to_text() for one in found))


@eval_sets.command("show")
def show(common: Common, name: str = Name) -> None:
    """One eval set: its counts and every query with tags, split and labels.

    Example: python -m rag_core eval-sets show rulebook --json
    """
    folder = common.folder
    found = counted(load_set(name, folder), folder)
    facts = facts_of(name, folders(folder).get(name, Path(name)), lambda _: found)
    rows: list[dict[str, Any]] = [
        {
            "id": case.query.id,
            "query": case.query.text,
            "tags": list(case.query.tags),
            "split": str(case.query.metadata.get("split") or ""),
            "labels": len(case.grades),
        }
        for case in found.cases
    ]
    words = [f"  {row['id']}  {row['split'] or '-'}  {row['labels']} labels  {', '.join(row['tags'])}" for row in rows]
    common.say({**asdict(facts), "description": found.description, "rows": rows}, "\n".join([facts.to_text(), *words]))


@eval_sets.command("new")
def new(
    common: Common,
    name: str = Name,
    file: str = typer.Argument(..., help="A list of queries: lines, CSV or JSONL; - reads stdin."),
    form: str | None = typer.Option(None, "--format", help="lines, csv or jsonl; else told by the ending."),
    title: str = typer.Option("", "--title", help="Shown in lists; default: the name."),
    min_grade: int = typer.Option(1, "--min-grade", min=1, help="Relevant means this grade or more."),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Leave out lines that hold no question we can ask."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be made."),
) -> None:
    """Make an eval set of a list of queries; labels come by `labels import` or on the place Labels.

    Example: python -m rag_core eval-sets new table-talk questions.csv
    """
    text = sys.stdin.read() if file == "-" else read_text(Path(file))
    skipped: list[str] = []
    form = form or form_of(text, "" if file == "-" else file)
    queries = read_query_list(text, form, Path(file).name, skipped=skipped if skip_bad else None)
    check_new(common.folder, name)
    folder = common.folder / "eval_sets" / name
    if not dry_run:
        with deeds.command(deeds.CHANGE_SET, name, common.folder):
            folder = init_project(common.folder, name, title=title, questions=queries, min_grade=min_grade).folder
    repeated = repeated_texts(queries)
    facts = {"name": name, "queries": len(queries), "repeated": repeated, "skipped": skipped}
    facts |= {"folder": str(folder), "dry_run": dry_run}
    for one in skipped:
        echo(f"left out: {one}", err=True)
    again = f", {repeated} of them asked before" if repeated else ""
    common.say(facts, f"{name}: {len(queries)} queries{again}{'; nothing was made' if dry_run else f' → {folder}'}")


@eval_sets.command("tag")
def tag(
    common: Common,
    name: str = Name,
    add: list[str] = typer.Option(None, "--add", help="A tag to add; may be repeated."),
    remove: list[str] = typer.Option(None, "--remove", help="A tag to take away; may be repeated."),
    query_id: list[str] = typer.Option(None, "-t", "--query", help="Only this query id; may be repeated."),
) -> None:
    """Add or take away tags of some queries, or of all; a tag is a slice of the figures.

    Example: python -m rag_core eval-sets tag table-talk --add movement -t q1 -t q7
    """
    if not add and not remove:
        raise InputError("no tag given, expected --add or --remove")
    with deeds.command(deeds.CHANGE_SET, name, common.folder):
        count = change_tags(common.folder, name, query_id or None, add or (), remove or ())
    common.say({"name": name, "changed": count}, f"{name}: {count} queries changed")


@eval_sets.command("copy")
def copy(
    common: Common,
    source: str = typer.Argument(..., help="The set to copy, shipped or your own."),
    name: str = typer.Argument(..., help="The copy's name."),
    labels: bool = typer.Option(True, help="Copy the labels of the label store too."),
) -> None:
    """Duplicate an eval set: queries, tags, sides, pipelines, labels, lists or corpus. What is held out stays so.

    Example: python -m rag_core eval-sets copy rulebook my-rulebook
    """
    with deeds.command(deeds.CHANGE_SET, name, common.folder) as performed:
        before = open_project(source, common.folder).labels
        made, copied = copy_project(common.folder, source, name), 0
        if labels and has_store(common.folder):
            with open_store(common.folder) as store:
                copied = copy_labels(LabelStore(store), before, name, performed.signature).written
    facts = {"source": source, "name": name, "folder": str(made.folder), "labels_copied": copied}
    common.say(facts, f"{source} → {made.folder}" + (f", {copied} labels copied" if copied else ""))


@eval_sets.command("guidelines")
def guidelines(
    common: Common,
    name: str = Name,
    file: Path | None = typer.Option(None, "--set", help="Markdown file to keep as the set's guidelines."),
) -> None:
    """Print what annotators of a set read beside the queue, or --set it.

    Example: python -m rag_core eval-sets guidelines table-talk --set rules.md
    """
    folder = common.folder
    if file is not None:
        with deeds.command(deeds.CHANGE_SET, name, folder):
            set_writing.write_guidelines(folder, name, read_text(file))
    folder_of(name, folder)
    text = set_writing.guidelines(folders(folder).get(name, Path(name)))
    common.say({"name": name, "guidelines": text}, text.rstrip("\n") or "no guidelines yet")


@eval_sets.command("delete")
def delete(
    common: Common,
    name: str = Name,
    yes: bool = typer.Option(False, "--yes", help="Needed: deleting cannot be undone."),
) -> None:
    """Delete an eval set of your own; labels in the label store stay under its name.

    Example: python -m rag_core eval-sets delete table-talk --yes
    """
    folder = existing_own(common.folder, name)
    if not yes:
        raise InputError(f"{folder} would be deleted for good, expected --yes")
    with deeds.command(deeds.CHANGE_SET, name, common.folder) as performed:
        delete_set(common.folder, name)
        performed.result = "deleted"
    common.say({"name": name, "deleted": True}, f"{name} is deleted; its labels in the label store stay")
