"""Labels that a model proposed: events like anybody's, under an annotator whose name says it is a model.

They are left out of whatever counts unless that annotator is asked for by name. A person sees them of a chunk only
after saying something of it, so that nothing leads the label, or on request as proposals: what is said then is marked
(`SEEING`) and tells nothing of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias
from uuid import uuid4

from rag_core.store.events import BY_JUDGE, MODEL, SEEING, Event, Signature, graded_by, is_model
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore

Item: TypeAlias = tuple[str, str]
"""(query id, chunk key)."""
Said: TypeAlias = tuple[str, str, str, str, int | None, str]
"""Query id, query text, chunk id, chunk text, grade, reason."""
LONGEST_NAME = 200


def model_annotator(name: str, run: int = 1) -> str:
    """The annotator of a model; runs after the first have names of their own."""
    return f"{MODEL}{' '.join(name.split())[:LONGEST_NAME]}" + (f", run {run}" if run > 1 else "")


def models(labels: LabelStore, eval_set: str) -> list[str]:
    """The models that labelled an eval set, first runs only."""
    names = labels.stats(eval_set).annotators
    return [name for name in names if is_model(name) and ", run " not in name]


def runs_of(labels: LabelStore, eval_set: str, annotator: str) -> list[dict[Item, int]]:
    """The grades of a model's first run, then of its repeats."""
    names = labels.stats(eval_set).annotators
    repeats = sorted(
        (name for name in names if name.startswith(f"{annotator}, run ")), key=lambda name: int(name.rpartition(" ")[2])
    )
    graded = graded_by(event for name in (annotator, *repeats) for event in labels.labels(eval_set, name))
    return [graded.get(name, {}) for name in (annotator, *repeats)]


def store_model_labels(
    labels: LabelStore, eval_set: str, annotator: str, said: Iterable[Said], by: Signature = BY_JUDGE
) -> int:
    """Store what a model said, as far as it is new or different; how many labels were written. `by`: who asked it."""
    standing = {(event.query_id, event.chunk_key): event for event in labels.labels(eval_set, annotator)}
    session = f"judge-{uuid4().hex}"
    events: list[Event] = []
    for query_id, query, chunk_id, text, grade, reason in said:
        event = Event(
            session=session,
            seq=len(events),
            eval_set=eval_set,
            query_id=query_id,
            chunk_id=chunk_id,
            annotator=annotator,
            grade=grade,
            note=reason,
            query_hash=text_hash(query),
            text_hash=text_hash(text),
        )
        there = standing.get((event.query_id, event.chunk_key))
        if there is None or (there.grade, there.note) != (event.grade, event.note):
            events.append(by.on(event))
    labels.append(events)
    return len(events)


def peoples_grades(
    labels: LabelStore, eval_set: str, model: Sequence[Event], files: Mapping[str, Mapping[str, int]], who: str = ""
) -> dict[Item, int]:
    """What people say of the chunks a model graded: the label store's, else, by chunk id, the set's own files'.

    `who`: only this annotator's labels, and no file's. A label given with a model's proposal in sight is left out.
    """
    stored = {
        (event.query_id, event.chunk_key): None if (event.sampler or "").startswith(SEEING) else event.grade
        for event in labels.labels(eval_set, who or None)
    }
    grades: dict[Item, int] = {}
    for event in model:
        item = (event.query_id, event.chunk_key)
        grade = stored.get(item) if item in stored or who else files.get(event.query_id, {}).get(event.chunk_id)
        if grade is not None:
            grades[item] = grade
    return grades
