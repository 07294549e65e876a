"""Verdicts → list: what is kept, what is expanded by its references, and why the rest goes. Asks nobody.

Base chunks are capped in distance order; candidates left undecided by a failure fill what room remains, in distance
order; expansion comes on top, and no chunk stands twice in the list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_core.filters.llm.asking import CandidateVerdict
from rag_core.filters.llm.decisions import DISCARD
from rag_core.filters.llm.reach import ChunkLookup, Layered, reach
from rag_core.types import Hit, Reason

Key = tuple[str, str]
FLOOR, OVERSAMPLE, MODEL, CAP, FAILURE = CAUSES = ("floor", "oversample", "model", "cap", "failure")
"""What takes a chunk away: too unlike to be judged, too far down, the model's word, the most that are kept, a call that
failed and left it undecided."""


@dataclass
class DecidedHits:
    """What the verdicts make of the judged hits."""

    kept: list[Hit] = field(default_factory=list)  # base chunks in the order they came, then what they brought
    notes: dict[Key, str] = field(default_factory=dict)  # by Hit.key: why it is in
    reasons: dict[Key, Reason] = field(default_factory=dict)  # by Hit.key: why it goes
    causes: dict[Key, str] = field(default_factory=dict)  # by Hit.key: by which of CAUSES
    decisions: dict[str, str] = field(default_factory=dict)  # by chunk id
    brought: dict[str, str] = field(default_factory=dict)  # chunk id → how it came
    flipped: list[tuple[Hit, CandidateVerdict]] = field(default_factory=list)
    kept_by_fallback: int = 0
    expanded: int = 0  # base chunks whose references were followed
    missing: int = 0  # referenced ids without a chunk

    def drop(self, key: Key, cause: str, reason: Reason) -> None:
        """Note why a hit goes."""
        self.causes[key], self.reasons[key] = cause, reason

    @property
    def added(self) -> int:
        """Chunks that came by references alone."""
        return len(self.brought)


def by_distance(hits: Sequence[Hit]) -> list[int]:
    """Positions of the hits, nearest first; ties and hits without a distance in the order they came, these last."""
    return sorted(range(len(hits)), key=lambda at: math.inf if (value := hits[at].distance) is None else value)


def decide(
    hits: Sequence[Hit],
    verdicts: Sequence[CandidateVerdict],
    listed: Sequence[Hit],
    max_chunks: int,
    max_added: int,
    chunks: ChunkLookup | None,
) -> DecidedHits:
    """Keep, expand or drop each judged hit. `listed` is the whole list: its chunks can be brought by references."""
    made = DecidedHits()
    order = by_distance(hits)
    chosen: set[int] = set()
    wanted = 0
    for at in order:  # the first max_chunks the model wants, nearest first
        key, verdict = hits[at].key, verdicts[at]
        made.decisions[hits[at].chunk.id] = _word(verdict)
        if verdict.decision is None:
            if not verdict.failure:
                made.drop(key, MODEL, Reason("not mentioned in the model's answer"))
        elif verdict.decision.action == DISCARD:
            made.drop(key, MODEL, Reason(_said(verdict)))
        else:
            wanted += 1
            if wanted > max_chunks:
                made.drop(key, CAP, Reason(f"over max_chunks {max_chunks} ({_said(verdict)})", wanted, max_chunks))
            else:
                chosen.add(at)
                made.notes[key] = _said(verdict)
    undecided = [at for at in order if verdicts[at].failure]
    for place, at in enumerate(undecided, len(chosen) + 1):  # what a failure left fills the room that remains
        key, failure = hits[at].key, verdicts[at].failure
        if place <= max_chunks:
            chosen.add(at)
            made.kept_by_fallback += 1
            made.notes[key] = f"kept by fallback: {failure}"
        else:
            reason = Reason(f"undecided and over max_chunks {max_chunks}: {failure}", place, max_chunks)
            made.drop(key, FAILURE, reason)
    made.kept = [hits[at] for at in sorted(chosen)]
    made.flipped = [(hit, verdict) for hit, verdict in zip(hits, verdicts, strict=True) if verdict.flipped]
    lookup = Layered({hit.chunk.id: hit.chunk for hit in listed}, chunks)
    for at in (at for at in order if at in chosen):
        decision = verdicts[at].decision
        if decision is not None and decision.depth:
            made.expanded += 1
            _expand(made, hits[at], decision.action, decision.depth, max_added, lookup, listed)
    return made


def _word(verdict: CandidateVerdict) -> str:
    if verdict.decision is not None:
        return verdict.decision.action
    return "undecided" if verdict.failure else "not mentioned"


def _said(verdict: CandidateVerdict) -> str:
    """The model's action with its reason, and a mark where the other order said something else."""
    decision = verdict.decision
    assert decision is not None
    sure = "" if decision.certainty is None else f" ({decision.certainty:.0%} sure)"
    text = f"{decision.action}{sure}" + (f": {decision.reason}" if decision.reason else "")
    return f"{text} (decision depends on the order)" if verdict.flipped else text


def _expand(
    made: DecidedHits,
    start: Hit,
    action: str,
    depth: int,
    cap: int,
    lookup: ChunkLookup,
    listed: Sequence[Hit],
) -> None:
    """Add what the start's references reach, each chunk once; a listed chunk keeps its rank and scores."""
    found, missing = reach((start.chunk,), depth, cap, lookup)
    made.missing += missing
    present = {hit.chunk.id for hit in made.kept}
    by_id: Mapping[str, Hit] = {hit.chunk.id: hit for hit in reversed(listed)}
    for one in found:
        if one.chunk.id in present:
            continue
        present.add(one.chunk.id)
        origin = f"expanded from {start.chunk.id}, {one.steps} step{'s' if one.steps > 1 else ''}"
        known = by_id.get(one.chunk.id)
        hit = Hit(one.chunk, rank=known.rank if known else len(listed) + made.added + 1, origin=origin)
        if known is not None:
            hit = Hit(known.chunk, known.rank, known.scores, origin, known.notes)
        fact = made.reasons.get((one.chunk.id, known.origin)) if known else None
        made.kept.append(hit)
        made.brought[one.chunk.id] = origin
        made.notes[hit.key] = f"{origin} ({action})" + (f"; by itself {fact.text}" if fact else "")
