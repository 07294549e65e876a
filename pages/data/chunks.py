"""The chunks of a source page by page, narrowed by text, type and document, sorted, and the selected one in full.

Chunk text, titles and documents' names are foreign: they stand in cells and inert text only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import streamlit as st

from pages.components import inert_text, say
from pages.components.inert_text import Block, TextRun, marked
from pages.data import rules
from pages.widgets.take_along import choose
from rag_core.errors import InputError, WinnowError
from rag_core.index.browse import ChunkLine, Overview, Wanted, chunk_of, page_among, page_of
from rag_core.index.store import StoredChunk
from rag_core.project.project import COLLECTION
from rag_core.project.session import Session

PAGE_SIZE = 50
TABLE, CHUNK, PAGE = "data.chunks", "data.chunk", "data.page"

ORDERS = {"id": "as they stand", "title": "title", "longest": "longest", "shortest": "shortest", "rules": "with a rule"}
LONGEST_TEXT = 100_000  # characters drawn of one chunk
ANY = "any"


def show(session: Session, numbers: Overview) -> None:
    """Filters, the table, and the selected chunk beside it."""
    wanted = _filters(session.project.name, numbers)
    total, lines, start = _page(session, wanted)
    side_by_side = st.container(horizontal=True, gap="medium")  # wraps where the window is narrow
    with side_by_side.container(width=720):
        if lines:
            st.markdown(f"{start + 1:,}–{start + len(lines):,} of **{total:,}** chunks")
            _table(lines, numbers)
        else:
            st.markdown("No chunk fits: widen the filters above.")
    with side_by_side.container(width="stretch"):
        _chosen(session, wanted, numbers)


def _filters(project: str, numbers: Overview) -> Wanted:
    def first_page() -> None:
        st.session_state[PAGE] = 1

    text, type_, document, order = st.columns([3, 2, 2, 2])
    typed = text.text_input(
        "Holds",
        key=f"data.holds.{project}",
        on_change=first_page,
        placeholder="words in text, title or id",
        max_chars=200,
    )
    types = [ANY, *(group.type for group in numbers.groups)]
    kind = type_.selectbox(
        "Type", types, format_func=lambda name: name or "no type", key=f"data.type.{project}", on_change=first_page
    )
    source = ""
    if numbers.documents:
        source = document.selectbox(
            "Document",
            ["", *numbers.documents],
            format_func=lambda path: PurePath(path).name or ANY,
            key=f"data.document.{project}",
            on_change=first_page,
        )
    sort = order.selectbox(
        "Order", list(ORDERS), format_func=lambda name: ORDERS[name], key=f"data.order.{project}", on_change=first_page
    )
    return Wanted(typed or "", None if kind == ANY else kind, source or "", str(sort))


@st.cache_resource(max_entries=64, show_spinner=False)
def _page_among(
    workspace: str, project: str, revision: str, wanted: Wanted, start: int, _session: Session
) -> tuple[int, list[ChunkLine]]:
    """A page of recorded lists, kept: 250,000 chunks are three seconds to look through."""
    return page_among(_session.source.chunks, wanted, start, PAGE_SIZE)


def _page(session: Session, wanted: Wanted) -> tuple[int, list[ChunkLine], int]:
    """(chunks in all, those of the page, where it starts)."""

    def lines_from(start: int) -> tuple[int, list[ChunkLine]]:
        source = session.project.source
        if source.kind == COLLECTION:
            return page_of(session.workspace, source.name, wanted, start, PAGE_SIZE)
        return _page_among(
            str(session.workspace), session.project.name, session.source.revision, wanted, start, session
        )

    number = int(st.session_state.get(PAGE, 1))
    total, lines = lines_from((number - 1) * PAGE_SIZE)
    pages = max(1, -(-total // PAGE_SIZE))
    if number > pages:
        st.session_state[PAGE] = number = 1
        total, lines = lines_from(0)
    if pages > 1:
        st.pagination(pages, key=PAGE)
    return total, lines, (number - 1) * PAGE_SIZE


def _table(lines: list[ChunkLine], numbers: Overview) -> None:
    choose(
        {
            "title": [line.title or line.begins or line.id for line in lines],
            "type": [line.type for line in lines],
            numbers.unit: [f"{line.tokens:,}{' ✂' if 0 < numbers.window < line.tokens else ''}" for line in lines],
            "rule": ["✓" if line.has_rule else "" for line in lines],
            **({"document": [PurePath(line.document).name for line in lines]} if numbers.documents else {}),
        },
        [line.id for line in lines],
        TABLE,
        f"{len(lines)} chunks with title, type, length, rule and document",
        CHUNK,
        keep=False,
        tall=460,
        config={
            "title": st.column_config.TextColumn("title", width=380),
            "type": st.column_config.TextColumn("type", width=80),
            numbers.unit: st.column_config.TextColumn(numbers.unit, width=80),
            "rule": st.column_config.TextColumn("rule", width=46),
            "document": st.column_config.TextColumn("document", width=130),
        },
    )
    if any(0 < numbers.window < line.tokens for line in lines):
        st.caption(f"✂ more than the {numbers.window} tokens the model reads; the rest of the text is not embedded.")


def _chosen(session: Session, wanted: Wanted, numbers: Overview) -> None:
    identity = st.session_state.get(CHUNK, "")
    if not identity:
        st.markdown(":gray[Select a chunk to read its full text, its rule and its metadata.]")
        return
    source = session.project.source
    try:
        if source.kind == COLLECTION:
            row = chunk_of(session.workspace, source.name, identity)
        elif chunk := session.source.by_id.get(identity):
            row = StoredChunk(chunk, "", "", len(chunk.text))
        else:
            raise InputError(f"project {session.project.name} has no chunk {identity[:80]!r}, expected one of its ids")
    except WinnowError as error:
        say.problem("This chunk cannot be shown.", str(error))
        return
    inert_text.show(_blocks(row, wanted.text, numbers), key="data.panel")
    if row.chunk.query_must is not None:
        st.markdown("**Its rule**: what a query must hold")
        st.json(row.chunk.query_must)
    st.button("Edit its rule", icon=":material/edit:", key="data.chunk_rule", on_click=rules.edit, args=(row.chunk.id,))
    with st.expander("Metadata"):
        facts = {"id": row.chunk.id, "document": row.document, "refers to": ", ".join(row.chunk.ref_ids)}
        facts |= {str(key): str(value) for key, value in row.chunk.metadata.items()}
        st.text("\n".join(f"{key}: {value}" for key, value in facts.items() if value))


def _blocks(row: StoredChunk, looked_for: str, numbers: Overview) -> Iterator[Block]:
    text = row.chunk.text[:LONGEST_TEXT]
    yield Block("lead", (TextRun(row.chunk.title or row.chunk.id),))
    facts = [row.chunk.type, f"{len(row.chunk.text):,} characters"]
    if numbers.window:
        facts.append(f"{row.tokens:,} tokens with its title")
    yield Block("chips", tuple(TextRun(fact, "plain") for fact in facts if fact))
    if 0 < numbers.window < row.tokens:
        yield Block(
            "note", (TextRun(f"Longer than the {numbers.window} tokens the model reads: its rest is not embedded."),)
        )
    yield Block("box", marked(text, places(text, looked_for)))
    if len(row.chunk.text) > len(text):
        yield Block("note", (TextRun(f"The first {LONGEST_TEXT:,} of {len(row.chunk.text):,} characters."),))


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
