"""The one way to talk to a model endpoint: named endpoints, deadlines, retries, redaction, checked answers, judges."""

from rag_core.llm.answers import ChatAnswer
from rag_core.llm.client import Client, Tried
from rag_core.llm.connection import Connection, check_connection
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judging import Answer, EndpointJudge, Judge, Pace, Price
from rag_core.llm.named import ENDPOINTS, endpoint_of, endpoints, environment_judge, named_endpoint, price_of
from rag_core.llm.recorded import AnswerStore, RecordedJudge
from rag_core.llm.retry import RetryBudget
from rag_core.llm.runner import CostPreview, Progress, RunLimits, answer_all, preview
from rag_core.llm.secret import Key, redact
from rag_core.llm.simulated import SimulatedJudge

__all__ = [
    "ENDPOINTS",
    "Answer",
    "AnswerStore",
    "ChatAnswer",
    "Client",
    "Connection",
    "Endpoint",
    "EndpointJudge",
    "Judge",
    "Key",
    "RunLimits",
    "Pace",
    "CostPreview",
    "Price",
    "Progress",
    "RecordedJudge",
    "RetryBudget",
    "SimulatedJudge",
    "Tried",
    "answer_all",
    "check_connection",
    "endpoint_of",
    "endpoints",
    "environment_judge",
    "named_endpoint",
    "preview",
    "price_of",
    "redact",
]
