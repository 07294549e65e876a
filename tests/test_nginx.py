"""The configuration of docs/server.md in a real nginx: TLS, websockets, in with the log-in, out without, forged out."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64encode

import pytest
from websockets.exceptions import InvalidStatus

from tests.conftest import free_port
from tests.streamlit_client import session, texts
from tests.test_asgi import HEADER, ROOT, Server

PEOPLE = "admin: [ann@example.org]\nviewer: [vera@example.org]\n"
BLOCK = re.search(r"```nginx\n(.*?)```", (ROOT / "docs/server.md").read_text(), re.DOTALL)[1]
HTTP = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    {blocks}
}}
"""


def certificate(folder):
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *made, *subject],
        check=True, capture_output=True,
    )  # fmt: skip
    return ssl.create_default_context(cafile=str(folder / "cert.pem"))


def block(folder, port, behind):
    """The documented server block on that port of this machine, before the server at port `behind`."""
    places = {
        "listen 443": f"listen 127.0.0.1:{port}",
        "127.0.0.1:8501": f"127.0.0.1:{behind}",
        "/etc/ssl/winnow.pem": str(folder / "cert.pem"),
        "/etc/ssl/winnow.key": str(folder / "key.pem"),
        "/etc/nginx/winnow.htpasswd": str(folder / "people"),
    }
    text = BLOCK
    for documented, here in places.items():
        assert documented in text
        text = text.replace(documented, here)
    return text


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """(address of nginx, of an outer nginx before it, of the server itself, TLS of a client)."""
    if not shutil.which("nginx"):
        if os.environ.get("WINNOW_REQUIRE_NGINX") == "1":
            pytest.fail("nginx is needed")
        pytest.skip("nginx is not on this machine")
    folder, workspace = tmp_path_factory.mktemp("nginx"), tmp_path_factory.mktemp("team")
    folder.chmod(0o755)
    (workspace / "roles.yaml").write_text(PEOPLE)
    (folder / "people").write_text("".join(f"{name}@example.org:{{PLAIN}}secret\n" for name in ("ann", "vera", "eve")))
    tls = certificate(folder)
    inner, outer = free_port(), free_port()
    with Server(workspace, WINNOW_USER_HEADER=HEADER) as server:
        # An edge that adds itself to the chain and hands on whatever header the client sent.
        edge = block(folder, outer, inner).replace("http://", "https://").replace("auth_basic", "#")
        edge = edge.replace("proxy_set_header X-Forwarded-Email $remote_user;", "")
        conf = folder / "nginx.conf"
        conf.write_text(HTTP.format(folder=folder, blocks=block(folder, inner, server.port) + edge))
        own = "user root;" if os.geteuid() == 0 else ""
        started = subprocess.Popen(
            ["nginx", "-p", str(folder), "-c", str(conf), "-g", own], stderr=subprocess.PIPE, text=True
        )
        try:
            deadline = time.monotonic() + 30
            while not answers(outer):
                assert started.poll() is None, started.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield f"https://127.0.0.1:{inner}", f"https://127.0.0.1:{outer}", f"http://127.0.0.1:{server.port}", tls
        finally:
            started.terminate()
            started.communicate(timeout=30)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def log_in(name, password="secret", **more):
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode(), **more}


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
