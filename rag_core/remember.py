"""Live results remembered: what a question on a collection depends on, as the key of the result cache.

How long results are kept and how they are let go is in cache.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_core.cache import key_of, shared
from rag_core.errors import InputError
from rag_core.index.collection import folder_of
from rag_core.llm.endpoint import endpoints
from rag_core.settings import model_settings
from rag_core.spec import dump_stages
from rag_core.stage import Stage, flatten
from rag_core.types import Candidates, Query

WORD_LISTS = ("keywords", "synonyms")
"""What a rewrite holds besides its settings: an eval set may bring its own, so no file of the workspace tells them."""


def remembered(query: Query, pipeline: Stage, index: Any, workspace: Path, ask: Callable[[], Candidates]) -> Candidates:
    """What `ask` gives for a query through a pipeline, from the result cache where nothing that changes it changed.

    An index without a snapshot (a function that searches) has no state that could be named and is asked every time.
    """
    snapshot = getattr(index, "snapshot", None)
    if snapshot is None:
        return ask()
    known = [repr(model_settings()), *sorted(map(repr, _named_endpoints(workspace).values()))]
    lists = [repr(getattr(stage, kind)) for stage in flatten(pipeline) for kind in WORD_LISTS if hasattr(stage, kind)]
    asked = [query.id, query.text, query.dense_text, query.lexical_text, dump_stages(pipeline), lists]
    state = f"{index.fingerprint} {snapshot.revision}"
    folders = (workspace, folder_of(workspace, snapshot.name), workspace / "words" / snapshot.name)
    key = key_of([*asked, state, known], workspace, folders)
    made: list[Candidates] = []

    def make() -> Candidates:
        made.append(ask())
        return replace(made[0], reader=None)  # a reader is one run's own, and holds its index

    found = shared().result(f"{workspace.resolve()} {snapshot.name}", state, key, make)
    shared().note(workspace)
    return made[0] if made else replace(found, reader=_AskedAgain(ask))


class _AskedAgain:
    """The reader of a remembered list: asks anew when somebody reads on, which most views never do."""

    def __init__(self, ask: Callable[[], Candidates]) -> None:
        self._ask = ask
        self._reader: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._reader is None:
            self._reader = self._ask().reader
        return getattr(self._reader, name)


def _named_endpoints(workspace: Path) -> dict[str, Any]:
    """The endpoints a judge may be on; a file of them that cannot be read is said by the stage that needs one."""
    try:
        return dict(endpoints(workspace))
    except InputError:
        return {}
