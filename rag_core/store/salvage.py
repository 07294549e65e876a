"""What is whole in a damaged SQLite store and its copies, gathered into a new one; the damaged file is set aside.

SQLite refuses a damaged file or reads it up to the damage. Here every page is read by itself, in the file, its log and
the copies in `backups`: a row counts where its checksum says that it is the event that was stored, wherever it stood.
https://sqlite.org/fileformat2.html names the parts.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_core.errors import InputError, StoreError
from rag_core.store import holding
from rag_core.store.database import BACKUPS, FILE, Store, open_store
from rag_core.store.events import check_event, checksum, from_row
from rag_core.store.labels import AT_ONCE, check_rows
from rag_core.store.schema import label_event, query_history, run, run_note

PAGE = 4096  # bytes; every file of ours has them of this size, whatever its damaged header says
LEAF = 13  # of a table
LOG_HEADER, FRAME_HEADER = 32, 24
COLUMNS = [column.name for column in label_event.c]
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial type → bytes
CONSTANTS: Mapping[int, int | None] = {0: None, 8: 0, 9: 1}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was gathered: label events, how many of them have no checksum to tell by, how many numbers up to the last
    are nobody's (an event sent twice takes one too), rows of other tables as far as they could be read, and where the
    damaged file is now.
    """

    events: int
    without: int
    missing: int
    others: Mapping[str, int]
    aside: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def to_text(self) -> str:
        """In a sentence."""
        others = "".join(f", {name} {count:,}" for name, count in self.others.items())
        without = f" ({self.without:,} from before there were checksums)" if self.without else ""
        return (
            f"Salvaged {self.events:,} label events{without}{others}; at most {self.missing:,} are lost. "
            f"The damaged file is {self.aside}"
        )


def salvage(workspace: Path) -> Salvaged:
    """Put a new store with everything that is whole in the place of a damaged one.

    A StoreError where nothing is damaged, nothing is there, or somebody uses the workspace.
    """
    path = workspace / FILE
    if not path.is_file():
        raise StoreError(f"no label store at {path}, expected a damaged one")
    if is_whole(workspace):
        raise StoreError(f"label store {path} is whole, expected a damaged one to salvage")
    aside = workspace / BACKUPS / f"winnow-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-damaged.db"
    aside.parent.mkdir(exist_ok=True)
    with holding.alone(workspace), TemporaryDirectory(dir=aside.parent) as folder:
        sources = [path, *sorted(aside.parent.glob("*.db"), reverse=True)]
        events = gathered(sources)
        with open_store(Path(folder)) as store:
            others = _fill(store, events, sources)
            new = store.back_up("salvaged")  # one file, on disk: closing may leave some of it in the log
        os.link(path, aside)
        for ending in ("-wal", "-shm"):  # of the old file: they would be taken for the new one's
            with suppress(FileNotFoundError):
                os.replace(f"{path}{ending}", f"{aside}{ending}")
        os.replace(new, path)
    without = sum(row["checksum"] is None for row in events)
    last = max((row["position"] for row in events), default=0)
    return Salvaged(len(events), without, last - len(events), others, str(aside))


def is_whole(workspace: Path) -> bool:
    """Whether the file opens, SQLite finds nothing wrong and every event matches its checksum."""
    try:
        with open_store(workspace, create=False) as store, store.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
            return not store.unwritable and found == "ok" and not check_rows(connection).broken
    except StoreError:
        return False


def gathered(files: Sequence[Path]) -> list[Row]:
    """The label events that are whole in any of the files, each once, in the order in which they were stored.

    A row's number is not in its checksum. Where a page's numbers do not follow each other, or two rows have one, they
    stand by when they arrived, before the first row that arrived later.
    """
    found: dict[tuple[str, int], tuple[Row, bool]] = {}
    for file in files:
        for row, in_order in _events(file):
            found.setdefault((row["session"], row["seq"]), (row, in_order))
    times = Counter(row["position"] for row, _ in found.values())
    sure, doubtful = list[Row](), list[Row]()
    for row, in_order in found.values():
        (sure if in_order and times[row["position"]] == 1 else doubtful).append(row)
    sure.sort(key=lambda row: int(row["position"]))
    coming = deque(sorted(doubtful, key=lambda row: (row["arrived_at"] or "", row["position"])))
    rows, taken = list[Row](), 0
    for row in sure:
        while coming and (coming[0]["arrived_at"] or "") < (row["arrived_at"] or ""):
            rows.append(other := coming.popleft())
            other["position"] = taken = other["position"] if taken < other["position"] < row["position"] else taken + 1
        rows.append(row)
        row["position"] = taken = max(row["position"], taken + 1)
    return rows + [row | {"position": taken + place} for place, row in enumerate(coming, 1)]


def _events(file: Path) -> Iterator[tuple[Row, bool]]:
    """The whole events of a file, and whether the numbers on their page follow each other."""
    for number, values, in_order in _rows(file):
        if len(values) > len(COLUMNS) or len(values) < COLUMNS.index("at") + 1:
            continue
        row = dict(zip(COLUMNS, [number, *values[1:], *[None] * (len(COLUMNS) - len(values))], strict=True))
        if isinstance(row["inclusion_p"], int):
            row["inclusion_p"] = float(row["inclusion_p"])  # a file holds a whole number as one
        with suppress(InputError, TypeError, ValueError):
            before_checksums = row["checksum"] is None and row["arrived_at"] is None
            check_event(event := from_row(row))
            if event.chunk_key == row["chunk_key"] and (before_checksums or row["checksum"] == checksum(row)):
                yield row, in_order


def _rows(file: Path) -> Iterator[tuple[int, list[Any], bool]]:
    """(row id, values, whether its page's row ids follow each other) of every cell of a table's leaf.

    First those of the file's pages, then those of its log.
    """
    data = file.read_bytes()
    pages = {at // PAGE + 1: data[at : at + PAGE] for at in range(0, len(data), PAGE)}
    for number in list(pages):
        yield from _cells(pages, number)
    log = Path(f"{file}-wal")
    frames = log.read_bytes() if log.is_file() else b""
    for at in range(LOG_HEADER, len(frames) - FRAME_HEADER, FRAME_HEADER + PAGE):
        number = int.from_bytes(frames[at : at + 4])
        pages[number] = frames[at + FRAME_HEADER : at + FRAME_HEADER + PAGE]
        yield from _cells(pages, number)


def _cells(pages: Mapping[int, bytes], number: int) -> Iterator[tuple[int, list[Any], bool]]:
    page, header = pages[number], 100 if number == 1 else 0
    if page[header : header + 1] != bytes([LEAF]):
        return
    count = int.from_bytes(page[header + 3 : header + 5])
    cells: list[tuple[int, list[Any]]] = []
    for at in range(header + 8, min(header + 8 + 2 * count, len(page) - 1), 2):
        with suppress(IndexError, KeyError, struct.error, ValueError):  # what is no cell any more
            size, start = _varint(page, int.from_bytes(page[at : at + 2]))
            row, start = _varint(page, start)
            cells.append((row, _values(_payload(pages, page, start, size))))
    in_order = all(row == cells[0][0] + place for place, (row, _) in enumerate(cells))
    yield from ((row, values, in_order) for row, values in cells)


def _payload(pages: Mapping[int, bytes], page: bytes, start: int, size: int) -> bytes:
    """A cell's content, the part on overflow pages included."""
    most, least = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
    kept = size
    if size > most:
        kept = least + (size - least) % (PAGE - 4)
        kept = kept if kept <= most else least
    content, following = page[start : start + kept], int.from_bytes(page[start + kept : start + kept + 4])
    while len(content) < size:
        if not (further := pages[following][4 : 4 + size - len(content)]):
            raise ValueError("a page of it is gone")
        content, following = content + further, int.from_bytes(pages[following][:4])
    return content


def _values(content: bytes) -> list[Any]:
    """The values of a record."""
    end, at = _varint(content, 0)
    start, values = end, list[Any]()
    while at < end:
        kind, at = _varint(content, at)
        size = INTEGERS.get(kind, 8 if kind == 7 else max(0, kind - 12) // 2)
        field, start = content[start : start + size], start + size
        if len(field) < size:
            raise ValueError("its end is gone")
        if kind in CONSTANTS:
            values.append(CONSTANTS[kind])
        elif kind in INTEGERS:
            values.append(int.from_bytes(field, signed=True))
        elif kind == 7:
            values.append(struct.unpack(">d", field)[0])
        else:
            values.append(field.decode() if kind % 2 else field)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where the next thing begins."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _fill(store: Store, events: Sequence[Row], sources: Sequence[Path]) -> dict[str, int]:
    """Write the events, and of the other tables, which have no checksums, what SQLite itself reads in the files."""
    counts: dict[str, int] = {}
    with store.writing() as connection:
        for start in range(0, len(events), AT_ONCE):
            connection.execute(label_event.insert(), events[start : start + AT_ONCE])
        for table in (run, run_note, query_history):
            readable = next((rows for file in sources if (rows := _readable(file, table.name))), [])
            counts[table.name] = len(readable)
            if readable:
                connection.execute(table.insert(), readable)
    return counts


def _readable(file: Path, table: str) -> list[Row]:
    """The rows of a table up to where the file is damaged."""
    rows: list[Row] = []
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
        source.row_factory = sqlite3.Row
        rows.extend(dict(row) for row in source.execute(f"SELECT * FROM {table}"))  # noqa: S608 - a table of ours
    return rows
