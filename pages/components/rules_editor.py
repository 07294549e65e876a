"""Editing one chunk's rule as JSON: what the text says now, whether it can be read, and saving it after the check.

Chunk text, titles and ids are foreign: options, inert text and the text area show them as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from pages.components import inert_text, rules_store, say
from pages.components.inert_text import Block, Run
from pages.components.rules_chips import chips, rule_text
from pages.components.rules_state import Bench
from rag_core.errors import InputError
from rag_core.files import parse_json
from rag_core.rules.explain import would_stay_text
from rag_core.rules.match import decide
from rag_core.rules.model import Rule
from rag_core.rules.parsing import parse_rule, read_rule
from rag_core.rules.proposals import check_proposals
from rag_core.types import Chunk

CHUNK = "rules.chunk"
TEXT_AREA_HEIGHT = 190
LONGEST_TITLE = 36  # characters
EMPTY = '{"contain_one_of": [["one term", "another"], ["a term of a second group"]]}'


@dataclass(frozen=True)
class Draft:
    """A rule that differs from the stored one; None takes the chunk's rule away."""

    chunk_id: str
    rule: Rule | None


def show(bench: Bench, query: str, chunks: Sequence[Chunk]) -> Draft | None:
    """Choose a chunk and edit its rule; what differs from the stored rule comes back."""
    if not chunks:
        st.markdown("The collection gives no chunk for this query.")
        return None
    titles = {chunk.id: _option(chunk) for chunk in chunks}
    if st.session_state.get(CHUNK) not in titles:
        st.session_state[CHUNK] = chunks[0].id
    chosen = st.selectbox("Chunk", list(titles), format_func=lambda one: titles[one], key=CHUNK)
    chunk = bench.by_id[str(chosen)]
    stored = stored_text(chunk)
    key = f"rules.text.{bench.revision}.{chunk.id}"
    text = st.text_area("Its rule as JSON; empty: no rule", stored, height=TEXT_AREA_HEIGHT, key=key, placeholder=EMPTY)
    try:
        rule = read_draft(text or "", chunk.id)
    except InputError as error:
        say.problem("This rule cannot be read; the list stands as stored.", str(error))
        rule, draft = _readable(chunk), None
    else:
        draft = Draft(chunk.id, rule) if (text or "").strip() != stored.strip() and rule != _readable(chunk) else None
    _buttons(bench, chunk, key)
    _verdict(bench, chunk, rule, query)
    return draft


def short_title(chunk: Chunk) -> str:
    """The title for a narrow place: of a long one both ends, since siblings often differ in the last word alone."""
    words = chunk.title or chunk.id
    if len(words) <= LONGEST_TITLE:
        return words
    begins, ends = words[:14].rsplit(" ", 1)[0], words[-20:].split(" ", 1)[-1]
    return f"{begins} … {ends}"


def _option(chunk: Chunk) -> str:
    words = short_title(chunk)
    return words if chunk.query_must is not None else f"{words} (no rule)"


def _readable(chunk: Chunk) -> Rule | None:
    rule = read_rule(chunk.query_must)
    return rule if isinstance(rule, Rule) else None


def stored_rule(bench: Bench) -> Rule | None:
    """The stored rule of the chunk at hand, if it has one that can be read."""
    chunk = bench.by_id.get(st.session_state.get(CHUNK, ""))
    return _readable(chunk) if chunk is not None else None


def stored_text(chunk: Chunk) -> str:
    """The stored rule as text to edit; one that cannot be read stands there as it is."""
    rule = read_rule(chunk.query_must)
    if rule is None:
        return ""
    if isinstance(rule, Rule):
        return rule_text(rule)
    raw = chunk.query_must
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=_plain, indent=1)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def read_draft(text: str, chunk_id: str) -> Rule | None:
    """The rule of an edited text, None for an empty one; an InputError says in one sentence what is wrong."""
    if not text.strip():
        return None
    return parse_rule(parse_json(text, "the rule"), f"chunk {chunk_id[:80]}")


def _buttons(bench: Bench, chunk: Chunk, key: str) -> None:
    with st.container(horizontal=True):
        st.button(
            "Save this rule",
            type="primary",
            icon=":material/save:",
            key="rules.save",
            on_click=_save,
            args=(bench, chunk, key),
        )
        st.button("Reset", icon=":material/undo:", key="rules.reset", on_click=_reset, args=(chunk, key))


def _reset(chunk: Chunk, key: str) -> None:
    st.session_state[key] = stored_text(chunk)


def _save(bench: Bench, chunk: Chunk, key: str) -> None:
    """Check the rule that stands in the text area and store it as a batch of one."""
    try:
        rule = read_draft(st.session_state.get(key) or "", chunk.id)
    except InputError as error:
        rules_store.refuse(str(error))
        return
    if rule == read_rule(chunk.query_must):
        rules_store.refuse("the rule is the stored one already")
        return
    if rule is not None:
        checked = check_proposals({chunk.id: rule}, bench.chunks, bench.cases, bench.min_grade)
        if checked.refused:
            rules_store.refuse(f"the rule {checked.refused[0].reason}")
            return
    rules_store.store(bench.collection, {chunk.id: rule}, "edited beside a query" if rule else "rule taken away")


def _verdict(bench: Bench, chunk: Chunk, rule: Rule | None, query: str) -> None:
    """What the rule says of the query, and the chunk's text."""
    blocks = [Block("text", (Run(chunk.title or chunk.id),))]
    if rule is None:
        words = "No rule: the chunk is never dropped."
        blocks.append(Block("note", (Run(words),)))
    else:
        verdict = decide(rule, query, bench.mode)
        blocks.append(Block("note", (Run("On this query: kept" if verdict.satisfied else "On this query: dropped"),)))
        blocks.append(Block("chips", chips(verdict)))
        if not verdict.satisfied:
            blocks.append(Block("note", (Run(would_stay_text(verdict)),)))
    blocks.append(Block("box", (Run(chunk.text or "This chunk has no text."),)))
    inert_text.show(blocks, key="rules.chunk.read")
