"""Which keyword and synonym lists a collection's questions are rewritten with, and the files they are edited in.

A list is the workspace's own file for the collection, else the workspace's general one, else that of the eval set;
keywords also hold what the last ingest took from the headers. What the lists do is in retrieve/word_lists.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_core.corpus.names import header_keywords
from rag_core.errors import InputError
from rag_core.eval_sets.reading import folders
from rag_core.files import parse_yaml, read_text, write_whole
from rag_core.index.collection import folder_of, keywords_of, not_there, open_collection
from rag_core.index.store import FILE as STORE
from rag_core.retrieve.word_lists import (
    LARGEST,
    Keywords,
    Synonyms,
    parse_keywords,
    parse_synonyms,
    read_keywords,
    read_synonyms,
)
from rag_core.stage import Stage, needs_of
from rag_core.workspace import resolve_workspace

KINDS = ("keywords", "synonyms")
FOLDER = "words"
_ENDINGS = (".yaml", ".yml", ".json")


def word_resources(pipeline: Stage, index: Any, eval_set: str = "") -> dict[str, Any]:
    """The lists that the pipeline's rewrites are handed, by resource name; nothing where it has none."""
    kinds = needs_of(pipeline).intersection(KINDS)
    if not kinds:
        return {}
    folder, snapshot = getattr(index, "folder", None), getattr(index, "snapshot", None)
    workspace = Path(folder).parents[1] if folder is not None else resolve_workspace()
    collection = snapshot.name if snapshot is not None else ""
    found: dict[str, Any] = {}
    if "keywords" in kinds:
        taken = keywords_of(workspace, collection) if folder is not None else None
        if taken is None:
            taken = header_keywords(snapshot.chunks) if snapshot is not None else ()
        found["keywords"] = _keywords(*_as_of(word_file(workspace, collection, "keywords", eval_set)), taken)
    if "synonyms" in kinds:
        found["synonyms"] = synonyms_in(word_file(workspace, collection, "synonyms", eval_set))
    return found


def word_file(workspace: Path, collection: str, kind: str, eval_set: str = "") -> Path | None:
    """The file of a collection's list, or None where there is none."""
    sets = folders(workspace)
    places = [workspace / FOLDER / collection, workspace]
    places += [sets[name] for name in (collection, eval_set) if name in sets]
    listed = (place / f"{kind}{ending}" for place in places for ending in _ENDINGS)
    return next((path for path in listed if path.is_file()), None)


def own_file(workspace: Path, collection: str, kind: str) -> Path:
    """The workspace's own file for the collection's list: what a page writes, whether or not it is there yet."""
    if kind not in KINDS:
        raise InputError(f"the word list is {kind[:40]!r}, expected {' or '.join(KINDS)}")
    folder = workspace / FOLDER / folder_of(workspace, collection).name
    return next(
        (path for ending in _ENDINGS if (path := folder / f"{kind}{ending}").is_file()), folder / f"{kind}.yaml"
    )


def parse_list(kind: str, text: str) -> Keywords | Synonyms:
    """A list from the text of its file, YAML or JSON; an InputError says what is wrong with it."""
    where = f"the {kind} list"
    if len(text.encode("utf-8", "replace")) > LARGEST:
        raise InputError(f"{where} is longer than {LARGEST:,} bytes, expected at most so many")
    value = parse_yaml(text, where) or {}
    return parse_keywords(value, where) if kind == "keywords" else parse_synonyms(value, where)


def save_list(workspace: Path, collection: str, kind: str, text: str) -> Path:
    """Check a list's text as its reader does and make it the collection's own file; an InputError says what is wrong.

    What stood in the file before is kept beside it.
    """
    path = own_file(workspace, collection, kind).with_suffix(".yaml")
    parse_list(kind, text)
    if path.is_file():
        write_whole(path.with_suffix(".before"), path.read_bytes())
    write_whole(path, text)
    return path


@dataclass(frozen=True, slots=True)
class WordList:
    """One list of a collection as it stands: where it comes from, its text, and how many entries it has."""

    kind: str
    origin: str  # "collection", "workspace" or "eval set NAME"; nothing where there is no file
    file: Path | None
    text: str
    entries: int
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the text."""
        facts = {name: getattr(self, name) for name in ("kind", "origin", "entries", "problem")}
        return {**facts, "file": str(self.file) if self.file else None}

    def to_text(self) -> str:
        """One line."""
        origin = f"{self.entries} entries of the {self.origin}'s list, {self.file}" if self.origin else "no list"
        return f"{self.kind}: {self.problem or origin}"


def listed(workspace: Path, collection: str, kind: str) -> WordList:
    """The list that a collection's questions are rewritten with; a file that cannot be read is listed with why."""
    own = own_file(workspace, collection, kind)
    path = word_file(workspace, collection, kind)
    if path is None:
        return WordList(kind, "", None, "", 0)
    origin = {own.parent: "collection", workspace: "workspace"}.get(path.parent, f"eval set {path.parent.name}")
    try:
        text = read_text(path, limit=LARGEST)
        words = parse_list(kind, text)
        entries = len(words.names if isinstance(words, Keywords) else words.terms)
        return WordList(kind, origin, path, text, entries)
    except InputError as error:
        # what a broken file holds, to be mended; nothing where it is far too large or gone
        raw = path.read_bytes()[:LARGEST].decode("utf-8", "replace") if path.is_file() else ""
        return WordList(kind, origin, path, raw, 0, str(error))


def header_words(workspace: Path, collection: str) -> tuple[str, ...]:
    """The keywords of a collection's headers: those the last ingest took, else taken now."""
    if not (folder_of(workspace, collection) / STORE).is_file():
        raise not_there(workspace, collection)
    taken = keywords_of(workspace, collection)
    return header_keywords(open_collection(workspace, collection).chunks) if taken is None else taken


def words_of(workspace: Path, collection: str) -> tuple[Keywords, Synonyms]:
    """Both lists as a search of the collection gets them; an InputError names a file that cannot be read."""
    taken = header_words(workspace, collection)
    keywords = _keywords(*_as_of(word_file(workspace, collection, "keywords")), taken)
    return keywords, synonyms_in(word_file(workspace, collection, "synonyms"))


def with_headers(own: Keywords, taken: Iterable[str]) -> Keywords:
    """A list's keywords, then those of the headers, each once."""
    return Keywords(tuple(dict.fromkeys((*own.names, *taken))))


def synonyms_in(path: Path | None) -> Synonyms:
    """The file's synonyms; none without a file."""
    return _synonyms(*_as_of(path))


def _as_of(path: Path | None) -> tuple[Path | None, int]:
    """A list's file and when it was last changed: a list is read once for each change."""
    return path, path.stat().st_mtime_ns if path is not None else 0


@lru_cache(maxsize=8)
def _keywords(path: Path | None, changed_at: int, taken: Iterable[str]) -> Keywords:
    """The file's keywords, then those taken from the headers."""
    return with_headers(read_keywords(path) if path is not None else Keywords(), taken)


@lru_cache(maxsize=8)
def _synonyms(path: Path | None, changed_at: int) -> Synonyms:
    return read_synonyms(path) if path is not None else Synonyms()
