"""From documents to chunks: Markdown at header levels, JSONL line by line. Nothing is embedded or stored here."""

from rag_core.corpus.load import Corpus, Document, load

__all__ = ["Corpus", "Document", "load"]
