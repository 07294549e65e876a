"""How commands read their options: a Typer whose commands may take a dataclass of them, and the options many share.

One name, one meaning, one help text. What only one command takes stands beside that command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

import typer

from rag_core.cli.output import echo, emit
from rag_core.errors import InputError
from rag_core.journal import kept_in, running
from rag_core.workspace import resolve_workspace

Collection = typer.Option(None, "--collection", help="The collection's name; default: that of the eval set.")
EvalSetName = typer.Option(None, "--eval-set", help="An eval set by name, or a folder with meta.yaml.")
Lists = typer.Option(None, "--lists", help="Recorded lists (JSONL) with their labels, instead of an eval set.")
Split = typer.Option(None, "--split", help="Only the queries of this split: dev, test or all.")
MinGrade = typer.Option(None, "--min-grade", min=1, help="Relevant means this grade or more; default: the eval set's.")
Engine = typer.Option(None, "--engine", help="dask://host:port: do it in parts on a Dask cluster; default: here.")


@dataclass(frozen=True)
class Common:
    """What every command takes: the workspace, and how its answer is printed. They stand last in its help."""

    workspace: Path | None = typer.Option(
        None, "--workspace", help="Folder of labels, indexes and runs; else WINNOW_WORKSPACE, else .winnow"
    )
    json: bool = typer.Option(False, "--json", help="One JSON document on stdout.")

    @property
    def folder(self) -> Path:
        """The workspace's folder."""
        return resolve_workspace(self.workspace)

    def say(self, result: Any, text: str = "", **facts: Any) -> None:
        """Print a result that knows its `to_json` and `to_text`, or plain facts with their text.

        `facts` stand beside the result in the JSON document.
        """
        if self.json:
            emit({**(result if isinstance(result, Mapping) else result.to_json()), **facts})
        else:
            echo(text or ("" if isinstance(result, Mapping) else result.to_text()))


def named_pairs(pairs: Sequence[str], option: str, what: str) -> dict[str, str]:
    """FIELD=NAME options as a mapping."""
    found: dict[str, str] = {}
    for pair in pairs:
        field, _, name = pair.partition("=")
        if not (field and name) or field in found:
            raise InputError(f"{option} is {pair[:80]!r}, expected FIELD={what}, each field once")
        found[field] = name
    return found


Command = Callable[..., None]
COMMON = tuple(Common.__dataclass_fields__)
JOURNALLED = ("collection", "eval_set", "engine")
"""The options that a journal's line names."""


class Commands(typer.Typer):
    """Commands whose options are parameters, or frozen dataclasses whose defaults are Typer options."""

    def __init__(self, help: str = "", **settings: Any) -> None:
        super().__init__(help=help, **{"no_args_is_help": False, "rich_markup_mode": None, **settings})

    def command(  # type: ignore[override]  # every command here is a function that returns nothing
        self, name: str | None = None, *, journal: bool = False, **settings: Any
    ) -> Callable[[Command], Command]:
        """Add a command; with `journal` the workspace keeps when each run began and ended, and why it failed."""
        add = super().command(name, **settings)

        def added(command: Command) -> Command:
            add(_spread(command, journal))
            return command

        return added

    def callback(self, **settings: Any) -> Callable[[Command], Command]:  # type: ignore[override]  # as above
        """What runs before every command of the group, and alone where none is named."""
        add = super().callback(**settings)

        def added(command: Command) -> Command:
            add(_spread(command, journal=False))
            return command

        return added


def _spread(command: Command, journal: bool) -> Command:
    """The command with every parameter that is a dataclass spread into the fields of it, as Typer reads them."""
    hints = get_type_hints(command)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**options: Any) -> None:
        own = {name: value for name, value in options.items() if name in hints}
        own |= {
            name: group(**{field.name: options[field.name] for field in fields(group)})
            for name, group in groups.items()
        }
        if not journal:
            command(**own)
            return
        about = {name: str(options[name]) for name in JOURNALLED if options.get(name)}
        with kept_in(resolve_workspace(options.get("workspace"))), running(command.__name__, **about):
            command(**own)

    parameters = sorted(_parameters(command, hints), key=lambda one: one.name in COMMON)
    spread: Any = run
    spread.__signature__ = inspect.Signature(parameters)
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(command: Command, hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(hints[name]):
            yield parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        own = get_type_hints(hints[name])
        for field in fields(hints[name]):
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=own[field.name]
            )
