"""What an endpoint accepts of a request: a parameter that it refuses is left out on the next try, and ever after.

Servers differ and models more so: reasoning models refuse `temperature` and `max_tokens`, old servers a JSON schema.
What was refused is remembered for the process, per address and model, so that a refusal is met once. The prompt tells
the form of an answer anyway, so nothing is lost but strictness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from rag_core.llm.prompt import strict

FORMS = ("json schema", "json object", "text")
LIMIT, LIMIT_OF_TODAY = "max_tokens", "max_completion_tokens"
"""The limit of an answer, by its old name first: who refuses it says so, while old servers ignore the new one."""

FORM = "response_format"
_FORM_WORDS = ("response_format", "json_schema", "json_object", "structured output", "guided", "grammar", "schema")
_TOO_LONG = re.compile(r"context[ _](length|size|window)|exceed_context_size|too (long|large)|maximum (context|length)")


@dataclass(frozen=True)
class Accepted:
    """What is known of one model at one address."""

    form: int = 0  # index into FORMS of what it takes
    left_out: frozenset[str] = frozenset()

    @property
    def limits(self) -> bool:
        """Whether it takes a limit of an answer, by either name."""
        return LIMIT not in self.left_out or LIMIT_OF_TODAY not in self.left_out

    def options(self, wanted: Mapping[str, Any], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """What to send of the wanted parameters, and the form of the answer where there is a schema."""
        sent = {name: value for name, value in wanted.items() if name not in self.left_out}
        if LIMIT in wanted and LIMIT not in sent and LIMIT_OF_TODAY not in self.left_out:
            sent[LIMIT_OF_TODAY] = wanted[LIMIT]
        if schema is not None and self.form == 0:
            described = {"name": "answer", "strict": True, "schema": strict(schema)}
            sent[FORM] = {"type": "json_schema", "json_schema": described}
        elif schema is not None and self.form == 1:
            sent[FORM] = {"type": "json_object"}
        return sent

    def without(self, refusal: Mapping[str, Any], sent: Mapping[str, Any]) -> Accepted | None:
        """What to try after a refusal: without what it names; without a name the form first, then all the rest.

        None where nothing is left that could be left out.
        """
        named, words = refused(refusal, sent)
        too_long = _TOO_LONG.search(words) is not None
        if not named and too_long:  # a limit may be what makes a prompt too long
            named = [name for name in (LIMIT, LIMIT_OF_TODAY) if name in sent]
        if not named and not too_long:
            named = [FORM] if FORM in sent else [*sent, *([LIMIT_OF_TODAY] if LIMIT in sent else [])]
        if not named:
            return None
        form = self.form + (FORM in named)
        return Accepted(form, self.left_out | (set(named) - {FORM}) | ({LIMIT} if LIMIT_OF_TODAY in named else set()))


def refused(refusal: Mapping[str, Any], sent: Mapping[str, Any]) -> tuple[list[str], str]:
    """Which of the parameters sent a refusal names, and its words in lower case.

    OpenAI, vLLM and LiteLLM have `error.param` or name it in the message, FastAPI has `detail[].loc`.
    """
    error, detail = refusal.get("error", refusal), refusal.get("detail")
    param = error.get("param") if isinstance(error, Mapping) else None
    places = [str(part) for one in detail if isinstance(one, Mapping) for part in one.get("loc") or ()] if isinstance(
        detail, list) else []  # fmt: skip
    said = " ".join(str(error.get(key)) for key in ("message", "code", "type")) if isinstance(error, Mapping) else error
    words = str(said).lower()[:20_000]
    words += " " + " ".join(places) + (f" {detail.lower()[:2000]}" if isinstance(detail, str) else "")
    exact = [name for name in sent if (isinstance(param, str) and param.split(".")[0] == name) or name in places]
    if exact:
        return exact, words
    found = [name for name in sent if re.search(rf"(?<![a-z_]){name}(?![a-z_])", words)]
    if not found and FORM in sent and any(word in words for word in _FORM_WORDS):
        found = [FORM]
    return found, words


_known: dict[tuple[str, str], Accepted] = {}
_lock = Lock()


def accepted_by(place: tuple[str, str]) -> Accepted:
    """What is known of (address, model); all is tried where nothing is known."""
    return _known.get(place, Accepted())


def remember(place: tuple[str, str], accepted: Accepted) -> None:
    """Keep what a call that went through had to leave out."""
    with _lock:
        before = accepted_by(place)
        _known[place] = replace(
            before, form=max(before.form, accepted.form), left_out=before.left_out | accepted.left_out
        )


def forget() -> None:
    """Forget all servers."""
    _known.clear()
