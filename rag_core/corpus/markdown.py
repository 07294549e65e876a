"""Markdown → chunks at header levels 2…n, by the parser's token tree: a `#` in a fence or a table is no header.

Every character of the document is in exactly one chunk, in order. What a chunk's text means is nobody's business here:
HTML tables are read in html_tables.py, chunks that are too long are taken apart in split.py.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from rag_core.corpus.names import Names, document_name, slug
from rag_core.errors import InputError
from rag_core.types import Chunk

LEVELS = (2, 3, 4)
FIRST_LEVEL = 2
BOLD = 7  # the level of a line that is a header by being bold: below all written ones
LONGEST_BOLD = 120  # characters of such a line; a longer one is a sentence


@dataclass(frozen=True, slots=True)
class Header:
    """A header at the top of the document's tree: its lines (0-based, `stop` excluded), level (1 to 6, or BOLD) and
    plain text.
    """

    line: int
    stop: int
    level: int
    text: str


def split_markdown(text: str, source: str, level: int = 3) -> list[Chunk]:
    """Chunks of a document: one per header of level 2…`level`, with its text up to the next such header.

    What stands before the first one is a chunk of its own, unless it is only the document's title: that goes with the
    first. A title (level 1) further down begins a part, so it cuts as well. In a document without such a header bold
    lines are headers (level 2); without those it is one chunk, a blank one none. The texts joined are the document.
    `source` is the document's path inside its folder; ids are `source#header/sub-header`.
    """
    if level not in LEVELS:
        raise InputError(f"the header level is {level}, expected one of 2, 3, 4")
    lines, names = lines_of(text), Names()
    found = find_headers(text)
    headers = [header for header in found if header.level != BOLD]
    if not any(FIRST_LEVEL <= header.level <= level for header in headers):
        headers = [replace(header, level=FIRST_LEVEL) if header.level == BOLD else header for header in found]
    starts = _starts(lines, headers, level) if text.strip() else []
    stops = [*starts[1:], len(lines)]
    pieces = zip(starts, stops, _paths(headers, stops, level), strict=False)
    return [
        _chunk("".join(lines[start:stop]), path, source, names, position)
        for position, (start, stop, path) in enumerate(pieces, 1)
    ]


def find_headers(text: str) -> list[Header]:
    """The headers at the top of the tree, in order, bold lines of their own among them.

    Those inside quotes, lists, fences and front matter are none.
    """
    skipped = _front_matter(text)
    known: dict[str, Any] = {}  # what reference links mean
    tokens = _parser().parse("".join(lines_of(text)[skipped:]), known)
    found = []
    for position, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        line = token.map[0] + skipped
        if token.type == "heading_open":
            words = _plain(_inside(tokens[position + 1], known))
            found.append(Header(line, token.map[1] + skipped, int(token.tag[1:]), words))
        elif token.type == "paragraph_open" and (words := _bold_line(tokens[position + 1], known)):
            found.append(Header(line, line + 1, BOLD, words))
    return found


def code_lines(text: str) -> list[tuple[int, int]]:
    """(first line, line behind the last) of every fence and block of code, 0-based."""
    skipped = _front_matter(text)
    tokens = _parser().parse("".join(lines_of(text)[skipped:]))
    return [
        (token.map[0] + skipped, token.map[1] + skipped) for token in tokens if token.type in ("fence", "code_block")
    ]


def _bold_line(block: Any, known: dict[str, Any]) -> str:
    """The words of a paragraph's first line where it is bold as a whole and no sentence, else nothing."""
    if not re.search(r"\*\*|__", block.content):
        return ""
    line = list(itertools.takewhile(lambda child: not child.type.endswith("break"), _inside(block, known)))
    line = [child for child in line if not child.type.startswith("text") or child.content.strip()]
    if len(line) < 3 or (line[0].type, line[-1].type) != ("strong_open", "strong_close"):
        return ""
    if any(child.type.startswith("strong_") for child in line[1:-1]):
        return ""
    words = " ".join("".join(child.content for child in line).split())
    return words.rstrip(" :") if len(words) <= LONGEST_BOLD and not words.endswith((".", "!", "?", ",", ";")) else ""


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")  # what stands in a block: _inside


def _inside(block: Any, known: dict[str, Any]) -> list[Any]:
    """The words and marks of a header or a paragraph, which the parser leaves alone: most are never asked for."""
    children: list[Any] = []
    parser = _parser()
    parser.inline.parse(block.content, parser, known, children)
    return children


def _plain(children: list[Any]) -> str:
    """The words of a header without its markup."""
    parts = [child.content or (" " if child.type.endswith("break") else "") for child in children]
    return " ".join("".join(parts).split())


def _front_matter(text: str) -> int:
    """How many lines a leading `---` … `---` block takes; Markdown itself would read its end as a header."""
    lines = lines_of(text)
    if not lines or lines[0].rstrip() != "---":
        return 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    return 0 if end is None or not re.match(r"[\w\-]+\s*:|#", lines[1]) else end + 1


def lines_of(text: str) -> list[str]:
    """The lines with their ends, broken where the parser breaks them: CR LF, CR or LF and nothing else."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)


def _starts(lines: list[str], headers: list[Header], level: int) -> list[int]:
    """The first line of each chunk: the cuts, less those whose piece before holds nothing but titles."""
    first = next((header.line for header in headers if FIRST_LEVEL <= header.level <= level), len(lines))
    cuts = [header.line for header in headers if header.level <= level and header.line >= first]
    titles = {line for header in headers if header.level == 1 for line in range(header.line, header.stop)}
    bounds = [0, *(cut for cut in cuts if cut > 0)]
    kept = [0]
    for start, stop in itertools.pairwise(bounds):
        if any(line not in titles and lines[line].strip() for line in range(start, stop)):
            kept.append(stop)
    return kept


def _paths(headers: list[Header], stops: list[int], level: int) -> Iterator[tuple[Header, ...]]:
    """The headers that lead to each chunk: the last cutting one inside it under those above it, else its title."""
    path: tuple[Header, ...] = ()
    coming = deque(headers)
    for stop in stops:
        while coming and coming[0].line < stop:
            header = coming.popleft()
            if header.level <= level:
                path = (*(above for above in path if above.level < header.level), header)
        yield tuple(header for header in path if header.level > 1) or path


def _chunk(piece: str, path: tuple[Header, ...], source: str, names: Names, position: int) -> Chunk:
    document = document_name(source)
    anchor = "/".join(slug(header.text) for header in path)
    is_preamble = position == 1 and (not path or path[-1].level == 1)
    title = (path[-1].text if path else "") or source.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return Chunk(
        id=names.of(document if is_preamble else f"{document}#{anchor}"),
        title=title,
        text=piece,
        metadata={
            "header": title,
            "headers": [header.text for header in path],
            "level": path[-1].level if path else 0,
            "position": position,
            "source": source,
        },
    )
