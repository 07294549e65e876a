"""The one way to talk to a model endpoint: named endpoints, deadlines, retries, redaction, checked answers."""

from rag_core.llm.answers import ChatAnswer
from rag_core.llm.client import Client
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.retry import RetryBudget
from rag_core.llm.secret import Key, redact

__all__ = ["ChatAnswer", "Client", "Endpoint", "Key", "RetryBudget", "redact"]
