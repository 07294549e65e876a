"""Eval sets of one's own, in `WORKSPACE/eval_sets/<name>/`: copied, tagged and deleted.

Every file is written whole; a copy appears complete or not at all. Shipped sets are never changed, a copy can be.
Query ids never change. What people labelled stays in the label store under the set's name, whatever happens here.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.eval_sets.queries import clean_tags
from rag_core.eval_sets.reading import LISTS, SHIPPED, folders, read_set
from rag_core.files import lines, parse_yaml, read_text, write_whole, yaml_text
from rag_core.records import parse_json_line

META, QUERIES, QRELS, GUIDELINES = "meta.yaml", "queries.jsonl", "qrels.tsv", "guidelines.md"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,63}")
LONGEST_TITLE = 120
LONGEST_GUIDELINES = 100_000
DATA = (META, QUERIES, LISTS, QRELS, GUIDELINES, "corpus.jsonl", "vectors.npz")
"""What a copy takes along; how a shipped set was built stays behind."""

Change = Callable[[dict[str, Any]], dict[str, Any] | None]


def own_folder(workspace: Path, name: str) -> Path:
    """Where a set of that name of one's own lies; an InputError for a name that is none or that a shipped set has."""
    if not NAME.fullmatch(name):
        raise InputError(f"the eval set's name is {name[:80]!r}, expected up to 64 of a-z, A-Z, 0-9, . _ -")
    if (SHIPPED / name).is_dir():
        raise InputError(f"eval set {name} is a shipped one, expected a name of your own: copy it to change it")
    return Path(workspace) / "eval_sets" / name


def existing_own(workspace: Path, name: str) -> Path:
    """The folder of a set of one's own that is there, or an InputError."""
    folder = own_folder(workspace, name)
    if not (folder / META).is_file():
        known = [one for one, place in folders(workspace).items() if place.parent != SHIPPED]
        raise InputError(
            f"there is no eval set {name[:80]!r} of your own, expected one of: {', '.join(known) or 'none'}"
        )
    return folder


def copy_set(workspace: Path, source: str, name: str) -> Path:
    """Duplicate a shipped or own set under a new name: queries, tags, split, labels in its files, lists and corpus."""
    known = folders(workspace)
    if source not in known:
        raise InputError(f"there is no eval set {source[:80]!r}, expected one of {', '.join(known)}")
    old = known[source]
    meta = dict(parse_yaml(read_text(old / META), str(old / META)))
    meta |= {"name": name, "title": f"Copy of {meta.get('title') or source}"[:LONGEST_TITLE], "copy_of": source}
    with _appearing(workspace, name) as folder:
        for one in DATA:
            if (old / one).is_file():
                shutil.copyfile(old / one, folder / one)
        write_whole(folder / META, yaml_text(meta))
        read_set(folder)
    return own_folder(workspace, name)


def delete_set(workspace: Path, name: str) -> None:
    """Delete a set of one's own with its files; labels in the label store stay."""
    folder = existing_own(workspace, name)
    away = Path(tempfile.mkdtemp(dir=workspace, prefix=".deleted-eval-set-"))
    folder.rename(away / name)  # gone at once for whoever lists the sets
    shutil.rmtree(away)


def change_tags(
    workspace: Path, name: str, query_ids: Iterable[str] | None, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> int:
    """Add and remove tags of these queries (None: of all); how many queries changed."""
    added, removed = clean_tags(add, "--add"), set(remove)
    wanted = None if query_ids is None else set(query_ids)
    tags: dict[str, tuple[str, ...]] = {}
    for case in read_set(existing_own(workspace, name)).cases:
        if wanted is None or case.query.id in wanted:
            kept = [tag for tag in case.query.tags if tag not in removed]
            tags[case.query.id] = tuple(dict.fromkeys((*kept, *added)))
    return write_tags(workspace, name, tags, wanted or ())


def write_tags(workspace: Path, name: str, tags: Mapping[str, Sequence[str]], expected: Iterable[str] = ()) -> int:
    """Give queries exactly these tags; how many changed. An InputError for an id the set does not hold."""
    folder = existing_own(workspace, name)
    clean = {query_id: clean_tags(given, f"query {query_id[:80]!r}") for query_id, given in tags.items()}
    _known_ids(folder, {*clean, *expected})

    def change(record: dict[str, Any]) -> dict[str, Any]:
        given = list(clean.get(record["id"], record.get("tags") or ()))
        return record if given == list(record.get("tags") or ()) else {**record, "tags": given}

    return _rewrite(folder, change)


def remove_queries(workspace: Path, name: str, query_ids: Iterable[str]) -> int:
    """Take these queries out of a set of one's own, with their labels in its files; how many.

    Labels in the label store stay, and count again when a query of that id comes back.
    """
    folder = existing_own(workspace, name)
    wanted = set(query_ids)
    _known_ids(folder, wanted)
    if (folder / QRELS).is_file():  # first: a label of a query that is not there would be refused
        kept = (line for _, line in lines(read_text(folder / QRELS)) if line.split("\t")[0] not in wanted)
        write_whole(folder / QRELS, "".join(f"{line}\n" for line in kept))
    return _rewrite(folder, lambda record: None if record["id"] in wanted else record)


def guidelines(folder: Path) -> str:
    """What annotators of the set in this folder read beside the queue, '' where nothing is written."""
    file = folder / GUIDELINES
    return file.read_text("utf-8", "replace") if file.is_file() else ""


def write_guidelines(workspace: Path, name: str, text: str) -> None:
    """Write the guidelines (Markdown) of a set of one's own; an empty text takes them away."""
    folder = existing_own(workspace, name)
    if len(text) > LONGEST_GUIDELINES:
        raise InputError(f"the guidelines have {len(text):,} characters, expected at most {LONGEST_GUIDELINES:,}")
    if text.strip():
        write_whole(folder / GUIDELINES, text.replace("\r\n", "\n").rstrip() + "\n")
    else:
        (folder / GUIDELINES).unlink(missing_ok=True)


@contextmanager
def _appearing(workspace: Path, name: str) -> Iterator[Path]:
    """A folder to fill that becomes the set's own when all is written, and vanishes when something fails."""
    target = own_folder(workspace, name)
    if name in folders(workspace) or target.exists():
        raise InputError(f"there is an eval set {name} already, expected another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workspace, prefix=".new-eval-set-") as place:
        folder = Path(place) / name
        folder.mkdir()
        yield folder
        folder.rename(target)


def _rewrite(folder: Path, change: Change) -> int:
    """Change the set's records line by line, None drops one; how many changed. Other keys stay as they are."""
    path = folder / (LISTS if (folder / LISTS).is_file() else QUERIES)
    before = []
    for number, line in lines(read_text(path)):
        record = dict(parse_json_line(line, f"{path} line {number}"))
        before.append({**record, "id": str(record.get("id") or f"q{number}")})
    after = [change(record) for record in before]
    write_whole(path, _jsonl(record for record in after if record is not None))
    return sum(old != new for old, new in zip(before, after, strict=True))


def _known_ids(folder: Path, wanted: Iterable[str]) -> None:
    known = {case.query.id for case in read_set(folder).cases}
    stray = next((one for one in wanted if one not in known), None)
    if stray is not None:
        raise InputError(f"eval set {folder.name} has no query {stray[:80]!r}, expected one of its {len(known)} ids")


def _jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
