"""Options that stand in a dataclass reach the command as that dataclass, and the command line as themselves."""

from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from rag_core.cli.options import Commands


@dataclass(frozen=True)
class Size:
    width: int = typer.Option(1, "--width", min=1)
    names: list[str] | None = typer.Option(None, "--name")


@pytest.fixture
def command():
    app, seen = Commands(), []

    @app.command()
    def draw(size: Size, colour: str = typer.Option("red", "--colour")) -> None:
        seen.append((size, colour))

    def call(*arguments):
        result = CliRunner().invoke(app, arguments)
        return result.exit_code, seen.pop() if seen else result.output

    return call


def test_what_is_given_reaches_the_group_and_the_options_beside_it(command):
    assert command("--width", "3", "--name", "a", "--name", "b", "--colour", "blue") == (
        0,
        (Size(3, ["a", "b"]), "blue"),
    )


def test_what_is_not_given_has_the_defaults_of_its_options(command):
    code, (size, colour) = command()
    assert (code, size.width, size.names or [], colour) == (0, 1, [], "red")


def test_the_limits_of_an_option_hold_in_a_group(command):
    code, said = command("--width", "0")
    assert code == 2
    assert "--width" in said
