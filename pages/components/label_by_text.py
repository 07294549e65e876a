"""What of labels needs texts, for Label's view *Import and export*: Ragas files, and labels after a new cut.

Both meet queries and chunks by their text, as `labels import --format ragas` and `labels remap` do.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components import resources, say
from rag_core.errors import WinnowError
from rag_core.evaluate.set_facts import chunk_texts
from rag_core.evaluate.sets import EvalSet
from rag_core.index.collection import list_collections, open_collection
from rag_core.store.exchange.line import LabelLine
from rag_core.store.exchange.ragas import read_ragas, write_ragas
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore
from rag_core.store.remap import SAME, Remapped, counts, remap

RAGAS = "ragas"
HELP = {
    "same": "The same text under the same id.",
    "moved": "The same text under another id: the label follows it by itself.",
    "split": "The text is spread over several chunks, or lies within a larger one: label those anew.",
    "lost": "The text is nowhere any more: the label is kept and counts again when it comes back.",
}
FOUND = "exchange.remapped"
MOST_SHOWN = 200


def read(chosen: EvalSet, text: str) -> tuple[list[LabelLine], int]:
    """The labels of a Ragas file, and how many lines ask what the eval set does not."""
    return read_ragas(text, "the file", _queries(chosen), chunk_texts(chosen))


def write(chosen: EvalSet, lines: Sequence[LabelLine]) -> str:
    """The relevant chunks of each query, as Ragas has them; an InputError where a text is not known."""
    return write_ragas(lines, _queries(chosen), chunk_texts(chosen), chosen.min_grade)


def _queries(chosen: EvalSet) -> dict[str, str]:
    return {case.query.id: case.query.text for case in chosen.cases}


def show_remap(chosen: EvalSet, store: LabelStore) -> None:
    """Which labels still meet their chunk in a collection as it is now; nothing is changed by looking."""
    st.markdown("**After a corpus was cut anew**: which labels still meet their chunk. Looking changes nothing.")
    names = [one.name for one in list_collections(resources.workspace())]
    if not names:
        st.caption("There is no collection yet: Corpus makes one.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = names.index(chosen.name) if chosen.name in names else 0
        collection = st.selectbox("Collection as it is now", names, index=first, key="exchange.collection")
        pressed = st.button("Look where the labels are", icon=":material/travel_explore:", key="exchange.remap")
    if pressed:
        try:
            with st.spinner("Looking for the texts"):
                st.session_state[FOUND] = (chosen.name, collection, remapped(chosen, store, str(collection)))
        except (WinnowError, OSError) as error:
            say.problem("The labels could not be looked for.", str(error))
    eval_set, looked_in, found = st.session_state.get(FOUND, ("", "", []))
    if (eval_set, looked_in) == (chosen.name, collection):
        _draw(found)


def remapped(chosen: EvalSet, store: LabelStore, collection: str) -> list[Remapped]:
    """Every label of the eval set with what became of its chunk in the collection."""
    chunks = {chunk.id: chunk.text for chunk in open_collection(resources.workspace(), collection).chunks}
    old = {text_hash(text): text for text in chunk_texts(chosen).values() if text}
    return remap(store.labels(chosen.name), chunks, old)


def _draw(found: Sequence[Remapped]) -> None:
    with st.container(horizontal=True):
        for outcome, count in counts(found).items():
            st.metric(outcome, f"{count:,}", help=HELP[outcome])
    changed = [one for one in found if one.outcome != SAME]
    if changed:
        st.dataframe(
            [
                {"what": one.outcome, "query": one.label.query_id, "chunk": one.label.chunk_id,
                 "annotator": one.label.annotator, "now": ", ".join(one.chunk_ids[:5])}
                for one in changed[:MOST_SHOWN]
            ],
            hide_index=True,
            key="exchange.remapped.table",
            alt="Labels whose chunk moved, was split or is lost, with the chunks that hold the text now",
        )  # fmt: skip
    if len(changed) > MOST_SHOWN:
        st.caption(f"The first {MOST_SHOWN} of {len(changed):,}; `labels remap --json` lists all.")
