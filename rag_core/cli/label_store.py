"""What the `labels` commands share: their options, the open store, how they print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.output import emit
from rag_core.errors import InputError

if TYPE_CHECKING:
    from rag_core.store.labels import LabelStore

EvalSet = typer.Option(..., "--eval-set", help="Whose labels.")


@contextmanager
def opened(workspace: Path | None, create: bool = False, stand_in: bool = False) -> Iterator[LabelStore]:
    """The label store; `stand_in`: an empty one for the time being where there is none yet."""
    from tempfile import TemporaryDirectory

    from rag_core.store.database import has_store, open_store
    from rag_core.store.labels import LabelStore
    from rag_core.workspace import resolve_workspace

    place = resolve_workspace(workspace)
    with TemporaryDirectory() as empty:
        absent = stand_in and not has_store(place)
        with open_store(Path(empty) if absent else place, create=create or absent) as store:
            if store.unwritable:
                sys.stderr.write(f"winnow: {store.unwritable}\n")
            yield LabelStore(store)


def existing(labels: LabelStore, eval_set: str) -> str:
    """The eval set's name, or an InputError listing those that hold labels."""
    names = labels.eval_sets()
    if eval_set not in names:
        listed = ", ".join(name[:40] for name in names[:20]) or "none yet"
        raise InputError(f"no labels of eval set {eval_set[:80]!r}, expected one of: {listed}")
    return eval_set


def say(facts: dict[str, Any], json: bool, words: str, to_stderr: bool = False) -> None:
    """Print the facts as one JSON document, or the words."""
    if json:
        emit(facts)
    else:
        typer.echo(words, err=to_stderr)
