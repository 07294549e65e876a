"""The chunks of a collection page by page, narrowed by text, type and document, and the selected one in full.

Chunk text, titles and documents' names are foreign: they stand in cells and inert text only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import streamlit as st

from pages.components import inert_text, resources, say
from pages.components.corpus_state import CHUNK, PAGE
from pages.components.inert_text import Block, Run, marked
from rag_core.errors import WinnowError
from rag_core.index.browse import Line, Overview, Wanted, chunk_of, page_of
from rag_core.index.store import Row

PAGE_SIZE = 50
TABLE = "corpus.chunks"
TABLE_WIDTH = 560  # pixels
LONGEST_TEXT = 100_000  # characters drawn of one chunk
ANY = "any"


def show(collection: str, numbers: Overview) -> None:
    """Filters, the table, and the selected chunk beside it."""
    wanted = _filters(collection, numbers)
    total, lines, start = _page(collection, wanted)
    side_by_side = st.container(horizontal=True, gap="medium")
    with side_by_side.container(width=TABLE_WIDTH):
        if lines:
            st.markdown(f"{start + 1:,}–{start + len(lines):,} of **{total:,}** chunks")
            _table(lines, numbers.window)
        else:
            st.markdown("No chunk fits: widen the filters above.")
    with side_by_side.container(width="stretch"):
        _chosen(collection, wanted, numbers.window)


def _filters(collection: str, numbers: Overview) -> Wanted:
    text, type_, document = st.columns([2, 1, 2])
    typed = text.text_input(
        "Holds",
        key=f"corpus.holds.{collection}",
        on_change=_first_page,
        placeholder="words in text, title or id",
        max_chars=200,
    )
    types = [ANY, *(group.type for group in numbers.groups)]
    kind = type_.selectbox(
        "Type",
        types,
        format_func=lambda name: name or "no type",
        key=f"corpus.type.{collection}",
        on_change=_first_page,
    )
    documents = ["", *numbers.documents]
    source = document.selectbox(
        "Document",
        documents,
        format_func=lambda path: PurePath(path).name or ANY,
        key=f"corpus.document.{collection}",
        on_change=_first_page,
    )
    return Wanted(typed or "", None if kind == ANY else kind, source or "")


def _first_page() -> None:
    st.session_state[PAGE] = 1


def _page(collection: str, wanted: Wanted) -> tuple[int, list[Line], int]:
    """(chunks in all, those of the page, where it starts)."""
    number = int(st.session_state.get(PAGE, 1))
    total, lines = page_of(resources.workspace(), collection, wanted, (number - 1) * PAGE_SIZE, PAGE_SIZE)
    pages = max(1, -(-total // PAGE_SIZE))
    if number > pages:
        st.session_state[PAGE] = number = 1
        total, lines = page_of(resources.workspace(), collection, wanted, 0, PAGE_SIZE)
    if pages > 1:
        st.pagination(pages, key=PAGE)
    return total, lines, (number - 1) * PAGE_SIZE


def _table(lines: list[Line], window: int) -> None:
    ids = [line.id for line in lines]
    now = st.session_state.get(CHUNK, "")
    st.session_state[TABLE] = {"selection": {"rows": [ids.index(now)] if now in ids else [], "columns": []}}
    st.dataframe(
        {
            "title": [line.title or line.id for line in lines],
            "type": [line.type for line in lines],
            "tokens": [f"{line.tokens:,}{' ✂' if line.tokens > window else ''}" for line in lines],
            "rule": ["✓" if line.has_rule else "" for line in lines],
            "document": [PurePath(line.document).name for line in lines],
            "id": ids,
        },
        hide_index=True,
        key=TABLE,
        on_select=lambda: _selected(ids),
        selection_mode="single-row",
        height=min(38 + 35 * len(lines), 460),
        column_config={
            "title": st.column_config.TextColumn("title", width=220),
            "type": st.column_config.TextColumn("type", width=80),
            "tokens": st.column_config.TextColumn("tokens", width=70),
            "rule": st.column_config.TextColumn("rule", width=46),
            "document": st.column_config.TextColumn("document", width=130),
        },
        alt=f"{len(lines)} chunks with title, type, tokens, rule, document and id",
    )
    if any(line.tokens > window for line in lines):
        st.caption(f"✂ more than the {window} tokens the model reads; the rest of the text is not embedded.")


def _selected(ids: list[str]) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    st.session_state[CHUNK] = ids[rows[0]] if rows and rows[0] < len(ids) else ""


def _chosen(collection: str, wanted: Wanted, window: int) -> None:
    identity = st.session_state.get(CHUNK, "")
    if not identity:
        st.markdown(":gray[Select a chunk to read its full text, its rule and its metadata.]")
        return
    try:
        row = chunk_of(resources.workspace(), collection, identity)
    except WinnowError as error:
        say.problem("This chunk cannot be shown.", str(error))
        return
    inert_text.show(_blocks(row, wanted.text, window), key="corpus.panel")
    if row.chunk.query_must is not None:
        st.markdown("**Its rule**: what a query must hold")
        st.json(row.chunk.query_must)
    with st.expander("Metadata"):
        facts = {"id": row.chunk.id, "document": row.document, "refers to": ", ".join(row.chunk.ref_ids)}
        facts |= {str(key): str(value) for key, value in row.chunk.metadata.items()}
        st.text("\n".join(f"{key}: {value}" for key, value in facts.items() if value))


def _blocks(row: Row, looked_for: str, window: int) -> Iterator[Block]:
    text = row.chunk.text
    yield Block("lead", (Run(row.chunk.title or row.chunk.id),))
    facts = [row.chunk.type, f"{row.tokens:,} tokens with its title", f"{len(text):,} characters"]
    yield Block("chips", tuple(Run(fact, "plain") for fact in facts if fact))
    if row.tokens > window:
        yield Block("note", (Run(f"Longer than the {window} tokens the model reads: its rest is not embedded."),))
    yield Block("box", marked(text[:LONGEST_TEXT], places(text[:LONGEST_TEXT], looked_for)))
    if len(text) > LONGEST_TEXT:
        yield Block("note", (Run(f"The first {LONGEST_TEXT:,} of {len(text):,} characters."),))


def places(text: str, looked_for: str) -> list[tuple[int, int]]:
    """Where a text holds what was looked for, in any case; none where folding changes its length."""
    wanted, folded = looked_for.strip().casefold(), text.casefold()
    if not wanted or len(folded) != len(text):
        return []
    found, at = [], folded.find(wanted)
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = folded.find(wanted, at + len(wanted))
    return found
