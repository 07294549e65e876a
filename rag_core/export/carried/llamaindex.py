"""For LlamaIndex: a node post-processor that keeps what this file keeps; node scores are cosine similarities."""

from __future__ import annotations

from typing import Any

from rag_core.export.carried.running import filter_chunks


def llamaindex_postprocessor(metric: str = "cosine") -> Any:
    """A post-processor: `index.as_query_engine(similarity_top_k=50, node_postprocessors=[llamaindex_postprocessor()])`.

    Rules stand in the nodes' metadata under `query_must`, as a mapping or as a JSON string.
    """
    from llama_index.core.postprocessor.types import BaseNodePostprocessor  # only who calls this needs it

    class ChunkFilter(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            chunks = [{**one.node.metadata, "similarity": one.score, "node": one} for one in nodes]
            return [chunk["node"] for chunk in filter_chunks(query_bundle.query_str, chunks, metric)]

    return ChunkFilter()
