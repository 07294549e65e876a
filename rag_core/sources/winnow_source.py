"""A person's own search, called in their own Python: `PYTHON winnow_source.py module:name`, JSON lines in and out.

This one file needs the standard library and Python 3.8, nothing of Winnow: it runs where LangChain, LlamaIndex or a
store's client with pins of their own are installed. The first line out says what was named and which scores it seems
to give; then each line `{"query": …, "depth": n}` in brings one line `{"answer": {"candidates": …}}` or
`{"error": …}` out. What their code prints goes to stderr. Winnow imports it too, for functions in its own Python: what
an answer may look like (`candidates_of`) is said here alone. docs/sources.md has recipes.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
import json
import os
import queue
import sys
import threading
from typing import Any

SCORES = ("distance", "similarity", "bm25", "rrf", "score", "rerank")
DEPTHS = ("depth", "k", "top_k", "limit", "n", "n_results", "num_results")
ANSWER_KEYS = {"candidates", "metric", "order"}
IDS = ("id", "_id", "chunk_id", "doc_id", "document_id", "uuid", "pk")
TEXTS = ("text", "page_content", "content", "body", "document", "chunk")


class Proposal:
    """What a list's numbers seem to be: the score's kind, the metric, and whose word that is."""

    def __init__(self, kind: str = "", metric: str = "", why: str = "") -> None:
        self.kind, self.metric, self.why = kind, metric, why


def resolve(named: str) -> Any:
    """The object behind `module:name.name`; a ValueError in one sentence where there is none."""
    module_name, _, path = named.partition(":")
    try:
        target: Any = importlib.import_module(module_name)
    except BaseException as error:  # their module: whatever it raises, SystemExit too, it cannot be used
        raise ValueError(f"module {module_name} cannot be imported ({type(error).__name__}: {error})") from None
    for part in path.split("."):
        target = getattr(target, part, None)
    if target is None or not (callable(target) or _way(target)):
        raise ValueError(
            f"module {module_name} has no function {path}, expected a function, a vector store or a retriever"
        )
    return target


def _bases(target: Any) -> dict[str, type]:
    return {base.__name__: base for base in type(target).__mro__}


def _way(target: Any) -> str:
    """How an object is asked: by the class it descends from, so that no framework is imported to know it."""
    if inspect.isroutine(target) or inspect.isclass(target):
        return ""
    if hasattr(target, "similarity_search_with_score"):
        return "store"
    if "VectorStoreRetriever" in _bases(target) and getattr(target, "search_type", "") == "similarity":
        return "store behind"
    if hasattr(target, "invoke") and "BaseRetriever" in _bases(target):
        return "retriever"
    if hasattr(target, "retrieve"):
        return "nodes"
    if hasattr(target, "as_retriever"):
        return "index"
    return "component" if hasattr(target, "run") and not callable(target) else ""


def ask(target: Any, text: str, depth: int) -> Any:
    """The answer of a target, of whatever form, at most `depth` long where it can be told how many are wanted."""
    way = _way(target)
    if way == "store":
        answer = target.similarity_search_with_score(text, k=depth)
    elif way == "store behind":
        settings = {key: value for key, value in (target.search_kwargs or {}).items() if key != "k"}
        answer = target.vectorstore.similarity_search_with_score(text, k=depth, **settings)
    elif way == "retriever":
        answer = _deep(target, depth, ("k", "top_k")).invoke(text)
    elif way == "nodes":
        answer = _deep(target, depth, ("similarity_top_k", "_similarity_top_k", "top_k")).retrieve(text)
    elif way == "index":
        answer = target.as_retriever(similarity_top_k=depth).retrieve(text)
    elif way == "component":
        answer = target.run(query=text, top_k=depth)
    else:
        answer = _called(target, text, depth)
    return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    return await answer


def _deep(target: Any, depth: int, names: tuple[str, ...]) -> Any:
    """The retriever set to that depth, where it has a setting for it."""
    name = next((name for name in names if isinstance(getattr(target, name, None), int)), "")
    if name and hasattr(target, "model_copy"):
        return target.model_copy(update={name: depth})
    if name:
        setattr(target, name, depth)
    return target


def _called(function: Any, text: str, depth: int) -> Any:
    """A function with the text, and the depth where it takes one, by name where it has one of the usual names."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return function(text, depth)
    name = next((name for name in DEPTHS if name in parameters), "")
    if name and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
        return function(text, **{name: depth})
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [one for one in parameters.values() if one.kind in kinds]
    starred = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters.values())
    second_is_depth = len(places) > 1 and (places[1].name in DEPTHS or places[1].default is inspect.Parameter.empty)
    if second_is_depth or (starred and len(places) < 2):
        return function(text, depth)
    return function(text, **{name: depth}) if name else function(text)


# ---------------------------------------------------------------- which scores


def proposal_of(target: Any) -> Proposal:
    """The score that a target's class gives, as far as its own settings say it; nothing for a plain function."""
    store = target.vectorstore if _way(target) == "store behind" else target
    bases = _bases(store)
    for name, (module, proposed) in STORES.items():
        if name in bases and module in bases[name].__module__:
            kind, metric, why = proposed(store)
            return Proposal(kind, metric, f"{bases[name].__module__.split('.')[0]} {name}, {why}")
    if _way(target) in ("nodes", "index"):
        inner = getattr(target, "_vector_store", None) or getattr(target, "vector_store", None)
        cosine = type(inner).__name__ == "SimpleVectorStore"
        return Proposal("similarity", "cosine" if cosine else "", f"LlamaIndex over {type(inner).__name__}")
    return Proposal()


def _named(value: Any) -> str:
    """A setting that may be an enum, as a plain lower-case word."""
    return str(getattr(value, "value", value)).rpartition(".")[2].lower()


def space_of(collection: Any) -> str:
    """The space of a Chroma collection: cosine, l2 (squared) or ip."""
    settings = getattr(collection, "configuration", None) or {}
    index = settings.get("hnsw") or settings.get("spann") or {}
    return str(index.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2")


def _chroma(store: Any) -> tuple[str, str, str]:
    space = space_of(store._collection)
    return "distance", space, f"space {space}" + (", squared" if space == "l2" else "")


def _faiss(store: Any) -> tuple[str, str, str]:
    # The index says what is computed; the strategy is only a word beside it.
    product = getattr(store.index, "metric_type", 1) == 0
    return ("score", "", "inner product") if product else ("distance", "l2", "squared l2")


def _qdrant(store: Any) -> tuple[str, str, str]:
    config = store.client.get_collection(store.collection_name).config.params.vectors
    vectors = config.get(getattr(store, "vector_name", "")) if isinstance(config, dict) else config
    space = _named(getattr(vectors, "distance", "cosine"))
    if space == "cosine":
        return "similarity", "cosine", "cosine similarity"
    return ("score", "", "dot product") if space == "dot" else ("distance", "", f"{space} distance, not squared")


def _lance(store: Any) -> tuple[str, str, str]:
    # Its setting `distance` is not handed to the search: an index of the table decides, else it is l2.
    space = "l2"
    try:
        table = store.get_table()
        space = _named(table.index_stats(table.list_indices()[0].name).distance_type or "l2")
    except Exception:  # no index
        space = space or "l2"
    return "distance", space if space in ("l2", "cosine") else "", f"{space} distance"


def _milvus(store: Any) -> tuple[str, str, str]:
    settings = getattr(store, "index_params", None) or getattr(store, "search_params", None) or {}
    settings = settings[0] if isinstance(settings, list) else settings
    space = _named(settings.get("metric_type", "l2"))
    if space == "cosine":
        return "similarity", "cosine", "COSINE, a similarity"
    return ("distance", "l2", "L2, squared") if space == "l2" else ("score", "", space.upper())


def _postgres(store: Any) -> tuple[str, str, str]:
    inner = getattr(store, "_PGVectorStore__vs", None)
    strategy = getattr(inner or store, "distance_strategy", None) or getattr(store, "_distance_strategy", "cosine")
    space = str(getattr(strategy, "name", strategy)).lower()
    if "cosine" in space:
        return "distance", "cosine", "cosine distance"
    if "inner" in space:
        return ("score", "", "inner product") if inner else ("distance", "", "negative inner product")
    return "distance", "", "Euclidean, not squared"


def _pinecone(store: Any) -> tuple[str, str, str]:
    try:
        space = _named(store._index.describe_index_stats().get("metric") or "")
    except Exception:  # a client that cannot say it
        space = ""
    if space == "euclidean":
        return "distance", "l2", "euclidean, squared"
    return ("similarity", "cosine", "cosine") if space == "cosine" else ("score", "", space or "metric of its index")


STORES: dict[str, tuple[str, Any]] = {
    "Chroma": ("chroma", _chroma),
    "FAISS": ("", _faiss),
    "QdrantVectorStore": ("", _qdrant),
    "LanceDB": ("", _lance),
    "Milvus": ("", _milvus),
    "PGVectorStore": ("", _postgres),
    "PGVector": ("", _postgres),
    "InMemoryVectorStore": ("langchain", lambda store: ("similarity", "cosine", "cosine similarity")),
    "PineconeVectorStore": ("", _pinecone),
    "ElasticsearchStore": ("", lambda store: ("score", "", "_score")),
    "OpenSearchVectorSearch": ("", lambda store: ("score", "", "_score")),
    "WeaviateVectorStore": ("", lambda store: ("score", "", "its score")),
}
"""LangChain class → (part of its module's name, what its own settings say: kind, metric, in words)."""


def direction_of(values: list[Any]) -> str:
    """The kind that a best-first list of bare numbers must be: distance where they rise, score where they fall."""
    if any(after > before for before, after in zip(values, values[1:])):
        return "distance"
    return "score" if any(after < before for before, after in zip(values, values[1:])) else ""


# ---------------------------------------------------------------- answers


def candidates_of(answer: Any, proposal: Proposal) -> Any:
    """An answer of any known form as `{"candidates": [...], "metric"?, "order"?}`, plain JSON values.

    Known: a list (or generator) of mappings, texts, (id or text, score), (id, text, score), LangChain Documents, with
    or without score, LlamaIndex NodeWithScores, Haystack Documents; a mapping of `candidates` or `documents`; what
    Chroma's `query` gives. A score without a name gets the proposal's kind, else the one that its direction shows;
    where no chunk has a score, 1 / rank stands in. Anything else is handed on as it is, to be refused.
    """
    known: dict[str, Any] = {}
    if isinstance(answer, dict):
        if isinstance(answer.get("ids"), list) and answer["ids"] and isinstance(answer["ids"][0], list):
            answer = _chroma_rows(answer)
        elif "documents" in answer and "candidates" not in answer:
            answer = answer["documents"]
        elif set(answer) - ANSWER_KEYS:
            return _plain(answer)
        else:
            known = {key: _plain(value) for key, value in answer.items() if key != "candidates"}
            answer = answer.get("candidates")
    if answer is None or isinstance(answer, (str, bytes)):
        return {**known, "candidates": _plain(answer)}
    try:
        rows = [_row(one) for one in answer]
    except TypeError:
        return {**known, "candidates": _plain(answer)}
    bare = [row["*"] for row in rows if isinstance(row, dict) and "*" in row]
    kind = proposal.kind or (direction_of(bare) if len(bare) == len(rows) else "") or "score"
    scored = any(isinstance(row, dict) and (row.keys() & {"*", *SCORES}) for row in rows)
    for rank, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            continue
        if "*" in row:
            row[kind] = row.pop("*")
        elif not scored and (row.keys() & {"from"}):
            row["score"] = 1 / rank
        row.pop("from", None)
    if proposal.metric and bare:
        known.setdefault("metric", proposal.metric)
    return {**known, "candidates": rows}


def _row(one: Any) -> Any:
    """One chunk of an answer; a score without a name stands under "*", and "from" marks an object of a framework."""
    if isinstance(one, dict):
        return _mapping(one)
    if hasattr(one, "page_content"):  # LangChain
        return _document(one.page_content, one.metadata, getattr(one, "id", None))
    if hasattr(one, "node"):  # LlamaIndex
        node = one.node
        row = _document(node.get_content(), node.metadata, node.node_id)
        return row if one.score is None else {**row, "*": _plain(one.score)}
    if hasattr(one, "content") and hasattr(one, "meta"):  # Haystack
        row = _document(one.content or "", one.meta, one.id)
        return row if one.score is None else {**row, "*": _plain(one.score)}
    if isinstance(one, (tuple, list)) and len(one) in (2, 3):
        *parts, score = one
        if hasattr(parts[0], "page_content"):
            row = _document(parts[0].page_content, parts[0].metadata, getattr(parts[0], "id", None))
        elif isinstance(parts[0], dict):
            row = _mapping(parts[0])
        else:
            row = (
                {"id": str(_plain(parts[0]))} if len(parts) == 2 or _is_id(parts[0]) else _document(parts[0], {}, None)
            )
            if len(parts) == 2:
                row["text"] = _plain(parts[1])
        return {**row, "*": _plain(score)}
    return _document(one, {}, None) if isinstance(one, str) else _plain(one)


def _is_id(value: Any) -> bool:
    """Whether a lone value is a chunk's id and not its text: a number, or a word without a space."""
    return not isinstance(value, str) or not any(sign.isspace() for sign in value)


def _mapping(one: Any) -> dict[str, Any]:
    """A mapping of theirs: the usual names of id and text are read, everything else stays."""
    row = {str(key): _plain(value) for key, value in one.items()}
    if not isinstance(row.get("id"), str) or not row["id"]:
        name = next((name for name in IDS if row.get(name) not in (None, "")), "")
        if name:
            row["id"] = str(row[name])
    name = next((name for name in TEXTS if isinstance(row.get(name), str)), "")
    if name and "text" not in row:
        row["text"] = row.pop(name)
    if not row.get("id") and row.get("text"):
        row["id"] = _hash(row["text"])
    return {key: value for key, value in row.items() if value is not None}


def _document(text: str, metadata: Any, identity: Any) -> dict[str, Any]:
    row = _mapping({**(metadata or {}), "text": text})
    # A key of theirs that is called like a score says nothing of this list unless a reranker wrote it there.
    for name in SCORES:
        row.pop(name, None)
    if identity:
        row["id"] = str(identity)
    row["from"] = "object"
    if isinstance(row.get("relevance_score"), float):
        row["*"] = row.pop("relevance_score")
    return row


def _chroma_rows(answer: Any) -> list[dict[str, Any]]:
    columns = {"id": "ids", "text": "documents", "distance": "distances"}
    width = len(answer["ids"][0])
    metadatas = (answer.get("metadatas") or [None])[0] or [None] * width
    rows = [dict(metadatas[at] or {}) for at in range(width)]
    for name, key in columns.items():
        for row, value in zip(rows, (answer.get(key) or [[]])[0]):
            row[name] = value
    return rows


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A value as JSON has it: numbers of NumPy as Python's, a NaN stays one, to be refused."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # a scalar or an array of NumPy
        return _plain(value.tolist())
    return str(value)


# ---------------------------------------------------------------- the process


def serve(named: str) -> int:
    """Answer lines until stdin ends; only this function writes to what was stdout."""
    # Their prints and their input() must not reach the protocol: it moves to descriptors that only we know.
    incoming, outgoing = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def say(message: dict[str, Any]) -> None:
        outgoing.write(json.dumps(message) + "\n")
        outgoing.flush()

    sys.path.insert(0, os.getcwd())
    try:
        target = resolve(named)
        proposal = proposal_of(target)
    except BaseException as error:
        say({"error": f"{error}"[:2000]})
        return 1
    say({"ready": True, "kind": proposal.kind, "metric": proposal.metric, "why": proposal.why})
    requests: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in incoming:
            requests.put(line)
        os._exit(0)  # whoever asked is gone: a search that hangs ends with it

    threading.Thread(target=listen, daemon=True).start()
    while True:
        request = json.loads(requests.get())
        chosen = Proposal(request.get("kind") or proposal.kind, request.get("metric") or proposal.metric)
        try:
            answer = candidates_of(ask(target, request["query"], request["depth"]), chosen)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            say({"error": f"{type(error).__name__}: {error}"[:2000]})
        else:
            say({"answer": answer})


if __name__ == "__main__":
    # The folder of this file is no place of theirs: a `types.py` beside it would hide the standard library's.
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != os.path.dirname(os.path.abspath(__file__))]
    sys.exit(serve(sys.argv[1]))
