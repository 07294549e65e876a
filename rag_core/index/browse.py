"""Look into a source page by page: chunks by text, type and document, one chunk whole, and what all of them are.

Of a collection everything is asked of its own file; no more than one page of chunks is ever in memory. Recorded lists
bring their chunks along: `page_among` and `overview_of` ask the same of a file in memory, with lengths in characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rag_core.errors import InputError
from rag_core.index.collection import RuleCounts, folder_of, rule_counts
from rag_core.index.store import CollectionFile, StoredChunk, in_memory, opened, text_hash
from rag_core.types import Chunk

MOST_DOCUMENTS = 1_000
MOST_DUPLICATES = 200
BINS = 24
ORDERS = {
    "id": "id",
    "title": "title COLLATE NOCASE, id",
    "longest": "tokens DESC, id",
    "shortest": "tokens, id",
    "rules": "query_must IS NULL, id",
}
"""Name → how a list is sorted: by id, title, length, or chunks with a rule first."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which chunks are looked for: those that hold a text (title, text or id), of a type, of a document; '' is any."""

    text: str = ""
    type: str | None = None
    document: str = ""
    order: str = "id"  # a name of ORDERS


@dataclass(frozen=True, slots=True)
class ChunkLine:
    """A chunk in a list: only the beginning of its text, so that a list costs little. `tokens` as in Overview."""

    id: str
    title: str
    type: str
    document: str
    tokens: int
    characters: int
    has_rule: int  # 1 or 0, as the file has it
    begins: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The chunks of one type: how many, their tokens in all, and how many have a rule that can be read or cannot."""

    type: str
    chunks: int
    tokens: int
    rules: RuleCounts = RuleCounts()

    @property
    def with_rule(self) -> int:
        """How many have a rule that can be read."""
        return self.rules.readable


@dataclass(frozen=True, slots=True)
class Overview:
    """What a source holds, in numbers. Lengths are in `unit`: tokens of title and text as the model counts them, or
    characters of the text where no model reads it.
    """

    chunks: int
    window: int  # tokens the model reads
    too_long: int  # chunks with more tokens than that: their rest is not embedded
    groups: tuple[Group, ...]  # by type, the largest first
    documents: Mapping[str, int]  # document → chunks, in order of name; at most MOST_DOCUMENTS
    lengths: tuple[tuple[int, int], ...]  # (least tokens of the bin, chunks)
    bin_width: int
    shortest: int
    median: int
    longest: int
    duplicates: tuple[tuple[str, ...], ...]  # ids of chunks with the same title and text, the largest groups first
    duplicated: int  # chunks that are a repetition of another
    unit: str = "tokens"


def page_of(workspace: Path, name: str, wanted: Wanted, start: int, count: int) -> tuple[int, list[ChunkLine]]:
    """(how many chunks are wanted in all, those at start … start + count − 1 in the order that is wanted)."""
    with opened(folder_of(workspace, name)) as file, file.reading():
        return _page(file, wanted, start, count)


def page_among(chunks: Sequence[Chunk], wanted: Wanted, start: int, count: int) -> tuple[int, list[ChunkLine]]:
    """As `page_of`, of chunks in memory."""
    with _held(chunks) as file:
        return _page(file, wanted, start, count)


def _page(file: CollectionFile, wanted: Wanted, start: int, count: int) -> tuple[int, list[ChunkLine]]:
    conditions = (wanted.text.strip().casefold(), wanted.type, wanted.document)
    ((total,),) = file.read(f"SELECT count(*) {_MATCHING}", conditions)
    rows = file.read(_PAGE.format(order=ORDERS[wanted.order]), (*conditions, count, start))
    return total, [ChunkLine(*row) for row in rows]


def _held(chunks: Sequence[Chunk]) -> AbstractContextManager[CollectionFile]:
    """A file in memory of chunks of no document, their lengths in characters."""
    return in_memory(
        StoredChunk(chunk, "", text_hash(f"{chunk.title}\n{chunk.text}"), len(chunk.text)) for chunk in chunks
    )


_MATCHING = """FROM chunk
WHERE (?1 = '' OR holds(title || char(10) || text || char(10) || id, ?1))
  AND (?2 IS NULL OR type = ?2) AND (?3 = '' OR document = ?3)"""
_PAGE = (
    "SELECT id, title, type, document, tokens, length(text), query_must IS NOT NULL, substr(text, 1, 120) "
    + _MATCHING
    + " ORDER BY {order} LIMIT ?4 OFFSET ?5"
)


def chunk_of(workspace: Path, name: str, identity: str) -> StoredChunk:
    """One chunk with its text, or an InputError where the collection does not have it."""
    with opened(folder_of(workspace, name)) as file:
        row = file.row(identity)
    if row is None:
        raise InputError(f"collection {name} has no chunk {identity[:80]!r}, expected one of its ids")
    return row


def overview(workspace: Path, name: str) -> Overview:
    """What the collection holds, in numbers; about a second for 100,000 chunks."""
    with opened(folder_of(workspace, name)) as file, file.reading():
        return _overview(file, "tokens")


def overview_of(chunks: Sequence[Chunk]) -> Overview:
    """As `overview`, of chunks in memory; no model reads them, so that none is too long."""
    with _held(chunks) as file:
        return _overview(file, "characters")


def _overview(file: CollectionFile, unit: str) -> Overview:
    window = int(file.meta().get("window", 0))
    rules = rule_counts(file)
    groups = tuple(
        Group(type_, count, tokens, rules.get(type_, RuleCounts())) for type_, count, tokens in file.read(_GROUPS)
    )
    chunks = sum(group.chunks for group in groups)
    ((shortest, longest),) = file.read("SELECT coalesce(min(tokens), 0), coalesce(max(tokens), 0) FROM chunk")
    ((too_long,),) = file.read("SELECT count(*) FROM chunk WHERE tokens > ?", (window or longest,))
    ((duplicated,),) = file.read("SELECT count(*) - count(DISTINCT text_hash) FROM chunk")
    width = -(-(longest + 1) // BINS)
    middle = file.read("SELECT tokens FROM chunk ORDER BY tokens LIMIT 1 OFFSET ?", (max(0, chunks - 1) // 2,))
    alike: dict[str, list[str]] = {}
    for hashed, identity in file.read(_REPEATED, (MOST_DUPLICATES,)) if duplicated else ():
        alike.setdefault(hashed, []).append(identity)
    return Overview(
        chunks=chunks,
        window=window,
        too_long=too_long,
        groups=groups,
        documents=dict(file.read(_DOCUMENTS, (MOST_DOCUMENTS,))) if unit == "tokens" else {},
        lengths=tuple(file.read(_LENGTHS, (width, width, width))),
        bin_width=width,
        shortest=shortest,
        median=int(middle[0][0]) if middle else 0,  # the lower one
        longest=longest,
        duplicates=tuple(sorted(map(tuple, alike.values()), key=lambda ids: (-len(ids), ids))),
        duplicated=duplicated,
        unit=unit,
    )


_GROUPS = "SELECT type, count(*), sum(tokens) FROM chunk GROUP BY type ORDER BY count(*) DESC, type"
_DOCUMENTS = "SELECT document, count(*) FROM chunk GROUP BY document ORDER BY document LIMIT ?"
_LENGTHS = "SELECT tokens / ? * ?, count(*) FROM chunk GROUP BY tokens / ? ORDER BY 1"
_REPEATED = """
SELECT text_hash, id FROM chunk WHERE text_hash IN (
  SELECT text_hash FROM chunk GROUP BY text_hash HAVING count(*) > 1 ORDER BY count(*) DESC, text_hash LIMIT ?)
ORDER BY id"""
