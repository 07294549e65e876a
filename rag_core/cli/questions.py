"""`questions`: more of them. Made from the slots of near-duplicate chunks, with their labels."""

from __future__ import annotations

import typer

from rag_core.cli.options import Commands, Common
from rag_core.cli.sessions import ProjectName, open_session
from rag_core.project import deeds
from rag_core.project.project import add_questions
from rag_core.rules import slots
from rag_core.rules.questions import make_questions

app = Commands()
questions = Commands("More questions: made from slots, with their labels.")
app.add_typer(questions, name="questions")


@questions.command("make")
def make(
    common: Common,
    project: str | None = ProjectName,
    count: int = typer.Option(50, "-n", min=1, max=10_000, help="How many, at most."),
    family: str | None = typer.Option(None, "--family", help="Only of families with this in their name."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be added."),
) -> None:
    """Make questions from what near-duplicate titles differ in; add them with their labels to a project of one's own.

    They are marked as generated wherever they count, and never judge rules from slots.

    Example: python -m rag_core questions make --project espresso -n 40 --dry-run
    """
    folder = common.folder
    session = open_session(folder, project)
    families = slots.named_so(slots.propose(session.source.chunks), family)
    made = make_questions(families, session.source.chunks, count)
    added = 0
    if made and not dry_run:
        with deeds.command(deeds.CHANGE_SET, session.project.name, folder) as performed:
            labels = {one.query.id: one.grades for one in made}
            added = add_questions(session.project, [one.query for one in made], labels)
            performed.result = f"{added} generated questions"
    lines = [f"{one.query.text}  → {one.title}" for one in made] if dry_run else []
    counted = f"{len(made)} questions from {len(families)} families"
    lines.append(f"{counted}; nothing was added" if dry_run else f"{counted}, {added} of them new")
    facts = {"questions": [one.to_json() for one in made], "families": len(families), "added": added}
    common.say(facts, "\n".join(lines))
