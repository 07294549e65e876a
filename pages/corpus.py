"""Corpus: what is in my collections, and how do documents get there?"""

from collections.abc import Sequence

import streamlit as st

from pages.components import choice, corpus_add, corpus_state, header, jobs, resources, say, who
from rag_core.errors import WinnowError
from rag_core.index.collection import Summary
from rag_core.project.deeds import DELETE_COLLECTION, INGEST

BELOW = ("Chunks", "Numbers", "Words", "Add documents", "Connect Chroma")
WAYS_IN = BELOW[3:]
TABLE = "corpus.collections"
QUICK = "rulebook"  # the demo collection that brings its vectors along: proposed first

HELP = """
**Chunk.** A piece of a document: for Markdown the text under a header, for JSONL, CSV and Parquet a row, for OpenAPI
an operation or a schema.

**Tokens** are those of title and text as the embedding model counts them. It reads a limited number; what stands behind
is not embedded and cannot be found by it.

**Repeated.** Chunks whose title and text are those of another chunk.

**With a rule.** Chunks that query_must can drop; a chunk without a rule always stays.
"""


def choose_collection(known: Sequence[Summary], building: bool) -> Summary | None:
    """The collection in the header, that of all pages, and the demo collections in the sidebar."""
    names = [one.name for one in known]
    if names and not building:
        choice.collection_of(names, names[0])
    chosen = corpus_state.chosen(known)
    if chosen is not None:
        st.session_state["corpus.choice"] = chosen.name
        choice.select(
            "Collection",
            names,
            key="corpus.choice",
            on_change=lambda: corpus_state.choose(st.session_state["corpus.choice"]),
        )
    with st.sidebar:
        draw_demo()
    return chosen


def draw_demo() -> None:
    """Eval sets bring a corpus of their own: build its collection, or bring it up to date."""
    titles = corpus_state.demo_sets()
    names = list(titles)
    name = st.selectbox(
        "Demo collection",
        names,
        index=names.index(QUICK) if QUICK in names else 0,
        format_func=lambda key: titles[key],
        key="corpus.demo",
    )
    st.button(
        "Bring up to date",
        icon=":material/sync:",
        key="corpus.demo_go",
        disabled=jobs.running() or name is None or bool(who.refusal(INGEST)),
        on_click=lambda: corpus_state.bring_demo(st.session_state["corpus.demo"]),
        help="Builds the collection from the eval set’s corpus, or embeds what changed in it. Vectors that ship with "
        "it are used, so that this takes seconds.",
    )


def draw_collections(known: Sequence[Summary], chosen: Summary | None) -> None:
    """All collections as a table; a click chooses one."""
    names = [one.name for one in known]
    at = [names.index(chosen.name)] if chosen is not None else []
    st.session_state[TABLE] = {"selection": {"rows": at, "columns": []}}
    problems = {"problem": [one.problem for one in known]} if any(one.problem for one in known) else {}
    st.dataframe(
        {
            "collection": names,
            "chunks": [one.chunks for one in known],
            "documents": [one.documents for one in known],
            "with a rule": [f"{one.with_rule:,} ({one.with_rule / max(1, one.chunks):.0%})" for one in known],
            **({"rules not read": [_not_read(one) for one in known]} if any(one.unreadable for one in known) else {}),
            "model": [one.model for one in known],
            **({"distance": [one.metric for one in known]} if any(one.origin for one in known) else {}),
            "MB": [one.bytes / 1_000_000 for one in known],
            **problems,
        },
        hide_index=True,
        key=TABLE,
        on_select=lambda: chosen_in_table(names),
        selection_mode="single-row",
        height=min(38 + 35 * len(known), 213),
        column_config={"MB": st.column_config.NumberColumn("MB", format="%.1f")},
        alt=f"{len(known)} collections with chunks, documents, rules, model and size",
    )


def _not_read(one: Summary) -> str:
    return f"{one.unreadable:,}: {one.rule_problem}" if one.unreadable else ""


def chosen_in_table(names: Sequence[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(names):
        corpus_state.choose(names[rows[0]])


def show_way_in(way: str) -> None:
    """Documents of one's own, or a collection that Chroma holds."""
    if way == "Connect Chroma":
        from pages.components import corpus_connect

        corpus_connect.show()
    else:
        corpus_add.show()


def draw_below(chosen: Summary) -> None:
    """Chunks, numbers, words, or the way in: only the one that is chosen runs."""
    st.session_state.setdefault(corpus_state.BELOW, BELOW[0])
    below = st.segmented_control("Below", BELOW, required=True, key=corpus_state.BELOW, label_visibility="collapsed")
    if below in WAYS_IN:
        show_way_in(str(below))
        return
    if chosen.problem or not chosen.chunks:
        say.problem("This collection cannot be shown.", chosen.problem or "it holds no chunk")
        draw_deletion(chosen)
        return
    if below == "Words":
        from pages.components import corpus_words

        corpus_words.show(chosen.name)
        return
    numbers = corpus_state.numbers(chosen.name)
    if below == "Numbers":
        from pages.components import corpus_numbers, corpus_recut

        corpus_numbers.show(numbers)
        corpus_recut.show(chosen.name)
        draw_deletion(chosen)
    else:
        from pages.components import chunk_browser

        chunk_browser.show(chosen.name, numbers)


def draw_deletion(chosen: Summary) -> None:
    """Delete the collection, once its name was typed."""
    with st.popover("Delete this collection", icon=":material/delete:"):
        st.markdown("Its chunks, rules and vectors go for good. Documents, labels and recorded lists stay.")
        typed = st.text_input("Type its name to confirm", key="corpus.confirm")
        st.button(
            "Delete",
            key="corpus.delete",
            type="primary",
            disabled=typed != chosen.name or jobs.running(),
            on_click=delete,
            args=(chosen.name,),
        )
    problem = st.session_state.pop("corpus.delete_problem", "")
    if problem:
        say.problem("The collection was not deleted.", problem)


def delete(name: str) -> None:
    from rag_core.index.collection import delete_collection

    if st.session_state["corpus.confirm"] != name:  # the button may have been pressed before the page knew
        return
    try:
        with who.doing(DELETE_COLLECTION, name):
            delete_collection(resources.workspace(), name)
    except WinnowError as error:
        st.session_state["corpus.delete_problem"] = str(error)
        return
    corpus_state.choose("")


def draw() -> None:
    header.show("Corpus", "What is in my collections, and how do documents get there?", HELP)
    building = jobs.running()  # asked first: what a job has built meanwhile is among the collections
    known = corpus_state.collections()
    corpus_state.read_address(BELOW)
    chosen = choose_collection(known, building)
    jobs.show()
    corpus_add.show_report()
    if chosen is None:
        st.markdown(
            "**There is no collection yet.** Bring the demo collection up to date in the sidebar, add documents, or "
            "connect a collection that Chroma holds."
        )
        way = st.segmented_control(
            "Way in", WAYS_IN, default=WAYS_IN[0], required=True, key="corpus.way", label_visibility="collapsed"
        )
        show_way_in(str(way))
        return
    draw_collections(known, chosen)
    draw_below(chosen)
    corpus_state.write_address(chosen.name)


draw()
