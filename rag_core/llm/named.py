"""Endpoints by name, and the judge of one: its address, price and stored answers, put together once.

The environment describes one endpoint; the workspace's file describes more. A page or a command chooses by name and
never by address, so that naming an endpoint stays with whoever can write that file. The file holds no key, only the
name of the variable that does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.files import parse_yaml, read_text
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judging import EndpointJudge, Pace, Price
from rag_core.llm.recorded import FILE, AnswerStore, RecordedJudge
from rag_core.llm.retry import RetryBudget
from rag_core.llm.secret import Key
from rag_core.settings import ENVIRONMENT, ModelSettings, model_settings, variable

ENDPOINTS = "endpoints.yaml"
"""The workspace's file of named endpoints: a list of mappings with the keys below."""

__all__ = ["ENDPOINTS", "ENVIRONMENT", "endpoint_of", "endpoints", "environment_judge", "named_endpoint", "price_of"]

_NEEDED = ("name", "base_url", "model")
_KEYS = (*_NEEDED, "key_variable", "allow_private", "price_in", "price_out")


def endpoints(workspace: Path) -> dict[str, ModelSettings]:
    """Every endpoint by its name, the environment's first; an InputError names the entry that cannot be used."""
    own = model_settings()
    found = {} if own is None else {ENVIRONMENT: own}
    path = workspace / ENDPOINTS
    if not path.is_file():
        return found
    entries = parse_yaml(read_text(path, limit=100_000), ENDPOINTS)
    if not isinstance(entries, list):
        raise InputError(f"{ENDPOINTS} is {type(entries).__name__}, expected a list of endpoints")
    for number, entry in enumerate(entries, 1):
        one = _entry(entry, f"entry {number} of {ENDPOINTS}")
        if one.name in (*found, ENVIRONMENT):
            raise InputError(f"entry {number} of {ENDPOINTS} is named {one.name!r}, expected a name of its own")
        found[one.name] = one
    return found


def named_endpoint(workspace: Path, name: str = "") -> ModelSettings | None:
    """The endpoint of that name, the environment's without one, None where that is not set; else an InputError."""
    known = endpoints(workspace)
    if name and name not in known:
        names = ", ".join(known) or "none yet"
        raise InputError(f"there is no endpoint {name[:80]!r}, expected one of {names}")
    return known.get(name or ENVIRONMENT)


def _entry(entry: Any, where: str) -> ModelSettings:
    if not isinstance(entry, Mapping) or set(entry) - set(_KEYS) or set(_NEEDED) - set(entry):
        raise InputError(f"{where} needs {', '.join(_NEEDED)} and may have {', '.join(_KEYS[3:])}, nothing else")
    texts = {key: entry.get(key, "") for key in (*_NEEDED, "key_variable")}
    if not all(isinstance(value, str) and value for key, value in texts.items() if key in _NEEDED):
        raise InputError(f"{where} has a {', '.join(_NEEDED)} that is no text, expected text")
    key_variable = texts["key_variable"]
    if not isinstance(key_variable, str) or not re.fullmatch(r"|[A-Za-z_][A-Za-z0-9_]{0,99}", key_variable):
        raise InputError(f"{where} has a key_variable that is no variable's name, expected the name and not the key")
    private = entry.get("allow_private", False)
    if not isinstance(private, bool):
        raise InputError(f"{where} has allow_private {str(private)[:80]!r}, expected true or false")
    one = ModelSettings(
        texts["base_url"],
        texts["model"],
        variable(key_variable) if key_variable else "",
        private,
        _price(entry.get("price_in"), where),
        _price(entry.get("price_out"), where),
        texts["name"],
    )
    endpoint_of(one)  # an address that may not be asked is refused when the file is read
    return one


def _price(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1_000_000:
        raise InputError(f"{where} has the price {str(value)[:80]!r}, expected 0 to 1,000,000 per million tokens")
    return float(value)


def endpoint_of(settings: ModelSettings) -> Endpoint:
    """The endpoint of the settings, checked; its host stands beside its name on screen."""
    key = Key(settings.key)
    return Endpoint(settings.name, settings.base_url, settings.model, key, allow_private=settings.allow_private)


def price_of(settings: ModelSettings) -> Price | None:
    """The price of the settings; None unless both halves are given."""
    if settings.price_in is None or settings.price_out is None:
        return None
    return Price(settings.price_in, settings.price_out)


def environment_judge(
    workspace: Path,
    settings: ModelSettings | None = None,
    *,
    retries: int = 20,
    per_second: float | None = None,
    store: AnswerStore | None = None,
) -> RecordedJudge | None:
    """The judge of an endpoint (the environment's unless given) with the stored answers; None where none is named."""
    settings = settings or model_settings()
    if settings is None:
        return None
    behind = EndpointJudge(endpoint_of(settings), price_of(settings), RetryBudget(retries), Pace(per_second))
    return RecordedJudge(store or AnswerStore(workspace / FILE), behind, settings.model)
