"""A named model endpoint, checked before any socket opens: where it is, which model, which key, how long it takes."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from rag_core.errors import EndpointError, InputError
from rag_core.llm.secret import NO_KEY, Key

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server and one model on it.

    `base_url` is https, or http on a loopback address; no user name in it, no query, no private or link-local address
    unless `allow_private` (link-local never). The key belongs to this address and is sent nowhere else.
    """

    name: str
    base_url: str
    model: str
    key: Key = field(default_factory=lambda: Key(NO_KEY))
    deadline: float = 20.0  # seconds for one call, its retries and waits included
    attempts: int = 3  # tries of one call, the first included
    allow_private: bool = False

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

    def check_address(self, resolve: bool) -> list[str]:
        """Refuse an address that may not be asked; with `resolve` also what its name resolves to, now.

        What the name resolves to is returned: a connection made to anything else was not checked. Empty where no name
        was resolved.
        """
        host = self._checked_host()
        literal = _literal(host)
        found: list[Address] = []
        if literal is not None:
            self._check(literal, named=False)
        elif resolve and host != "localhost":
            found = self._resolved(host)
        for address in found:
            self._check(address, named=True)
        return [str(address) for address in found]

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
        if parts.scheme == "http" and (host == "localhost" or _is_loopback(host)):
            return host
        if parts.scheme == "http" and self.allow_private:
            return host
        if parts.scheme != "https":
            raise self._refuse("is neither https nor http on a loopback address (127.0.0.1, localhost)")
        return host

    def _refuse(self, problem: str) -> InputError:
        return InputError(f"the address of endpoint {self.name} {problem}")

    def _resolved(self, host: str) -> list[Address]:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError:
            raise EndpointError(
                f"endpoint {self.name} ({host}) is not known to the network; check its address"
            ) from None
        return list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).split("%")[0]) for entry in found))

    def _check(self, address: Address, named: bool) -> None:
        """Refuse link-local and other special addresses; a name must not lead to this machine or a private network."""
        address = _unmapped(address)
        if address.is_loopback and not named:
            return
        reserved = address.is_reserved and not address.is_loopback
        if address.is_link_local or address.is_multicast or address.is_unspecified or reserved:
            raise self._refuse("leads to a link-local, multicast or reserved network address")
        private = address.is_private or address.is_loopback or address in _SHARED
        if private and not self.allow_private:
            raise self._refuse("leads to a private network; allow that for this endpoint where it is meant")


_SHARED = ipaddress.ip_network("100.64.0.0/10")


def _unmapped(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, NAT64), else the address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _literal(host: str) -> Address | None:
    """The address a host spells out, None for a name; other spellings of numbers (127.1, 0x7f000001) are refused."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if re.fullmatch(r"(0x[0-9a-f]*|[0-9]+)", host.rstrip(".").rsplit(".", 1)[-1]) or ":" in host:
        raise InputError("the endpoint's host is a number that is no plain IP address, expected a name or four numbers")
    return None


def _is_loopback(host: str) -> bool:
    literal = _literal(host)
    return literal is not None and literal.is_loopback
