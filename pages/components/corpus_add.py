"""Bring documents in: a path or dropped files, what their columns mean, a look before, and the report after.

Documents' names and warnings are foreign text and stand in cells and inert text only.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.components import corpus_connect, corpus_recut, corpus_state, jobs, say, who
from pages.components.corpus_state import Order, Preview
from rag_core.corpus.columns import FIELDS, guess_columns
from rag_core.corpus.load import columns_of
from rag_core.errors import WinnowError
from rag_core.index.embed import BundledEmbedder
from rag_core.index.foreign import Connected
from rag_core.index.ingest import IngestReport
from rag_core.index.remote import KNOWN
from rag_core.project.deeds import INGEST
from rag_core.rechunk import Recut

NOT_THERE = ""
SHOWN = 100  # lines of a list in a report
PREVIEW = "corpus.preview"
PROBLEM = "corpus.problem"
MODEL_HELP = (
    "Empty: the bundled model, or the one that built the collection. Another one is asked of the endpoint in the "
    "environment, or of the one in endpoints.yaml that names it."
)
LEVEL_HELP = "Markdown: the deepest header that begins a chunk of its own."
SPLIT_HELP = (
    "A longer chunk is taken apart at paragraphs; otherwise what stands behind the model’s window is not embedded."
)


def show() -> None:
    """One's own documents on the left, how they are read on the right."""
    if refusal := who.refusal(INGEST):
        say.problem("Documents are added by admins.", refusal)
        return
    left, right = st.columns(2, gap="large")
    with left:
        paths = _documents()
    with right:
        order = _settings(paths)
        _buttons(order)
    _show_preview(order)


def _documents() -> tuple[str, ...]:
    """Where the documents are: a path on this machine, or files dropped here."""
    st.text_input(
        "Collection", key="corpus.name", max_chars=64, placeholder="my-rules", help="Letters, digits, dots, - and _."
    )
    path = st.text_input("Folder or file on this machine", key="corpus.path", placeholder="/home/me/rules")
    files = st.file_uploader(
        "or drop files",
        type=list(corpus_state.SUFFIXES),
        accept_multiple_files=True,
        key="corpus.files",
        help="Kept in the workspace under the collection’s name; dropping a file again replaces it.",
    )
    st.caption("Markdown, JSONL, CSV, TSV, Parquet, BEIR folders, OpenAPI documents (YAML, JSON).")
    name = st.session_state.get("corpus.name") or ""
    if files and name:
        try:
            return (str(corpus_state.store_dropped(name, files)),)
        except (WinnowError, OSError) as error:
            say.problem("A dropped file cannot be taken.", str(error))
    return (path.strip(),) if path and path.strip() else ()


def _settings(paths: tuple[str, ...]) -> Order:
    """How the documents are read."""
    level = st.segmented_control(
        "Header level", (2, 3, 4), default=3, required=True, key="corpus.level", help=LEVEL_HELP
    )
    split = st.toggle("Split chunks longer than the model reads", key="corpus.split", help=SPLIT_HELP)
    model, dimension = _model()
    name = st.session_state.get("corpus.name") or ""
    return Order(name, paths, int(level or 3), split, _columns(paths), model, dimension)


def _model() -> tuple[str, int | None]:
    """What embeds, where it is not the bundled model, and the width of its vectors where nobody knows it."""
    model = st.text_input("Embedding model", key="corpus.model", placeholder="the bundled one", help=MODEL_HELP).strip()
    if model in ("", BundledEmbedder.name):
        return "", None
    st.caption("The texts go to the endpoint that serves this model.")
    if model in KNOWN:
        return model, None
    width = st.number_input("Dimensions of its vectors", 1, 65536, value=None, step=1, key="corpus.dimension")
    return model, width


def _columns(paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Which column of tables and JSON lines is which field; the usual names are proposed."""
    try:
        names = columns_of(paths) if paths else []
    except WinnowError:
        return ()  # said when it is previewed or ingested
    if not names:
        return ()
    st.markdown("**Which column holds what**; the others become metadata")
    proposed = guess_columns(names)
    chosen: dict[str, str] = {}
    grid = st.columns(2)
    for position, field in enumerate(FIELDS):
        options = [NOT_THERE, *names]
        picked = grid[position % 2].selectbox(
            field,
            options,
            index=options.index(proposed.get(field, NOT_THERE)),
            format_func=lambda name: name or "none",
            key=f"corpus.column.{field}.{hash(tuple(names))}",
        )
        if picked:
            chosen[field] = picked
    return tuple(chosen.items())


def _buttons(order: Order) -> None:
    with st.container(horizontal=True):
        look = st.button("Preview", icon=":material/visibility:", key="corpus.look")
        bring = st.button(
            "Ingest", icon=":material/play_arrow:", type="primary", disabled=jobs.running(), key="corpus.ingest"
        )
    # Acted on here and not in a callback: what was typed right before the press is in the order of this run only.
    if look:
        _look(order)
    if bring:
        _bring_in(order)
    if st.session_state.get(PROBLEM):
        say.problem("These documents cannot be taken as they are; nothing was written.", st.session_state[PROBLEM])


def _look(order: Order) -> None:
    st.session_state[PROBLEM] = ""
    st.session_state.pop(PREVIEW, None)
    try:
        st.session_state[PREVIEW] = (order, corpus_state.preview(order))
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)


def _bring_in(order: Order) -> None:
    st.session_state[PROBLEM] = ""
    st.session_state.pop(PREVIEW, None)
    try:
        corpus_state.check(order)
    except WinnowError as error:
        st.session_state[PROBLEM] = str(error)
        return
    corpus_state.bring_in(order)
    st.rerun()


def _show_preview(order: Order) -> None:
    """What the documents hold, as long as the order is the one that was looked at."""
    looked_at, found = st.session_state.get(PREVIEW, (None, None))
    if looked_at != order or not isinstance(found, Preview):
        return
    st.markdown(f"**Chunks: {found.chunk_count:,}, documents: {found.document_count:,}**; nothing is written yet")
    documents, chunks = st.columns([1, 2], gap="medium")
    documents.dataframe(
        {"document": list(found.documents), "chunks": list(found.documents.values())},
        hide_index=True,
        alt=f"The first {len(found.documents)} documents with their chunks",
    )
    chunks.dataframe(
        {
            "title": [row[1] for row in found.rows],
            "type": [row[2] for row in found.rows],
            "characters": [row[3] for row in found.rows],
            "id": [row[0] for row in found.rows],
        },
        hide_index=True,
        alt=f"The first {len(found.rows)} chunks",
    )
    _lists(found.warnings, found.others)


def show_report() -> None:
    """What the last job did, until it is put away."""
    job = jobs.current()
    if job is None or not job.over.is_set():
        return
    if job.problem:
        say.problem("The work ended with a problem; what was done before is kept.", job.problem)
    elif job.stopped:
        say.problem("Stopped. What was embedded is kept; the collection stands as it was.", job.stopped)
    elif isinstance(job.report, IngestReport):
        _report(job.report)
    elif isinstance(job.report, Connected):
        corpus_connect.report(job.report)
    elif isinstance(job.report, Recut):
        with st.container(border=True):
            corpus_recut.report(job.report)
    else:
        st.markdown(":material/check: **The collection is up to date already**: nothing was embedded.")
    st.button("Close this report", key="corpus.close", on_click=jobs.put_away, type="tertiary")


def _report(report: IngestReport) -> None:
    with st.container(border=True):
        st.markdown(
            f":material/check: **Chunks in the collection: {report.chunks:,}**; from {report.documents:,} documents "
            f"read, {report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, "
            f"{report.embedded:,} embedded; "
            f"{report.seconds_embedding:.1f} s embedding, {report.seconds_storing:.1f} s reading and storing"
        )
        if report.too_long:
            st.markdown(
                f":material/warning: **Chunks longer than the {report.window} tokens the model reads: "
                f"{len(report.too_long):,}**; what stands behind is not embedded."
            )
            st.dataframe(
                {
                    "chunk": [identity for identity, _ in report.too_long],
                    "tokens": [tokens for _, tokens in report.too_long],
                },
                hide_index=True,
                height=min(38 + 35 * len(report.too_long), 220),
                alt=f"{len(report.too_long)} chunks that are too long, with their tokens",
            )
        _lists(report.warnings, report.passed_over_files)


def _lists(warnings: Sequence[str], others: Sequence[str]) -> None:
    for title, lines in ((f"Warnings: {len(warnings):,}", warnings), (f"Files passed over: {len(others):,}", others)):
        if lines:
            more = [f"… and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
            say.remarks(title, [*lines[:SHOWN], *more])
