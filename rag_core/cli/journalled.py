"""Long commands keep a journal in the workspace: when each began and ended, under which run id, and why it failed.

The lines are rag_core.journal's; people's words stay on stderr. A workspace that is not there is not made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

FIELDS = ("collection", "eval_set", "engine")
P = ParamSpec("P")
R = TypeVar("R")


def journalled(command: Callable[P, R]) -> Callable[P, R]:
    """The command as a run of its name, with the options in FIELDS that were given."""

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        from rag_core.journal import kept_in, running
        from rag_core.workspace import resolve_workspace

        given: dict[str, Any] = dict(options)
        fields = {name: str(given[name]) for name in FIELDS if given.get(name)}
        with kept_in(resolve_workspace(given.get("workspace"))), running(command.__name__, **fields):
            return command(*arguments, **options)

    return run
