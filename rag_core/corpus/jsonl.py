"""JSONL or a JSON list → chunks: objects with text, and optionally id, title, type, ref_ids, query_must, any metadata.

Strict, because what is stored here is searched later: a line that cannot be stored as it is refuses the whole file,
naming the line. BEIR's `_id` and `metadata` are understood.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rag_core.corpus.columns import Columns, mapped
from rag_core.corpus.names import Names, document_name
from rag_core.errors import InputError, RecordError, RuleError
from rag_core.files import lines, parse_json
from rag_core.rules.rule import parse_rule, parse_text
from rag_core.types import Chunk

MAX_TEXT = 1_000_000
MAX_ID = 500
OWN = ("id", "_id", "title", "text", "type", "ref_ids", "query_must", "metadata")


def read_jsonl(
    text: str,
    source: str,
    columns: Columns | None = None,
    skipped: list[str] | None = None,
    absent: set[str] | None = None,
) -> list[Chunk]:
    """The chunks of a JSONL file, or a RecordError or RuleError naming the line; ids are unique in the file.

    A line without an id gets one from the file's name and its own content, the same on every run. Only the newline
    ends a line. Unknown keys become metadata; `columns` says which keys hold our fields where they have other names.
    With `skipped`, what is wrong with a line is put there and the line left out. From `absent` goes each name that a
    line has.
    """
    rows = ((f"{source} line {number}", line) for number, line in lines(text))
    return chunks_of(rows, source, columns, skipped, absent)


def list_records(text: str, source: str) -> Iterator[tuple[str, Any]]:
    """(where it stands, the record) of each in a JSON list; a text alone is a record with that text.

    InputError where the file holds anything but a list.
    """
    records = parse_json(text, source)
    if not isinstance(records, list):
        raise InputError(f"{source} is {_kind(records)}, expected a list of records")
    for number, record in enumerate(records, 1):
        yield f"{source} record {number}", {"text": record} if isinstance(record, str) else record


def chunks_of(
    records: Iterable[tuple[str, Any]],
    source: str,
    columns: Columns | None = None,
    skipped: list[str] | None = None,
    absent: set[str] | None = None,
) -> list[Chunk]:
    """The chunks of records, (where it stands, its fields or their JSON), or an error naming the first wrong place.

    With `skipped`, what is wrong with a record is put there and the record left out; a wrong rule is an error still,
    since its chunk would be lost with it.
    """
    names = Names()
    seen: dict[str, str] = {}
    found: list[Chunk] = []
    for where, value in records:
        try:
            record = parse_json(value, where) if isinstance(value, str) else value
            if columns and isinstance(record, dict):
                if absent:
                    absent.difference_update(record)
                record = mapped(record, columns)
            chunk = _chunk(record, where, source, names, len(found) + 1)
        except RecursionError:
            raise RecordError(f"{where} is nested too deeply") from None
        except InputError as error:
            if skipped is None or isinstance(error, RuleError):
                raise
            skipped.append(str(error))
            continue
        if chunk.id in seen:
            place = seen[chunk.id].removeprefix(f"{source} ")
            raise RecordError(f"{where} has the id {chunk.id[:80]!r} of {place}, expected each id once")
        seen[chunk.id] = where
        found.append(chunk)
    return found


def _chunk(value: Any, where: str, source: str, names: Names, position: int) -> Chunk:
    if not isinstance(value, dict):
        raise RecordError(f"{where} is {_kind(value)}, expected an object with a text")
    text = _text(value, "text", where)
    title = _text(value, "title", where)
    if not text.strip():
        if "text" in value:
            raise RecordError(f"{where} has an empty text, expected the chunk's text")
        raise RecordError(f"{where} has no text, expected the chunk's text; {_remedy(value)}")
    references, nested = value.get("ref_ids"), value.get("metadata")
    references, nested = [] if references is None else references, {} if nested is None else nested
    if not isinstance(references, list) or not all(isinstance(item, str) and item for item in references):
        raise RecordError(f"{where} has ref_ids as {_kind(references)}, expected a list of ids")
    if not isinstance(nested, dict):
        raise RecordError(f"{where} has metadata as {_kind(nested)}, expected an object")
    rest = nested | {key: item for key, item in value.items() if key not in OWN}  # metadata is what is not ours
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
    return Chunk(
        id=_id(value, where) or names.of(f"{document_name(source)}#{digest[:12]}"),
        title=title,
        text=text,
        type=_text(value, "type", where),
        query_must=_rule(value, where),
        ref_ids=tuple(dict.fromkeys(map(cleaned, references))),
        metadata={"source": source, "position": position, **{str(key): item for key, item in cleaned(rest).items()}},
    )


def _remedy(value: Mapping[str, Any]) -> str:
    """What to do about a record without a text: name the column that holds it, or import what are lists."""
    if any(isinstance(one, list) and one and isinstance(one[0], Mapping) for one in value.values()):
        return (
            "its records hold lists: result lists and logs come in with `winnow import` (Data: Recorded lists), chunks "
            "inside of documents as a record each"
        )
    there = ", ".join(" ".join(str(key).split())[:40] for key in list(value)[:20]) or "nothing"
    return f"it has {there}: say which holds it with --column text=NAME"


def _kind(value: Any) -> str:
    names = {list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false", dict: "an object"}
    return names.get(type(value), "null")


def _text(value: Mapping[str, Any], key: str, where: str) -> str:
    """A text field; null and absent are empty, lone surrogates become U+FFFD (they cannot be stored or sent)."""
    found = value.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise RecordError(f"{where} has {key} as {_kind(found)}, expected text")
    if len(found) > MAX_TEXT:
        raise RecordError(f"{where} has a {key} of {len(found):,} characters, expected at most {MAX_TEXT:,}")
    return str(cleaned(found))


def cleaned(value: Any) -> Any:
    """A text, or every text inside a JSON value, with lone surrogates and NUL replaced by U+FFFD."""
    if isinstance(value, str):
        return re.sub("[\x00\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    return value


def _id(value: Mapping[str, Any], where: str) -> str:
    """The id as text, or nothing where the line has none; white space inside would break TREC files."""
    if "id" in value and "_id" in value:
        raise RecordError(f"{where} has both id and _id, expected one of them")
    found = value.get("id", value.get("_id"))
    if found is None:
        return ""
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise RecordError(f"{where} has its id as {_kind(found)}, expected text or a whole number")
    identity = str(cleaned(str(found)))
    if not identity.strip() or len(identity) > MAX_ID or any(ord(letter) < 32 for letter in identity):
        raise RecordError(f"{where} has an id that is empty, over {MAX_ID} characters or holds control characters")
    return identity


def _rule(value: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """The chunk's rule in its strict form, from an object or its text, or None; a wrong one is a RuleError."""
    raw = value.get("query_must")
    if raw is None or raw == "":
        return None
    named = f"{where} ({str(value.get('id', value.get('_id', 'no id')))[:80]})"
    if isinstance(raw, str):
        raw = parse_text(raw, f"query_must of {named}")
    return parse_rule(raw, named).as_mapping()
