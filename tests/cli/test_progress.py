import io
from contextlib import redirect_stderr
from types import SimpleNamespace

from rag_core.cli.output import AskingBar, ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn(bar, *steps):
    with redirect_stderr(Terminal()) as screen:
        for step in steps:
            bar(*step)
    return screen.getvalue()


def test_the_last_step_is_drawn_and_ends_the_line():
    text = drawn(ProgressBar("embedded"), *((done, 1000) for done in range(1, 1001)))
    assert "embedded 1,000 of 1,000 · " in text
    assert text.endswith("0 s left   \n")
    assert text.count("\r") < 1000  # not every step is drawn


def test_a_run_that_asks_says_what_it_cost_or_that_nobody_knows():
    step = SimpleNamespace(done=2, total=2, spent=0.5, rate=1.0, remaining_seconds=None)
    assert drawn(AskingBar(), [step]) == "\r2 of 2 · 1.0 a second · spent 0.5000   \n"
    step.spent = None
    assert drawn(AskingBar(), [step]) == "\r2 of 2 · 1.0 a second · cost unknown   \n"


def test_nothing_is_drawn_into_a_file(capsys):
    ProgressBar("embedded")(1, 1)
    assert capsys.readouterr().err == ""
