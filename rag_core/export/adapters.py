"""An exported filter over Chroma, in LangChain and in LlamaIndex; a package is imported when its function is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_core.corpus.store_record import chunk_of_record
from rag_core.errors import InputError
from rag_core.export.running import ExportedFilter, Given
from rag_core.records import CANDIDATE_KEYS
from rag_core.sources.winnow_source import proposal_of, space_of

USUAL = {"title": "title", "type": "type", "ref_ids": "ref_ids", "query_must": "query_must"}
"""Which metadata is what where the file does not say it."""


def chroma_retriever(
    exported: ExportedFilter,
    collection: Any,
    embed: Callable[[str], Any] | None = None,
    fields: Mapping[str, str] | None = None,
    **conditions: Any,
) -> Callable[[str], list[Given]]:
    """`retrieve(question)` over a Chroma collection: the records that stay, in final order, with text and distance.

    The store is asked again, deeper, where rules drop. `embed` gives a question's vector; without it the collection's
    own function does. `fields` say which metadata is title, type, ref_ids and query_must (a rule as a mapping, as JSON
    or as Python text), by default those of the project. `conditions` are Chroma's own: where, where_document.
    """
    known = fields or exported.tuned.get("fields") or USUAL
    space = space_of(collection)

    def search(question: str, count: int) -> Iterable[Given]:
        asked = (
            {"query_texts": [question]}
            if embed is None
            else {"query_embeddings": [[float(one) for one in embed(question)]]}
        )
        wanted = ["documents", "metadatas", "distances"]
        got = collection.query(**asked, **conditions, n_results=count, include=wanted)
        for identity, text, metadata, distance in zip(got["ids"][0], *(got[name][0] for name in wanted), strict=True):
            chunk = chunk_of_record(identity, text or "", metadata or {}, known)
            said = {"title": chunk.title, "type": chunk.type, "text": chunk.text, "query_must": chunk.query_must}
            references = list(chunk.ref_ids)
            rest = {key: value for key, value in chunk.metadata.items() if key not in CANDIDATE_KEYS}
            yield {**rest, **said, "ref_ids": references, "id": identity, "distance": float(distance)}

    return lambda question: exported.retrieve(question, search, space)


def langchain_retriever(
    exported: ExportedFilter, store: Any, depth: int = 0, score_kind: str = "", metric: str = ""
) -> Any:
    """A retriever over a vector store that gives scores; `invoke` and `ainvoke` give the documents that stay.

    The store is asked for `depth` documents (0: as many as the workbench's own search brought), and again, deeper,
    where rules drop. What its numbers are is read from its class (Chroma: squared l2 unless it says otherwise);
    `score_kind` and `metric` stand above that, and a store that says nothing needs them. Rules stand in the metadata
    under `query_must`, as a mapping or as a JSON string.
    """
    from langchain_core.retrievers import BaseRetriever

    seen = proposal_of(store)
    kind, space = score_kind or seen.kind, metric or seen.metric
    if not kind:
        raise InputError(f"{type(store).__name__} does not say what its scores are, expected score_kind= and metric=")

    def listed(pairs: Any) -> list[Given]:
        chunks: list[Given] = []
        for place, (document, score) in enumerate(pairs):
            identity = str(document.id or document.metadata.get("id") or f"#{place}")
            chunks.append({**document.metadata, kind: float(score), "document": document, "id": identity})
        return chunks

    def documents(query: str, search: Callable[[str, int], list[Given]]) -> list[Any]:
        return [chunk["document"] for chunk in exported.retrieve(query, search, space or "unknown", depth=depth)]

    class FilteredRetriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return documents(query, lambda asked, k: listed(store.similarity_search_with_score(asked, k=k)))

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            loop = asyncio.get_running_loop()

            def search(asked: str, k: int) -> list[Given]:
                answer = asyncio.run_coroutine_threadsafe(store.asimilarity_search_with_score(asked, k=k), loop)
                return listed(answer.result())

            return await asyncio.to_thread(documents, query, search)

    return FilteredRetriever()


def langchain_compressor(
    exported: ExportedFilter, score_key: str = "relevance_score", score_kind: str = "score", metric: str = ""
) -> Any:
    """A document compressor for chains whose documents carry their score in the metadata, as rerankers leave it."""
    from langchain_core.documents import BaseDocumentCompressor

    class ChunkFilter(BaseDocumentCompressor):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> list[Any]:
            chunks = []
            for place, document in enumerate(documents):
                if score_key not in document.metadata:
                    raise InputError(f"a document has no {score_key} in its metadata, expected the score_key= it has")
                identity = str(document.id or document.metadata.get("id") or f"#{place}")
                score = float(document.metadata[score_key])
                chunks.append({**document.metadata, "id": identity, score_kind: score, "document": document})
            return [chunk["document"] for chunk in exported.filter_chunks(query, chunks, metric)]

    return ChunkFilter()


def llamaindex_postprocessor(exported: ExportedFilter, score_kind: str = "similarity", metric: str = "") -> Any:
    """A post-processor: `index.as_query_engine(similarity_top_k=50, node_postprocessors=[llamaindex_postprocessor()])`.

    Node scores are similarities, of the metric that the filter was tuned on unless `metric` says otherwise. Rules stand
    in the nodes' metadata under `query_must`, as a mapping or as a JSON string.
    """
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    class ChunkFilter(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            chunks = [
                {**one.node.metadata, "id": one.node.node_id, score_kind: one.score, "node": one} for one in nodes
            ]
            return [chunk["node"] for chunk in exported.filter_chunks(query_bundle.query_str, chunks, metric)]

    return ChunkFilter()
