"""The sidebar of Label: whose labels, on which eval set, pooled from which pipelines, in which order."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.components import choice, labels, resources, sources, who
from rag_core.evaluate.pooling import NEAR
from rag_core.spec import shipped_names
from rag_core.store.events import is_reserved

FIRST_PIPELINES = ("unfiltered", "query-must", "adaptive-default")
NOBODY, NOT_ME = "nobody judged", "not by me"
RANDOM, DECIDE = "random", "settles A or B"
WHICH_KEY = "label.which"
SET_KEY = choice.EVAL_SET
FIRST = "rulebook"  # its chunks have texts to read
WIDGET = "label.set"
VIEW_KEY = "label.view"
WANTED = "label.wanted"  # pairs that a view wants labelled next, and why


@dataclass(frozen=True, slots=True)
class Settings:
    """What the sidebar says; equal settings make equal queues."""

    eval_set: str
    annotator: str
    pipelines: tuple[str, ...]
    depth: int
    which: str
    order: str
    near: float | None
    show_origin: bool
    seed: int = 0
    captured: bool = False

    @property
    def rivals(self) -> tuple[str, str] | None:
        """The two pipelines to decide between, where the order is to do that."""
        return (self.pipelines[0], self.pipelines[1]) if self.order == DECIDE and len(self.pipelines) > 1 else None


def choose() -> Settings:
    """Draw the sidebar."""
    with st.sidebar:
        eval_set, annotator = _whose()
        pipelines, depth, seed = _pool()
        captured = _captured(eval_set)
        which = st.segmented_control(
            "Pairs", (NOBODY, NOT_ME), default=NOBODY, required=True, key=WHICH_KEY, persist_state="session",
            help="A second opinion on what others judged is what agreement is measured on.",
        )  # fmt: skip
        order = st.segmented_control(
            "Order", (RANDOM, DECIDE), default=RANDOM, required=True, key="label.order", persist_state="session",
            help="What can still change which of two pipelines is better comes first: the first two chosen above.",
        )  # fmt: skip
        near = st.toggle(
            "Label near-duplicates as one", key="label.near", persist_state="session",
            help=f"Texts with the same numbers that share {NEAR:.0%} of their word triples.",
        )  # fmt: skip
        origin = st.toggle(
            "Show distance, place and pipeline", key="label.origin", persist_state="session",
            help="Off, so that nothing leads the label.",
        )  # fmt: skip
    return Settings(eval_set, annotator, pipelines, depth, which, order, NEAR if near else None, origin, seed, captured)


def _whose() -> tuple[str, str]:
    titles = sources.titles()
    choice.follow_link("set")
    shown = choice.eval_set_of(titles, (FIRST,))
    st.session_state[WIDGET] = shown
    choice.select(
        "Eval set", list(titles), format_func=lambda name: titles[name], key=WIDGET, on_change=choice.take_widget,
        args=(SET_KEY, WIDGET),
    )  # fmt: skip
    said = st.query_params.get("annotator", "")  # a link or a reload says where to start; the box is the truth then
    if said and labels.NAME_KEY not in st.session_state:
        st.session_state[labels.NAME_KEY] = said[:80]
    name = annotator()
    choice.tell_link(set=shown)
    st.query_params.from_dict({"set": shown, "annotator": name})
    return shown, name


def annotator() -> str:
    """Who labels: the person who logged in, else the name typed here; the address keeps it through a reload."""
    if who.shared():
        st.text(f"Labelling as {labels.annotator()}")
        return labels.annotator()
    st.session_state.setdefault(labels.NAME_KEY, who.ME)
    typed = st.text_input(
        "Your name", max_chars=labels.LONGEST_NAME, key=labels.NAME_KEY, persist_state="session",
        help="Each person’s labels are kept apart; agreement is measured between names.",
    )  # fmt: skip
    if is_reserved((typed or "").strip()):
        st.text(f"This name is kept for decisions between people, or for models; you label as {who.ME}.")
    return labels.annotator()


def _pool() -> tuple[tuple[str, ...], int, int]:
    names = shipped_names()
    # No multiselect: its tags are white on the primary colour, which a dark theme cannot make legible.
    chosen = st.pills(
        "Pool from pipelines", names, selection_mode="multi",
        default=[name for name in FIRST_PIPELINES if name in names],
        key="label.pipelines", persist_state="session", help="Whatever any of them keeps is labelled once.",
    )  # fmt: skip
    deep, shuffled = st.columns(2)
    depth = deep.number_input("Depth per pipeline", 1, 1000, 15, key="label.depth", persist_state="session")
    seed = shuffled.number_input(
        "Shuffle", 0, 10_000, 0, key="label.seed", persist_state="session",
        help="The seed of the blind order: the same number gives everybody the same order.",
    )  # fmt: skip
    return tuple(chosen), int(depth), int(seed)


def _captured(eval_set: str) -> bool:
    """Whether a live set’s kept capture is pooled; asked only where there is one."""
    from pages.components import label_pool

    if eval_set in sources.uploads() or not label_pool.has_capture(resources.eval_set(eval_set)):
        return False
    return st.toggle(
        "Pool from the kept capture", key="label.captured", persist_state="session",
        help="The lists that Tune captured; off, every query is searched now.",
    )  # fmt: skip
