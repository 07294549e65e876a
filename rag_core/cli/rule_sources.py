"""What the `rules` commands work on: the chunks of a collection or of recorded lists, and the queries with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.errors import InputError

if TYPE_CHECKING:
    from rag_core.rules.templates import TemplateFamily
    from rag_core.types import Case, Chunk

NamedCollection = typer.Option(..., "--collection", help="The collection's name.")
Templates = typer.Option(None, "--templates", help="A file of rule templates; default: those that ship.")


@dataclass(frozen=True)
class Sources:
    """The chunks, the queries with their labels (and lists, where they were recorded), and what counts as relevant."""

    chunks: Sequence[Chunk]
    cases: Sequence[Case]
    min_grade: int
    collection: str | None


def read_sources(
    workspace: Path, collection: str | None, eval_set: str | None, lists: Path | None, min_grade: int | None
) -> Sources:
    """Chunks from the collection (an eval set with a corpus brings its own), else from the recorded lists."""
    from rag_core.eval_sets.reading import load_set
    from rag_core.given import given_labels, laid_over
    from rag_core.index.collection import open_collection
    from rag_core.records import load_lists
    from rag_core.rules.suggest import chunks_of
    from rag_core.store.matching import AtHand

    found = load_set(eval_set, workspace) if eval_set else None
    cases = tuple(load_lists(lists)) if lists else ()
    cases += found.cases if found else ()
    if collection is None and found is not None and found.corpus is not None:
        _up_to_date(found, workspace)
        collection = found.name
    if collection is None and not any(case.candidates for case in cases):
        raise InputError("no chunks were named, expected --collection NAME, an --eval-set with chunks or --lists FILE")
    chunks = open_collection(workspace, collection).chunks if collection else chunks_of(cases)
    if found is not None:
        cases = tuple(laid_over(given_labels(workspace, found.name), cases, AtHand.of(chunks)))
    return Sources(chunks, cases, min_grade or (found.min_grade if found else 1), collection)


def _up_to_date(eval_set: Any, workspace: Path) -> None:
    from rag_core import workbench
    from rag_core.cli.progress import ProgressBar

    workbench.bring_up_to_date(eval_set, workspace, ProgressBar("embedded"))


def read_templates(path: Path | None) -> Sequence[TemplateFamily] | None:
    """The families of a template file; None, the shipped ones, without one."""
    from rag_core.rules.templates import read_families

    return read_families(path) if path else None


def captured(sources: Sources, workspace: Path, k: int) -> list[Case]:
    """The cases with the first k of the collection for each query that has no recorded list."""
    from rag_core import workbench
    from rag_core.index.handles import open_index
    from rag_core.retrieve.capture import captured as capture_one

    waiting = [case for case in sources.cases if case.candidates is None]
    if not waiting or sources.collection is None:
        return list(sources.cases)
    index = open_index(workspace, sources.collection)
    source = workbench.source_of(index, k)
    return [capture_one(case, source) if case.candidates is None else case for case in sources.cases]
