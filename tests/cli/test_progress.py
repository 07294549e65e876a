import io
from types import SimpleNamespace

import pytest

from rag_core.cli.progress import AskingBar, Bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    return screen


def test_the_last_step_is_drawn_and_ends_the_line(terminal):
    bar = Bar("embedded")
    for done in range(1, 1001):
        bar(done, 1000)
    text = terminal.getvalue()
    assert "embedded 1,000 of 1,000 · " in text and text.endswith("0 s left   \n")
    assert text.count("\r") < 1000  # not every step is drawn


def test_a_run_that_asks_says_what_it_cost_or_that_nobody_knows(terminal):
    step = SimpleNamespace(done=2, total=2, spent=0.5, rate=1.0, remaining_seconds=None)
    AskingBar()(step)
    AskingBar()(SimpleNamespace(**{**vars(step), "spent": None}))
    assert terminal.getvalue() == "\r2 of 2 · 1.0 a second · spent 0.5000   \n\r2 of 2 · 1.0 a second · cost unknown   \n"


def test_nothing_is_drawn_into_a_file(capsys):
    Bar("embedded")(1, 1)
    assert capsys.readouterr().err == ""
