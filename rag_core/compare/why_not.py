"""Why not this chunk? Its rank, the stage it fell out at and the reason, and what would bring it back.

Runs a pipeline on one query's candidates and follows one chunk through the trace. Live, a chunk that the source did not
bring is looked up further down the ranking. Which parameter would have kept a hit is each stage's own knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rag_core.stage import Pipeline, Stage, flatten, would_keep
from rag_core.text import fold
from rag_core.types import Candidates, Counterfactual, Hit, Reader

DEEPEST = 10_000  # how far down a ranking a chunk is looked for: the greatest depth of a source
STEP = 500

KEPT, DROPPED, NOT_BROUGHT, UNKNOWN = "kept", "dropped", "not brought", "unknown"


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of one chunk.

    `outcome` is kept, dropped, not brought (the source's list ends before it) or unknown (in no list that was read).
    `rank` is its place in the source's ranking, `position` its place in the result. `stage` and `reason` say where it
    fell out, `would_bring_back` what would have kept it there. `then` is what would become of it with that done, where
    the source did not bring it. `others` are further chunks the title also fits, best ranked first.
    """

    wanted: str
    outcome: str
    hit: Hit | None = None
    rank: int | None = None
    position: int | None = None
    stage: str = ""
    reason: str = ""
    would_bring_back: tuple[Counterfactual, ...] = ()
    then: WhyNot | None = None
    others: tuple[str, ...] = ()


def why_not(pipeline: Stage, candidates: Candidates, wanted: str) -> WhyNot:
    """Follow the chunk of that id, or of that title (in full, else a part of it), through the pipeline."""
    lists = [candidates]
    for stage in flatten(pipeline):
        lists.append(stage(lists[-1]))
    after = lists[-1]
    seen = sorted([*after.hits, *(drop.hit for drop in after.drops)], key=lambda hit: hit.rank)
    named = _named(wanted, seen)
    if not named:
        return _further_down(pipeline, candidates, after, wanted)
    chosen = named[0]
    drop = next((drop for drop in after.drops if drop.hit.key == chosen.key), None)
    if drop is None:
        position = [hit.key for hit in after.hits].index(chosen.key) + 1
        return WhyNot(wanted, KEPT, chosen, chosen.rank, position, others=_others(named))
    back = would_keep(flatten(pipeline), lists, drop)
    return WhyNot(
        wanted, DROPPED, drop.hit, chosen.rank, None, drop.stage, drop.reason.text, back, others=_others(named)
    )


def _others(named: Sequence[Hit]) -> tuple[str, ...]:
    """The ids of the further chunks, without the first."""
    return tuple(dict.fromkeys(hit.chunk.id for hit in named if hit.chunk.id != named[0].chunk.id))


def _named(wanted: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits a text names: by id, else by whole title, else by a part of the title."""
    by_id = [hit for hit in hits if hit.chunk.id == wanted.strip()]
    if by_id:
        return by_id
    text = " ".join(fold(wanted).split())
    titled = [(hit, " ".join(fold(hit.chunk.title).split())) for hit in hits]
    whole = [hit for hit, title in titled if text and title == text]
    return whole or [hit for hit, title in titled if text and text in title]


def _further_down(pipeline: Stage, candidates: Candidates, after: Candidates, wanted: str) -> WhyNot:
    """The chunk below what the source brought, and what would become of it if the source read that far."""
    source = next((stage for stage in flatten(pipeline) if stage.kind == "source"), None)
    if source is None or after.reader is None or candidates.recorded:
        return WhyNot(wanted, UNKNOWN, reason="no chunk of this list has that id or title")
    named = _named(wanted, list(_ranking(after.reader, wanted)))
    if not named:
        return WhyNot(
            wanted,
            UNKNOWN,
            reason=f"no chunk of that id or title is among the {DEEPEST:,} nearest that may be returned",
        )
    hit = named[0]
    depth = source.settings().get("depth")
    reason = f"rank {hit.rank} is beyond the {depth} chunks that are read"
    found = WhyNot(wanted, NOT_BROUGHT, hit, hit.rank, None, source.name, reason, others=_others(named))
    if depth is None:
        return found
    raised = Counterfactual("depth", hit.rank, f"depth {hit.rank} would have brought it")
    deeper = [cast(Any, replace)(one, depth=hit.rank) if one is source else one for one in flatten(pipeline)]
    then = why_not(Pipeline(tuple(deeper)), candidates, hit.chunk.id)
    return replace(found, would_bring_back=(raised,), then=then)


def _ranking(reader: Reader, wanted: str) -> Iterable[Hit]:
    """The ranking, step by step as far as something may still be found; a chunk of just that id ends it."""
    for start in range(0, DEEPEST, STEP):
        hits = reader.read(start, start + STEP)
        yield from hits
        if len(hits) < STEP or any(hit.chunk.id == wanted.strip() for hit in hits):
            return
