"""Label: is this chunk relevant to this query?"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pages.components import header, label_pool, label_queue, label_settings, resources, say, sources, who
from pages.components.label_pool import Lists
from pages.components.label_queue import QueueData
from pages.components.label_queue.intake import read_batch, take
from pages.components.label_settings import NOBODY, NOT_ME, VIEW_KEY, WANTED, WHICH_KEY, Settings
from pages.components.pair_queue import PairQueue, make_queue
from rag_core.errors import InputError, StoreError, WinnowError
from rag_core.evaluate.pooling import pool
from rag_core.evaluate.sets import EvalSet, folders
from rag_core.project.deeds import LABEL
from rag_core.store.database import Store
from rag_core.store.labels import LabelStore

KEY = "label.component"
QUEUE, ACKS, ANSWERED, VERSION = "label.queue", "label.acks", "label.answered", "label.version"
VIEWS = ("Queue", "Agreement", "Import and export", "Audit", "Model")
NO_GUIDELINES = (
    "Judge the chunk for this query alone.\n\n"
    "- **0 irrelevant**: says nothing about what is asked\n"
    "- **1 related**: on the subject, of little help\n"
    "- **2 relevant**: part of the answer\n"
    "- **3 answers it**: the answer is in it\n\n"
    "Rules of this eval set’s own go into `guidelines.md` in its folder."
)

HELP = """
**Keys.** 0 1 2 3 grade, u unsure, s later, z undo, b back, n note, ? all keys. They can be switched off beside the
grades; keys typed into a box are text.

**unsaved** counts labels that are not on the server’s disk yet. They are kept in the browser, through a reload too.

**Judged@15** by pipeline: how much of the first 15 that it keeps has a label; the depth is set in the sidebar.

**Settled** is a proof about the labels that are open, not a test of significance.
"""


def build(chosen: EvalSet, settings: Settings, store: Store, lists: Lists) -> PairQueue:
    """Pool the pipelines' lists and leave out what is labelled."""
    cases = lists.cases(store, chosen.name)
    by_name = {report.name: report for report in lists.reports}
    rivals = settings.rivals
    base = LabelStore(store).newest()
    mine = LabelStore(store).labels(chosen.name, settings.annotator)
    queue = make_queue(
        chosen.name,
        settings.annotator,
        pool(lists.reports, settings.depth, settings.seed, settings.near),
        {case.query.id: case.grades for case in cases},
        {(event.query_id, event.chunk_key) for event in mine},
        settings.which == NOBODY,
        (by_name[rivals[0]], by_name[rivals[1]]) if rivals else None,
        settings.show_origin,
    )
    queue.base = base
    return queue


def queue_of(chosen: EvalSet, settings: Settings, store: Store) -> PairQueue | None:
    """The session's queue, made again when a setting or an import changed what it holds; None while it is searched."""
    key = (settings, len(chosen.cases), st.session_state.get(VERSION, 0))
    held = st.session_state.get(QUEUE)
    if held is None or held[0] != key:
        lists = label_pool.lists_of(chosen, settings.pipelines, settings.captured)
        if lists is None:
            return None
        with st.spinner("Pooling …"):
            held = (key, build(chosen, settings, store, lists))
        st.session_state[QUEUE] = held
    queue: PairQueue = held[1]
    wanted, why = st.session_state.pop(WANTED, ((), ""))
    if wanted:
        queue.bring(wanted, why)
    return queue


def absorb(sent: Any, store: Store, queue: PairQueue) -> None:
    """Store what the browser sent; only what is on disk is acknowledged."""
    batch = read_batch(sent, who.person().name if who.shared() else "")
    taken = take(LabelStore(store), batch, who.deed(LABEL, queue.eval_set))
    acks: dict[str, int] = st.session_state.setdefault(ACKS, {})
    queue.take([entry for entry in taken.entries if entry.event.seq > acks.get(entry.event.session, -1)])
    for stream, seq in taken.acks.items():
        acks[stream] = max(seq, acks.get(stream, -1))
    st.session_state[ANSWERED] = (batch.stream, batch.attempt, taken.problem, batch.later)


def answered() -> tuple[str, int, str, Sequence[str]]:
    """Stream and number of the last batch taken in, what was wrong, and what is put off."""
    found: tuple[str, int, str, Sequence[str]] = st.session_state.get(ANSWERED, ("", 0, "", ()))
    return found


@st.fragment
def draw_queue(queue: PairQueue, store: Store, guidelines: str, depth: int) -> None:
    """The component; its labels are stored before this runs, or, in a session that is new to them, right after."""
    stream, attempt, problem, later = answered()
    data = QueueData(
        whose=f"{queue.eval_set} {queue.annotator}",
        items=queue.window(later),
        total=len(queue.pairs),
        done=len(queue.done),
        coverage=queue.coverage(depth),
        settled=queue.settled(),
        guidelines=guidelines,
        acks=dict(st.session_state.get(ACKS, {})),
        problem=problem or store.unwritable,
        answers=stream,
        attempt=attempt,
        base=queue.base,
    )
    sent = label_queue.show(data, KEY, lambda: absorb(label_queue.sent(KEY), store, queue))
    batch = read_batch(sent)
    if batch.stream and (batch.stream, batch.attempt) != (stream, attempt):
        absorb(sent, store, queue)
        st.rerun()


def guidelines_of(name: str) -> str:
    folder = folders(resources.workspace()).get(name)
    file = folder / "guidelines.md" if folder else None
    return file.read_text("utf-8", "replace") if file and file.is_file() else NO_GUIDELINES


def ask_again() -> None:
    st.session_state[WHICH_KEY] = NOT_ME


def draw_labelling(chosen: EvalSet, settings: Settings, store: Store) -> None:
    """The queue, or why it holds nothing."""
    queue = queue_of(chosen, settings, store)
    if queue is None:
        return
    if not queue.pairs:
        st.markdown("These pipelines keep nothing on this eval set: there is nothing to label.")
    elif len(queue.done) == len(queue.pairs) and not st.session_state.get(ACKS) and settings.which == NOBODY:
        st.markdown(f"**Every one of the {len(queue.pairs)} pairs in this pool has a label.**")
        st.button("Label them as a second opinion", on_click=ask_again, icon=":material/group:")
    else:
        draw_queue(queue, store, guidelines_of(chosen.name), settings.depth)


def draw() -> None:
    header.show("Label", "Is this chunk relevant to this query?", HELP)
    try:
        settings = label_settings.choose()
        chosen = sources.find(settings.eval_set)
        store = resources.label_store()
    except (InputError, StoreError) as error:
        say.problem(
            "There is nothing to label, or labels cannot be kept here.", str(error),
            "Choose another eval set above; whether labels can be stored stands on the page *Status*.",
        )  # fmt: skip
        return
    if store.unwritable:
        say.problem("Labels can be read here, not kept.", store.unwritable)
    view = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key=VIEW_KEY, label_visibility="collapsed"
    )
    try:
        if view == "Queue":
            draw_labelling(chosen, settings, store)
        else:
            draw_other(view, chosen, settings, store)
    except WinnowError as error:
        say.problem("This cannot be shown.", str(error))
    resources.settle()


def draw_other(view: str, chosen: EvalSet, settings: Settings, store: Store) -> None:
    """The views beside the queue; only the one that is chosen is loaded."""
    from pages.components import label_agreement, label_audit, label_exchange, label_model

    if view == "Import and export":
        label_exchange.show(chosen, LabelStore(store), settings.annotator)
        return
    if view == "Model":
        label_model.show(chosen, LabelStore(store), settings.annotator)
        return
    lists = label_pool.lists_of(chosen, settings.pipelines, settings.captured)
    if lists is None:
        return
    whole = lists.whole(store, chosen)
    if view == "Agreement":
        label_agreement.show(whole, LabelStore(store), settings.annotator)
    else:
        label_audit.show(whole)


draw()
