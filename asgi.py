"""A team's server: the same app behind security headers, a log-in and a health address; `streamlit run asgi.py`.

Here: which addresses may be bound, what each answer carries, whose header is believed. Who may do what is
rag_core/roles.py, asked by the pages through pages/components/who.py. docs/server.md says how to set it up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sys
import threading
from base64 import b64encode
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import streamlit as st
import uvicorn.config
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from pages.components.who import has_login
from rag_core import __version__
from rag_core.errors import InputError, WinnowError, exit_code
from rag_core.journal import start_journal
from rag_core.roles import ADMIN, Person, canonical_name, read_roles, role_of
from rag_core.settings import ServerSettings, database_settings, server_settings
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.store.database import Store

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]


# Until st.navigation has run once, Streamlit takes the files in the folder pages/ for the app's pages, and tells the
# first visitor of a fresh server who follows a link to a place that there is no such page.
PagesManager.uses_pages_directory = False


def own_scripts() -> str:
    """The hashes of the scripts in Streamlit's own start page, so that no other inline script runs."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    digests = (sha256(body.encode()).digest() for body in re.findall(r"<script>(.*?)</script>", page, re.DOTALL))
    return " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        # blob: is how Streamlit loads the script of a component of ours; no text of a chunk can make one.
        f"script-src 'self' 'wasm-unsafe-eval' blob: {own_scripts()}",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' ws: wss:",
        "worker-src 'self' blob:",
        "frame-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
METRICS = "/_stcore/metrics"
log = logging.getLogger("winnow.server")


def believe_the_socket() -> None:
    """Have uvicorn leave the sender of a request as the socket names it.

    It takes it from `X-Forwarded-For` of whoever FORWARDED_ALLOW_IPS names, this machine unless set: a proxy here is
    then unknown, and a client can claim to be one. `streamlit run` has no option for it. uvicorn imports this module
    before it wraps the app that it finds here, so what it would wrap with is replaced.
    """
    if not hasattr(uvicorn.config, "ProxyHeadersMiddleware"):
        raise InputError(f"uvicorn {uvicorn.__version__} names senders in a way unknown here, expected 0.54")
    setattr(uvicorn.config, "ProxyHeadersMiddleware", lambda app, trusted_hosts: app)  # noqa: B010  # types forbid it


class Guard:
    """What every request and connection passes: it is let through or refused, and its answer carries HEADERS."""

    def __init__(self, app: Asgi, settings: ServerSettings, with_login: bool) -> None:
        self.app, self.with_login = app, with_login
        self.name = settings.user_header.lower().encode()
        self.proxies = [ip_network(address) for address in settings.proxies]
        self.made_ready = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let one request or connection through, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in HEADERS}
                kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in names]
                message["headers"] = [*kept, *HEADERS]
            await send(message)

        peer = str((scope.get("client") or ("",))[0])
        named = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name.lower() == self.name]
        if self._pretends(named, peer) or self._open_to_others(scope):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await JSONResponse({"error": "refused"}, 403)(scope, receive, guarded)
        elif scope["path"].startswith(METRICS) and not self._may_see_metrics(named, peer):
            await JSONResponse({"error": "not here"}, 404)(scope, receive, guarded)
        else:
            if not self.made_ready and scope["path"] == "/":  # while the first visitor's browser loads the app
                self.made_ready = True
                threading.Thread(target=make_ready, name="ready", daemon=True).start()
            await self.app(scope, receive, guarded)

    def _pretends(self, named: list[str], peer: str) -> bool:
        """Whether a request names a person that the trusted proxy itself, as its socket says, did not name.

        It is a mistake in the set-up, or somebody who pretends.
        """
        try:
            from_proxy = any(ip_address(peer) in network for network in self.proxies)
        except ValueError:
            from_proxy = False
        if not named or (from_proxy and len(named) == 1):
            return False
        log.warning("identity header refused", extra={"peer": peer, "times": len(named)})
        return True

    def _open_to_others(self, scope: Message) -> bool:
        """Whether it came in by an address that others can reach, without a log-in, however the server was started."""
        server = scope.get("server") or ("", 0)
        return not self.with_login and not loopback(str(server[0]))

    def _may_see_metrics(self, named: list[str], peer: str) -> bool:
        """Whether whoever asks is an admin: the metrics name people's sessions.

        Without a log-in that is this machine's own user. Behind the log-in of [auth] who asks is not known here.
        """
        if not self.with_login:
            return loopback(peer)
        name = next(iter(named), "")
        try:
            return Person(name, role_of(canonical_name(name), read_roles(resolve_workspace()))).is_at_least(ADMIN)
        except WinnowError:  # a list that cannot be read names no admin
            return False


def loopback(address: str) -> bool:
    """Whether only this machine reaches that address."""
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


def refuse_open_address(address: str | None, with_login: bool) -> None:
    """Raise an InputError for an address that others reach, on a server without a log-in; no address means all."""
    if not with_login and not loopback(address or ""):
        raise InputError(
            f"server.address is {address or 'not set, which means all'}, expected 127.0.0.1, or a log-in: "
            "[auth] in .streamlit/secrets.toml or WINNOW_USER_HEADER"
        )


@cache
def _store(workspace: Path, url: str) -> Store:
    from rag_core.store.database import open_store  # late: the server's start does not wait for the database layer

    return open_store(workspace)


def database_answers() -> bool:
    """Whether labels can be read now; asked outside of any page's session."""
    server = database_settings()
    try:
        with _store(resolve_workspace(), server.url if server else "").reading() as connection:
            return connection.exec_driver_sql("SELECT 1").scalar() == 1
    except WinnowError:
        return False


async def health(_: Request) -> JSONResponse:
    """200 where the app can do its work, else 503; says nothing that is not for everybody."""
    database = await asyncio.to_thread(database_answers)
    body = {"status": "ok" if database else "failing", "version": __version__, "database": database}
    return JSONResponse(body, 200 if database else 503, headers={"cache-control": "no-store"})


def on_script_error(error: Exception) -> bool:
    """Log a fault of a page under a number, show people the number alone."""
    number = uuid4().hex[:8]
    log.error("page error", extra={"error_id": number, "kind": type(error).__name__}, exc_info=error)
    st.error(f"Something went wrong. The admins find it in the log under {number}.")
    return True


def tidy_up() -> None:
    """Delete questions that the history has kept long enough, beside the start: nobody waits for it."""
    from rag_core.store.history import expire

    if problem := expire(resolve_workspace()):
        log.warning("history not tidied", extra={"kind": problem})


def make_ready() -> None:
    """The modules of the Bench, and the collection of the first project; what goes wrong here the page says itself."""
    from pages import state
    from pages.bench import answers, drawers, figures, judging, paying, reading  # noqa: F401

    with contextlib.suppress(WinnowError, OSError):
        state.session_of("").refresh()


def parts() -> dict[str, Any]:
    """What the app is made with, or an InputError that says why it may not be served like this."""
    settings = server_settings()
    with_login = bool(settings.user_header) or has_login()
    refuse_open_address(config.get_option("server.address"), with_login)
    believe_the_socket()
    start_journal()
    if settings.user_header:
        config.set_option("server.trustedUserHeaders", {settings.user_header: "email"})
    if with_login:
        config.set_option("client.showErrorDetails", "none")
    threading.Thread(target=tidy_up, name="history", daemon=True).start()
    return {
        "routes": [Route("/api/health", health)],
        "middleware": [Middleware(Guard, settings=settings, with_login=with_login)],
        "on_script_error": on_script_error if with_login else None,
    }


try:
    app = st.App("app.py", **parts())  # spelled like this, `streamlit run` sees that it is a server
except WinnowError as problem:
    sys.stderr.write(f"winnow: {problem}\n")
    sys.exit(exit_code(problem))
