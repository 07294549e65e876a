"""What History works on: the filters, the questions that meet them, and what can be done with the chosen ones.

Nothing here draws. How questions are kept and deleted is in rag_core.store.history; Explore hands its own over through
history_keep.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pages.components import resources, who
from rag_core.project.deeds import CAPTURE, CHANGE_SET, DELETE_HISTORY
from rag_core.store.history import Asked, History
from rag_core.types import Query


@dataclass(frozen=True, slots=True)
class Filters:
    """What a person looks for; empty admits all."""

    collection: str = ""
    holds: str = ""
    days: int = 0

    @property
    def since(self) -> str:
        """The earliest time that is shown."""
        if not self.days:
            return ""
        return (datetime.now(UTC) - timedelta(days=self.days)).isoformat(timespec="milliseconds")


def history() -> History | None:
    """The history of the workspace, None where nothing was ever stored. A StoreError where it cannot be read."""
    return History(resources.label_store()) if resources.has_store() else None


def delete(numbers: Sequence[int] | None) -> int:
    """Delete questions for good; how many."""
    with who.doing(DELETE_HISTORY, "all" if numbers is None else f"{len(numbers)} questions"):
        found = history()
        return found.delete(numbers) if found is not None else 0


def link_of(asked: Asked) -> dict[str, str]:
    """The parameters with which Explore shows the question again."""
    return {"collection": asked.collection, "question": asked.query, "pipeline": json.dumps(list(asked.pipeline))}


def make_set(name: str, asked: Sequence[Asked], with_lists: bool) -> int:
    """Make an eval set of the questions, each once; with lists it can be labelled at once. How many queries it has."""
    from rag_core.evaluate.set_writing import new_set
    from rag_core.workbench import capture_into

    texts = list(dict.fromkeys(one.query for one in reversed(asked)))
    queries = [Query(f"q{number}", text) for number, text in enumerate(texts, 1)]
    workspace: Path = resources.workspace()
    with who.doing(CHANGE_SET, name):
        new_set(workspace, name, queries, description="Questions from the history.")
    collections = {one.collection for one in asked}
    if with_lists and len(collections) == 1:
        with who.doing(CAPTURE, name):
            capture_into(name, collections.pop(), 200, workspace)
    return len(queries)


def settings_of(asked: Asked) -> str:
    """The stages of a question in one line."""
    return " → ".join(str(next(iter(stage))) if isinstance(stage, dict) and stage else "?" for stage in asked.pipeline)


def kept_rows(asked: Asked) -> list[dict[str, Any]]:
    """The kept chunks of a question, as they were."""
    return [dict(row) for row in asked.result.get("kept", []) if isinstance(row, dict)]
