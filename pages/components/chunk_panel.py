"""The selected chunk: its text with the query's words marked, its rule, what would have kept it, and its label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st

from pages.components import inert_text, labels, say, session, who
from pages.components.chunk_table import label_word, verdict_word
from pages.components.inert_text import Block, Run, marked
from pages.components.reading import Row, would_keep
from rag_core.errors import StoreError
from rag_core.evaluate.experiment import Outcome
from rag_core.rules.explain import chip_text
from rag_core.rules.match import Part, Verdict, decide
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.store.database import Store
from rag_core.text import STOP_WORDS, tokenize

KEYS = {
    "contain_one_of": "one of",
    "contain_all_of": "all of",
    "contain": "contains",
    "number_in": "number",
    "when_named": "one of",
}


def show(row: Row, outcome: Outcome, store: Store | None, eval_set: str, mode: str) -> None:
    """Draw the panel of one chunk."""
    verdict = rule_verdict(row, outcome.case.query.text, mode)
    blocks = [*_head(row), *_rule(verdict), *_body(row, outcome.case.query.text)]
    inert_text.show(blocks, key="explore.panel")
    _label(row, outcome, store, eval_set)
    _counterfactuals(row, outcome)
    _details(row)


def rule_verdict(row: Row, query: str, mode: str) -> Verdict | str | None:
    """What the chunk's rule says of the query, what is wrong with the rule, or None where there is none."""
    rule: Rule | str | None = read_rule(row.hit.chunk.query_must)
    return decide(rule, query, mode) if isinstance(rule, Rule) else rule


def _head(row: Row) -> Iterator[Block]:
    yield Block("lead", (Run(row.hit.chunk.title or row.hit.chunk.id),))
    weak = (Run("weak match", "plain"),) if row.weak else ()
    state = Run(verdict_word(row), "plain")
    yield Block("chips", (Run(f"rank {row.hit.rank}", "plain"), state, Run(label_word(row), "plain"), *weak))
    if row.reason:
        yield Block("text", (Run(row.reason),))


def _rule(verdict: Verdict | str | None) -> Iterator[Block]:
    if verdict is None:
        yield Block("note", (Run("No rule: query_must never drops this chunk."),))
    elif isinstance(verdict, str):
        yield Block("note", (Run(f"Its rule cannot be read, so it passes: {verdict}"),))
    else:
        yield Block("note", (Run("Its rule: the query must hold"),))
        yield Block("chips", tuple(Run(_chip(part), "held" if part.satisfied else "missing") for part in verdict.parts))


def _chip(part: Part) -> str:
    """One condition as words: its kind, its terms and the term that matched."""
    matched = f" → {part.term}" if part.term and len(part.terms) > 1 else ""
    return f"{KEYS.get(part.key, part.key)}: {chip_text(part)}{matched}"


def _body(row: Row, query: str) -> Iterator[Block]:
    text = row.hit.chunk.text
    if not text:
        yield Block("note", (Run("This list was recorded without the chunk’s text."),))
    else:
        yield Block("box", marked(text, query_words(text, query)))


def query_words(text: str, query: str) -> list[tuple[int, int]]:
    """Where the query's words stand in a text, common words left out."""
    wanted = {token.text for token in tokenize(query)} - STOP_WORDS
    return [(token.start, token.end) for token in tokenize(text) if token.text in wanted]


def _label(row: Row, outcome: Outcome, store: Store | None, eval_set: str) -> None:
    """Label in place: a button per grade, the standing one marked, and undo."""
    if store is None:
        return
    try:
        mine = labels.standing(store, eval_set, outcome.case.query.id, row.hit)
    except StoreError as error:
        say.problem("Labels cannot be read or kept here.", str(error))
        return
    st.markdown("**Is it relevant to this query?**")
    if labels.annotator() != who.ME:
        st.text(f"labelling as {labels.annotator()}")
    with st.container(horizontal=True, gap="small", key="label"):
        for word, grade in labels.CHOICES:
            now = mine is not None and mine.grade == grade
            st.button(
                word,
                key=f"label.{grade}",
                type="primary" if now else "secondary",
                disabled=bool(store.unwritable),
                on_click=_give,
                args=(store, eval_set, outcome, row, grade),
            )
        if mine is not None:
            st.button(
                "Undo", key="label.undo", icon=":material/undo:", type="tertiary", on_click=_undo, args=(store, mine)
            )
    if store.unwritable:
        st.text(store.unwritable)
    failed = st.session_state.pop(FAILED, "")
    if failed:
        say.problem("The last label was not stored.", failed)


FAILED = "labels.failed"


def _give(store: Store, eval_set: str, outcome: Outcome, row: Row, grade: int | None) -> None:
    session.select(row.hit.chunk.id)
    try:
        labels.give(store, eval_set, outcome.case, row.hit, grade)
    except StoreError as error:
        st.session_state[FAILED] = str(error)


def _undo(store: Store, mine: Any) -> None:
    try:
        labels.take_back(store, mine)
    except StoreError as error:
        st.session_state[FAILED] = str(error)


def _counterfactuals(row: Row, outcome: Outcome) -> None:
    """What would have kept a dropped chunk, per parameter."""
    if row.drop is None:
        return
    found = would_keep(outcome, row.drop)
    if found:
        st.markdown(f"**What would have kept it** in {row.drop.stage}, all else as it is")
        st.text("\n".join(f"• {one.text}" for one in found))


def _details(row: Row) -> None:
    chunk = row.hit.chunk
    facts: dict[str, Any] = {"id": chunk.id, "type": chunk.type, **_scores(row.hit.scores)}
    if chunk.ref_ids:
        facts["refers to"] = ", ".join(chunk.ref_ids)
    facts.update({key: value for key, value in chunk.metadata.items() if key != "rank"})
    with st.expander("Metadata"):
        st.text("\n".join(f"{key}: {value}" for key, value in facts.items() if value not in ("", None)))


def _scores(scores: Mapping[str, float]) -> dict[str, str]:
    return {kind: f"{value:.4f}" for kind, value in scores.items()}
