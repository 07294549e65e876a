"""For every test: a socket that would leave this machine is refused, and the test that tried it fails.

With several workers, what is made once for a module is made by one worker.
"""

import asyncio
import os
import re
import secrets
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from ipaddress import ip_address

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on the machine and on what else it does. `make test-all` tries laws on many more cases.
# Quick runs try the same examples every time, so that what fails on one machine fails on every other; thorough ones
# look for new examples.
settings.register_profile(
    "quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=1000, derandomize=False)
settings.load_profile("quick")

REFUSED = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of a module on one worker where they share what is made once: an app, a server, an index.

    pytest-xdist's own groups are marks that it writes into a test's id, which pytest from 9.1 on does not let it do.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            module = nodeid.split("::")[0]
            return group(config.rootpath / module) or nodeid

    config.option.loadscopereorder = False
    return ByModule(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What takes long begins first: the browser, then modules that stay together, then the tests that go anywhere."""
    items.sort(key=lambda item: (item.path.parent.name != "browser", not group(item.path)))


@cache
def group(path):
    """The name of the tests that those of a module stay together with; none where they share nothing."""
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "browser" and re.search(r"^def .*\bapp\b.*:$", text, re.MULTILINE):
        return "the browser's app"
    return str(path) if path.parent.name == "browser" or 'scope="module"' in text else ""


class NetworkRefused(OSError):
    """A test tried to reach another machine."""


def leaves(family, address):
    """Whether a connection to that address would leave this machine; a name counts unless it is localhost."""
    if family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
        return False
    host = str(address[0])
    if host in ("", "localhost"):
        return False
    try:
        return not ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return True


def guarded(deed, place):
    """The socket's method, refusing addresses elsewhere; `place` is which argument holds the address."""

    def method(self, *arguments):
        address = arguments[place] if len(arguments) > abs(place) - (place < 0) else None
        if leaves(self.family, address):
            REFUSED.append(address)
            raise NetworkRefused(101, f"a test tried to reach {address}")
        return deed(self, *arguments)

    return method


class LoopbackSocket(socket.socket):
    """A socket for this machine only."""

    connect = guarded(socket.socket.connect, 0)
    connect_ex = guarded(socket.socket.connect_ex, 0)
    sendto = guarded(socket.socket.sendto, -1)


@pytest.fixture(scope="session", autouse=True)
def loopback_only():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", LoopbackSocket)
        yield


@pytest.fixture(autouse=True)
def reaches_nobody(loopback_only):
    """Fail where code swallowed the refusal: to have tried is the fault."""
    del REFUSED[:]
    yield
    assert REFUSED == [], f"tried to reach {REFUSED}"


def free_port():
    """A port to listen at or to find closed: another worker is given others, no outgoing connection is given any of them.

    A system takes the ports of outgoing connections from 32768 upwards (Linux), so that one found free there may be gone.
    """
    first = 12_000 + 2_000 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw9")[2:]) % 10)
    for _ in range(1_000):
        port = first + secrets.randbelow(2_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port is free from {first} on")


def run_apart(coroutine):
    """The result of a coroutine in a thread of its own: a browser driven by the same process keeps a loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
