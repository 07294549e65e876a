"""Model endpoints: where one is, which model, which key, how it is asked; and all of them by name.

An address is checked before any socket opens. The environment describes one endpoint; the workspace's file describes
more. A page or a command chooses by name and never by address, so that naming an endpoint stays with whoever can write
that file. The file holds no key, only the name of the variable that does.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_core.errors import EndpointError, InputError
from rag_core.files import parse_yaml, read_text
from rag_core.llm.answer import Price
from rag_core.llm.secret import NO_KEY, Key
from rag_core.settings import ENVIRONMENT, MAX_ANSWER_TOKENS, ModelSettings, model_settings, variable

NO_ENDPOINT = (
    "no model endpoint is set: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, and OPENAI_MODEL"
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server and one model on it.

    `base_url` is https, or http on a loopback address; no user name in it, no query, no private or link-local address
    unless `allow_private` (link-local never). The key belongs to this address and is sent nowhere else. Of temperature,
    effort and seed nothing is sent unless it is set.
    """

    name: str
    base_url: str
    model: str
    key: Key = field(default_factory=lambda: Key(NO_KEY))
    deadline: float = 20.0  # seconds for one call, its retries and waits included
    attempts: int = 3  # tries of one call, the first included
    allow_private: bool = False
    temperature: float | None = None
    reasoning_effort: str = ""
    seed: int | None = None
    max_tokens: int = MAX_ANSWER_TOKENS  # of an answer, what a model thinks before it included
    logprobs: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w .\-]{1,64}", self.name):
            raise InputError(f"the endpoint's name is {self.name[:80]!r}, expected up to 64 letters, digits, - _ .")
        if not self.model.strip():
            raise InputError(f"endpoint {self.name} names no model")
        if not 0 < self.deadline <= 3600 or not 1 <= self.attempts <= 10:
            raise InputError(f"endpoint {self.name} needs a deadline of 0 to 3600 seconds and 1 to 10 attempts")
        self.check_address(resolve=False)

    @property
    def host(self) -> str:
        """The host part of the address, lower case."""
        return (urlsplit(self.base_url).hostname or "").lower()

    @property
    def options(self) -> dict[str, Any]:
        """The parameters of a chat request that are set; the limit of an answer always is."""
        values: dict[str, Any] = {"temperature": self.temperature, "seed": self.seed}
        values |= {"reasoning_effort": self.reasoning_effort or None, "logprobs": self.logprobs or None}
        return {name: value for name, value in values.items() if value is not None} | {"max_tokens": self.max_tokens}

    @property
    def place(self) -> str:
        """Where and how it is asked, as a part of an answer's identity: the address and the parameters that are set."""
        return f"{self.base_url} {json.dumps(self.options, sort_keys=True)}"

    def check_address(self, resolve: bool) -> list[str]:
        """Refuse an address that may not be asked; with `resolve` also what its name resolves to, now.

        What the name resolves to is returned: a connection made to anything else was not checked. Empty where no name
        was resolved.
        """
        host = self._checked_host()
        literal = _literal(host)
        if literal is not None:
            self._check(literal, named=False)
        if literal is not None or not resolve or host == "localhost":
            return []
        try:
            entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            raise EndpointError(
                f"endpoint {self.name} ({host}) is not known to the network; check its address"
            ) from None
        resolved = list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).split("%")[0]) for entry in entries))
        for address in resolved:
            self._check(address, named=True)
        return [str(address) for address in resolved]

    def _checked_host(self) -> str:
        """The host of a well-formed address, or an InputError that does not repeat what may be a password."""
        if re.search(r"[\s\\\x00-\x1f\x7f]", self.base_url) or len(self.base_url) > 2000:
            raise self._refuse("holds a space, a backslash or a control character")
        try:
            parts = urlsplit(self.base_url)
            host, _ = (parts.hostname or "").lower(), parts.port
        except ValueError:
            raise self._refuse("is not a web address") from None
        if "@" in parts.netloc:
            raise self._refuse("holds a user name or password, expected the key as the endpoint's key")
        if not host or "%" in host or parts.query or parts.fragment:
            raise self._refuse("has no host, or a query or fragment, expected the form https://host/v1")
        literal = _literal(host) if parts.scheme == "http" else None
        loopback = host == "localhost" or (literal is not None and literal.is_loopback)
        if parts.scheme != "https" and not (parts.scheme == "http" and (loopback or self.allow_private)):
            raise self._refuse("is neither https nor http on a loopback address (127.0.0.1, localhost)")
        return host

    def _refuse(self, problem: str) -> InputError:
        return InputError(f"the address of endpoint {self.name} {problem}")

    def _check(self, address: Address, named: bool) -> None:
        """Refuse link-local and other special addresses; a name must not lead to this machine or a private network."""
        if isinstance(address, ipaddress.IPv6Address):  # one that stands for an IPv4 one: mapped, 6to4, NAT64
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
            address = inner or address.ipv4_mapped or address.sixtofour or address
        if address.is_loopback and not named:
            return
        reserved = address.is_reserved and not address.is_loopback
        if address.is_link_local or address.is_multicast or address.is_unspecified or reserved:
            raise self._refuse("leads to a link-local, multicast or reserved network address")
        private = address.is_private or address.is_loopback or address in _SHARED
        if private and not self.allow_private:
            raise self._refuse("leads to a private network; allow that for this endpoint where it is meant")


_SHARED = ipaddress.ip_network("100.64.0.0/10")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _literal(host: str) -> Address | None:
    """The address a host spells out, None for a name; other spellings of numbers (127.1, 0x7f000001) are refused."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if re.fullmatch(r"(0x[0-9a-f]*|[0-9]+)", host.rstrip(".").rsplit(".", 1)[-1]) or ":" in host:
        raise InputError("the endpoint's host is a number that is no plain IP address, expected a name or four numbers")
    return None


ENDPOINTS = "endpoints.yaml"
"""The workspace's file of named endpoints: a list of mappings with the keys below."""

_NEEDED = ("name", "base_url", "model")
_RANGES = {
    "price_in": (0.0, 1_000_000.0),
    "price_out": (0.0, 1_000_000.0),
    "temperature": (0.0, 2.0),
    "seed": (-(2.0**53), 2.0**53),
    "max_tokens": (1.0, 1_000_000.0),
}
_KEYS = (*_NEEDED, "key_variable", "allow_private", "logprobs", "reasoning_effort", *_RANGES)


def endpoints(workspace: Path) -> dict[str, ModelSettings]:
    """Every endpoint by its name, the environment's first; an InputError names the entry that cannot be used."""
    own = model_settings()
    known = {} if own is None else {ENVIRONMENT: own}
    path = workspace / ENDPOINTS
    if not path.is_file():
        return known
    entries = parse_yaml(read_text(path, limit=100_000), ENDPOINTS)
    if not isinstance(entries, list):
        raise InputError(f"{ENDPOINTS} is {type(entries).__name__}, expected a list of endpoints")
    for number, entry in enumerate(entries, 1):
        one = _entry(entry, f"entry {number} of {ENDPOINTS}")
        if one.name in (*known, ENVIRONMENT):
            raise InputError(f"entry {number} of {ENDPOINTS} is named {one.name!r}, expected a name of its own")
        known[one.name] = one
    return known


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
    texts = {key: entry.get(key, "") for key in (*_NEEDED, "key_variable", "reasoning_effort")}
    if not all(isinstance(value, str) and (value or key not in _NEEDED) for key, value in texts.items()):
        raise InputError(f"{where} has a {', '.join(texts)} that is no text, expected text")
    key_variable = texts.pop("key_variable")
    if not re.fullmatch(r"|[A-Za-z_][A-Za-z0-9_]{0,99}", key_variable):
        raise InputError(f"{where} has a key_variable that is no variable's name, expected the name and not the key")
    switches = {name: entry.get(name, False) for name in ("allow_private", "logprobs")}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InputError(f"{where} has {name} {str(value)[:80]!r}, expected true or false")
    numbers = {name: entry[name] for name in _RANGES if entry.get(name) is not None}
    for name, value in numbers.items():
        low, high = _RANGES[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            said = f"{name} {str(value)[:80]!r}, expected a number from {low:,.0f} to {high:,.0f}"
            raise InputError(f"{where} has {said}")
        numbers[name] = int(value) if name in ("seed", "max_tokens") else float(value)
    one = ModelSettings(
        **texts,
        key=variable(key_variable) if key_variable else "",
        **switches,
        **numbers,
    )
    endpoint_of(one)  # an address that may not be asked is refused when the file is read
    return one


def endpoint_of(settings: ModelSettings) -> Endpoint:
    """The endpoint of the settings, checked; its host stands beside its name on screen."""
    names = ("name", "base_url", "model", "allow_private", "temperature", "reasoning_effort", "seed", "max_tokens")
    same = {name: getattr(settings, name) for name in (*names, "logprobs")}
    return Endpoint(**same, key=Key(settings.key))


def price_of(settings: ModelSettings) -> Price | None:
    """The price of the settings; None unless both halves are given."""
    if settings.price_in is None or settings.price_out is None:
        return None
    return Price(settings.price_in, settings.price_out)
