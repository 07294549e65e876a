"""Where LLM filter gets its lists: a recorded eval set, a dropped file, or one capture of a live set.

A capture asks every query once, deep, and is kept in the workspace under a name made of what it depends on; labels
given later are laid over it. Opening the index is imported late: a recorded set needs none of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from pages.components import resources, say, sources
from rag_core.errors import StoreError
from rag_core.eval_sets.reading import EvalSet, folders
from rag_core.records import load_lists
from rag_core.types import Case

DEPTH = 200
Progress = Callable[[int, int], None]


def titles() -> dict[str, str]:
    """Name → title of every eval set that holds lists or a corpus to ask, and of the lists dropped in this session."""
    known = folders(resources.workspace())
    found = {
        name: title
        for name, title in resources.set_titles().items()
        if (known[name] / "lists.jsonl").is_file() or (known[name] / "corpus.jsonl").is_file()
    }
    dropped = sources.uploads().items()
    return found | {name: f"{one.title} (queries: {len(one.cases)})" for name, one in dropped}


def eval_set(name: str) -> EvalSet:
    """The eval set of that name, read again when its files change; a dropped one as it was dropped."""
    if name in sources.uploads():
        return sources.uploads()[name]
    return resources.eval_set(name)


def capture_path(chosen: EvalSet, workspace: Path) -> Path:
    """The file of a live set's capture: its name changes with corpus, questions and depth."""
    asked = "\n".join(f"{case.query.id}\t{case.query.text}" for case in chosen.cases)
    corpus = b"" if chosen.corpus is None else chosen.corpus.read_bytes()
    digest = hashlib.sha256(asked.encode() + b"\0" + corpus).hexdigest()[:12]
    return workspace / "captures" / f"{chosen.name}-{DEPTH}-{digest}.jsonl"


def lists_of(chosen: EvalSet) -> list[Case] | None:
    """The set's cases with their lists and today's labels; None where a live set was not captured yet."""
    if chosen.recorded:
        return with_given_labels(chosen.name, chosen.cases)
    path = capture_path(chosen, resources.workspace())
    if not path.is_file():
        return None
    known = {case.query.id: case for case in chosen.cases}
    held = [case for case in _captured(str(path), path.stat().st_mtime_ns) if case.query.id in known]
    return with_given_labels(
        chosen.name,
        [replace(known[case.query.id], candidates=case.candidates) for case in held],
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _captured(path: str, changed: int) -> list[Case]:
    found = list(load_lists(Path(path)))
    resources.freeze()
    return found


def with_given_labels(name: str, cases: Sequence[Case]) -> list[Case]:
    """The cases with the labels people gave in this workspace laid over them."""
    if not resources.has_store():
        return list(cases)
    from pages.components import labels  # late: the database layer takes longer to import than this page

    try:
        return labels.overlaid(resources.label_store(), name, cases)
    except StoreError as error:
        say.problem("The labels given here cannot be read; the eval set’s own are used.", str(error))
        return list(cases)


def capture(chosen: EvalSet, embedding: Progress, asking: Progress) -> None:
    """Bring the set's collection up to date and ask every query once; a run cut short resumes where it was."""
    from rag_core import workbench
    from rag_core.retrieve.capture import capture_to_file

    workspace = resources.workspace()
    workbench.bring_up_to_date(chosen, workspace, embedding)
    index = workbench.opened(workspace, chosen.name)
    try:
        mark = workbench.capture_fingerprint(index, DEPTH, chosen.cases)
        out = capture_path(chosen, workspace)
        capture_to_file(chosen.cases, workbench.source_of(index, DEPTH), out, mark, asking)
    finally:
        getattr(index, "close", lambda: None)()
