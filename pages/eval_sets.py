"""Eval sets: which questions are measured with?"""

from collections.abc import Sequence

import streamlit as st

from pages.components import choice, header, resources, say, sets_compare, sets_detail, sets_new, sets_state
from pages.components.sets_state import CHOSEN, COMPARE, DONE, NEW, PROBLEM, SETS, VIEW, WIDGET
from rag_core.evaluate.set_facts import SetFacts

HELP = """
**judged** queries have a label in the set’s files; **labels by people** are in the label store and are laid over them.

**dev** queries choose settings, **test** queries judge them. **Tags** are slices: figures can be asked for one of them.

A set **holds** recorded lists (to filter, label and tune at once), a corpus (searched live), or queries only: those
take their lists from a collection.

On the command line: `python -m rag_core eval-sets --help`.
"""


def draw() -> None:
    header.show("Eval sets", "Which questions are measured with?", HELP)
    made = st.session_state.pop("sets.go", "")
    if made:
        st.session_state[CHOSEN], st.session_state[VIEW] = made, SETS
    st.session_state.setdefault(VIEW, SETS)
    choice.follow_link("set")
    found = sets_state.listed()
    shown = choose_set(found)
    view = st.segmented_control("View", (SETS, NEW, COMPARE), required=True, key=VIEW, label_visibility="collapsed")
    draw_message()
    if view == NEW:
        sets_new.show()
    elif view == COMPARE:
        sets_compare.show([one.name for one in found if not one.problem], shown)
    else:
        draw_sets(found, shown)
    resources.settle()


def choose_set(found: Sequence[SetFacts]) -> str:
    """The eval set in the header, that of all pages; one of one's own is shown until one is chosen."""
    titles = {one.name: one.title or one.name for one in found}
    own = [one.name for one in found if one.own]
    shown = choice.eval_set_of(titles, own, "nothing that can be read")
    choice.tell_link(set=shown)
    st.session_state[WIDGET] = shown
    choice.select(
        "Eval set", list(titles), format_func=lambda name: titles[name], key=WIDGET, on_change=choice.take_widget,
        args=(CHOSEN, WIDGET),
    )  # fmt: skip
    return shown


def draw_message() -> None:
    """How the last action went, once."""
    problem, done = st.session_state.pop(PROBLEM, ""), st.session_state.pop(DONE, "")
    if problem:
        say.problem("Nothing was changed.", problem)
    elif done:
        with st.container(border=True):
            st.text(f"✓ {done}")


def draw_sets(found: Sequence[SetFacts], shown: str) -> None:
    """All sets in a table, and the chosen one below."""
    own = [one for one in found if one.own]
    if not own:
        st.markdown("**No eval set of your own yet.** Make one under *New set*, or duplicate a shipped one below.")
    draw_table(found)
    sets_detail.show(next(one for one in found if one.name == shown))


def draw_table(found: Sequence[SetFacts]) -> None:
    """The counts of all sets."""
    by_people = sets_state.labels_of_people()
    rows = [
        {
            "name": one.name,
            "title": one.title,
            "whose": "yours" if one.own else "shipped",
            "holds": one.holds or "cannot be read",
            "queries": one.queries,
            "judged": one.judged,
            "labels": one.labels,
            "labels by people": by_people.get(one.name, 0),
            "dev / test": f"{one.split.get('dev', 0)} / {one.split.get('test', 0)}" if one.split else "",
            "tags": ", ".join(one.tags),
        }
        for one in found
    ]
    st.dataframe(rows, hide_index=True, width="stretch", alt=f"{len(rows)} eval sets with their counts")


draw()
