"""`questions`: more of them. A list of one's own, made from slots or by a model, or taken from a log."""

from __future__ import annotations

from pathlib import Path

import typer

from rag_core.cli.llm_filter import Endpoint, Spending
from rag_core.cli.options import Commands, Common, named_pairs
from rag_core.cli.output import AskingBar
from rag_core.cli.sessions import InProject, ProjectName, open_session
from rag_core.errors import InputError
from rag_core.eval_sets.facts import LOG
from rag_core.eval_sets.queries import form_of, read_query_list
from rag_core.files import read_text
from rag_core.judged.entrants import endpoint_judge
from rag_core.judged.questions import SECONDS
from rag_core.llm.run import preview
from rag_core.project import deeds, made
from rag_core.project.project import add_questions, check_takes_questions

app = Commands()
questions = Commands("More questions: from a file, slots, a model or a log.")
app.add_typer(questions, name="questions")


@questions.command("add")
def add(
    named: InProject,
    file: Path = typer.Argument(..., help="Questions: one a line, CSV, JSONL, or what `init --questions` takes."),
) -> None:
    """Add the questions of a file to a project of one's own; those that are there with the same text are passed over.

    Example: winnow questions add questions.csv --project espresso
    """
    text = read_text(file)
    asked = read_query_list(text, form_of(text, file.name), file.name)
    own = named.opened()
    if own is None:
        raise InputError("no project is named, expected --project NAME")
    with deeds.command(deeds.CHANGE_SET, own.name, named.folder) as performed:
        added = add_questions(own, asked)
        performed.result = f"{added} questions from a file"
    named.say({"project": own.name, "read": len(asked), "added": added}, f"{len(asked)} read, {added} of them are new")


@questions.command("make")
def make(
    common: Common,
    spending: Spending,
    project: str | None = ProjectName,
    origin: str = typer.Option(made.SLOTS, "--from", help=f"What they are made from: {', '.join(made.FROM)}."),
    count: int = typer.Option(50, "-n", min=1, max=10_000, help="How many, at most."),
    family: str | None = typer.Option(None, "--family", help="Slots: only of families with this in their name."),
    endpoint: str = Endpoint,
    log: Path | None = typer.Option(None, "--log", help="The log: any form that `import` reads."),
    preset: str = typer.Option("auto", "--preset", help="Of the log, as `import` takes it."),
    mapped: list[str] = typer.Option([], "--map", help="FIELD=PATH of the log, also several."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Add nothing; a model is asked, its answers are stored."),
) -> None:
    """Make questions and add them to a project of one's own: from slots or by a model with labels, or from a log.

    They are marked and counted apart wherever they count, and judge neither the rules nor the models they came from.
    A model is shown a chunk and those nearest to it; the chunk is the question's label, what else is relevant is open.

    Example: python -m rag_core questions make --project espresso -n 40 --dry-run
    """
    folder = common.folder
    if origin not in made.FROM:
        raise InputError(f"--from is {origin[:40]!r}, expected one of {', '.join(made.FROM)}")
    if (origin == LOG) != (log is not None):
        raise InputError("--log and --from log go together, expected both or neither")
    session = open_session(folder, project)
    if not dry_run:
        check_takes_questions(session.project)
    if origin == made.MODEL:
        judge = endpoint_judge(folder, endpoint)
        prompts = made.model_prompts(session, count)
        ahead = preview([(judge, prompts)])
        if spending.preview:
            common.say({"model": judge.model, "preview": ahead.to_json()}, f"{judge.name}: {ahead.to_text()}")
            return
        limits = spending.limits(seconds_per_call=SECONDS)
        with deeds.command(deeds.ASK_MODEL, judge.model, folder):
            found = made.by_model(session, prompts, judge, limits, AskingBar())
    elif log is not None:
        paths = named_pairs(mapped, "--map", "PATH")
        found = made.from_log(session, log.read_bytes(), log.name, count, preset, paths)
    else:
        found = made.from_slots(session, count, family)
    added = 0
    if found.questions and not dry_run:
        with deeds.command(deeds.CHANGE_SET, session.project.name, folder) as performed:
            added = made.add(session, found)
            performed.result = f"{added} questions from {origin}"
    lines = [f"{one.query.text}  → {one.title}" for one in found.questions] if dry_run else []
    lines += [found.to_text(), "nothing was added" if dry_run else f"{added} of them are new"]
    common.say(found, "\n".join(lines), added=added)
