"""From documents to chunks: Markdown by headers, JSONL and tables row by row, OpenAPI by operation and schema.

Nothing is embedded or stored here.
"""

from rag_core.corpus.load import Corpus, Document, load

__all__ = ["Corpus", "Document", "load"]
