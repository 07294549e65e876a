"""One eval set on the page: its queries with tags, and what can be done with it. Shipped ones can be copied."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components import resources, say, sets_state
from rag_core.errors import InputError
from rag_core.evaluate import set_writing
from rag_core.evaluate.set_facts import SetFacts
from rag_core.types import Case

QUERIES, SPLIT, GUIDELINES, LISTS, COPY, DELETE = "Queries", "Split", "Guidelines", "Lists", "Duplicate", "Delete"
OWN = (QUERIES, SPLIT, GUIDELINES, LISTS, COPY, DELETE)
SHIPPED = (QUERIES, GUIDELINES, COPY)
FIND, TAG = "sets.find", "sets.tag"

SHARE, SEED = "sets.share", "sets.seed"


def show(facts: SetFacts) -> None:
    """The chosen part of the set."""
    views: tuple[str, ...] = OWN if facts.own else SHIPPED
    if facts.problem:
        say.problem("This set cannot be read.", facts.problem)
        views = (DELETE,) if facts.own else ()
    if not views:
        return
    key = f"sets.part.{facts.own}.{bool(facts.problem)}"
    view = st.segmented_control("Part", views, default=views[0], required=True, key=key, label_visibility="collapsed")
    parts = {QUERIES: _queries, SPLIT: _split, GUIDELINES: _guidelines, LISTS: _lists, COPY: _copy, DELETE: _delete}
    parts[str(view)](facts)


def _queries(facts: SetFacts) -> None:
    cases = sets_state.opened(facts.name).cases
    found = st.text_input("Queries that hold", key=FIND, max_chars=200, placeholder="a word, an id or a tag")
    shown = [case for case in cases if _holds(case, (found or "").casefold())]
    st.markdown(f"**Queries: {len(shown):,}**" + (f" of {len(cases):,}" if len(shown) < len(cases) else ""))
    st.dataframe(
        {
            "id": [case.query.id for case in shown],
            "query": [case.query.text for case in shown],
            "tags": [", ".join(case.query.tags) for case in shown],
            "split": [str(case.query.metadata.get("split") or "") for case in shown],
            "labels": [len(case.grades) for case in shown],
        },
        hide_index=True,
        width="stretch",
        column_config={"query": st.column_config.TextColumn(width="large")},
        height=min(38 + 35 * max(len(shown), 1), 420),
        alt=f"{len(shown)} queries with tags, split and number of labels",
    )
    if facts.own:
        _tagging(facts, shown, len(cases))
    else:
        st.markdown(":gray[A shipped set stays as it is. Duplicate it to tag, split or change it.]")


def _holds(case: Case, words: str) -> bool:
    query = case.query
    return not words or any(words in text.casefold() for text in (query.text, query.id, *query.tags))


def _tagging(facts: SetFacts, shown: Sequence[Case], total: int) -> None:
    ids = [case.query.id for case in shown]
    which = "all queries" if len(ids) == total else f"these {len(ids):,}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Tag", key=TAG, max_chars=60, placeholder="movement", width=260)
        for word, how in (("Add to", "add"), ("Remove from", "remove")):
            st.button(
                f"{word} {which}",
                key=f"sets.{how}",
                disabled=not ids,
                on_click=_change_tags,
                args=(facts.name, ids, how),
            )


def _change_tags(name: str, ids: list[str], how: str) -> None:
    tag = st.session_state.get(TAG, "")  # what stands there by now: typed, then clicked

    def change() -> int:
        if not tag.strip():
            raise InputError("the tag is empty, expected a name")
        tags = {how: [tag.strip()]}
        return set_writing.change_tags(resources.workspace(), name, ids, **tags)

    sets_state.act(change, lambda count: f"Tags of {count:,} queries changed.")


def _split(facts: SetFacts) -> None:
    st.markdown(
        "**Dev** queries are for choosing settings, **test** queries for judging the choice once. Tags are spread "
        "evenly; queries that ask the same in other words stay together."
    )
    if facts.split:
        st.text(", ".join(f"{side}: {count}" for side, count in facts.split.items()))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input("Share of test queries", 0.05, 0.95, 0.3, step=0.05, key=SHARE, width=220)
        st.number_input("Seed", 0, 2**31 - 1, 0, key=SEED, width=140)
        st.button("Split anew" if facts.split else "Split", type="primary", key="sets.split", on_click=_cut,
                  args=(facts.name,))  # fmt: skip


def _cut(name: str) -> None:
    share, seed = float(st.session_state[SHARE]), int(st.session_state[SEED])
    sets_state.act(
        lambda: set_writing.split_set(resources.workspace(), name, share, seed),
        lambda split: f"{len(split.dev):,} dev and {len(split.test):,} test queries.",
    )


def _guidelines(facts: SetFacts) -> None:
    text = set_writing.guidelines(sets_state.folder_of(facts.name))
    if not facts.own:
        st.markdown("**No guidelines of its own.**" if not text else "**Guidelines**")
        st.code(text, language=None, wrap_lines=True) if text else None
        return
    st.markdown("Annotators read this beside the queue. Markdown is stored as it is written.")
    written = st.text_area(
        "Guidelines", text, height=320, key=f"sets.guidelines.{facts.name}", label_visibility="collapsed",
        placeholder="- 0: says nothing about what is asked\n- 3: the answer is in it",
    )  # fmt: skip
    if st.button("Store the guidelines", type="primary", key="sets.guide"):
        sets_state.act(
            lambda: set_writing.write_guidelines(resources.workspace(), facts.name, written or ""),
            lambda _: "The guidelines are stored.",
        )
        st.rerun()


def _lists(facts: SetFacts) -> None:
    names = resources.collections()
    st.markdown(
        f"This set holds **{facts.holds}**. A collection is asked every query once and what it returns is kept in the "
        "set, so that it can be labelled, filtered and tuned. Labels stay."
    )
    if not names:
        st.markdown("**There is no collection yet.** Build one on the page Corpus.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        collection = st.selectbox("Collection", names, key="sets.collection", width=320)
        depth = st.number_input("Candidates per query", 1, 1000, 50, key="sets.depth", width=200)
        pressed = st.button("Take lists", type="primary", key="sets.capture")
    if pressed:
        _capture(facts.name, str(collection), int(depth))


def _capture(name: str, collection: str, depth: int) -> None:
    from rag_core.workbench import capture_into

    bar = st.progress(0.0, "Asking …")

    def tell(done: int, total: int) -> None:
        bar.progress(done / total, f"{done:,} of {total:,} queries")

    sets_state.act(
        lambda: capture_into(name, collection, depth, resources.workspace(), tell),
        lambda count: f"Lists of {count:,} queries taken.",
    )
    st.rerun()


def _copy(facts: SetFacts) -> None:
    st.text_input("Name of the copy", key="sets.copy.name", max_chars=64, placeholder=f"{facts.name}-2", width=320)
    st.toggle("Copy the labels of the label store too", value=True, key="sets.copy.labels")
    st.button("Duplicate", type="primary", icon=":material/content_copy:", key="sets.copy", on_click=_make_copy,
              args=(facts.name,))  # fmt: skip


def _make_copy(source: str) -> None:
    name = (st.session_state.get("sets.copy.name") or "").strip()
    labels = bool(st.session_state.get("sets.copy.labels"))

    def make() -> int:
        set_writing.copy_set(resources.workspace(), source, name)
        return sets_state.copy_stored_labels(source, name) if labels else 0

    sets_state.act(
        make, lambda count: f"Copied {source} to {name}" + (f" with {count:,} labels." if count else "."), name
    )


def _delete(facts: SetFacts) -> None:
    st.markdown("Deletes the files of this set for good. Labels in the label store stay under its name.")
    meant = st.checkbox(f"Delete {facts.name}", key=f"sets.meant.{facts.name}")
    st.button("Delete", disabled=not meant, icon=":material/delete:", key="sets.delete", on_click=_gone,
              args=(facts.name,))  # fmt: skip


def _gone(name: str) -> None:
    sets_state.act(lambda: set_writing.delete_set(resources.workspace(), name), lambda _: f"{name} is deleted.")
    st.session_state.pop(sets_state.CHOSEN, None)
