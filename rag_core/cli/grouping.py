"""Options that go together are one dataclass: a command takes the group, the command line shows its fields.

A group is a frozen dataclass whose defaults are Typer options, such as llm_filter_options.Queries. What a command does
with a group stands beside the group.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a dataclass spread into that dataclass' fields, as Typer reads them."""
    hints = get_type_hints(command)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**options: Any) -> None:
        given = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **options)

    parameters = list(_spread(command, hints))
    told: Any = run
    told.__signature__ = inspect.Signature(parameters)
    told.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _spread(command: Callable[..., None], hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    for name, parameter in inspect.signature(command).parameters.items():
        group = hints[name]
        if not is_dataclass(group):
            yield parameter.replace(annotation=group, kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        own = get_type_hints(group)
        for field in fields(group):
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=own[field.name]
            )
