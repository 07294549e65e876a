"""Read and write files safely: strict JSON and YAML, lines that break on the newline alone, whole-file writes.

Every file a user brings is untrusted: duplicate keys, NaN, YAML aliases, deep nesting and oversize are refused with one
sentence that says where. What the parsed values mean is for the callers.
"""

from __future__ import annotations

import gc
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from math import isfinite, isinf
from pathlib import Path
from typing import Any

from rag_core.errors import InputError

MAX_YAML_BYTES = 1_000_000
MAX_DEPTH = 50
MAX_UPLOAD_BYTES = 50_000_000  # what a page takes
MAX_FILE_BYTES = 150_000_000  # what the command line reads at once
MAX_LINES_BYTES, MAX_LINE_BYTES = 4_000_000_000, 50_000_000  # what it reads line by line


MUCH = 50_000  # objects that a read has made


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Python's garbage collector at rest while much is read that stays: it would walk all of it again and again, a
    quarter of the time of opening 100,000 chunks or 10,000 lists. What was read counts as old from then on, as it would
    after three walks more.
    """
    runs = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if runs:
            # for little that was read it is not worth asking; an app's frozen objects stay frozen
            if gc.get_count()[0] > MUCH and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # thawed into the oldest generation
            gc.enable()


def parse_json(text: str, where: str) -> Any:
    """The JSON value, or an InputError naming `where` for bad syntax, duplicate keys, NaN or deep nesting."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply, expected at most {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not valid JSON ({error.msg}, column {error.colno})") from None
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON ({error})") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:80]!r} stands twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number JSON knows")


def _finite(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


class JsonText(str):
    """A text that is JSON already, to be written as it stands."""

    __slots__ = ()


def json_text(value: Any) -> str:
    """The value as JSON: full precision, NaN and infinities as null, other values by their text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):  # made plain only where need be: walking a report takes longer than writing it
        return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        return _plain(value.item())  # a NumPy scalar
    return value if isinstance(value, str | int | bool | type(None)) else str(value)


def parse_yaml(text: str, where: str) -> Any:
    """The YAML 1.2 value of a small file; aliases, duplicate keys, deep nesting and over 1 MB are refused."""
    if len(text) > MAX_YAML_BYTES:
        raise InputError(f"{where} holds {len(text):,} characters, expected at most {MAX_YAML_BYTES:,}")
    # a page reads its project's files anew at every change, and they rarely are others
    return deepcopy(_parsed(text, where)) if len(text) <= MOST_REMEMBERED else _parsed.__wrapped__(text, where)


def yaml_text(document: Any) -> str:
    """A document as block YAML, its keys in their order; `parse_yaml` gives it back."""
    from ruamel.yaml import YAML  # a tenth of a second that who only reads JSON never pays

    text = io.StringIO()
    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.allow_unicode = False, True
    writer.sort_base_mapping_type_on_output = False
    writer.dump(document, text)
    return text.getvalue()


MOST_REMEMBERED = 20_000  # characters of a file whose value is kept


@lru_cache(maxsize=64)
def _parsed(text: str, where: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.Parser, yaml.Scanner = _watched_parser(where), _watched_scanner(where)
    try:
        return yaml.load(text)
    except (YAMLError, ValueError, TypeError, RecursionError) as error:  # TypeError: a mapping within a key
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where} is not valid YAML ({_first_line(error)})") from None


def _watched_parser(where: str) -> type[Any]:
    """A parser that refuses an alias or a deep nesting as it comes to it, so that one reading of the text does."""
    from ruamel.yaml.events import AliasEvent, MappingEndEvent, MappingStartEvent, SequenceEndEvent, SequenceStartEvent
    from ruamel.yaml.parser import Parser

    class Watched(Parser):
        nesting = 0

        def get_event(self) -> Any:
            event = super().get_event()
            if isinstance(event, AliasEvent):
                raise InputError(f"{where} holds a YAML alias, expected plain values")
            self.nesting += isinstance(event, MappingStartEvent | SequenceStartEvent)
            self.nesting -= isinstance(event, MappingEndEvent | SequenceEndEvent)
            if self.nesting > MAX_DEPTH:
                raise _too_deep(where)
            return event

    return Watched


def _watched_scanner(where: str) -> type[Any]:
    """A scanner that counts open brackets itself: it runs ahead of the parser, and looks at all open ones at each."""
    from ruamel.yaml.scanner import Scanner

    class Watched(Scanner):
        def fetch_flow_collection_start(self, token: Any, to_push: str) -> None:
            if len(self.flow_context) >= MAX_DEPTH:
                raise _too_deep(where)
            super().fetch_flow_collection_start(token, to_push)

    return Watched


def _too_deep(where: str) -> InputError:
    return InputError(f"{where} is nested too deeply, expected at most {MAX_DEPTH} levels")


def _first_line(error: BaseException) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or (str(error).splitlines() or [type(error).__name__])[0]
    said = str(problem)[:200]  # the library tells a repeated key with its whole value
    return f"line {mark.line + 1}: {said}" if mark is not None else said


def read_text(path: Path, limit: int = MAX_FILE_BYTES) -> str:
    """The file as UTF-8 text (a BOM is dropped), or an InputError: missing, a folder, too large, not text."""
    _check_size(path, limit)
    return decode(path.read_bytes(), str(path))


def _check_size(path: Path, limit: int) -> None:
    if not path.is_file():
        raise InputError(f"{path} is {'a folder' if path.is_dir() else 'not there'}, expected a file")
    size = path.stat().st_size
    if size > limit:
        raise InputError(f"{path} has {size:,} bytes, expected at most {limit:,}")


def decode(data: bytes, where: str, start: int = 0) -> str:
    """The bytes as UTF-8 text without a BOM, or an InputError that names `where`; they are from byte `start` on."""
    if not start and b"\x00" in data[:8192]:
        raise InputError(f"{where} looks like a binary file, expected UTF-8 text")
    try:
        return data.decode("utf-8" if start else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where} is not UTF-8 text (byte {start + error.start}), expected it saved as UTF-8"
        ) from None


def read_lines(path: Path) -> Iterator[tuple[int, int, str]]:
    """(line number, first byte, line) of every line of the file that is not blank, as `lines` of its text, of which no
    more than one line is held.
    """
    _check_size(path, MAX_LINES_BYTES)
    with path.open("rb") as file:
        start = number = 0
        while data := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(data) > MAX_LINE_BYTES:
                raise InputError(f"{path} line {number} has over {MAX_LINE_BYTES:,} bytes, expected one object a line")
            line = decode(data, str(path), start)
            if line.strip():
                yield number, start, line.rstrip("\r\n")
            start += len(data)


def lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, line) of every line that is not blank; only the newline ends a line, U+0085 and U+2028 do not."""
    number, start = 0, 0
    while start <= len(text):  # one line at a time: a split would hold a second copy of a large file
        end = text.find("\n", start)
        end, number = (len(text) if end < 0 else end), number + 1
        line = text[start:end]
        if line.strip():
            yield number, line.rstrip("\r")
        start = end + 1


def header_said(cells: Sequence[str]) -> str:
    """What stands in a table's first line in place of the header, for a message: its names, cut short."""
    if len(cells) == 1 and ";" in cells[0]:
        return "one cell with semicolons, where commas part columns"
    return ", ".join(repr(name[:40]) for name in cells[:5]) + (" …" if len(cells) > 5 else "") or "empty"


def write_whole(path: Path, data: str | bytes) -> None:
    """Write the file whole or not at all: a temporary name beside it, fsync, rename. A missing folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def append_line(path: Path, line: str, mode: int = 0o600) -> None:
    """One whole line at the end of a file, on the disk when this returns; lines of other processes stay whole."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
    try:
        os.write(handle, (line + "\n").encode("utf-8", "backslashreplace"))  # one write
        os.fsync(handle)
    finally:
        os.close(handle)
