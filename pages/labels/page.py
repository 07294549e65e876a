"""Labels: is this chunk relevant, and how much is known?

The queue is there at once; agreement, audit and files are views of the same page. What is asked comes
from pool.py, its order and what is done from pairs.py, the keys from queue/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

import streamlit as st

from pages import rail, state
from pages.components import resources, say, who
from pages.labels import WANTED, pool, queue, settings
from pages.labels.leases import leases_of
from pages.labels.pairs import PairQueue, make_queue
from pages.labels.queue import QueueData
from pages.labels.queue.intake import read_batch, take
from pages.labels.settings import NOBODY, NOT_ME, WHICH_KEY, QueueSettings
from rag_core.errors import StoreError, WinnowError
from rag_core.eval_sets.writing import guidelines
from rag_core.project.deeds import LABEL
from rag_core.project.project import NOTHING
from rag_core.project.session import Session
from rag_core.store.database import Store
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import models
from rag_core.text import counted

KEY, VIEW_KEY = "labels.component", "labels.view"
QUEUE, ACKS, ANSWERED, VERSION = "labels.queue", "labels.acks", "labels.answered", "labels.version"
HOLDER = "labels.holder"
QUEUE_VIEW, AGREEMENT, AUDIT, FILES = "Queue", "Agreement", "Audit", "Import and export"
VIEWS = (QUEUE_VIEW, AGREEMENT, AUDIT, FILES)
NO_GUIDELINES = (
    "Judge the chunk for this question alone.\n\n"
    "- **0 irrelevant**: says nothing about what is asked\n"
    "- **1 related**: on the subject, of little help\n"
    "- **2 relevant**: part of the answer\n"
    "- **3 answers it**: the answer is in it\n\n"
    "Rules of your own go into *Guidelines* on Questions."
)
HELP = """
**Keys.** 0 1 2 3 grade, u unsure, s later, z undo, b back, n note, ? all keys. They can be switched off beside the
grades; keys typed into a box are text.

**What is asked** is the pool: the first chunks of A, of B and of what they search, each once, in an order that tells
nothing of who brought it, better places sooner: a sample with known chances, from which the figures of all labels are
*estimated*, with what 20 more labels would buy. Bounds say what is certain, the estimate what is likely.

**labelled of the first 15** (Judged@15): the share of each pipeline's first 15 chunks that has a label. Figures stand
on what is labelled; the rest is bounds.

**unsaved** counts labels that are not on the server's disk yet. They are kept in the browser, through a reload too.

**A model** grades chunks by `winnow labels judge`; its labels count nowhere until `judge-agreement` says how far it
agrees with people. *Settings* shows them as proposals, but for one pair in five; y says so too. Labels given with one
in sight tell nothing of the model.

**Settled** is a proof about the labels that are open in this pool, not a test of significance.
"""


def queue_of(session: Session, settings: QueueSettings, store: Store) -> PairQueue:
    """The session's queue, made again when a setting, the pool or an import changed what it holds."""
    made = pool.pooled(session, settings)
    key = (settings, id(made), st.session_state.get(VERSION, 0))
    kept = st.session_state.get(QUEUE)
    if kept is None or kept[0] != key:
        labels = LabelStore(store)
        base = labels.newest()
        mine = labels.judged(session.project.labels, settings.annotator)
        grades = {case.query.id: case.grades for case in session.cases}
        said = labels.labels(session.project.labels, settings.proposer) if settings.proposer else []
        found = make_queue(
            made.pool,
            settings.annotator,
            grades,
            mine,
            settings.which == NOBODY,
            rivals=made.rivals,
            show_origin=settings.show_origin,
            seed=settings.seed,
            base=base,
            leases=leases_of(str(session.workspace)),
            holder=st.session_state.setdefault(HOLDER, token_hex(8)),
            proposals={(one.query_id, one.chunk_key): one.grade for one in said if one.grade is not None},
            proposer=settings.proposer,
        )
        kept = st.session_state[QUEUE] = (key, found, made)
    found = kept[1]
    wanted, why = st.session_state.pop(WANTED, ((), ""))
    if wanted:
        found.bring(wanted, why)
    return found


def absorb(sent: Any, store: Store, pairs: PairQueue) -> None:
    """Store what the browser sent; only what is on disk is acknowledged."""
    batch = read_batch(sent, who.person().name if who.shared() else "")
    batch = replace(batch, entries=pairs.drawn(batch.entries))
    taken = take(LabelStore(store), batch, who.deed(LABEL, pairs.eval_set))
    acks: dict[str, int] = st.session_state.setdefault(ACKS, {})
    pairs.take([entry for entry in taken.entries if entry.event.seq > acks.get(entry.event.session, -1)])
    for stream, seq in taken.acks.items():
        acks[stream] = max(seq, acks.get(stream, -1))
    st.session_state[ANSWERED] = (batch.stream, batch.attempt, taken.problem, tuple(taken.unfit), batch.later)


@st.fragment
def draw_queue(pairs: PairQueue, store: Store, rules: str, depth: int, known_as: Sequence[str], least: int) -> None:
    """The component; its labels are stored before this runs, or, in a session that is new to them, right after."""
    stream, attempt, problem, unfit, later = st.session_state.get(ANSWERED, ("", 0, "", (), ()))
    data = QueueData(
        whose=f"{pairs.eval_set} {pairs.annotator}",
        items=pairs.window(later),
        total=len(pairs.pairs),
        done=len(pairs.done),
        coverage=pairs.coverage(depth),
        settled=pairs.settled(),
        guidelines=rules,
        acks=dict(st.session_state.get(ACKS, {})),
        problem=problem or store.unwritable,
        unfit=unfit,
        answers=stream,
        attempt=attempt,
        base=pairs.base,
    )
    sent = queue.show(data, KEY, lambda: absorb(queue.sent(KEY), store, pairs))
    batch = read_batch(sent)
    if batch.stream and (batch.stream, batch.attempt) != (stream, attempt):
        absorb(sent, store, pairs)
        st.rerun()
    if len(pairs.done) == len(pairs.pairs):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**Every one of the {len(pairs.pairs):,} pairs in this pool has a label.**", width="content")
            rail.link("bench", "See what A and B do with them")
            if st.session_state.get(WHICH_KEY, NOBODY) == NOBODY:
                st.button(
                    "Label them as a second opinion", icon=":material/group:",
                    on_click=st.session_state.update, args=({WHICH_KEY: NOT_ME},),
                )  # fmt: skip
    known = [grades for grades in pairs.grades.values() if grades]
    labelled = f"{counted(sum(map(len, known)), 'label', 'labels')} on {counted(len(known), 'question', 'questions')}"
    st.markdown(f":small[:gray[Known of this project: {labelled}.]]")
    if estimate := pairs.estimated(known_as, least):
        st.text(estimate)


def draw_labelling(session: Session, settings: QueueSettings, store: Store) -> None:
    """The queue, or why it holds nothing."""
    pairs = queue_of(session, settings, store)
    if not pairs.pairs:
        st.markdown("**The pipelines show no chunk for any question**: there is nothing to label yet.")
        rail.link("data", "Look at the data")
    else:  # finished or not: what the browser still holds is sent from here
        rules = guidelines(session.project.folder) or NO_GUIDELINES
        draw_queue(pairs, store, rules, settings.depth, st.session_state[QUEUE][2].names, session.min_grade)


def draw() -> None:
    """The page."""
    rail.head("labels", HELP)
    try:
        session = state.session()
        if session.project.source.kind == NOTHING:
            st.markdown("**There is nothing to search yet.** Labels are about chunks: bring documents or lists first.")
            rail.link("data", "Bring documents")
            return
        if not session.cases:
            st.markdown("**There is no question yet.** Labels say whether a chunk helps a question.")
            rail.link("questions", "Paste questions")
            return
        store = resources.label_store()
    except StoreError as error:
        say.problem("Labels cannot be kept here.", str(error), "Whether they can be stored stands under Settings.")
        return
    if store.unwritable:
        say.problem("Labels can be read here, not kept.", store.unwritable)
    st.session_state.setdefault(VIEW_KEY, QUEUE_VIEW)
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control("View", VIEWS, required=True, key=VIEW_KEY, label_visibility="collapsed")
        chosen = settings.choose(session, models(LabelStore(store), session.project.labels))
        rail.link("bench", "To the Bench")
    if view == QUEUE_VIEW:
        draw_labelling(session, chosen, store)
    else:
        from pages.labels import agreement, audit, exchange  # whoever only labels waits for none of them

        shown = {AGREEMENT: agreement.show, AUDIT: audit.show, FILES: exchange.show}
        shown[str(view)](session, LabelStore(store), chosen.annotator)


try:
    draw()
except WinnowError as error:
    say.problem("This cannot be shown.", str(error))
name = who.annotator()
state.write_address(**({"annotator": name} if name != who.ME and not who.shared() else {}))
resources.settle()
