"""Test connection: one small call that shows whether endpoint, key and model work, and what form of answer it takes."""

from __future__ import annotations

from dataclasses import dataclass

from rag_core.errors import EndpointError
from rag_core.llm import ladder
from rag_core.llm.client import Client
from rag_core.llm.endpoint import Endpoint

_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
_MESSAGES = [{"role": "user", "content": 'Answer with JSON only: {"answer": "yes"}'}]
_LISTED = 8  # model names shown where the one asked for is not known


@dataclass(frozen=True)
class Connection:
    """What a working endpoint showed of itself."""

    endpoint: str
    address: str
    model: str  # as the server names it
    form: str  # see ladder.FORMS
    milliseconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    retries: int


def check_connection(endpoint: Endpoint) -> Connection:
    """Ask the endpoint one small question; an EndpointError says what to do where that fails."""
    client = Client(endpoint)
    tried = client.try_chat(_MESSAGES, _SCHEMA)
    if tried.answer is None:
        raise EndpointError(tried.error + (_known_models(client) if "does not know the model" in tried.error else ""))
    said = tried.answer
    return Connection(
        endpoint=endpoint.name,
        address=endpoint.base_url,
        model=said.model,
        form=ladder.form_of((endpoint.base_url, endpoint.model)),
        milliseconds=tried.milliseconds,
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
        retries=tried.retries,
    )


def _known_models(client: Client) -> str:
    """The models the server lists, as the end of a sentence; empty where it lists none."""
    try:
        names = client.models()
    except EndpointError:
        return ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"; it has {', '.join(names[:_LISTED])}{more}" if names else ""
