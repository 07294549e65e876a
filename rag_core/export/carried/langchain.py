"""For LangChain: a retriever over any vector store that gives scores, which keeps what this file keeps."""

from __future__ import annotations

from typing import Any

from rag_core.export.carried.running import filter_chunks


def langchain_retriever(store: Any, depth: int = 50, score_kind: str = "distance", metric: str = "cosine") -> Any:
    """A retriever: `langchain_retriever(store).invoke(question)` gives the documents that stay.

    `score_kind` is what the store's score is: distance (Chroma, FAISS) or similarity (the in-memory store). Rules stand
    in the metadata under `query_must`, as a mapping or as a JSON string.
    """
    from langchain_core.retrievers import BaseRetriever  # only who calls this needs it

    class FilteredRetriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            found = store.similarity_search_with_score(query, k=depth)
            chunks = [{**one.metadata, score_kind: score, "document": one} for one, score in found]
            return [chunk["document"] for chunk in filter_chunks(query, chunks, metric)]

    return FilteredRetriever()
