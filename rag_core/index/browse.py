"""Look into a collection page by page: chunks by text, type and document, one chunk whole, and what all of them are.

Everything is asked of the collection's own file; no more than one page of chunks is ever in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_core.errors import InputError
from rag_core.index.collection import RuleCounts, folder_of, rule_counts
from rag_core.index.store import CollectionFile, Row, opened

MOST_DOCUMENTS = 1_000
MOST_DUPLICATES = 200
BINS = 24


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which chunks are looked for: those that hold a text (title, text or id), of a type, of a document; '' is any."""

    text: str = ""
    type: str | None = None
    document: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A chunk in a list: no text, so that a list costs little."""

    id: str
    title: str
    type: str
    document: str
    tokens: int
    characters: int
    has_rule: int  # 1 or 0, as the file has it


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
    """What a collection holds, in numbers. Tokens are those of title and text as the model counts them."""

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


def page_of(workspace: Path, name: str, wanted: Wanted, start: int, count: int) -> tuple[int, list[Line]]:
    """(how many chunks are wanted in all, those at start … start + count − 1 in the order of their ids)."""
    asked = (wanted.text.strip().casefold(), wanted.type, wanted.document)
    with opened(folder_of(workspace, name)) as file, file.reading():
        ((total,),) = file.read(_TOTAL, asked)
        rows = file.read(_PAGE, (*asked, count, start))
    return total, [Line(*row) for row in rows]


_TOTAL = """
SELECT count(*) FROM chunk
WHERE (?1 = '' OR holds(title || char(10) || text || char(10) || id, ?1))
  AND (?2 IS NULL OR type = ?2) AND (?3 = '' OR document = ?3)"""
_PAGE = """
SELECT id, title, type, document, tokens, length(text), query_must IS NOT NULL FROM chunk
WHERE (?1 = '' OR holds(title || char(10) || text || char(10) || id, ?1))
  AND (?2 IS NULL OR type = ?2) AND (?3 = '' OR document = ?3)
ORDER BY id LIMIT ?4 OFFSET ?5"""


def chunk_of(workspace: Path, name: str, identity: str) -> Row:
    """One chunk with its text, or an InputError where the collection does not have it."""
    with opened(folder_of(workspace, name)) as file:
        row = file.row(identity)
    if row is None:
        raise InputError(f"collection {name} has no chunk {identity[:80]!r}, expected one of its ids")
    return row


def overview(workspace: Path, name: str) -> Overview:
    """What the collection holds, in numbers; about a second for 100,000 chunks."""
    with opened(folder_of(workspace, name)) as file, file.reading():
        window = int(file.meta().get("window", 0))
        rules = rule_counts(file)
        groups = tuple(
            Group(type_, count, tokens, rules.get(type_, RuleCounts())) for type_, count, tokens in file.read(_GROUPS)
        )
        chunks = sum(group.chunks for group in groups)
        ((shortest, longest),) = file.read("SELECT coalesce(min(tokens), 0), coalesce(max(tokens), 0) FROM chunk")
        ((too_long,),) = file.read("SELECT count(*) FROM chunk WHERE tokens > ?", (window,))
        ((duplicated,),) = file.read("SELECT count(*) - count(DISTINCT text_hash) FROM chunk")
        width = -(-(longest + 1) // BINS)
        return Overview(
            chunks=chunks,
            window=window,
            too_long=too_long,
            groups=groups,
            documents=dict(file.read(_DOCUMENTS, (MOST_DOCUMENTS,))),
            lengths=tuple(file.read(_LENGTHS, (width, width, width))),
            bin_width=width,
            shortest=shortest,
            median=_median(file, chunks),
            longest=longest,
            duplicates=_duplicates(file) if duplicated else (),
            duplicated=duplicated,
        )


_GROUPS = "SELECT type, count(*), sum(tokens) FROM chunk GROUP BY type ORDER BY count(*) DESC, type"
_DOCUMENTS = "SELECT document, count(*) FROM chunk GROUP BY document ORDER BY document LIMIT ?"
_LENGTHS = "SELECT tokens / ? * ?, count(*) FROM chunk GROUP BY tokens / ? ORDER BY 1"
_REPEATED = """
SELECT text_hash, id FROM chunk WHERE text_hash IN (
  SELECT text_hash FROM chunk GROUP BY text_hash HAVING count(*) > 1 ORDER BY count(*) DESC, text_hash LIMIT ?)
ORDER BY id"""


def _median(file: CollectionFile, chunks: int) -> int:
    """The lower median of the chunks' tokens."""
    found = file.read("SELECT tokens FROM chunk ORDER BY tokens LIMIT 1 OFFSET ?", (max(0, chunks - 1) // 2,))
    return int(found[0][0]) if found else 0


def _duplicates(file: CollectionFile) -> tuple[tuple[str, ...], ...]:
    """Ids of chunks that share title and text, the largest groups first."""
    groups: dict[str, list[str]] = {}
    for hashed, identity in file.read(_REPEATED, (MOST_DUPLICATES,)):
        groups.setdefault(hashed, []).append(identity)
    return tuple(sorted(map(tuple, groups.values()), key=lambda ids: (-len(ids), ids)))
