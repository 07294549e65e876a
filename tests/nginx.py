"""A real nginx before the server, by the configuration of docs/server.md: TLS and websockets on a port of this machine."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path

import pytest

BLOCK = re.search(
    r"```nginx\n(.*?)```", (Path(__file__).resolve().parents[1] / "docs/server.md").read_text(), re.DOTALL
)[1]
HTTP = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    {blocks}
}}
"""


def needed():
    """Skip the test, or fail it where WINNOW_REQUIRE_NGINX says so, on a machine without nginx."""
    if not shutil.which("nginx"):
        if os.environ.get("WINNOW_REQUIRE_NGINX") == "1":
            pytest.fail("nginx is needed")
        pytest.skip("nginx is not on this machine")


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


@contextmanager
def nginx(folder, blocks, port):
    """nginx with these server blocks, until the context is left; it answers on the port from the beginning."""
    folder.chmod(0o755)
    conf = folder / "nginx.conf"
    conf.write_text(HTTP.format(folder=folder, blocks=blocks))
    own = "user root;" if os.geteuid() == 0 else ""
    started = subprocess.Popen(
        ["nginx", "-p", str(folder), "-c", str(conf), "-g", own], stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 30
        while not answers(port):
            assert started.poll() is None, started.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield
    finally:
        started.terminate()
        started.communicate(timeout=30)


def people(folder, *names):
    """Who may log in, with the password `secret`, in the file that the server block names."""
    (folder / "people").write_text("".join(f"{name}@example.org:{{PLAIN}}secret\n" for name in names))


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def log_in(name, password="secret", **more):
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode(), **more}
