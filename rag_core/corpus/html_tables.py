"""HTML tables inside Markdown → a line a row, each cell with the headers it stands under: words instead of tags.

What stands in code stays as it is. Documents are untrusted: spans are bounded, what is not closed ends with the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from html.parser import HTMLParser
from itertools import chain, zip_longest

from rag_core.corpus.markdown import code_lines, lines_of

MOST_COLUMNS = 200  # a cell that says it spans more is read as one of that width
MOST_ROWS_SPANNED = 1_000
NEAR = 200  # characters before a tag in which a backtick means that it is quoted
_TABLE = re.compile(r"<(/?)table\b[^>]{0,2000}>", re.IGNORECASE)
_NO_TAG = re.compile(r"<[!?/]?(?![^<>]{0,5000}>)|<[!?]")
"""Declarations and what is no whole tag: the parser would look for their ends again and again."""

_NUMBER = re.compile(r"[\s\d.,%+\-−–/()$€£×x]*")


def plain_tables(text: str) -> str:
    """The text with every HTML table as lines `- Header: cell | Header > Lower header: cell`; equal where it has none.

    A caption is a line before its rows. Header rows are those of `th` alone, in a `thead`, or, where a table marks
    none, a first row of different words without a number. A row of one cell over all columns names the group of the
    rows below it. A table in a cell is read as its text.
    """
    if "<table" not in text.casefold():
        return text
    code = code_lines(text)
    starts = [0]
    for line in lines_of(text):
        starts.append(starts[-1] + len(line))
    begins, ends = ([starts[each[side]] for each in code] for side in (0, 1))
    pieces, done, depth, opened = [], 0, 0, 0
    for mark in _TABLE.finditer(text):
        block = bisect_right(begins, mark.start()) - 1
        begun = starts[bisect_right(starts, mark.start()) - 1]
        quoted = text.count("`", max(begun, mark.start() - NEAR), mark.start()) % 2
        if (block >= 0 and mark.start() < ends[block]) or (depth == 0 and quoted):
            continue
        if not mark[1]:
            opened = mark.start() if depth == 0 else opened
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                pieces += [text[done:opened], _lines(text[opened : mark.end()])]
                done = mark.end()
    if depth:
        pieces += [text[done:opened], _lines(text[opened:])]
        done = len(text)
    return "".join([*pieces, text[done:]])


def _lines(table: str) -> str:
    """One table as a paragraph of its own."""
    reader = _Reader()
    first, *commented = table.split("<!--")
    reader.feed(_NO_TAG.sub(" ", "".join([first, *(piece.partition("-->")[2] for piece in commented)])))
    reader.close()
    reader.end_row()
    rows = _filled(reader.rows)
    count = 0  # of header rows
    while count < len(rows) and (rows[count].is_head or rows[count].only_heads):
        count += 1
    if len(rows) > 1 and not any(row.is_head or row.only_heads for row in rows):
        cells = rows[0].cells
        count = int(len(cells) > 1 and len(set(cells)) == len(cells) and not any(map(_NUMBER.fullmatch, cells)))
    heads, body = rows[:count], rows[count:]
    path = [
        " > ".join(dict.fromkeys(filter(None, column)))
        for column in zip_longest(*(row.cells for row in heads), fillvalue="")
    ]
    lines, group = [reader.caption] if reader.caption else [], ""
    for row in body:
        words = [cell for cell in row.cells if cell]
        if len(row.cells) > 1 and len(set(row.cells)) == 1 and words:
            group = row.cells[0]
            continue
        named = [
            f"{path[at]}: {cell}" if at < len(path) and path[at] and path[at] != cell else cell
            for at, cell in enumerate(row.cells)
            if cell
        ]
        if named:
            lines.append("- " + " | ".join([*([group] if group else []), *named]))
    if not lines:  # headers and nothing below them
        lines = ["- " + " | ".join(cell for cell in row.cells if cell) for row in chain(heads, body) if any(row.cells)]
    return "\n" + "".join(f"{line}\n" for line in lines)


class _TableRow:
    """Its cells as text, with how far each reaches; whether all are headers."""

    def __init__(self, in_head: bool) -> None:
        self.spans: list[tuple[str, int, int]] = []  # (text, columns, rows)
        self.is_head = in_head
        self.only_heads = False
        self.cells: list[str] = []


class _Reader(HTMLParser):
    """Collects rows and caption of a table; what tables inside its cells say is text of the cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[_TableRow] = []
        self.caption = ""
        self._depth = 0
        self._in_head = False
        self._row: _TableRow | None = None
        self._text: list[str] | None = None
        self._span = (1, 1)
        self._silent = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Begin a row, a cell or the caption; other tags part words."""
        if tag in ("script", "style"):
            self._silent += 1
        if tag == "table":
            self._depth += 1
        if self._depth > 1 or tag not in ("thead", "tbody", "tfoot", "tr", "td", "th", "caption"):
            if self._text is not None:
                self._text.append(" ")
        elif tag in ("thead", "tbody", "tfoot"):
            self.end_row()
            self._in_head = tag == "thead"
        elif tag == "tr":
            self.end_row()
            self._row = _TableRow(self._in_head)
        else:
            self._end_cell()
            said = dict(attributes)
            self._span = (_span(said.get("colspan"), MOST_COLUMNS), _span(said.get("rowspan"), MOST_ROWS_SPANNED))
            self._text = []
            if tag != "caption":
                self._row = self._row or _TableRow(self._in_head)
                self._row.only_heads = tag == "th" and (self._row.only_heads or not self._row.spans)

    def handle_endtag(self, tag: str) -> None:
        """End what was begun."""
        if tag in ("script", "style"):
            self._silent = max(0, self._silent - 1)
        if tag == "table":
            self._depth -= 1
        if self._depth > 1:
            return
        if tag == "caption":
            self.caption, self._text = self._said(), None
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in ("tr", "thead", "tbody", "tfoot", "table"):
            self.end_row()
            self._in_head = self._in_head and tag == "tr"

    def handle_data(self, data: str) -> None:
        """Words of a cell."""
        if self._text is not None and not self._silent:
            self._text.append(data)

    def end_row(self) -> None:
        """Keep the row, where one was begun."""
        self._end_cell()
        if self._row is not None:
            self.rows.append(self._row)
        self._row = None

    def _end_cell(self) -> None:
        if self._text is not None and self._row is not None:
            self._row.spans.append((self._said(), *self._span))
        self._text = None

    def _said(self) -> str:
        return " ".join("".join(self._text or ()).split())


def _span(said: str | None, most: int) -> int:
    """A span as far as it is a plain number; 0 and nonsense are 1."""
    return max(1, min(most, int(said))) if said and re.fullmatch(r"[0-9]{1,6}", said.strip()) else 1


def _filled(rows: list[_TableRow]) -> list[_TableRow]:
    """The rows with a text for every column: a cell that spans several stands in each of them."""
    reaching: dict[int, tuple[str, int]] = {}  # column → (text, rows it still reaches)
    for row in rows:
        cells: list[str] = []
        waiting = iter(row.spans)
        cell = next(waiting, None)
        while cell is not None or len(cells) in reaching:
            if len(cells) in reaching:
                text, left = reaching.pop(len(cells))
                if left > 1:
                    reaching[len(cells)] = (text, left - 1)
                cells.append(text)
                continue
            if cell is None:
                break
            text, columns, down = cell
            for _ in range(min(columns, MOST_COLUMNS - len(cells))):
                if down > 1:
                    reaching[len(cells)] = (text, down - 1)
                cells.append(text)
            cell = next(waiting, None) if len(cells) < MOST_COLUMNS else None
        row.cells = cells
    return rows
