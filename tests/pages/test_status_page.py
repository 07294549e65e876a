"""Status through AppTest: the same looks as the command; only admins see what the server's parts say."""

import json

from streamlit.testing.v1 import AppTest

from rag_core.cli import main
from tests.pages.conftest import ROOT


def opened(app):
    return app.switch_page("pages/status.py").run(timeout=60)


def test_the_page_shows_what_the_command_prints(open_app, workspace, capfdbinary):
    app = opened(open_app())
    assert not app.exception
    assert main(["doctor", "--json"]) == 0
    said = {one["name"]: one["detail"] for one in json.loads(capfdbinary.readouterr().out)["checks"]}
    table = app.dataframe[0].value
    assert set(table["check"]) == set(said)
    shown = dict(zip(table["check"], table["found"], strict=True))
    changing = {"disk", "database"}
    assert {name: shown[name] for name in said if name not in changing} == {
        name: said[name] for name in said if name not in changing
    }


def test_what_is_wrong_comes_first(open_app, workspace, words):
    app = open_app()
    workspace.mkdir(exist_ok=True)
    (workspace / "winnow.db").write_bytes(b"these are my notes " * 100)
    app = opened(app)
    assert "found something wrong" in words(app)
    assert "is not an SQLite database" in words(app)


def test_a_viewer_is_not_told_about_the_server(workspace, monkeypatch, words):
    monkeypatch.setenv("WINNOW_USER_HEADER", "X-Forwarded-Email")
    workspace.mkdir()
    (workspace / "roles.yaml").write_text("viewer: [vera@example.org]")
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.user = {"email": "vera@example.org"}
    app = opened(app.run())
    assert not app.dataframe
    assert "You are vera@example.org, viewer" in words(app)
