"""Labels on a page: what people said laid over what the eval set says, and giving, changing and taking back a label.

Every label is one event in the store, kept before the page is drawn again; nothing is kept in the session alone but the
number of the next event.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import streamlit as st

from pages.components import who
from rag_core import given
from rag_core.project.deeds import LABEL
from rag_core.store.database import Store
from rag_core.store.events import GRADES, Event, is_reserved, undo_of
from rag_core.store.keys import chunk_key, text_hash
from rag_core.store.labels import LabelStore
from rag_core.store.matching import AtHand
from rag_core.types import Case, Hit

STREAM = "labels.stream"
NAME_KEY = "label.annotator"
LONGEST_NAME = 80
NEXT = "labels.next"

CHOICES: tuple[tuple[str, int | None], ...] = (
    *((f"{grade} {word}", grade) for grade, word in GRADES.items()),
    ("unsure", None),
)
"""What a person can say of a chunk; unsure counts as unjudged."""


def annotator() -> str:
    """In whose name this session labels: who logged in, else the name typed on Label, else `me`.

    The names under which decisions between people and models' labels are kept are nobody's.
    """
    if who.shared():
        return who.person().name
    typed = str(st.session_state.get(NAME_KEY) or "").strip()[:LONGEST_NAME]
    return who.ME if not typed or is_reserved(typed) else typed


def overlaid(store: Store, eval_set: str, cases: Sequence[Case]) -> list[Case]:
    """The cases with this store's labels laid over their own; a label meets its chunk by text, else by id."""
    return given.laid_over(LabelStore(store).labels(eval_set), cases)


def overlaid_in(store: Store, eval_set: str, cases: Sequence[Case], chunks: AtHand) -> list[Case]:
    """The same for a collection that is searched: labels meet all its chunks."""
    return given.laid_over(LabelStore(store).labels(eval_set), cases, chunks)


def key_of(hit: Hit) -> str:
    """What a label of this chunk is stored under."""
    return chunk_key(hit.chunk.id, text_hash(hit.chunk.text))


def standing(store: Store, eval_set: str, query_id: str, hit: Hit) -> Event | None:
    """The person's own label of a chunk that counts now."""
    events, chunk = LabelStore(store).labels(eval_set, annotator()), AtHand.of([hit.chunk])
    return next((event for event in reversed(events) if event.query_id == query_id and chunk.ids(event)), None)


def give(store: Store, eval_set: str, case: Case, hit: Hit, grade: int | None) -> None:
    """Store a label; when this returns it is on disk."""
    stream, number = _stamp()
    event = Event(
        session=stream,
        seq=number,
        eval_set=eval_set,
        query_id=case.query.id,
        chunk_id=hit.chunk.id,
        annotator=annotator(),
        grade=grade,
        query_hash=text_hash(case.query.text),
        text_hash=text_hash(hit.chunk.text),
    )
    with who.doing(LABEL, eval_set) as performed:
        LabelStore(store).append([performed.signature.on(event)])


def take_back(store: Store, label: Event) -> None:
    """Undo a label; what counted before it counts again."""
    with who.doing(LABEL, label.eval_set) as performed:
        LabelStore(store).append([undo_of(label, *_stamp(), by=performed.signature)])


def _stamp() -> tuple[str, int]:
    """The session's stream and the next number in it; a number is used once, whatever becomes of its event."""
    stream: str = st.session_state.setdefault(STREAM, uuid4().hex)
    number: int = st.session_state.get(NEXT, 0)
    st.session_state[NEXT] = number + 1
    return stream, number
