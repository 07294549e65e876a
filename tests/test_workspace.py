from pathlib import Path

from rag_core.workspace import resolve_workspace


def test_the_option_comes_before_the_variable(monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", "/from/variable")
    assert resolve_workspace("/from/option") == Path("/from/option")


def test_the_variable_comes_before_the_default(monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", "/from/variable")
    assert resolve_workspace() == Path("/from/variable")


def test_the_default_is_a_folder_here(monkeypatch):
    monkeypatch.delenv("WINNOW_WORKSPACE", raising=False)
    assert resolve_workspace() == Path(".winnow")
