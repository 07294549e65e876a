"""For every test: a socket that would leave this machine is refused, and the test that tried it fails.

With several workers, what is made once for a module is made by one worker.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on the machine and on what else it does.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

REFUSED = []


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in this same hook, and would read them before
def pytest_collection_modifyitems(items):
    """Keep the tests of a module on one worker where they share a fixture of the module: a server, an index."""
    for item in items:
        shared = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if any(fixture.scope == "module" for fixtures in shared for fixture in fixtures):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(item.config.rootpath))))


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


def run_apart(coroutine):
    """The result of a coroutine in a thread of its own: a browser driven by the same process keeps a loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
