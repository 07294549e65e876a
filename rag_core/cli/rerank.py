"""`rerank`: have a reranker score a project's lists, within a budget, and say what it gains at which depth."""

from __future__ import annotations

from typing import Any

import typer

from rag_core.cli.llm_filter import Spending, failure_lines, stop_if
from rag_core.cli.options import Commands
from rag_core.cli.output import AskingBar
from rag_core.cli.sessions import WorksOn, stands_on
from rag_core.llm.run import answer_all, preview
from rag_core.project import deeds
from rag_core.project.reranking import DEPTHS, calls_for, gains_of

app = Commands()


@app.command()
def rerank(
    works_on: WorksOn,
    spending: Spending,
    endpoint: str = typer.Option("", "--endpoint", help="The reranker by name; default: the score the lists carry."),
    recorded: str = typer.Option("rerank", "--recorded", help="The name of the score that the lists carry."),
    pipeline: str = typer.Option("unfiltered", "--pipeline", "-p", help="Whose search to rerank."),
    depth: list[int] = typer.Option(None, "--depth", min=1, max=1000, help="May be repeated. Default 10 25 50 100."),
    first: int | None = typer.Option(None, "-n", min=1, help="Have only the first N questions scored."),
) -> None:
    """What a reranker gains at which depth. Scores that are not stored are asked for first, of every question.

    Example: winnow rerank --project demo --endpoint cohere --max-calls 200 --preview
    """
    session = works_on.session()
    chain, depths = session.pipeline(pipeline), sorted(set(depth or DEPTHS))
    facts: dict[str, Any] = {"project": session.project.name}
    lines, stopped = [], False
    if endpoint:
        calls = calls_for(session, chain, endpoint, depths[-1], session.cases[:first])
        ahead = preview(calls)
        facts["preview"] = ahead.to_json()
        lines.append(ahead.to_text())
        if spending.preview:
            works_on.say(facts, lines[0])
            return
        with deeds.command(deeds.ASK_MODEL, endpoint, session.workspace):
            ran = answer_all(calls, spending.limits(), on_progress=AskingBar())
        facts["run"], stopped = ran.to_json(), ran.cancelled
        lines += failure_lines(ran)
    made = gains_of(session, chain, endpoint, recorded, depths)
    facts |= {**made.to_json(), **stands_on(session, [chain], session.dev)}
    works_on.say(facts, "\n".join([*lines, made.to_text()]))
    stop_if(stopped)
