"""Addresses that may be asked, and those refused before a socket opens."""

import socket

import pytest

from rag_core.errors import EndpointError, InputError
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.secret import Key

REFUSED = [
    "http://example.com/v1",
    "ftp://example.com/v1",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "example.com/v1",
    "",
    "https://",
    "https:///v1",
    "https://user@example.com/v1",
    "https://user:secret@example.com/v1",
    "https://@example.com/v1",
    "https://example.com/v1?key=1",
    "https://example.com/v1#x",
    "https://example.com\\@127.0.0.1/",
    "https://exa mple.com/v1",
    "https://example.com/\nv1",
    "https://exam%70le.com/v1",
    "https://example.com:99999/v1",
    "https://[::1/v1",
    "http://0.0.0.0:8000/v1",
    "https://0.0.0.0/v1",
    "https://10.0.0.1/v1",
    "https://172.16.0.1/v1",
    "https://172.31.255.255/v1",
    "https://192.168.1.1/v1",
    "https://100.64.0.1/v1",
    "https://169.254.169.254/latest/meta-data",
    "https://169.254.0.1/v1",
    "https://224.0.0.1/v1",
    "https://240.0.0.1/v1",
    "https://255.255.255.255/v1",
    "https://[fe80::1]/v1",
    "https://[fc00::1]/v1",
    "https://[fd12:3456::1]/v1",
    "https://[ff02::1]/v1",
    "https://[::]/v1",
    "https://[::ffff:169.254.169.254]/v1",
    "https://[::ffff:10.0.0.1]/v1",
    "https://[::ffff:a00:1]/v1",
    "https://[2002:a00:1::]/v1",
    "https://[64:ff9b::10.0.0.1]/v1",
    "https://[64:ff9b::169.254.169.254]/v1",
    "https://2130706433/v1",
    "https://0x7f000001/v1",
    "https://0x7f.0.0.1/v1",
    "https://0177.0.0.1/v1",
    "https://017700000001/v1",
    "https://127.1/v1",
    "https://10.1/v1",
    "https://2852039166/v1",
    "https://0xa9fea9fe/v1",
    "https://169.254.43518/v1",
    "https://127.0.0.1./v1",
    "http://127.0.0.1.example.com/v1",
    "http://localhost.example.com/v1",
    "http://[::ffff:10.0.0.1]/v1",
    "HTTP://10.0.0.1/v1",
    "http://2130706433/v1",
    "javascript:alert(1)",
    "data:text/plain,x",
    "//example.com/v1",
]


@pytest.fixture
def no_sockets(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_may_not_be_asked_is_refused_before_a_socket_opens(no_sockets, address):
    with pytest.raises(InputError) as caught:
        Endpoint("x", address, "m")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com/v1",
        "http://127.0.0.1:11434/v1",
        "http://localhost:8080/v1",
        "http://[::1]:8080/v1",
        "https://93.184.216.34/v1",
    ],
)
def test_https_and_loopback_addresses_are_taken(no_sockets, address):
    assert Endpoint("x", address, "m").base_url == address


def test_a_private_address_is_taken_where_it_is_allowed_and_link_local_never():
    assert Endpoint("x", "http://192.168.1.5:11434/v1", "m", allow_private=True).host == "192.168.1.5"
    with pytest.raises(InputError, match="link-local"):
        Endpoint("x", "http://169.254.169.254/v1", "m", allow_private=True)


@pytest.mark.parametrize("found", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"])
def test_a_name_that_leads_to_this_machine_or_a_private_network_is_refused(monkeypatch, found):
    entry = (socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [entry])
    with pytest.raises(InputError, match="network"):
        Endpoint("x", "https://rebound.example/v1", "m").check_address(resolve=True)


def test_an_unknown_name_is_an_endpoint_error(monkeypatch):
    def unknown(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(EndpointError, match="not known to the network"):
        Endpoint("x", "https://nowhere.example/v1", "m").check_address(resolve=True)


@pytest.mark.parametrize("settings", [{"name": ""}, {"model": " "}, {"deadline": 0}, {"attempts": 0}])
def test_a_setting_out_of_range_is_refused(settings):
    with pytest.raises(InputError):
        Endpoint(**{"name": "x", "base_url": "https://a.example/v1", "model": "m", **settings})


def test_an_endpoint_prints_without_its_key():
    assert "canary" not in repr(Endpoint("x", "https://a.example/v1", "m", Key("sk-canary-0123456789abcdef")))
