"""Eval sets: folders of text files that hold queries, labels and either recorded lists or a corpus.

    eval_sets/<name>/meta.yaml      version, name, title, description, licence, min_grade, annotations free to add
                     lists.jsonl    recorded lists with labels inside (a recorded set), or
                     queries.jsonl  id, query, tags, split; with qrels.tsv (query-id, corpus-id, score) and corpus.jsonl

Format version 1, documented in docs/formats.md. Labels that people add later live in the label store, not here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, RecordError
from rag_core.files import lines, parse_yaml, read_text
from rag_core.records import load_lists, parse_json_line
from rag_core.types import Case, Query
from rag_core.workspace import SHIPPED_IN

VERSION = 1
LISTS = "lists.jsonl"
SHIPPED = SHIPPED_IN / "eval_sets"


@dataclass(frozen=True)
class EvalSet:
    """A named set of cases. `corpus` is the file a live set's chunks come from; recorded sets carry lists instead."""

    name: str
    title: str
    cases: tuple[Case, ...]
    description: str = ""
    min_grade: int = 1
    corpus: Path | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recorded(self) -> bool:
        """Whether every case brings its own result list."""
        return bool(self.cases) and all(case.candidates is not None for case in self.cases)

    def split(self, name: str) -> EvalSet:
        """The cases whose queries carry `split: name`; an InputError where there are none."""
        chosen = tuple(case for case in self.cases if case.query.metadata.get("split") == name)
        if not chosen:
            raise InputError(f"eval set {self.name} has no query in split {name!r}")
        return replace(self, cases=chosen)


def labels_fingerprint(cases: Iterable[Case]) -> str:
    """A short hash of queries and labels: equal exactly when both are."""
    rows = [[case.query.id, case.query.text, sorted(case.grades.items()), case.relevant_total] for case in cases]
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def folders(workspace: Path | None = None) -> dict[str, Path]:
    """Every eval set that can be named: the shipped ones, then the workspace's own, which win."""
    roots = [SHIPPED, *([workspace / "eval_sets"] if workspace else [])]
    return {
        path.parent.name: path.parent for root in roots if root.is_dir() for path in sorted(root.glob("*/meta.yaml"))
    }


def load_set(name: str, workspace: Path | None = None) -> EvalSet:
    """The eval set of that name, or of that folder; an InputError lists what exists."""
    return read_set(folder_of(name, workspace))


def folder_of(name: str, workspace: Path | None = None) -> Path:
    """Where the eval set of that name lies, or the folder it names; an InputError lists what exists."""
    known = folders(workspace)
    folder = Path(name) if "/" in name else known.get(name)
    if folder is None or not (folder / "meta.yaml").is_file():
        raise InputError(
            f"there is no eval set {name[:80]!r}, expected one of {', '.join(known)} or a folder with meta.yaml"
        )
    return folder


def read_set(folder: Path) -> EvalSet:
    """The eval set in a folder; every problem is an error that names file and line."""
    meta = read_meta(folder)
    if (folder / LISTS).is_file():
        cases = tuple(load_lists(folder / LISTS))
    elif (folder / "queries.jsonl").is_file():
        cases = tuple(read_queries(folder / "queries.jsonl", read_qrels_tsv(folder / "qrels.tsv")))
    else:
        cases = ()  # a project before its first question
    corpus = folder / "corpus.jsonl"
    return EvalSet(
        name=str(meta.get("name") or folder.name),
        title=title_of(folder, meta),
        cases=cases,
        description=str(meta.get("description") or ""),
        min_grade=int(meta.get("min_grade", 1)),
        corpus=corpus if corpus.is_file() else None,
        meta=meta,
    )


def files_state(folder: Path) -> str:
    """What changes when a file of a set or project does."""
    files = [folder / name for name in ("meta.yaml", "queries.jsonl", "qrels.tsv", LISTS, "project.yaml")]
    return " ".join(str(file.stat().st_mtime_ns) if file.is_file() else "" for file in files)


def read_meta(folder: Path) -> Mapping[str, Any]:
    """What an eval set says of itself, without its queries: cheap where many sets are listed."""
    meta = parse_yaml(read_text(folder / "meta.yaml"), str(folder / "meta.yaml"))
    if not isinstance(meta, Mapping) or meta.get("version") != VERSION:
        raise InputError(f"{folder / 'meta.yaml'} has no version {VERSION}, expected a mapping with version: {VERSION}")
    return meta


def title_of(folder: Path, meta: Mapping[str, Any]) -> str:
    """The set's title; its folder's name where it has none."""
    return str(meta.get("title") or folder.name)


def read_queries(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> list[Case]:
    """The queries of a JSONL file (id, query, tags, split) with their labels; one of an unknown query is refused."""
    cases: dict[str, Case] = {}
    for number, line in lines(read_text(path)):
        place = f"{path} line {number}"
        record = parse_json_line(line, place)
        if not isinstance(record, Mapping) or not isinstance(record.get("query"), str) or not record["query"].strip():
            raise RecordError(f"{place} has no query text, expected an object with id and query")
        query_id = str(record.get("id") or f"q{number}")
        if query_id in cases:
            raise RecordError(f"{place} has query id {query_id!r:.80} again, expected unique ids")
        metadata = {key: value for key, value in record.items() if key not in ("id", "query", "tags")}
        query = Query(query_id, record["query"], tags=tuple(map(str, record.get("tags") or ())), metadata=metadata)
        cases[query_id] = Case(query, dict(qrels.get(query_id, {})))
    stray = sorted(set(qrels) - set(cases))
    if stray:
        raise RecordError(f"the labels beside {path} name query {stray[0]!r:.80}, which it does not hold")
    return list(cases.values())


def read_qrels_tsv(path: Path) -> dict[str, dict[str, int]]:
    """BEIR labels (header query-id, corpus-id, score; tab-separated); a missing file is no labels at all."""
    found: dict[str, dict[str, int]] = {}
    if not path.is_file():
        return found
    for number, line in lines(read_text(path)):
        cells = line.split("\t")
        if number == 1 and cells[0] == "query-id":
            continue
        if len(cells) != 3 or not cells[2].strip().lstrip("-").isdigit():
            raise RecordError(
                f"{path} line {number} has {len(cells)} cells, expected query-id, corpus-id and a whole grade"
            )
        found.setdefault(cells[0], {})[cells[1]] = int(cells[2])
    return found
