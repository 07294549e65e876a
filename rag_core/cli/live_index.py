"""What a command searches: a collection, that of an eval set, or a function; and keeping what was asked."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_core.errors import InputError


def searched(workspace: Path, collection: str | None, source: str | None, approximate: bool = False) -> Any:
    """The index of a collection, or of a function that searches; exactly one is named.

    A demo's collection that is not there yet is made first: its vectors ship with it.
    """
    from rag_core import workbench

    if (collection is None) == (source is None):
        raise InputError("nothing to search is named, expected one of --collection NAME and --source module:function")
    if source is not None:
        from rag_core.sources.callable_source import load_callable

        return load_callable(source)
    _make_demo(workspace, str(collection))
    _tell_changed(workspace, str(collection))
    return workbench.opened(workspace, str(collection), approximate)


def _make_demo(workspace: Path, collection: str) -> None:
    """Build the collection of a shipped eval set that brings its vectors along, where there is none of that name."""
    from rag_core import workbench
    from rag_core.cli.progress import Bar
    from rag_core.evaluate.sets import folders, load_set
    from rag_core.index.collection import list_collections

    if collection in folders() and collection not in {one.name for one in list_collections(workspace)}:
        found = load_set(collection)
        if workbench.brings_vectors(found):
            workbench.bring_up_to_date(found, workspace, Bar("embedded"))


def _tell_changed(workspace: Path, collection: str) -> None:
    """A word on stderr where a mirrored Chroma store was written to since it was read."""
    from rag_core.errors import WinnowError
    from rag_core.index.foreign import has_changed

    with suppress(WinnowError):  # what is wrong with the collection is said when it is opened
        if has_changed(workspace, collection):
            sys.stderr.write(f"warning: the Chroma store behind {collection} has changed; connect it again\n")


def remember(reports: Iterable[Any], asked: str, workspace: Path) -> None:
    """Keep the question in the workspace's history, once per pipeline; a word on stderr where that cannot be done."""
    from rag_core.spec import dump_stages
    from rag_core.store import history

    for report in reports:
        for outcome in report.outcomes:
            entry = history.asked_of(outcome.result, dump_stages(outcome.pipeline), asked, "command line")
            problem = history.remember(workspace, entry)
            if problem:
                sys.stderr.write(f"warning: the question is not kept in the history: {problem}\n")


def expire(workspace: Path) -> None:
    """Delete what the history has kept long enough, now that the answer stands there; a word on stderr if it fails."""
    from rag_core.store import history

    problem = history.expire(workspace)
    if problem:
        sys.stderr.write(f"warning: old questions are still in the history: {problem}\n")


def opened_set(
    eval_set: str, collection: str | None, workspace: Path, approximate: bool = False, source: str | None = None
) -> tuple[Any, Any]:
    """An eval set with the labels given here, and the index its queries go to; a corpus of its own comes up to date."""
    from rag_core import workbench
    from rag_core.cli.progress import Bar
    from rag_core.evaluate.sets import load_set
    from rag_core.given import with_given

    found = load_set(eval_set, workspace)
    if source is None and collection is None:
        if found.corpus is None:
            raise InputError(f"eval set {found.name} has no corpus of its own, expected --collection NAME")
        workbench.bring_up_to_date(found, workspace, Bar("embedded"))
        collection = found.name
    index = searched(workspace, collection, source, approximate)
    return with_given(found, workspace, index), index
