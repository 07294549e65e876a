"""Explore's controls of how a collection is searched, and everything between the question and the list, to be seen.

The rewritten query of each side, both rankings with how they fuse, and each hop with what was found missing. All of it
holds foreign words (questions, titles, a model's answers): it is shown as plain text and in tables.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.components import session
from pages.components.search_view import ENGINES
from rag_core.evaluate.experiment import Outcome
from rag_core.types import RANKS, Hit, Step

MOST_HOPS = 5
SHOWN = 30  # fused chunks in the table
SIDES = {"dense_query": "Embedded as", "lexical_query": "Searched by words as"}


def choose() -> None:
    """Source, fusion, rewriting and hops."""
    view = session.current()
    key = session.bind("engine")["key"]
    st.segmented_control("Search by", list(ENGINES), required=True, help=ENGINE_HELP, key=key, on_change=_switched)
    if ENGINES[view.engine] == "Hybrid":
        _fusion()
    st.toggle("normalise keywords", help=NORMALISE_HELP, **session.bind("normalise"))
    st.toggle("expand synonyms", help=SYNONYM_HELP, **session.bind("synonyms"))
    st.number_input("Most hops", 0, MOST_HOPS, step=1, help=HOP_HELP, **session.bind("max_hops"))


ENGINE_HELP = (
    "vector: nearest by meaning. BM25: highest score of chunks that share a word. hybrid: the two rankings fused by "
    "rank; each side reads the depth, the list is all of both."
)
NORMALISE_HELP = (
    "Known keywords take the capitals of the documents’ headers in the query that is embedded. The bundled model reads "
    "no capitals: with it nothing changes."
)
SYNONYM_HELP = "Official terms are appended for users’ words, in the query that is searched by words."
HOP_HELP = (
    "After the filters a judge says whether the chunks answer the question and what is missing; that is fetched, "
    "headers first. 0 is off."
)


def _switched() -> None:
    """Take the choice over; a search by words starts with both rewrites on."""
    engine = st.session_state[f"{session.VIEW}.engine"]
    rewrites = {"normalise": True, "synonyms": True} if ENGINES[engine] != "Dense" else {}
    session.change(engine=engine, **rewrites)


def _fusion() -> None:
    left, middle, right = st.columns(3)
    weight = "Weight of the ranking by {} in the fused score."
    left.number_input(
        "Vectors", 0.0, 100.0, step=0.1, format="%.2f", help=weight.format("vectors"), **session.bind("dense_weight")
    )
    middle.number_input(
        "Words", 0.0, 100.0, step=0.1, format="%.2f", help=weight.format("words"), **session.bind("lexical_weight")
    )
    right.number_input(
        "rrf_k", 0.0, 10_000.0, step=5.0, format="%.0f",
        help="Score = Σ weight / (rrf_k + rank). The larger, the less the first ranks stand out.",
        **session.bind("rrf_k"),
    )  # fmt: skip


def show_queries(outcome: Outcome) -> None:
    """What each side of the search was asked, where rewriting ran."""
    lines = [
        f"{label}: {step.facts[fact]}" + _changed(step)
        for step in outcome.result.steps
        for fact, label in SIDES.items()
        if fact in step.facts
    ]
    if lines:
        st.text("\n".join(lines))


def _changed(step: Step) -> str:
    """What the rewrite did, or that it found nothing among what it knows."""
    done = step.facts.get("found") or step.facts.get("added")
    return f"  ({done})" if done else f"  (nothing of {step.facts['known']:,} known)"


def fused(outcome: Outcome) -> bool:
    """Whether the list was fused from two rankings."""
    return any(RANKS in hit.notes for hit in outcome.start.hits)


def show_fusion(outcome: Outcome) -> None:
    """Both rankings and how they fuse, the first of the list as it came."""
    step = next((one for one in outcome.start.steps if one.stage == "Hybrid"), None)
    if step is not None:
        st.caption(
            f"Fused score = Σ weight / (rrf_k + rank), weights {step.facts['weights']}, rrf_k "
            f"{step.facts['rrf_k']:g}; higher is better. {step.facts['found_dense']} by vectors, "
            f"{step.facts['found_lexical']} by words, {step.facts['found_both']} by both."
        )
    kept = {hit.chunk.id for hit in outcome.result.hits}
    rows = [_parts(hit, hit.chunk.id in kept) for hit in outcome.start.hits[:SHOWN]]
    st.dataframe(rows, hide_index=True, width="stretch", column_config=_COLUMNS)


def _parts(hit: Hit, kept: bool) -> dict[str, Any]:
    ranks = hit.notes.get(RANKS, {})
    return {
        "rank": hit.rank,
        "title": hit.chunk.title or hit.chunk.id,
        "rrf": hit.scores.get("rrf"),
        "dense": ranks.get("dense"),
        "distance": hit.distance,
        "lexical": ranks.get("lexical"),
        "bm25": hit.scores.get("bm25"),
        "kept": "kept" if kept else "dropped",
    }


def _number(label: str, help: str, digits: int) -> Any:
    return st.column_config.NumberColumn(label, help=help, format=f"%.{digits}f")


_COLUMNS = {
    "rank": st.column_config.NumberColumn("Fused rank", width="small"),
    "title": st.column_config.TextColumn("Title", width="medium"),
    "rrf": _number("Fused score", "Higher is better.", 5),
    "dense": st.column_config.NumberColumn("Vector rank", help="Empty: not among the first by vectors.", width="small"),
    "distance": _number("Distance", "Lower is nearer.", 4),
    "lexical": st.column_config.NumberColumn("Word rank", help="Empty: not among the first by words.", width="small"),
    "bm25": _number("BM25", "Higher is better; 0: no word shared.", 3),
    "kept": st.column_config.TextColumn("Verdict", width="small"),
}


def hopped(outcome: Outcome) -> Step | None:
    """The step of the hops, where they ran."""
    return next((step for step in outcome.result.steps if step.stage == "MultiHop"), None)


def show_hops(outcome: Outcome) -> None:
    """Each hop: what the judge said and found missing, and what that brought and how."""
    step = hopped(outcome)
    if step is None:
        return
    brought = {one["hop"]: one["chunks"] for one in step.facts.get("brought", ())}
    st.text(f"{step.facts.get('judge', 'none')} · ended: {step.facts['stop']}")
    for said in step.facts["hops"]:
        with st.container(border=True):
            verdict = "can answer" if said["can_answer"] else f"missing: {said['missing_query']}"
            spent = f"{said['ms']:,.0f} ms" + (f", {said['tokens']:,} tokens" if said["tokens"] else "")
            st.text(f"Hop {said['hop']} · {verdict}\n{said['reasoning']}\n{spent}")
            chunks = brought.get(said["hop"], ())
            lines = [f"+ {chunk['title'] or chunk['id']}: {chunk['how']}" for chunk in chunks]
            if not said["can_answer"]:
                st.text("\n".join(lines) or "nothing new was found")
