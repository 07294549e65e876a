"""Settings through AppTest: the same looks as the command; only admins see what the server's parts say."""

import json

from rag_core.cli import main


def test_the_page_shows_what_the_command_prints(open_app, workspace, capfdbinary):
    app = open_app("settings")
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
    workspace.mkdir(exist_ok=True)
    (workspace / "winnow.db").write_bytes(b"these are my notes " * 100)
    app = open_app("settings")
    assert "found something wrong" in words(app)
    assert "is not an SQLite database" in words(app)


def test_a_viewer_is_not_told_about_the_server(app_at, workspace, monkeypatch, words):
    monkeypatch.setenv("WINNOW_USER_HEADER", "X-Forwarded-Email")
    workspace.mkdir()
    (workspace / "roles.yaml").write_text("viewer: [vera@example.org]")
    app = app_at("settings")
    app.user = {"email": "vera@example.org"}
    app.run()
    assert not app.dataframe
    for view in ("People", "Environment"):
        app.session_state["settings.view"] = view
        app = app.run()
        assert not app.exception
        assert all("vera@example.org" not in str(frame.value) for frame in app.dataframe)
    assert "is shown to admins" in words(app)
    app.session_state["settings.view"] = "People"
    assert "You are vera@example.org, viewer" in words(app.run())


def test_people_lists_what_each_role_may_and_what_was_done(app_at, workspace):
    workspace.mkdir(exist_ok=True)
    (workspace / "used").touch()
    assert main(["cache", "clear"]) == 0
    app = app_at("settings")
    app.session_state["settings.view"] = "People"
    app.run()
    assert not app.exception
    rights, done = (frame.value for frame in app.dataframe)
    assert {"delete collections", "label"} <= set(rights["to"])
    assert "clear cache" in set(done["deed"])


def test_the_environment_is_shown_without_keys(app_at, workspace, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("WINNOW_HISTORY_DAYS", "7")
    app = app_at("settings")
    app.session_state["settings.view"] = "Environment"
    app.run()
    assert not app.exception
    rows = app.dataframe[0].value.set_index("variable")
    assert (rows["now"]["WINNOW_HISTORY_DAYS"], rows["set"]["WINNOW_HISTORY_DAYS"]) == ("7", "✓")
    assert rows["now"]["OPENAI_API_KEY"] == "set"
    assert not any("canary" in str(value) for value in rows["now"])
