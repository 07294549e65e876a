"""A connection goes where the checked name led, and nowhere else; certificates stay those of the name."""

import datetime
import socket
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_httpserver import HTTPServer

from rag_core.errors import EndpointError
from rag_core.llm.client import Client
from rag_core.llm.endpoint import Endpoint

ANSWER = {"choices": [{"finish_reason": "stop", "message": {"content": "yes"}}]}
RESOLVE = socket.getaddrinfo


@pytest.fixture
def resolver(monkeypatch):
    """Names lead where `leads` says, one entry per look-up; the names that were looked up, in order."""
    leads, asked = {}, []

    def resolve(host, *args, **kwargs):
        if host not in leads:
            return RESOLVE(host, *args, **kwargs)
        asked.append(host)
        found = leads[host].pop(0) if len(leads[host]) > 1 else leads[host][0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    resolve.leads, resolve.asked = leads, asked
    return resolve


def certificate(name, folder):
    """A self-signed certificate of a name, with its key, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    built = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_name_that_leads_elsewhere_after_its_check_is_asked_where_it_was_checked(httpserver, resolver):
    httpserver.expect_request("/v1/chat/completions").respond_with_json(ANSWER)
    resolver.leads["model.example"] = [["127.0.0.1"], ["127.0.0.99"]]
    address = f"http://model.example:{httpserver.port}/v1"
    client = Client(Endpoint("local", address, "m", allow_private=True))
    assert client.chat([{"role": "user", "content": "?"}]).text == "yes"
    assert client.chat([{"role": "user", "content": "?"}]).text == "yes"
    assert resolver.asked == ["model.example"]  # looked up once, by the check
    assert {request.host for request, _ in httpserver.log} == {f"model.example:{httpserver.port}"}


def test_the_next_address_is_tried_where_one_takes_no_connection(httpserver, resolver):
    httpserver.expect_request("/v1/chat/completions").respond_with_json(ANSWER)
    resolver.leads["model.example"] = [["127.0.0.98", "127.0.0.1"]]  # nothing listens on the first
    address = f"http://model.example:{httpserver.port}/v1"
    client = Client(Endpoint("local", address, "m", allow_private=True, attempts=1))
    assert client.chat([{"role": "user", "content": "?"}]).text == "yes"


@pytest.mark.parametrize(("name", "holds"), [("model.example", True), ("other.example", False)])
def test_the_certificate_must_be_that_of_the_name(tmp_path, resolver, name, holds):
    path = certificate(name, tmp_path)
    served, trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=str(path))
    served.load_cert_chain(path)

    with HTTPServer(ssl_context=served) as server:
        server.expect_request("/v1/chat/completions").respond_with_json(ANSWER)
        resolver.leads["model.example"] = [["127.0.0.1"]]
        endpoint = Endpoint("tls", f"https://model.example:{server.port}/v1", "m", allow_private=True, attempts=1)
        client = Client(endpoint, verify=trusted)
        if holds:
            assert client.chat([{"role": "user", "content": "?"}]).text == "yes"
            return
        with pytest.raises(EndpointError, match="cannot be reached"):
            client.chat([{"role": "user", "content": "?"}])
        assert server.log == []
