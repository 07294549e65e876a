"""The configuration of docs/server.md in a real nginx: TLS, websockets, in with the log-in, out without, forged out."""

import urllib.error
import urllib.request

import pytest
from websockets.exceptions import InvalidStatus

from tests.conftest import free_port
from tests.nginx import block, certificate, log_in, needed, nginx, people
from tests.streamlit_client import session, texts
from tests.test_asgi import HEADER, Server

PEOPLE = "admin: [ann@example.org]\nviewer: [vera@example.org]\n"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """(address of nginx, of an outer nginx before it, of the server itself, TLS of a client)."""
    needed()
    folder, workspace = tmp_path_factory.mktemp("nginx"), tmp_path_factory.mktemp("team")
    (workspace / "roles.yaml").write_text(PEOPLE)
    people(folder, "ann", "vera", "eve")
    tls = certificate(folder)
    inner, outer = free_port(), free_port()
    with Server(workspace, WINNOW_USER_HEADER=HEADER) as server:
        # An edge that adds itself to the chain and hands on whatever header the client sent.
        edge = block(folder, outer, inner).replace("http://", "https://").replace("auth_basic", "#")
        edge = edge.replace("proxy_set_header X-Forwarded-Email $remote_user;", "")
        with nginx(folder, block(folder, inner, server.port) + edge, outer):
            yield f"https://127.0.0.1:{inner}", f"https://127.0.0.1:{outer}", f"http://127.0.0.1:{server.port}", tls


def status(url, tls, headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30, context=tls) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


CLAIMS = [{}, {HEADER: "ann@example.org"}, {"X_Forwarded_Email": "ann@example.org"}, {"X-Forwarded-For": "127.0.0.1"}]


@pytest.mark.parametrize("place", [0, 1], ids=["one proxy", "a chain of two"])
def test_in_with_the_log_in_out_without_and_no_header_makes_anybody_admin(proxied, place):
    url, direct, tls = proxied[place], proxied[2], proxied[3]
    for claim in CLAIMS:
        assert status(url, tls, claim) == 401  # no log-in, whatever else is said
        assert status(url, tls, log_in("ann@example.org", "wrong", **claim)) == 401
        with pytest.raises(InvalidStatus), session(url, claim, tls):
            pass
        for name, seen in (("vera", "vera@example.org (viewer)"), ("eve", "This server does not know you")):
            with session(url, log_in(f"{name}@example.org", **claim), tls) as line:
                shown = texts(line, "project=rulebook")
            assert seen in shown
            assert "ann@example.org" not in shown
        assert status(url + "/_stcore/metrics", tls, log_in("vera@example.org", **claim)) == 404
    assert status(url + "/_stcore/metrics", tls, log_in("ann@example.org")) == 200
    assert status(direct + "/_stcore/metrics", None, {}) == 404  # past the proxy without a name: nobody
