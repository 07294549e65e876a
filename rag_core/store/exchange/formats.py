"""The formats by name."""

from __future__ import annotations

from collections.abc import Iterable

from rag_core.errors import InputError
from rag_core.store.exchange.beir import read_beir, write_beir
from rag_core.store.exchange.jsonl import read_jsonl, write_jsonl
from rag_core.store.exchange.line import LabelLine, one_grade_each
from rag_core.store.exchange.table import read_csv, write_csv
from rag_core.store.exchange.trec import read_trec, write_trec

FORMATS = ("jsonl", "trec", "beir", "csv")
GRADES_ONLY = frozenset({"trec", "beir"})
"""Formats with one grade per query and chunk and nothing else."""
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".qrels": "trec", ".trec": "trec", ".tsv": "beir", ".csv": "csv"}


def write_labels(labels: Iterable[LabelLine], format_name: str, raw: bool = False) -> str:
    """The labels as the text of a file."""
    if format_name == "csv":
        return write_csv(labels, raw)
    writers = {"jsonl": write_jsonl, "trec": write_trec, "beir": write_beir}
    return writers[known_format(format_name)](labels)


def read_labels(text: str, format_name: str, source: str = "the file", raw: bool = False) -> list[LabelLine]:
    """The labels of a file's text, each once; anything not understood is a RecordError naming the line."""
    if format_name == "csv":
        return one_grade_each(read_csv(text, source, raw), source)
    readers = {"jsonl": read_jsonl, "trec": read_trec, "beir": read_beir}
    return one_grade_each(readers[known_format(format_name)](text, source), source)


def known_format(name: str) -> str:
    """The name itself, or an InputError listing the formats."""
    if name not in FORMATS:
        raise InputError(f"unknown label format {name[:40]!r}, expected one of {', '.join(FORMATS)}")
    return name


def format_of(file_name: str) -> str:
    """The format a file's ending tells, or an InputError."""
    ending = "." + file_name.rpartition(".")[2].lower()
    if ending not in SUFFIXES:
        raise InputError(f"{file_name} does not tell its format, expected --format {'|'.join(FORMATS)}")
    return SUFFIXES[ending]
