"""What can be opened below the Bench at zoom One: the context a model would get, the whole trace, why not a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import streamlit as st

from pages.bench import sight
from pages.components import say
from pages.components.inert_text import Block, TextRun, show
from pages.widgets.take_along import take_along
from rag_core.compare.why_not import DROPPED, KEPT, NOT_BROUGHT, WhyNot, why_not
from rag_core.errors import InputError
from rag_core.llm.prompt import estimate_tokens
from rag_core.measure.experiment import Outcome, start_of
from rag_core.project.session import Session
from rag_core.spec import stage_class
from rag_core.stage import Pipeline
from rag_core.text import counted
from rag_core.types import Candidates, Case, Hit

MOST_OTHERS = 10  # further chunks that a title also fits
NOTES = {DROPPED: "dropped by", NOT_BROUGHT: "not brought by the search"}


def context(session: Session, pipelines: Mapping[str, Pipeline], case: Case) -> None:
    """The kept chunks as they would be sent to a model: title, then text, best first; with an estimate of tokens."""
    sides = {side: session.run(pipelines[side], case).result.hits for side in ("A", "B") if side in pipelines}
    if not any(hit.chunk.text for hits in sides.values() for hit in hits):
        st.caption("These lists hold no chunk texts: only titles can be shown and counted.")
    for (side, hits), place in zip(sides.items(), st.columns(len(sides)), strict=True):
        with place:
            text = context_text(hits)
            tokens = f"about {estimate_tokens(text):,} tokens (characters ÷ 4)"
            st.markdown(f"**{side}**: {counted(len(hits), 'chunk', 'chunks')}, {tokens}")
            if text:
                st.code(text, language=None, wrap_lines=True, height=420)
            else:
                st.text("Nothing would be sent.")


def context_text(hits: Sequence[Hit]) -> str:
    """The text of chunks as it would be sent to a model, a blank line between chunks."""
    return "\n\n".join("\n".join(part for part in (hit.chunk.title, hit.chunk.text) if part) for hit in hits)


def trace(session: Session, pipelines: Mapping[str, Pipeline], case: Case) -> None:
    """What each stage did and took, with warnings and fallbacks."""
    for side in ("A", "B"):
        if side not in pipelines:
            continue
        outcome = session.run(pipelines[side], case)
        st.markdown(f"**{side}**")
        st.text("\n".join(trace_lines(outcome)))


def trace_lines(outcome: Outcome) -> Iterator[str]:
    """A run line by line: its stages in order with milliseconds, then its fallbacks and warnings."""
    for step in outcome.result.steps:
        stage = stage_class(step.stage)
        yield f"{stage.title}: {stage.said(step)}, {step.milliseconds:.1f} ms"
        yield from (f"    {line}" for line in stage.details(step))
    yield from (f"fallback of {stage_class(one.stage).title}: {one.reason}" for one in outcome.result.fallbacks)
    yield from (f"warning, {one.chunk_id or 'whole list'}: {one.text}" for one in outcome.result.notices)


def why(session: Session, pipelines: Mapping[str, Pipeline], case: Case) -> None:
    """A box for any chunk by id or title; what became of it in A, also where no list holds it."""
    wanted = st.text_input(
        "Why not this chunk?",
        key="bench.why_not",
        max_chars=300,
        placeholder="a chunk’s id, its title, or a part of its title",
        help="Follows the chunk through A; what the search did not bring is looked up further down its ranking.",
    )
    if not (wanted or "").strip():
        return
    # Asked anew and not from the captured list: further down is where a chunk may be that nobody saw.
    start = Candidates(case.query) if session.live else start_of(case)
    try:
        show(answer(why_not(session.ready(pipelines["A"]), start, wanted)), key="bench.why_not.read")
    except InputError as error:
        say.problem("The chunk cannot be followed.", str(error))


def answer(why: WhyNot) -> Iterator[Block]:
    """What became of a chunk, in blocks."""
    if why.hit is None:
        yield Block("text", (TextRun(why.reason),))
        return
    yield Block("lead", (TextRun(why.hit.chunk.title or why.hit.chunk.id),))
    yield Block("chips", (TextRun(f"rank {why.rank}", "plain"), TextRun(_outcome(why), "plain")))
    if why.reason:
        yield Block("text", (TextRun(why.reason),))
    if why.would_bring_back:
        yield Block("note", (TextRun("What would bring it back:"),))
        yield Block("text", (TextRun("\n".join(f"• {one.text}" for one in why.would_bring_back)),))
    if why.then is not None and why.then.hit is not None:
        reason = f": {why.then.reason}" if why.then.reason else ""
        yield Block("text", (TextRun(f"Then: {_outcome(why.then)}{reason}"),))
        yield Block("text", (TextRun("\n".join(f"• {one.text}" for one in why.then.would_bring_back)),))
    if why.others:
        more = f" and {len(why.others) - MOST_OTHERS} more" if len(why.others) > MOST_OTHERS else ""
        yield Block("note", (TextRun(f"Also fits: {', '.join(why.others[:MOST_OTHERS])}{more}"),))


def _outcome(why: WhyNot) -> str:
    if why.outcome == KEPT:
        return f"● kept, place {why.position}"
    stage = f" {stage_class(why.stage).title}" if why.outcome == DROPPED else ""
    return f"○ {NOTES.get(why.outcome, 'in no list')}{stage}"


def rows_of(session: Session, pipelines: Mapping[str, Pipeline], case: Case) -> None:
    """The question's chunks by rank, as a table with its CSV; the Bench draws their curve."""
    looked = sight.look(session, pipelines, case.query.id if case in session.cases else f"?{case.query.text}")
    if "A" not in looked.outcomes:
        say.problem("A cannot be run as it is.", looked.problem)
        return
    kind = sight.score_kind(looked)
    entries = sight.listed(looked.outcomes["A"])
    other = sight.listed(looked.outcomes["B"]) if "B" in looked.outcomes else {}
    rows: dict[str, list[Any]] = {
        "rank": [entry.hit.rank for entry in entries.values()],
        "id": list(entries),
        "title": [entry.hit.chunk.title for entry in entries.values()],
        kind: [entry.hit.scores.get(kind) for entry in entries.values()],
        "grade": [case.grades.get(id_) for id_ in entries],
        "A": [_verdict(entry) for entry in entries.values()],
        "reason": [entry.reason for entry in entries.values()],
        "B": [_verdict(other.get(id_)) for id_ in entries],
    }

    take_along(f"chunks of {case.query.id}", rows, alt="Per chunk: rank, title, score, grade, what A and B did")


def _verdict(entry: Any) -> str:
    if entry is None:
        return "not brought"
    return "kept" if entry.drop is None else f"dropped by {stage_class(entry.drop.stage).title}"
