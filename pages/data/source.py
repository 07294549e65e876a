"""Asking for a project's source: documents, a Chroma collection, or recorded lists; and the work that brings it in.

Names from documents and stores are foreign text: they stand in cells and lists of choices only. What was typed is
looked at without writing anything; the project is made when the work begins.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import streamlit as st

from pages import state
from pages.components import jobs, resources, say, who
from pages.components.act import refusing
from pages.widgets.take_along import table
from rag_core.corpus.columns import FIELDS, guess_columns
from rag_core.corpus.load import columns_of
from rag_core.errors import WinnowError
from rag_core.index.embed import KNOWN, BundledEmbedder, WordsOnly
from rag_core.index.foreign import FIELDS as RECORD_FIELDS
from rag_core.index.foreign import Foreign, list_foreign
from rag_core.index.foreign_place import IN_PLACE_WARNING
from rag_core.index.ingest import IngestLook
from rag_core.project import intake
from rag_core.project.deeds import CHANGE_PROJECT, CONNECT, INGEST, READ_FILES
from rag_core.project.intake import Chroma, Documents, Intake
from rag_core.project.project import Project
from rag_core.sources.mapping import (
    MAPPED,
    OWN,
    LogReading,
    likely_id,
    likely_paths,
    likely_preset,
    paths_of,
    presets,
    read_log,
    records_of,
)
from rag_core.types import SCORES

DOCUMENTS, CHROMA, LISTS = "Documents", "Chroma collection", "Recorded lists"
KINDS = (DOCUMENTS, CHROMA, LISTS)
LOGS = ("json", "csv", "tsv", "parquet")
SUFFIXES = ("md", "markdown", "txt", "jsonl", "ndjson", "csv", "tsv", "parquet", "json", "yaml", "yml")
SHOWN = 20  # chunks of a look
NONE = ""
PROBLEM, LOOKED, FOUND, STAGED = "data.problem", "data.looked", "data.chroma_found", "data.staged"
FIELD_NAMES = {"title": "title", "type": "type", "file": "file", "ref_ids": "references", "query_must": "rule"}
"""A field of a record → how it is called here."""

CALLED = {"query": "question", "query_id": "question’s id", "hits": "its chunks", "relevant": "ids of relevant chunks"}
"""A field of a log → how it is called here."""

MODEL_HELP = (
    "Empty: the bundled model, or the one that built the collection; none: words alone. Another one is asked of the "
    "endpoint in the environment, or of the one in endpoints.yaml that names it."
)
LEVEL_HELP = "Markdown: the deepest header that begins a chunk of its own."
SPLITS = {"Markdown": None, "everything": True, "nothing": False}
SPLIT_HELP = (
    "A longer chunk is taken apart at headers, bold lines, paragraphs and rows; otherwise what stands behind the "
    "model’s window is not embedded. Chunks of tables and JSON lines keep their ids unless everything is split."
)
SKIP_HELP = (
    "A record whose text is empty, missing or over a million characters is named and left out; otherwise it refuses "
    "its file."
)
CLOUD_HELP = "With the key, tenant and database of CHROMA_API_KEY, CHROMA_TENANT and CHROMA_DATABASE."
STORE_MODEL_HELP = "What embeds the queries. Leave it empty where the store says which model it was built with."


def job_of(project: Project) -> str:
    """The kind under which the work on a project's source runs."""
    return f"data {project.name}"


def ask(project: Project | None, kinds: Sequence[str] = KINDS) -> None:
    """Everything that brings a source in, for a project that has none, or for one that is made by it."""
    if refusal := who.refusal(INGEST):
        say.problem("Sources are brought in by admins.", refusal)
        return
    kind = kinds[0]
    if len(kinds) > 1:
        kind = st.segmented_control(
            "Source", kinds, default=kinds[0], required=True, key="data.kind", label_visibility="collapsed"
        ) or kinds[0]  # fmt: skip
    with st.container(width=860):
        if kind == DOCUMENTS:
            _documents(project)
        elif kind == CHROMA:
            _chroma(project)
        else:
            _lists(project)
        if st.session_state.get(PROBLEM):
            say.problem("This cannot be taken as it is; nothing was written.", st.session_state[PROBLEM])


def _name(project: Project | None, proposed: str) -> str:
    """The name of the project: its own, else what is typed, else the proposed one."""
    if project is not None:
        return project.name
    typed = st.text_input(
        "Name", key="data.name", max_chars=64, placeholder=proposed or "my-handbook", width=260,
        help="Letters, digits, dots, - and _. Left empty, the name is that of the file or folder.",
    )  # fmt: skip
    return (typed or "").strip() or proposed


# Documents


def _documents(project: Project | None) -> None:
    """A path or dropped files, what their columns mean, a look, and the button that ingests."""
    st.caption("Markdown, text, JSONL, JSON lists, CSV, TSV, Parquet, BEIR folders, OpenAPI documents (YAML, JSON).")
    files = st.file_uploader(
        "Drop files",
        type=list(SUFFIXES),
        accept_multiple_files=True,
        key="data.files",
        help="Kept in the workspace under the project’s name; dropping a file again replaces it.",
    )
    typed = st.text_input("or a folder or file on this machine", key="data.path", placeholder="/home/me/handbook") or ""
    paths: tuple[str, ...] = (typed.strip(),) if typed.strip() else ()
    proposed = intake.proposed_name(paths[0], resources.workspace()) if paths else ""
    if files:
        # of a project that has no name yet the files lie in a folder of their own
        folder = project.name if project else st.session_state.setdefault(STAGED, f"staged-{secrets.token_hex(8)}")
        try:
            who.check(INGEST, folder)
            kept = intake.keep_dropped(resources.workspace(), folder, [(file.name, file.getvalue()) for file in files])
        except (WinnowError, OSError) as error:
            say.problem("A dropped file cannot be taken.", str(error))
            return
        paths = (*paths, str(kept))
        proposed = proposed or intake.proposed_name(files[0].name, resources.workspace())
    columns = _columns(paths)
    with st.expander("How they are read"):
        level = st.segmented_control(
            "Header level", (2, 3, 4), default=3, required=True, key="data.level", help=LEVEL_HELP
        )
        split = st.segmented_control(
            "Split what is longer than the model reads", list(SPLITS), default="Markdown", required=True,
            key="data.split", help=SPLIT_HELP,
        )  # fmt: skip
        skip = st.toggle("Leave out records without a text", key="data.skip_bad", help=SKIP_HELP)
        model, dimension = _model()
    order = Documents(paths, int(level or 3), SPLITS[split or "Markdown"], columns, model, dimension, skip)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = _name(project, proposed)
        bring = st.button(
            "Ingest", icon=":material/play_arrow:", type="primary", disabled=jobs.running(), key="data.ingest"
        )
        look = st.button("Preview", icon=":material/visibility:", key="data.look", help="Reads and writes nothing.")
    # Acted on here and not in a callback: what was typed right before the press is in the order of this run only.
    if look:
        _look(order, name or "preview")
    if bring:
        _begin(project, name, order)
    looked_at, seen = st.session_state.get(LOOKED, (None, None))
    if looked_at == order and seen is not None:
        _show_look(seen)


def _columns(paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Which column of tables and JSON lines is which field; the usual names are proposed."""
    try:
        names = columns_of(paths) if paths and not who.refusal(INGEST) else []
    except (WinnowError, OSError):
        return ()  # said when it is looked at or ingested
    if not names:
        return ()
    st.markdown("**Which column holds what**; the others become metadata")
    return _mapping(FIELDS, {}, names, guess_columns(names), "data.column")


def _mapping(
    fields: Sequence[str], called: Mapping[str, str], names: Sequence[str], proposed: Mapping[str, str], key: str
) -> tuple[tuple[str, str], ...]:
    """A list of choices a field, at what is proposed; (field, name) of those that stand for something."""
    grid, options = st.columns(3), [NONE, *names]
    chosen = []
    for position, field in enumerate(fields):
        picked = grid[position % 3].selectbox(
            called.get(field, field),
            options,
            index=options.index(proposed[field]) if proposed.get(field) in options else 0,
            format_func=lambda name: name or "none",
            key=f"{key}.{field}.{hash(tuple(names))}",
        )
        if picked:
            chosen.append((field, picked))
    return tuple(chosen)


def _model() -> tuple[str, int | None]:
    """What embeds, where it is not the bundled model, and the width of its vectors where nobody knows it."""
    model = st.text_input("Embedding model", key="data.model", placeholder="the bundled one", help=MODEL_HELP).strip()
    if model in ("", BundledEmbedder.name, WordsOnly.name):
        return model, None
    st.caption("The texts go to the endpoint that serves this model.")
    if model in KNOWN:
        return model, None
    width = st.number_input("Dimensions of its vectors", 1, 65536, value=None, step=1, key="data.dimension")
    return model, width


def _look(order: Documents, collection: str) -> None:
    """Read and check the documents as an ingest would, and write nothing."""
    st.session_state.pop(LOOKED, None)
    # a path names any file the server can read
    with refusing(PROBLEM), who.doing(READ_FILES, " ".join(order.paths)):
        st.session_state[LOOKED] = (order, intake.seen(resources.workspace(), collection, order))


def _show_look(seen: IngestLook) -> None:
    documents, chunks = seen.corpus.documents, seen.corpus.chunks
    st.markdown(f"**Chunks: {len(chunks):,}, documents: {len(documents):,}**; nothing is written yet")
    st.text("\n".join(seen.figures))
    table(
        {
            "title": [one.title for one in chunks[:SHOWN]],
            "type": [one.type for one in chunks[:SHOWN]],
            "characters": [len(one.text) for one in chunks[:SHOWN]],
            "tokens": list(seen.tokens[:SHOWN]),
            "id": [one.id for one in chunks[:SHOWN]],
        },
        "data.looked",
        f"The first {len(chunks[:SHOWN])} chunks",
    )
    remarks(seen.corpus.warnings, [str(path) for path in seen.corpus.others], seen.corpus.skipped)


# Chroma


def _chroma(project: Project | None) -> None:
    """Where the store is, what it holds, what its metadata means, and the button that connects."""
    left, right = st.columns(2)
    path = left.text_input("Folder that Chroma wrote", key="data.chroma_path", placeholder="/home/me/chroma").strip()
    url = right.text_input(
        "or the address of a server", key="data.chroma_url", placeholder="http://127.0.0.1:8000"
    ).strip()
    cloud = right.toggle("or Chroma Cloud", key="data.chroma_cloud", help=CLOUD_HELP)
    in_place = left.toggle("Open it in place", key="data.chroma_in_place", disabled=bool(url) or cloud)
    in_place = in_place and not (url or cloud)
    if in_place:
        st.markdown(f":material/warning: {IN_PLACE_WARNING}.")
    elif not (url or cloud):
        st.caption("A copy of the folder is read by a process of its own: the original stays as it is, bit for bit.")
    order = Chroma("", path, url, cloud, in_place)
    named = bool(path or url or cloud)
    if named:
        try:
            _ = order.place
        except WinnowError as error:
            say.problem("This is no place of a store.", str(error))
            named = False
    if st.button("Look what is there", icon=":material/search:", key="data.chroma_look", disabled=not named):
        st.session_state.pop(FOUND, None)
        # a path names any folder the server can read
        with refusing(PROBLEM), who.doing(READ_FILES, order.place.said), st.spinner("Reading the store …"):
            st.session_state[FOUND] = (order, list_foreign(order.place, resources.workspace()))
    looked_at, found = st.session_state.get(FOUND, (None, []))
    if named and looked_at == order:
        _choose_collection(project, order, found)


def _choose_collection(project: Project | None, place: Chroma, collections: Sequence[Foreign]) -> None:
    """The collections of the store as a table, one of them with what its metadata means."""
    st.markdown(f"**Collections in the store: {len(collections):,}**")
    if not collections:
        return
    table(
        {
            "collection": [one.name for one in collections],
            "records": [one.count for one in collections],
            "distance": [str(one.metric) for one in collections],
            "dimensions": [one.dimension for one in collections],
            "model it names": [one.model or "none" for one in collections],
        },
        "data.source.table",
        f"{len(collections)} collections with records, distance, dimensions and model",
    )
    by_name = {one.name: one for one in collections}
    left, right = st.columns(2)
    name = str(left.selectbox("Which one", list(by_name), key="data.chroma_name"))
    model = right.text_input("Model", key="data.chroma_model", help=STORE_MODEL_HELP, placeholder="as the store says")
    fields = ask_fields(by_name[name].names, by_name[name].fields, f"data.field.{name}")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        own = _name(project, intake.proposed_name(name, resources.workspace()))
        pressed = st.button(
            "Connect", icon=":material/link:", type="primary", key="data.connect", disabled=jobs.running()
        )
    if pressed:
        order = Chroma(name, place.path, place.url, place.cloud, place.in_place, (model or "").strip(), fields)
        _begin(project, own, order)


def ask_fields(names: Sequence[str], proposed: Mapping[str, str], key: str) -> tuple[tuple[str, str], ...]:
    """Which key of the records' metadata is title, type, file, references and rule; what the data says is proposed."""
    if not names:
        return ()
    st.markdown("**What the metadata means**, as the records suggest; the rest stays metadata")
    return _mapping(RECORD_FIELDS, FIELD_NAMES, names, proposed, key)


# Recorded lists


def _lists(project: Project | None) -> None:
    """A file of lists that some retriever returned, or another tool's log: it is source and questions at once."""
    st.caption(
        "Recorded lists, what LangSmith, Langfuse, Phoenix, OpenInference, Ragas, promptfoo or AutoRAG wrote "
        "(docs/logs.md), or any log whose columns you name."
    )
    file = st.file_uploader("Drop a file of lists", type=["jsonl", "ndjson", *LOGS], key="data.lists_file")
    preset, reading = OWN, None
    paths: dict[str, str] = {}
    if file is not None:
        preset, paths, reading = _ask_reading(file.getvalue(), file.name)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = _name(project, intake.proposed_name(file.name, resources.workspace()) if file else "")
        pressed = st.button(
            "Take these lists", icon=":material/play_arrow:", type="primary", key="data.lists_go",
            disabled=reading is None,
        )  # fmt: skip
    if not pressed or file is None:
        return
    with refusing(PROBLEM):
        with who.doing(CHANGE_PROJECT, name):
            made = project or intake.begin_project(resources.workspace(), name)
            intake.take_lists(made, file.getvalue(), file.name, preset, paths)
        state.change(project=made.name)
    st.rerun()


def _ask_reading(content: bytes, name: str) -> tuple[str, dict[str, str], LogReading | None]:
    """How the file is read, the proposed way first, and what that gives; None with the reason on the page."""
    try:
        proposed = likely_preset(list(records_of(content, name)), name)
    except WinnowError:
        proposed = MAPPED  # why, the reading below says
    ways = [*presets(), MAPPED]
    preset = st.selectbox(
        "Read as", ways, index=ways.index(proposed), key=f"data.lists_as.{hash((name, content))}", width=260,
        help="What fits is proposed. With a mapping of your own you say where question, chunks and scores stand.",
    )  # fmt: skip
    paths: dict[str, str] = {}
    try:
        if preset == MAPPED:
            paths = _ask_paths(content, name)
        reading = read_log(content, name, preset, paths)
    except WinnowError as error:
        say.problem("This gives no lists yet.", str(error).replace("--map", "a mapping of your own"))
        return preset, paths, None
    if reading.warning:
        say.problem("Much of this file would be left out.", reading.warning)
    st.markdown(f"**Questions with their lists: {len(reading.cases):,}**; nothing is written yet")
    st.text(reading.to_text())
    first = reading.cases[:SHOWN]
    lists = [case.candidates.hits if case.candidates else () for case in first]
    table(
        {
            "question": [case.query.text for case in first],
            "chunks": [len(hits) for hits in lists],
            "labels": [len(case.grades) for case in first],
            "first chunk": [hits[0].chunk.title or hits[0].chunk.text[:200] if hits else "" for hits in lists],
        },
        "data.lists_looked",
        f"The first {len(first)} questions",
    )
    return preset, paths, reading


def _ask_paths(content: bytes, name: str) -> dict[str, str]:
    """Where in a record and in its hits everything stands; usual names are proposed."""
    plain, lists = paths_of(content, name)
    proposed = {**likely_paths(("query", "query_id"), plain), **likely_paths(("hits", "relevant"), list(lists))}
    st.markdown("**Where it stands in a record**")
    paths = dict(_mapping(("query", "query_id"), CALLED, plain, proposed, "data.lists_record"))
    paths |= _mapping(("hits", "relevant"), CALLED, list(lists), proposed, "data.lists_list")
    if inner := lists.get(paths.get("hits", ""), []):
        st.markdown("**… and in each of its chunks**")
        fields = ("id", "text", "title", *SCORES, *(() if "relevant" in paths else ("relevant",)))
        usual = {"id": likely_id(content, name, paths["hits"], inner), **likely_paths(fields, inner)}
        paths |= _mapping(fields, CALLED, inner, usual, "data.lists_hit")
    return paths


# The work


def _begin(project: Project | None, name: str, order: Intake) -> None:
    """Check, make the project where there is none, and start the work in the background."""
    st.session_state.pop(LOOKED, None)
    workspace = resources.workspace()
    with refusing(PROBLEM):
        if project is None:
            with who.doing(CHANGE_PROJECT, name):
                intake.check_intake(workspace, name, order)
                project = intake.begin_project(workspace, name)
            if isinstance(order, Documents) and STAGED in st.session_state:
                order = intake.own_dropped(workspace, st.session_state.pop(STAGED), project, order)
        elif isinstance(order, Documents) and isinstance(before := intake.intake_of(project), Documents):
            order = before.with_more(order)
        start(project, order)
        state.change(project=project.name)
    st.rerun()


def start(project: Project, order: Intake) -> None:
    """Begin or resume the work on a project's source; an InputError where it cannot even begin."""
    name, kind, title = intake.collection_of(project), INGEST, "Ingesting documents"
    words: dict[str, str] = {}
    if isinstance(order, Chroma):
        kind, title = CONNECT, "Reading a Chroma collection"
        words = {"verb": "read", "unit": "records", "first": "opening the store …"}
    who.check(kind, name)
    intake.check_intake(project.workspace, name, order)

    def work(progress: jobs.Job) -> object:
        return intake.take_in_beside(project, order, progress)

    jobs.start(title, work, who.deed(kind, name), job_of(project), **words)


def remarks(warnings: Sequence[str], others: Sequence[str], skipped: Sequence[str] = ()) -> None:
    """What was doubtful in the documents, the files that are none, and the records that were left out."""
    most = 100
    parts = {"Warnings": warnings, "Files passed over": others, "Records left out": skipped}
    for title, lines in ((f"{name}: {len(lines):,}", lines) for name, lines in parts.items()):
        if lines:
            say.remarks(title, [*lines[:most], *([f"… and {len(lines) - most:,} more"] if len(lines) > most else [])])
