"""`answer`: questions answered from what pipelines keep, checked, with the reason of each wrong one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from rag_core.answers.answering import CONTEXT, SYSTEM, Answering, SimulatedReader
from rag_core.answers.check import expected_of
from rag_core.cli.llm_filter import Endpoint, Spending, stop_if
from rag_core.cli.options import Commands, MinGrade, Split
from rag_core.cli.output import AskingBar, ProgressBar
from rag_core.cli.replay import Pipelines, laid_over
from rag_core.cli.sessions import WorksOn, narrowed, stands_on
from rag_core.errors import InputError
from rag_core.eval_sets.queries import ANSWERS
from rag_core.files import parse_json, read_text
from rag_core.judged.entrants import endpoint_judge, in_memory
from rag_core.project import deeds

app = Commands()


@app.command(journal=True)
def answer(
    works_on: WorksOn,
    spending: Spending,
    text: str = typer.Argument("", help="A question of your own; default: the project's dev questions."),
    pipeline: list[str] = Pipelines,
    expect: str = typer.Option("", "--expect", help="What the one question expects: a number, a text, or JSON."),
    name: list[str] = typer.Option(None, "-t", help="Only the question with this id; may be repeated."),
    split: str | None = Split,
    tag: str | None = typer.Option(None, "--tag", help="Only the questions with this tag."),
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N questions."),
    min_grade: int | None = MinGrade,
    endpoint: str = Endpoint,
    model: str = typer.Option("", "--model", help="Another model of the endpoint."),
    judge: str = typer.Option("", "--judge", help="The model that compares with a reference; default: the same."),
    simulated: bool = typer.Option(False, "--simulated", help="A reader made of labels instead; asks no model."),
    prompt: Path | None = typer.Option(None, "--prompt", help="The instructions, from a file; {mark} names the fence."),
    room: int = typer.Option(CONTEXT, "--room", min=1, help="Characters of chunk text in one prompt, at most."),
    explain: bool = typer.Option(True, "--explain/--no-explain", help="One more call for each answer that is wrong."),
    at_once: int = typer.Option(4, "--concurrency", min=1, max=64, help="Calls at once."),
    for_a_call: float = typer.Option(60.0, "--call-seconds", min=0.1, max=3600, help="For one call, with its tries."),
    replay: bool = typer.Option(False, "--replay", help="Ask nobody: what is not stored is not answered."),
) -> None:
    """Answer questions from what pipelines keep: right or wrong, why, at what cost, and the first against the others.

    Without -t, --split or a question of your own: the dev questions that expect an answer. Calls are stored: a second
    run costs nothing, a stopped one goes on. Example: winnow answer --project rulebook -p unfiltered -p query-must
    --simulated
    """
    session = works_on.session(min_grade)
    if text:
        cases = [session.question(text)]
    elif split or name:
        cases = narrowed(session, split, tag, name)
    else:
        cases = [case for case in session.dev if tag is None or tag in case.query.tags]
    if expect:
        if len(cases) != 1:
            raise InputError(f"--expect got {len(cases)} questions, expected one (a question of your own, or -t ID)")
        cases = [replace(cases[0], query=_expecting(cases[0].query, expect))]
    elif not (text or name):
        cases = [case for case in cases if any(case.query.metadata.get(key) not in (None, "") for key in ANSWERS)]
        if not cases:
            raise InputError("no question expects an answer, expected `expected_answer` with questions, or --expect")
    cases = cases[:first]
    specs = [laid_over(spec, session=session) for spec in pipeline or ["fixed-15"]]
    reports = session.reports(specs, cases, progress=ProgressBar("searched"))
    if simulated:
        reader = in_memory(SimulatedReader({case.query.id: case for case in cases}, min_grade=session.min_grade))
        asking = Answering(reader, room=room, explain=explain)
    else:
        reader = endpoint_judge(works_on.folder, endpoint, model)
        compares = endpoint_judge(works_on.folder, endpoint, judge) if judge else reader
        if replay:
            reader, compares = reader.replay(), compares.replay()
        system = SYSTEM if prompt is None else read_text(prompt)
        asking = Answering(reader, system, room, compares, explain)
    facts: dict[str, Any] = {"preview": asking.preview(reports).to_json(), "prompt": asking.system}
    if spending.preview:
        works_on.say(facts, asking.preview(reports).to_text())
        return
    limits = spending.limits(concurrency=at_once, seconds_per_call=for_a_call)
    with deeds.command(deeds.ASK_MODEL, reader.name, works_on.folder):
        ran = asking.run(reports, limits, AskingBar())
    ready = [report.pipeline for report in reports]
    facts |= stands_on(session, ready, cases, looked_at=True)
    works_on.say(ran, **facts)
    stop_if(ran.progress.cancelled)


def _expecting(query: Any, expect: str) -> Any:
    """The question with what it expects: JSON where it is an object, a list or a number, else the text."""
    try:
        value = parse_json(expect, "--expect")
    except InputError:
        value = expect
    expected_of(value)
    return replace(query, metadata={**query.metadata, ANSWERS[0]: value})
