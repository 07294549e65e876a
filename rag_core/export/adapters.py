"""An exported filter in LangChain and LlamaIndex chains; their packages are imported when a function is called."""

from __future__ import annotations

from typing import Any

from rag_core.errors import InputError
from rag_core.export.running import ExportedFilter
from rag_core.sources.winnow_source import proposal_of


def langchain_retriever(
    exported: ExportedFilter, store: Any, depth: int = 50, score_kind: str = "", metric: str = ""
) -> Any:
    """A retriever over a vector store that gives scores; `invoke` and `ainvoke` give the documents that stay.

    What the store's numbers are is read from its class (Chroma: squared l2 unless it says otherwise); `score_kind` and
    `metric` stand above that, and a store that says nothing needs them. Rules stand in the metadata under `query_must`,
    as a mapping or as a JSON string.
    """
    from langchain_core.retrievers import BaseRetriever

    seen = proposal_of(store)
    kind, space = score_kind or seen.kind, metric or seen.metric
    if not kind:
        raise InputError(f"{type(store).__name__} does not say what its scores are, expected score_kind= and metric=")

    def kept(query: str, pairs: Any) -> list[Any]:
        chunks = [{**document.metadata, kind: float(score), "document": document} for document, score in pairs]
        for place, chunk in enumerate(chunks):
            chunk["id"] = str(chunk["document"].id or chunk.get("id") or f"#{place}")
        return [chunk["document"] for chunk in exported.filter_chunks(query, chunks, space or "unknown")]

    class FilteredRetriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return kept(query, store.similarity_search_with_score(query, k=depth))

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return kept(query, await store.asimilarity_search_with_score(query, k=depth))

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
