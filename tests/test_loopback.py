"""The guard of the tests itself: what leaves the machine is refused, what stays is not."""

import asyncio
import socket
import urllib.request

import pytest

from tests.conftest import REFUSED, NetworkRefused, leaves, run_apart


@pytest.fixture
def tried():
    """What was refused, forgotten afterwards."""
    yield REFUSED
    del REFUSED[:]


@pytest.mark.parametrize("host", ["192.0.2.1", "8.8.8.8", "example.org", "::ffff:192.0.2.1", "169.254.169.254"])
def test_an_address_elsewhere_leaves(host):
    assert leaves(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, 80))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_does_not(host):
    assert not leaves(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, 80))


def test_a_plain_socket_is_refused(tried):
    with socket.socket() as one, pytest.raises(NetworkRefused):
        one.connect(("192.0.2.1", 80))
    assert tried == [("192.0.2.1", 80)]


def test_a_datagram_is_refused(tried):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, pytest.raises(NetworkRefused):
        one.sendto(b"x", ("192.0.2.1", 53))
    assert tried


def test_urllib_is_refused(tried):
    with pytest.raises(OSError, match="tried to reach"):
        urllib.request.urlopen("http://192.0.2.1/", timeout=1)
    assert tried


async def connected():
    return await asyncio.wait_for(asyncio.open_connection("192.0.2.1", 80), 2)


def test_asyncio_is_refused(tried):
    with pytest.raises(OSError, match="tried to reach"):
        run_apart(connected())
    assert tried


def test_loopback_works():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.sendall(b"x")
        taken, _ = server.accept()
        assert taken.recv(1) == b"x"
        taken.close()
