"""How an answer is held to a form: JSON schema, else any JSON object, else by the prompt alone.

Servers differ in what they take and say so with a refusal. The first form that a server takes is remembered for the
process per address and model, so that the refusals are met once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

FORMS = ("json schema", "json object", "text")
_REFUSALS = (400, 422, 501)
_OTHER_TROUBLE = ("context_length_exceeded", "exceed_context_size_error")  # no form helps against these

_taken: dict[tuple[str, str], int] = {}


def form_of(place: tuple[str, str]) -> str:
    """The form last taken at (address, model); the strictest where none was asked for yet."""
    return FORMS[_taken.get(place, 0)]


def forget() -> None:
    """Forget all servers."""
    _taken.clear()


def options_of(form: int, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The request's options that ask for the form."""
    if form == 0:
        described = {"name": "answer", "strict": True, "schema": dict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {"response_format": {"type": "json_object"}} if form == 1 else {}


async def climb_down(
    place: tuple[str, str], schema: Mapping[str, Any] | None, ask: Callable[[dict[str, Any]], Awaitable[Any]]
) -> Any:
    """What `ask` gives for the strictest form the server takes; its last refusal is raised."""
    from openai import APIStatusError

    if schema is None:
        return await ask({})
    for form in range(_taken.get(place, 0), len(FORMS)):
        try:
            found = await ask(options_of(form, schema))
        except APIStatusError as error:
            trouble = error.status_code not in _REFUSALS or error.code in _OTHER_TROUBLE
            if trouble or form == len(FORMS) - 1:
                raise
        else:
            _taken[place] = form
            return found
    raise AssertionError("unreachable: the last form returns or raises")
