"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType

from rag_core.errors import InputError
from rag_core.store.exchange.beir import read_beir, write_beir
from rag_core.store.exchange.jsonl import read_jsonl, write_jsonl
from rag_core.store.exchange.line import Grades, LabelLine, graded, line_of, one_grade_each
from rag_core.store.exchange.quepid import read_quepid, write_quepid
from rag_core.store.exchange.srw import read_srw, write_srw
from rag_core.store.exchange.table import read_csv, write_csv
from rag_core.store.exchange.trec import read_trec, write_trec
from rag_core.store.labels import LabelStore


@dataclass(frozen=True, slots=True)
class LabelFormat:
    """How a file of labels is read and written: adding one is a module and an entry below."""

    read: Callable[..., list[LabelLine]]  # text, source
    write: Callable[..., str]  # lines
    suffixes: tuple[str, ...] = ()  # endings that tell it
    grades_only: bool = True  # one grade per query and chunk and nothing else
    tables: bool = False  # cells that a spreadsheet would run are guarded, unless `raw`


FORMATS = {
    "jsonl": LabelFormat(read_jsonl, write_jsonl, (".jsonl", ".ndjson"), grades_only=False),
    "trec": LabelFormat(read_trec, write_trec, (".qrels", ".trec")),
    "beir": LabelFormat(read_beir, write_beir, (".tsv",)),
    "csv": LabelFormat(read_csv, write_csv, (".csv",), grades_only=False, tables=True),
    "quepid": LabelFormat(read_quepid, write_quepid),
    "srw": LabelFormat(read_srw, write_srw, (".json",)),
}
SUFFIXES = {suffix: name for name, format_ in FORMATS.items() for suffix in format_.suffixes}


def write_labels(labels: Iterable[LabelLine], format_name: str, raw: bool = False) -> str:
    """The labels as the text of a file."""
    format_ = FORMATS[known_format(format_name)]
    return format_.write(labels, raw) if format_.tables else format_.write(labels)


def read_labels(
    text: str, format_name: str, source: str = "the file", raw: bool = False, grades: Grades = MappingProxyType({})
) -> list[LabelLine]:
    """The labels of a file's text, each once; anything not understood is a RecordError naming the line.

    `grades` says what other grades than 0 to 3 mean here; -1 is unsure in all formats but our own.
    """
    format_ = FORMATS[known_format(format_name)]
    lines = format_.read(text, source, raw) if format_.tables else format_.read(text, source)
    meant = grades if format_name == "jsonl" else {-1: None, **grades}
    return one_grade_each(graded(lines, source, meant), source)


def known_format(name: str) -> str:
    """The name itself, or an InputError listing the formats."""
    if name not in FORMATS:
        raise InputError(f"unknown label format {name[:40]!r}, expected one of {', '.join(FORMATS)}")
    return name


def format_of(file_name: str) -> str:
    """The format a file's ending tells, or an InputError."""
    ending = "." + file_name.rpartition(".")[2].lower()
    if ending not in SUFFIXES:
        raise InputError(f"{file_name or 'a folder'} does not tell its format, expected --format {'|'.join(FORMATS)}")
    return SUFFIXES[ending]


def lines_to_export(
    labels: LabelStore, eval_set: str, annotator: str | None, format_name: str
) -> tuple[list[LabelLine], int]:
    """The lines that count now, and how many unsure labels the format has no place for."""
    events = labels.labels(eval_set, annotator)
    if not FORMATS[known_format(format_name)].grades_only:
        return [line_of(event) for event in events], 0
    grades = labels.current(eval_set, annotator)
    lines = [LabelLine(query, chunk, grade) for query, of in grades.items() for chunk, grade in of.items()]
    return lines, sum(event.grade is None for event in events)
