"""Rules: which chunks crowd out answers, and what must a query say to get them?"""

from typing import Any

import streamlit as st

from pages.components import (
    choice,
    header,
    rules_beside,
    rules_families,
    rules_lint,
    rules_state,
    rules_store,
    say,
)
from pages.components.rules_state import Bench
from rag_core.errors import WinnowError
from rag_core.evaluate.sets import EvalSet
from rag_core.rules.match import MODES

COLLECTION = "rules.collection"
NO_SET = "rules.no_set"  # beside which eval set a person chose none

HELP = """
**Rule.** What a query must say for the chunk to be returned. A chunk without a rule is never dropped.

**Family.** Chunks with near-duplicate titles. **Places taken** is its share of the first k places of all lists;
**not relevant** the part of them that no label calls relevant. *Unfiltered* is without any rule, *with rules* with the
stored ones and refill (deepen, up to three rounds).

**Verdict.** *admits*: the query holds what the rule asks for. *drops*: it does not; the reason says
what is missing.

**SetP, SetR.** Precision and recall of the list that is kept, macro over the labelled queries.

**Batch.** Rules stored together; one click takes them back. Nothing is embedded again.
"""


def choose_collection() -> str:
    """The collection in the header, that of all pages; the demo's until one is chosen."""
    titles = rules_state.collections()
    choice.follow_link("collection", "set")
    shown = choice.collection_of(titles, rules_state.DEMO)
    choice.tell_link(collection=shown)
    st.session_state[COLLECTION] = shown
    choice.select(
        "Collection", list(titles), format_func=lambda name: titles[name], key=COLLECTION,
        on_change=choice.take_widget, args=(choice.COLLECTION, COLLECTION),
    )  # fmt: skip
    return shown


def choose_set(collection: str) -> EvalSet | None:
    """The eval set the rules are held to, that of all pages; the one named like the collection until one is chosen."""
    titles = rules_state.eval_sets()
    key = f"rules.eval_set.{collection}"
    none = st.session_state.get(NO_SET, "") == (choice.eval_set() or collection)
    shown = "" if none else choice.eval_set_of(titles, (collection,) if collection in titles else ("",))
    choice.tell_link(set=shown)
    st.session_state[key] = shown
    choice.select(
        "Eval set", list(titles), format_func=lambda name: titles[name], key=key, on_change=take_set,
        args=(key, collection), help="The eval set whose queries and labels every rule is held to.",
    )  # fmt: skip
    return rules_state.eval_set(shown)


def take_set(key: str, collection: str) -> None:
    """Take over the eval set; none is a choice of this page alone, until another set is chosen."""
    if st.session_state[key]:
        choice.take_widget(choice.EVAL_SET, key)
    st.session_state[NO_SET] = "" if st.session_state[key] else choice.eval_set() or collection


def choose_settings() -> tuple[int, str]:
    """(k, mode) of the sidebar."""
    with st.sidebar:
        k = st.select_slider("k, places of a list", (5, 10, 15, 20, 30), 15, key="rules.k", persist_state="session")
        mode = st.selectbox(
            "Matching",
            MODES,
            key="rules.mode",
            persist_state="session",
            help="token: words and numbers in a row; substring: the literal text. Rules are checked in token mode.",
        )
    return int(k), str(mode)


def opened() -> Bench | None:
    """The collection with its labelled queries, or None with the reason shown."""
    collection = choose_collection()
    bar = st.empty()
    try:
        if collection == rules_state.DEMO:
            rules_state.bring_up_demo(bar_of(bar, "Demo: chunks stored"))
        chosen = choose_set(collection)
        bench = rules_state.bench_of(collection, chosen, *choose_settings())
        return with_lists(bench, bar)
    except (WinnowError, OSError) as error:
        say.problem("This collection cannot be shown.", str(error))
        return None
    finally:
        bar.empty()


def with_lists(bench: Bench, bar: Any) -> Bench:
    """The bench with its captured lists; many queries are asked only on request."""
    if not bench.cases:
        return bench
    if len(bench.cases) > rules_state.AT_ONCE and not rules_state.capture_file(bench).is_file():
        st.markdown(f"Shares need the lists of {len(bench.cases):,} queries, which are asked once and kept.")
        if not st.button("Ask them now", icon=":material/play_arrow:", key="rules.capture"):
            return bench
    return rules_state.captured(bench, bar_of(bar, "Queries asked"))


def bar_of(place: Any, words: str) -> rules_state.Progress:
    """A progress callback that draws a bar with n of N."""

    def draw_bar(done: int, total: int) -> None:
        place.progress(done / max(1, total), f"{words}: {done:,} of {total:,}")

    return draw_bar


def draw_figures(bench: Bench) -> None:
    """Coverage and crowding as one line of figures."""
    found = rules_state.families(bench)
    listed = any(case.candidates is not None for case in bench.cases)
    share = found.coverage.with_rule / max(1, found.coverage.chunks)
    errors = sum(one.severity == "error" for one in rules_state.findings(bench))
    cells = st.container(horizontal=True, key="rules.figures")
    cells.metric(
        "chunks with a rule",
        f"{found.coverage.with_rule:,} of {found.coverage.chunks:,}",
        width=190,
        help="Chunks that query_must can drop, of all chunks of the collection.",
    )
    cells.metric("share of the corpus", f"{share:.0%}", width=160, help="Chunks with a rule over all chunks.")
    if listed:
        before = sum(one.crowding for one in found.crowds)
        now = sum(one.crowding for one in found.with_rules.values())
        cells.metric(
            f"of the first {bench.k} places: irrelevant family chunks",
            f"{now:.0%}",
            f"{before:.0%} without rules",
            delta_color="off",
            delta_arrow="off",
            help=f"Share of the first {bench.k} places of all lists held by a family, without a relevant label. "
            "Lower is better.",
            width=320,
        )
    cells.metric("lint errors", errors, width=120, help="Rules that cannot work as written; the view Lint names them.")
    if found.coverage.unreadable:
        cells.metric(
            "rules that cannot be read",
            found.coverage.unreadable,
            width=200,
            help="Stored rules that no version of the program understands; their chunks always stay.",
        )


def draw() -> None:
    header.show("Rules", "Which chunks crowd out answers, and what must a query say to get them?", HELP)
    bench = opened()
    if bench is None:
        return
    rules_store.show_outcome(bench.collection)
    draw_figures(bench)
    views = {
        "Families": rules_families.show,
        "Beside a query": rules_beside.show,
        "Lint": rules_lint.show,
        "Batches": rules_store.show_batches,
    }
    st.session_state.setdefault("rules.view", "Families")
    chosen = st.segmented_control("View", list(views), required=True, key="rules.view", label_visibility="collapsed")
    views[chosen or "Families"](bench)


draw()
