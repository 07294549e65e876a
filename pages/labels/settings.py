"""The settings of labelling: whose labels, pooled from which pipelines, which pairs, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.components import who
from rag_core.labelling.pooling import NEAR
from rag_core.project.session import Session
from rag_core.spec import shipped_names
from rag_core.store.events import is_reserved

NOBODY, NOT_ME = "nobody judged", "not by me"
RANDOM, DECIDE = "random", "settles A or B"
WHICH_KEY = "labels.which"


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What the settings say; equal ones make equal queues. `pipelines` are pooled beside those of the Bench."""

    annotator: str
    pipelines: tuple[str, ...] = ()
    depth: int = 15
    which: str = NOBODY
    order: str = RANDOM
    near: float | None = None
    show_origin: bool = False
    seed: int = 0
    proposer: str = ""  # the model whose proposals are shown


def choose(session: Session, proposers: Sequence[str] = ()) -> QueueSettings:
    """Draw the settings, folded away: what they stand at is right for most."""
    with st.popover("Settings", icon=":material/tune:"):
        name = _annotator()
        which = st.segmented_control(
            "Pairs", (NOBODY, NOT_ME), default=NOBODY, required=True, key=WHICH_KEY, persist_state="session",
            help="A second opinion on what others judged is what agreement is measured on.",
        )  # fmt: skip
        order = st.segmented_control(
            "Order", (RANDOM, DECIDE), default=RANDOM, required=True, key="labels.order", persist_state="session",
            help="What can still change which of A and B is better comes first. Labels in that order decide sooner and "
            "describe worse: figures over them are no fair sample.",
        )  # fmt: skip
        # No multiselect: its tags are white on the primary colour, which a dark theme cannot make legible.
        more = st.pills(
            "Pool from A, B and", [*session.pipeline_names(), *shipped_names()], selection_mode="multi",
            key="labels.pipelines", persist_state="session", help="Whatever any of them shows is asked once.",
        )  # fmt: skip
        deep, shuffled = st.columns(2)
        depth = deep.number_input(
            "First chunks of each", 1, 1000, 15, key="labels.depth", persist_state="session",
            help="How far down each pipeline’s list chunks are pooled; the first five of each come first.",
        )  # fmt: skip
        seed = shuffled.number_input(
            "Shuffle", 0, 10_000, 0, key="labels.seed", persist_state="session",
            help="The seed of the blind order: the same number gives everybody the same order.",
        )  # fmt: skip
        near = st.toggle(
            "Label near-duplicates as one", key="labels.near", persist_state="session",
            help=f"Texts with the same numbers that share {NEAR:.0%} of their word triples.",
        )  # fmt: skip
        origin = st.toggle(
            "Show distance, place and pipeline", key="labels.origin", persist_state="session",
            help="Off, so that nothing leads the label.",
        )  # fmt: skip
        proposer = st.selectbox(
            "Show what a model proposes", ["", *proposers], format_func=lambda one: one or "nothing",
            key="labels.proposer", persist_state="session",
            help="Key y says so too. A proposal counts for nothing by itself; one pair in five is asked without, and "
            "only labels given without it tell how far the model agrees with people.",
        ) if proposers else ""  # fmt: skip
    kept = NEAR if near else None
    return QueueSettings(name, tuple(more), int(depth), which, order, kept, origin, int(seed), proposer or "")


def _annotator() -> str:
    """Who labels: the person who logged in, else the name typed here; the address keeps it through a reload."""
    if who.shared():
        st.text(f"Labelling as {who.annotator()}")
        return who.annotator()
    said = st.query_params.get("annotator", "")  # a link or a reload says where to start; the box is the truth then
    if said and who.NAME_KEY not in st.session_state:
        st.session_state[who.NAME_KEY] = said[: who.LONGEST_NAME]
    st.session_state.setdefault(who.NAME_KEY, who.ME)
    typed = st.text_input(
        "Your name", max_chars=who.LONGEST_NAME, key=who.NAME_KEY, persist_state="session",
        help="Each person’s labels are kept apart; agreement is measured between names.",
    )  # fmt: skip
    if is_reserved((typed or "").strip()):
        st.text(f"This name is kept for decisions between people, or for models; you label as {who.ME}.")
    return who.annotator()
