"""The one eval set, the one collection and the one pipeline of a session: chosen on any page, found on every other.

Plain session keys hold the choice; a page draws its selector in the header from it and writes a person's choice back.
Until a person or a link chooses, each page shows what suits it best. What a name means is left to the pages.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st

from pages.components import header, jobs, resources, say
from rag_core.errors import InputError
from rag_core.eval_sets.reading import folders
from rag_core.spec import read_pipeline

EVAL_SET, COLLECTION, PIPELINE = "choice.eval_set", "choice.collection", "choice.pipeline"
PARAMETERS = {"set": EVAL_SET, "collection": COLLECTION}
"""What of it stands in the address of every page: parameter → key."""
WORKING_COPY = "from-explore"  # the name of Explore's own settings as a pipeline
ANOTHER_SET = "Choose another eval set above, or mend its file; *Questions* can delete it."
"""What can be done about an eval set that cannot be read."""
LONGEST = 200  # characters of a name from an address


def eval_set() -> str:
    """The name of the chosen eval set, '' while none is."""
    return str(st.session_state.get(EVAL_SET, ""))


def collection() -> str:
    """The name of the chosen collection, '' while none is."""
    return str(st.session_state.get(COLLECTION, ""))


def pipeline() -> str:
    """The chosen pipeline: a shipped or saved name, or inline JSON; '' while none is."""
    return str(st.session_state.get(PIPELINE, ""))


def take(key: str, value: str) -> None:
    """Choose for all pages."""
    st.session_state[key] = value


def take_widget(key: str, widget: str) -> None:
    """Choose what a selector stands at: for its on_change."""
    st.session_state[key] = st.session_state[widget] or ""


def select(label: str, options: Sequence[str], **arguments: Any) -> str | None:
    """The selector of one kind (header.PLACES) at its place in the header; what it stands at."""
    with header.place(label):
        stands_at: str | None = st.selectbox(label, options, width=header.WIDTH, **arguments)
    return stands_at


def eval_set_of(known: Collection[str], preferred: Sequence[str], lacks: str = "no result lists and no corpus") -> str:
    """The eval set that a page shows: the chosen one where the page can, else its own first, with the reason said.

    `known` are those the page can show, not none; `lacks` is what one holds not that it cannot. A name that is no eval
    set at all is forgotten.
    """
    wanted = eval_set()
    if wanted and wanted in known:
        return wanted
    if wanted:
        there = wanted in folders(resources.workspace())
        why = f"holds {lacks}, which this page needs" if there else "is not here"
        say.problem(f"The chosen eval set {why}; another one is shown.", wanted[:LONGEST])
        if not there:
            take(EVAL_SET, "")
    return next((name for name in preferred if name in known), next(iter(known)))


def collection_of(known: Collection[str], preferred: str) -> str:
    """The collection that a page shows: the chosen one where it is there, else `preferred`, with the reason said.

    While a job runs, one that is not there may be what it builds: it stays chosen.
    """
    wanted = collection()
    if wanted in known:
        return wanted
    if wanted and not jobs.running():
        say.problem("The chosen collection is not here; another one is shown.", wanted[:LONGEST])
        take(COLLECTION, "")
    return preferred


def follow_link(*parameters: str) -> None:
    """Choose what the address names, once for each address."""
    for name in parameters:
        said = st.query_params.get(name, "")[:LONGEST]
        if said and (header.page(), said) != st.session_state.get(f"choice.link.{name}"):
            take(PARAMETERS[name], said)
        st.session_state[f"choice.link.{name}"] = (header.page(), said)


def tell_link(**shown: str) -> None:
    """Put what is shown into the address, beside what else stands there."""
    for name, value in shown.items():
        st.session_state[f"choice.link.{name}"] = (header.page(), value)  # what the page wrote is nobody's choice
        if st.query_params.get(name, "") != value:
            st.query_params[name] = value


def working_copy(stages: str) -> str:
    """Explore's own settings as an entry: its stages, as JSON, under a name."""
    return f'{{"name":{json.dumps(WORKING_COPY)},"stages":{stages}}}'


def met(page: str) -> str:
    """The chosen pipeline where `page` has not met it yet and may run it unasked, else ''."""
    key, wanted = f"choice.met.{page}", pipeline()
    if not wanted or st.session_state.get(key) == wanted:
        return ""
    st.session_state[key] = wanted
    try:
        costly = any(stage.costly for stage in read_pipeline(wanted).stages)
    except InputError:
        return ""
    return "" if costly else wanted


def added(entries: Sequence[str], entry: str, most: int) -> tuple[str, ...]:
    """The pipelines of a page with one more, in place of an older working copy and of the last where they are many."""
    if not entry or entry in entries:
        return tuple(entries)
    copy = f'"name":"{WORKING_COPY}"'
    kept = [one for one in entries if not (copy in entry and copy in one)]
    return (*kept[: most - 1], entry)
