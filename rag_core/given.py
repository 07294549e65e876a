"""The labels that people gave in a workspace, laid over those an eval set brings: pages and commands count alike.

Joins the label store and the cases of `evaluate`, which do not know each other. How a label meets its chunk is
`store/matching.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_core.eval_sets.facts import chunk_texts
from rag_core.eval_sets.reading import EvalSet
from rag_core.measure.experiment import with_labels
from rag_core.store.database import has_store, open_store
from rag_core.store.events import Event
from rag_core.store.exchange.line import LabelLine
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.store.matching import AtHand, overlay
from rag_core.types import Case, Chunk


def laid_over(labels: Sequence[Event], cases: Iterable[Case], chunks: AtHand | None = None) -> list[Case]:
    """The cases with these labels laid over their own; None (all unsure) makes a chunk unjudged.

    Labels meet `chunks`, those of the collection that is asked; without them, each case's own list.
    """
    cases = list(cases)
    if not labels:
        return cases
    asked = {case.query.id: case for case in cases}
    lists: dict[str, AtHand] = {}

    def at_hand(query_id: str) -> AtHand | None:
        if chunks is not None or query_id not in asked:
            return chunks
        if query_id not in lists:
            lists[query_id] = AtHand.of(_listed(asked[query_id]))
        return lists[query_id]

    return with_labels(cases, overlay(labels, at_hand))


def with_given(eval_set: EvalSet, workspace: Path, index: Any = None) -> EvalSet:
    """The eval set with the labels given in this workspace laid over its own; `index` is what its queries ask."""
    labels = given_labels(workspace, eval_set.name)
    if not labels:
        return eval_set
    return replace(eval_set, cases=tuple(laid_over(labels, eval_set.cases, _chunks_of(index, labels))))


def counted(eval_set: EvalSet, workspace: Path) -> EvalSet:
    """The eval set with the labels given in this workspace, as lists of sets count them: no source is asked.

    They meet the chunks that come with the set; where none do, a label counts for the chunk that it names.
    """
    labels = given_labels(workspace, eval_set.name)
    if not labels:
        return eval_set
    texts = {name: text_hash(text) if text else "" for name, text in chunk_texts(eval_set).items()}
    chunks = AtHand(texts or {label.chunk_id: "" for label in labels})
    return replace(eval_set, cases=tuple(laid_over(labels, eval_set.cases, chunks)))


def _chunks_of(index: Any, labels: Sequence[Event]) -> AtHand | None:
    """The chunks of an index; of a function that searches, which names none, whatever was labelled."""
    if index is None:
        return None
    snapshot = getattr(index, "snapshot", None)
    return AtHand.of(snapshot.chunks) if snapshot else AtHand({label.chunk_id: "" for label in labels})


def given_labels(workspace: Path, eval_set: str) -> list[Event]:
    """The labels of people that count now; none where no label was ever given here."""
    if not has_store(workspace):
        return []
    with open_store(workspace, create=False) as store:
        return LabelStore(store).labels(eval_set)


@dataclass(frozen=True)
class Unmet:
    """How many labels name a query that an eval set does not have, and of the others a chunk that it does not."""

    queries: int
    chunks: int

    @property
    def words(self) -> str:
        """What to say of them; nothing where every label counts."""
        said = {"query": self.queries, "chunk": self.chunks}
        named = ", ".join(f"{count} of an unknown {what}" for what, count in said.items() if count)
        return f"{named}: the eval set does not have it, so the label counts for nothing" if named else ""


def unmet(lines: Sequence[LabelLine], eval_set: EvalSet) -> Unmet:
    """The labels of a file that would meet nothing. A set of queries only cannot tell about chunks."""
    asked, texts = {case.query.id for case in eval_set.cases}, chunk_texts(eval_set)
    hashes = {text_hash(text) for text in texts.values() if text}
    known = [line for line in lines if line.query_id in asked]
    strange = [line for line in known if texts and line.chunk_id not in texts and line.text_hash not in hashes]
    return Unmet(len(lines) - len(known), len(strange))


def _listed(case: Case) -> Iterable[Chunk]:
    return (hit.chunk for hit in case.candidates.hits) if case.candidates else ()
