"""The team's server as a process of its own: headers, health, whom it believes, which addresses it takes."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import free_port, run_apart
from tests.streamlit_client import session, texts

ROOT = Path(__file__).resolve().parents[1]
HEADER = "X-Forwarded-Email"


def launch(workspace, *arguments, script="asgi.py", **variables):
    names = ("WINNOW_USER_HEADER", "WINNOW_TRUSTED_PROXIES", "WINNOW_DATABASE_URL")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.headless", "true", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env={**environment, "WINNOW_WORKSPACE": str(workspace), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def get(port, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


class Server:
    def __init__(self, workspace, *arguments, **variables):
        self.port = free_port()
        self.process = launch(workspace, "--server.port", str(self.port), *arguments, **variables)

    def __enter__(self):
        while True:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                get(self.port, "/_stcore/health")
                return self
            except OSError:
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("plain")) as server:
        yield server


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("proxy"), "--server.address", "0.0.0.0", WINNOW_USER_HEADER=HEADER) as server:
        yield server


@pytest.mark.parametrize("path", ["/", "/api/health", "/_stcore/health", "/not/there.js", "/media/none"])
def test_every_answer_carries_the_security_headers(plain, path):
    _, headers, _ = get(plain.port, path)
    policy = headers["Content-Security-Policy"]
    for part in ("default-src 'self'", "object-src 'none'", "frame-ancestors 'none'", "img-src 'self' data: blob:"):
        assert part in policy
    assert "unsafe-eval'" not in policy.replace("wasm-unsafe-eval'", "")
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_health_says_that_the_database_answers(plain):
    status, headers, body = get(plain.port, "/api/health")
    assert status == 200
    assert json.loads(body) == {"status": "ok", "version": "0.1.0", "database": True}
    assert headers["Cache-Control"] == "no-store"


def test_health_fails_where_the_database_is_away(tmp_path):
    url = f"postgresql://ann:s3cr3t@127.0.0.1:{free_port()}/labels"
    with Server(tmp_path, WINNOW_DATABASE_URL=url) as server:
        status, _, body = get(server.port, "/api/health")
    assert (status, json.loads(body)["database"]) == (503, False)
    assert b"s3cr3t" not in body


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_an_address_others_reach_is_refused_without_a_log_in(tmp_path, address):
    process = launch(tmp_path, "--server.port", str(free_port()), "--server.address", address)
    _, said = process.communicate(timeout=60)
    (sentence,) = [line for line in said.splitlines() if line.startswith("winnow:")]
    assert f"server.address is {address}, expected 127.0.0.1, or a log-in" in sentence
    assert process.returncode == 2


def test_with_a_log_in_proxy_the_address_is_free(behind_proxy):
    assert get(behind_proxy.port, "/api/health")[0] == 200


def test_a_log_in_counts_in_whatever_file_the_server_reads_secrets_from(tmp_path):
    (tmp_path / "own.toml").write_text('[auth]\nredirect_uri = "http://127.0.0.1/oauth2callback"\n')
    with Server(tmp_path, "--server.address", "0.0.0.0", "--secrets.files", str(tmp_path / "own.toml")) as server:
        assert get(server.port, "/api/health")[0] == 200


def test_started_past_the_check_it_answers_nobody_on_an_open_address():
    """uvicorn itself may be told any address; what the connection came in by counts then."""
    from asgi import Guard
    from rag_core.settings import ServerSettings

    answered = []

    async def ask(address):
        async def app(scope, receive, send):
            answered.append(address)

        async def send(message):
            answered.append(message.get("status"))

        scope = {"type": "http", "server": (address, 80), "client": ("192.0.2.9", 1), "headers": [], "path": "/"}
        await Guard(app, ServerSettings(), with_login=False)(scope, None, send)

    run_apart(ask("127.0.0.1"))
    run_apart(ask("192.0.2.7"))
    assert answered[:2] == ["127.0.0.1", 403]


def test_the_header_of_the_trusted_proxy_is_believed(behind_proxy):
    assert get(behind_proxy.port, "/", **{HEADER: "ann@example.org"})[0] == 200


def test_what_a_proxy_says_of_where_it_was_asked_from_does_not_count(behind_proxy):
    """An ordinary proxy on this machine names the browser's address and stays the trusted one."""
    assert get(behind_proxy.port, "/", **{HEADER: "ann@example.org", "X-Forwarded-For": "203.0.113.9"})[0] == 200


PROXY = "127.0.0.2"  # the proxy of these tests; 127.0.0.1 is a stranger to them


def status_from(address, port, path="/", **headers):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(address, 0))
    line.request("GET", path, headers=headers)
    try:
        return line.getresponse().status
    finally:
        line.close()


@pytest.fixture(scope="module")
def trusting_forwarders(tmp_path_factory):
    """uvicorn told to believe all forwarders; the list of people names an admin."""
    workspace = tmp_path_factory.mktemp("forwarders")
    (workspace / "roles.yaml").write_text("admin: [ann@example.org]\nviewer: ['*']\n")
    variables = {"WINNOW_USER_HEADER": HEADER, "WINNOW_TRUSTED_PROXIES": PROXY, "FORWARDED_ALLOW_IPS": "*"}
    with Server(workspace, **variables) as server:
        yield server


def test_the_header_from_anybody_else_is_refused_whatever_it_says_of_itself(trusting_forwarders):
    port, admin = trusting_forwarders.port, {HEADER: "ann@example.org"}
    for claim in ({}, {"X-Forwarded-For": PROXY}, {"X-Forwarded-For": f"203.0.113.9, {PROXY}"}, {"X-Real-IP": PROXY},
                  {"Forwarded": f"for={PROXY}"}):  # fmt: skip
        for path in ("/", "/_stcore/stream", "/_stcore/metrics"):
            assert status_from("127.0.0.1", port, path, **admin, **claim) == 403
    assert status_from("127.0.0.1", port, "/", **{HEADER.lower(): "ann@example.org"}) == 403
    assert status_from("127.0.0.1", port) == 200  # the page comes, and asks for the log-in
    assert status_from(PROXY, port, "/", **admin, **{"X-Forwarded-For": "203.0.113.9"}) == 200


def test_the_metrics_are_for_admins(trusting_forwarders, plain):
    port, path = trusting_forwarders.port, "/_stcore/metrics"
    asked = [{HEADER: "ANN@example.org"}, {HEADER: "eve@example.org"}, {}]
    assert [status_from(PROXY, port, path, **headers) for headers in asked] == [200, 404, 404]
    assert status_from("127.0.0.1", plain.port, path) == 200  # one's own machine


def test_two_identity_headers_are_refused(behind_proxy):
    with socket.create_connection(("127.0.0.1", behind_proxy.port)) as line:
        line.sendall(f"GET / HTTP/1.1\r\nHost: x\r\n{HEADER}: a\r\n{HEADER}: b\r\nConnection: close\r\n\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("name", ["WINNOW_USER_HEADER", "WINNOW_TRUSTED_PROXIES"])
def test_a_setting_that_cannot_be_used_stops_the_start(tmp_path, name):
    process = launch(tmp_path, "--server.port", str(free_port()), **{"WINNOW_USER_HEADER": HEADER, name: "a b:c"})
    _, said = process.communicate(timeout=60)
    assert f"winnow: {name}" in said
    assert process.returncode == 2


def test_what_a_page_did_not_expect_is_one_sentence_with_a_number_that_stands_in_the_log(tmp_path):
    """A script that breaks, served as asgi.py serves the app."""
    (tmp_path / "broken.py").write_text("raise ValueError('the text of a chunk in /home/ann/secret')\n")
    (tmp_path / "served.py").write_text(
        "import streamlit as st\nfrom asgi import parts\napp = st.App('broken.py', **parts())\n"
    )
    variables = {"WINNOW_USER_HEADER": HEADER, "PYTHONPATH": str(ROOT)}
    with Server(tmp_path, script=str(tmp_path / "served.py"), **variables) as server:
        with session(f"http://127.0.0.1:{server.port}", {HEADER: "ann@example.org"}) as line:
            shown = texts(line)
        server.process.kill()
        logged = server.process.communicate()[1]
    (number,) = set(re.findall(r"Something went wrong\. The admins find it in the log under (\w{8})\.", shown))
    assert not any(word in shown for word in ("Traceback", "ValueError", "/home/ann"))
    assert number in logged
