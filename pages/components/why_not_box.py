"""Why not this chunk? Any id or title → its rank, where it fell out and why, and what would bring it back."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from pages.components import inert_text, say
from pages.components.inert_text import Block, Run
from pages.components.rules_state import Bench
from rag_core import workbench
from rag_core.errors import WinnowError
from rag_core.evaluate.why_not import DROPPED, KEPT, NOT_BROUGHT, WhyNot, why_not
from rag_core.retrieve.requery import NOT_READ
from rag_core.types import Candidates, Query

MOST_OTHERS = 10


def show(bench: Bench, query: Query) -> None:
    """The box, and the answer for what stands in it."""
    wanted = st.text_input(
        "Why not this chunk?",
        key="rules.why_not",
        max_chars=300,
        placeholder="a chunk’s id, its title, or a part of its title",
        help="Follows the chunk through this query with the stored rules.",
    )
    if not wanted or not wanted.strip():
        return
    try:
        found = why_not(workbench.live(bench.pipeline, bench.index), Candidates(query), wanted)
    except WinnowError as error:
        say.problem("The chunk cannot be followed.", str(error))
        return
    inert_text.show(answer(found), key="rules.why_not.read")


def answer(found: WhyNot) -> Iterator[Block]:
    """What became of the chunk, in blocks."""
    if found.hit is None:
        yield Block("text", (Run(found.reason),))
        return
    yield Block("lead", (Run(found.hit.chunk.title or found.hit.chunk.id),))
    yield Block("chips", (Run(f"rank {found.rank}", "plain"), Run(_outcome(found), "plain")))
    if found.reason:
        yield Block("text", (Run(_reason(found)),))
    if found.would_bring_back:
        yield Block("note", (Run("What would bring it back:"),))
        yield Block("text", (Run("\n".join(f"• {one.text}" for one in found.would_bring_back)),))
    if found.then is not None and found.then.hit is not None:
        reason = f": {found.then.reason}" if found.then.reason else ""
        yield Block("text", (Run(f"Then: {_outcome(found.then)}{reason}"),))
        yield Block("text", (Run("\n".join(f"• {one.text}" for one in found.then.would_bring_back)),))
    if found.others:
        more = f" and {len(found.others) - MOST_OTHERS} more" if len(found.others) > MOST_OTHERS else ""
        yield Block("note", (Run(f"Also fits: {', '.join(found.others[:MOST_OTHERS])}{more}"),))


def _reason(found: WhyNot) -> str:
    return (
        f"{found.reason}: the rounds ended before rank {found.rank}" if found.reason == NOT_READ.text else found.reason
    )


def _outcome(found: WhyNot) -> str:
    if found.outcome == KEPT:
        return f"● kept, place {found.position}"
    if found.outcome == DROPPED:
        return f"○ dropped by {found.stage}"
    return "○ not brought by the search" if found.outcome == NOT_BROUGHT else "not found"
