"""One label as a line of a file, and the checks that every format shares.

Every refusal is a RecordError of one sentence that names the file and the line. What the lines do to the store is
planning.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from rag_core.errors import InputError, RecordError
from rag_core.store.events import Event, check_grade, check_probability, check_text
from rag_core.store.keys import chunk_key

UNSURE = "unsure"
LARGEST = 10**9
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")
DRAWN = ("pressed_at", "inclusion_p", "sampler")
"""Of how a label came, what statistics need elsewhere; who pressed and by what authority is said by whoever imports."""
Grades = Mapping[int, int | None]
"""What whole numbers of a file mean here."""
HASH = re.compile(r"([0-9a-f]{64})?")


@dataclass(frozen=True, slots=True)
class LabelLine:
    """A label in a file: the grade (None = unsure) one annotator gave a chunk for a query. '' is not known."""

    query_id: str
    chunk_id: str
    grade: int | None
    annotator: str = ""
    note: str = ""
    query_hash: str = ""
    text_hash: str = ""
    at: str = ""
    pressed_at: str | None = None
    inclusion_p: float | None = None
    sampler: str | None = None
    number: int = field(default=0, compare=False)  # the line it stood on

    @property
    def about(self) -> tuple[str, str, str]:
        """Whose label on what: (annotator, query id, chunk key)."""
        return (self.annotator, self.query_id, chunk_key(self.chunk_id, self.text_hash))


def line_of(event: Event) -> LabelLine:
    """A stored label as a line."""
    names = ("query_id", "chunk_id", "grade", "annotator", "note", "query_hash", "text_hash", "at", *DRAWN)
    return LabelLine(**{name: getattr(event, name) for name in names})


@contextmanager
def at_line(source: str, number: int) -> Iterator[None]:
    """Turn an InputError of the block into a RecordError that names file and line."""
    try:
        yield
    except InputError as error:
        raise RecordError(f"{source}, line {number}: {error}") from None


def check_line(line: LabelLine) -> LabelLine:
    """The line itself, or an InputError where the store could not hold it; its grade is for `graded`."""
    for name in ("query_id", "chunk_id", "annotator", "note", "query_hash", "text_hash", "at"):
        check_text(getattr(line, name), name)
    if not line.query_id or not line.chunk_id:
        raise InputError("an id is empty, expected a query id and a chunk id")
    if not HASH.fullmatch(line.text_hash) or not HASH.fullmatch(line.query_hash):
        raise InputError("a hash is not 64 hexadecimal digits, expected a SHA-256 or nothing")
    for name in ("pressed_at", "sampler"):
        if getattr(line, name) is not None:
            check_text(getattr(line, name), name)
    for name, time in (("at", line.at), ("pressed_at", line.pressed_at or "")):
        try:
            datetime.fromisoformat(time or "2026-01-31")
        except ValueError:
            raise InputError(f"{name} is {time[:40]!r}, expected a time like 2026-01-31T12:00:00Z") from None
    check_probability(line.inclusion_p)
    return line


def graded(lines: Iterable[LabelLine], source: str, grades: Grades) -> Iterator[LabelLine]:
    """The lines with what a file's grades mean here; one that is no grade of ours and is not told is a RecordError."""
    for line in lines:
        number = line.grade if isinstance(line.grade, int) and not isinstance(line.grade, bool) else None
        meant = replace(line, grade=grades[number]) if number is not None and number in grades else line
        try:
            check_grade(meant.grade)
        except InputError as error:
            sayable = number is not None and abs(number) < LARGEST
            how = f" (`labels import --grades {number}=…` says what it means)" if sayable else ""
            raise RecordError(f"{source}, line {line.number}: {error}{how}") from None
        yield meant


def parse_grades(text: str) -> dict[int, int | None]:
    """`4=3,-2=0`: what grades of a file mean here; an InputError for anything else. Without a text nothing is said."""
    meant: dict[int, int | None] = {}
    for part in text.split(",") if text.strip() else ():
        theirs, equals, ours = (side.strip() for side in part.partition("="))
        if not equals or not WHOLE_NUMBER.fullmatch(theirs) or (ours not in ("0", "1", "2", "3", UNSURE)):
            raise InputError(f"--grades has {part[:40]!r}, expected GRADE=0, 1, 2, 3 or {UNSURE}, such as 4=3,-2=0")
        meant[int(theirs)] = None if ours == UNSURE else int(ours)
    return meant


def parse_grade(cell: str) -> int | None:
    """The number a text cell holds; `unsure` is None. Which numbers are grades is for `graded`."""
    if cell == UNSURE:
        return None
    if not WHOLE_NUMBER.fullmatch(cell):
        raise InputError(f"grade is {cell[:40]!r}, expected a whole number from 0 to 3, or {UNSURE}")
    return int(cell)


def one_grade_each(lines: Iterable[LabelLine], source: str) -> list[LabelLine]:
    """The lines without repetitions; two grades of one annotator for one query and chunk are a RecordError."""
    first: dict[tuple[str, str, str], LabelLine] = {}
    for line in lines:
        earlier = first.setdefault(line.about, line)
        if (earlier.grade, earlier.note) != (line.grade, line.note):
            raise RecordError(
                f"{source}, line {line.number}: query {line.query_id[:80]!r} and chunk {line.chunk_id[:80]!r} "
                f"are labelled otherwise on line {earlier.number}, expected one label each"
            )
    return list(first.values())
