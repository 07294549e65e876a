"""Log in through an OpenID Connect provider in Chromium: no data before it, the name and role of the log-in after it."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from tests.browser.conftest import ROOT, free_port, wait_until_healthy
from tests.browser.test_labels_in_browser import many_pairs, wait_for_chunk, write_set
from tests.scripted_provider import CLIENT, CLIENT_SECRET, provided

COOKIE_SECRET = "cookie-canary-0f9e8d7c6b5a4321"
PEOPLE = (
    {"sub": "ann", "email": "Ann@example.org", "email_verified": True},
    {"sub": "bob", "email": "bob@example.org", "email_verified": True},
    {"sub": "eve", "email": "eve@example.org", "email_verified": True},
    {"sub": "mallory", "email": "ann@example.org", "email_verified": False},
)
ROLES = "admin: [ann@example.org]\nannotator: [bob@example.org]\n"


@pytest.fixture(scope="module")
def provider(browser):
    with provided(*PEOPLE) as running:
        yield running


@contextmanager
def team_server(folder, provider):
    """The team's server with [auth] in the home folder's secrets; gives its address."""
    workspace, home, port = folder / "workspace", folder / "home", free_port()
    write_set(workspace, "many", many_pairs(2, 3))
    (workspace / "roles.yaml").write_text(ROLES)
    (home / ".streamlit").mkdir(parents=True)
    (home / ".streamlit" / "secrets.toml").write_text(
        f'[auth]\nredirect_uri = "http://127.0.0.1:{port}/oauth2callback"\ncookie_secret = "{COOKIE_SECRET}"\n'
        f'client_id = "{CLIENT}"\nclient_secret = "{CLIENT_SECRET}"\n'
        f'server_metadata_url = "{provider.issuer}/.well-known/openid-configuration"\n'
    )
    arguments = ["--server.headless", "true", "--server.port", str(port)]
    environment = {
        **os.environ,
        "WINNOW_WORKSPACE": str(workspace),
        "HOME": str(home),
    }  # secrets are read from there, too
    with open(folder / "app.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "asgi.py", *arguments],
            cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("team")


@pytest.fixture(scope="module")
def server(folder, provider):
    with team_server(folder, provider) as url:
        yield url


@pytest.fixture
def held(page):
    """Everything the browser gets: bodies of answers, redirects, frames of the connection."""
    found = []
    page.on("response", lambda answer: found.append(body_of(answer)))
    page.on("websocket", lambda line: line.on("framereceived", lambda frame: found.append(as_bytes(frame))))
    return found


def body_of(answer):
    if answer.status >= 300:
        return answer.headers.get("location", "").encode()
    return b"" if answer.request.resource_type in ("stylesheet", "font", "image") else answer.body()


def as_bytes(frame):
    return frame if isinstance(frame, bytes) else frame.encode()


def log_in(page, url, account):
    page.goto(url)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=account, exact=True).click()
    page.wait_for_url(f"{url}/**")


def asks_to_log_in(page):
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    expect(page.locator(".st-key-rail")).to_have_count(0)


@pytest.mark.parametrize(
    "path",
    [
        "/labels?project=many",
        pytest.param("/", marks=pytest.mark.slow),
        pytest.param("/settings", marks=pytest.mark.slow),
    ],
)
def test_before_the_log_in_there_is_a_button_and_no_data(page, server, held, path):
    page.goto(server + path)
    asks_to_log_in(page)
    everything = b"".join(held)
    assert b"Words of entry" not in everything
    assert b"Question number" not in everything
    assert b"example.org" not in everything


def test_labels_carry_the_address_that_the_provider_vouches_for(page, server, folder):
    log_in(page, server, "bob")
    page.goto(f"{server}/labels?project=many&annotator=somebody.else")
    wait_for_chunk(page)
    page.keyboard.press("2")
    deadline = time.monotonic() + 30
    while not (found := labels_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [label.annotator for label in found] == ["bob@example.org"]


def labels_of(folder):
    with open_store(folder / "workspace") as store:
        return LabelStore(store).labels("many")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("account", "shown"), [("ann", "ann@example.org (admin)"), ("bob", "bob@example.org (annotator)")]
)
def test_the_role_is_that_of_the_servers_list(page, server, account, shown):
    log_in(page, server, account)
    expect(page.get_by_text(shown)).to_be_attached()


@pytest.mark.slow
def test_who_is_on_no_list_is_told_so_and_sees_no_data(page, server, held):
    log_in(page, server, "eve")
    expect(page.get_by_text("This server does not know you.")).to_be_visible()
    assert b"Question number" not in b"".join(held)


@pytest.mark.slow
def test_an_address_that_the_provider_did_not_verify_is_nobody(page, server):
    log_in(page, server, "mallory")
    asks_to_log_in(page)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["wrong_nonce", "wrong_key"])
def test_a_token_that_is_not_the_providers_own_logs_nobody_in(page, server, provider, monkeypatch, fault):
    monkeypatch.setattr(provider, fault, True)
    log_in(page, server, "ann")
    asks_to_log_in(page)


@pytest.mark.slow
def test_a_code_that_comes_back_a_second_time_or_to_another_browser_logs_nobody_in(page, server, browser):
    answers = []
    page.on("request", lambda request: "/oauth2callback" in request.url and answers.append(request.url))
    log_in(page, server, "ann")
    expect(page.get_by_text("ann@example.org (admin)")).to_be_attached()
    context = browser.new_context()
    other = context.new_page()
    other.goto(answers[0])
    asks_to_log_in(other)
    context.close()


def test_after_the_log_out_nothing_is_left(page, server, provider):
    log_in(page, server, "bob")
    expect(page.get_by_text("bob@example.org (annotator)")).to_be_attached()
    held = {one["name"]: one for one in page.context.cookies() if one["name"].startswith("_streamlit_user")}
    assert held
    assert all(one["httpOnly"] and one["sameSite"] == "Lax" for one in held.values())
    page.get_by_role("button", name="Log out").click()
    asks_to_log_in(page)
    assert "/end" in [path for path, _ in provider.asked]
    assert not [one for one in page.context.cookies() if one["name"].startswith("_streamlit_user")]
    page.goto(f"{server}/labels?project=many")
    asks_to_log_in(page)


@pytest.mark.slow
def test_a_cookie_that_the_server_did_not_sign_is_nobody(page, server):
    forged = '{"email": "ann@example.org", "is_logged_in": true}'
    page.context.add_cookies([{"name": "_streamlit_user", "value": forged, "url": server}])
    page.goto(server)
    asks_to_log_in(page)


def test_no_secret_and_no_token_reaches_a_page_or_the_log(page, server, provider, held, folder):
    log_in(page, server, "ann")
    for path in ("", "/settings", "/labels?project=many"):
        page.goto(server + path)
        expect(page.get_by_text("ann@example.org (admin)")).to_be_attached()
    shown = b"".join(held)
    log = (folder / "app.log").read_bytes()
    assert b"ann@example.org" in shown
    assert provider.tokens
    for secret in (CLIENT_SECRET, COOKIE_SECRET, *provider.tokens):
        assert secret.encode() not in shown
        assert secret.encode() not in log


def test_the_addresses_of_the_log_in_carry_the_security_headers(server):
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    for path in ("/auth/login", "/auth/login?provider=x", "/auth/logout", "/oauth2callback?state=x"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.build_opener(Stay).open(server + path, timeout=20)
        assert (caught.value.code, caught.value.headers["Location"]) == (302, "/"), path
        assert "frame-ancestors 'none'" in caught.value.headers["Content-Security-Policy"], path
        assert caught.value.headers["X-Content-Type-Options"] == "nosniff", path
        assert caught.value.headers["Referrer-Policy"] == "no-referrer", path
