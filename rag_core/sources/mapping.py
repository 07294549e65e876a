"""Logs and data sets of other tools → recorded lists: one mapper, presets by name (presets.yaml), `auto` proposes.

A file of JSON, JSONL, CSV or Parquet is records; a preset or `name=path` pairs say where question, hits, ids, texts and
scores stand in them. What a path finds not at once is looked for in JSON that stands in a text, under flattened keys
(`documents.0.id`) and behind alternatives (`|`). Nothing is made up: a record without a question or a hit is skipped
and counted with the reason, chunks without an id are met by their text's hash, lists without scores get 1 / rank.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from rag_core.errors import InputError
from rag_core.files import decode, lines, parse_json, parse_yaml, read_text
from rag_core.records import load_lists, read_case, textless, with_texts
from rag_core.store.keys import text_hash
from rag_core.store.matching import FragmentIndex
from rag_core.types import SCORES, Case

OWN, MAPPED = "winnow", "own mapping"
PRESETS = Path(__file__).with_name("presets.yaml")
FIELDS = (
    "query", "query_id", "hits", "ids", "texts", "scores", "references", "relevant", "id", "text", "title", *SCORES
)  # fmt: skip
"""What a mapping may name: of a record up to `relevant` (ids), of a hit from there (its grade) on."""
WRAPPED = ("data", "spans", "runs", "results", "observations", "examples")
GRADE = 2  # of a reference or of what a file calls relevant
TRIED = 50  # records that `auto` looks at
DEEP, MANY = 5, 200  # levels of a record, and paths of it, that `paths_of` names
USUAL = {
    "query": ("query", "question", "q", "user_input", "prompt", "input", "asked"),
    "query_id": ("query_id", "qid", "id"),
    "hits": ("hits", "candidates", "documents", "results", "chunks", "contexts", "matches", "passages"),
    "relevant": ("relevant", "relevant_ids", "gold", "expected_ids", "relevance", "grade"),
    "id": ("id", "chunk_id", "doc_id", "_id", "pid", "cid", "passage_id", "document_id", "docid", "uuid", "key"),
    "text": ("text", "content", "page_content", "body", "chunk"), "title": ("title", "name", "heading"),
    "distance": ("distance", "dist", "_distance"), "similarity": ("similarity", "cosine"),
    "score": ("score", "_score", "relevance_score"), "rerank": ("rerank", "rerank_score"),
}  # fmt: skip
"""Last words of a path by which `likely_paths` knows a field, the surest first."""
MISSED = (("no question", "query"), ("a hit has neither", "id"))
"""How a reason begins that a record is skipped for, and the field that would take it in."""
FLAT = re.compile(r"^(.*?)\.(\d+)\.(.+)$")


@dataclass(frozen=True)
class LogReading:
    """What a file gave: lists, and round numbers of what was read, met, lost and skipped, with the reasons."""

    preset: str
    mapping: Mapping[str, str]
    cases: tuple[Case, ...]
    read: int  # records of the file
    met: int  # references that lie in one of the list's chunks
    lost: int  # references that lie in none
    skipped: Mapping[str, int] = field(default_factory=dict)  # reason → records
    unscored: int = 0  # lists whose places stand in for scores
    examples: tuple[str, ...] = ()  # of what met nothing
    textless: int = 0  # hits that were written without a text
    filled: int = 0  # those of them whose text another list has
    repeated: int = 0  # hits that were in their list before, dropped

    @property
    def warning(self) -> str:
        """Where more than a tenth is left out because a field was not found: how much, and which; else ''."""
        missing = {field: sum(n for why, n in self.skipped.items() if why.startswith(said)) for said, field in MISSED}
        worst = max(missing, key=lambda field: missing[field])
        if missing[worst] <= self.read / 10:
            return ""
        return f"{missing[worst]} of {self.read} records are left out: say where {worst} stands"

    def to_json(self) -> dict[str, Any]:
        """Everything but the lists."""
        return {
            "preset": self.preset, "mapping": dict(self.mapping), "lists": len(self.cases), "read": self.read,
            "met": self.met, "lost": self.lost, "skipped": dict(self.skipped), "unscored": self.unscored,
            "textless": self.textless, "filled": self.filled, "repeated": self.repeated, "warning": self.warning,
        }  # fmt: skip

    def to_text(self) -> str:
        """Round numbers, the mapping, and why records were skipped."""
        rows = [f"warning: {self.warning}"] if self.warning else []
        rows.append(f"{self.preset}: {self.read} records read, {len(self.cases)} lists")
        if self.met or self.lost:
            rows.append(f"references: {self.met} met a chunk of their list, {self.lost} met none")
        if self.unscored:
            rows.append(f"{self.unscored} lists have no scores: 1 / rank stands in, which no cut by distance can use")
        if self.textless:
            rows.append(f"{self.textless} hits had no text, {self.filled} of them have it from another list")
        if self.repeated:
            rows.append(f"{self.repeated} hits were in their list before and were dropped")
        rows += [f"skipped {count}: {reason}" for reason, count in self.skipped.items()]
        rows.append("mapping: " + ", ".join(f"{name}={path}" for name, path in self.mapping.items()))
        return "\n".join(rows)


@cache
def presets() -> dict[str, dict[str, Any]]:
    """Preset → its paths, and `where`: what a record must say of itself."""
    found: dict[str, dict[str, Any]] = parse_yaml(read_text(PRESETS), str(PRESETS))
    return found


def read_log(content: bytes, name: str, preset: str = "auto", paths: Mapping[str, str] | None = None) -> LogReading:
    """The lists of a file; `paths` stand above the preset's. An InputError where no record gives a list."""
    records = list(records_of(content, name))
    strange = next((key for key in paths or {} if key not in FIELDS), None)
    if strange is not None:
        raise InputError(f"the mapping names {strange[:40]!r}, expected one of {', '.join(FIELDS)}")
    if preset == "auto":
        preset = MAPPED if paths and "query" in paths else likely_preset(records, name)
    if preset != MAPPED and preset not in presets():
        raise InputError(f"the preset is {preset[:40]!r}, expected auto or one of {', '.join(presets())}")
    mapping = {**presets().get(preset, {}), **(paths or {})}
    if preset == OWN and not paths:  # with rules, tags and labels, and strict
        own = load_lists(content, name)
        lists, bare = tuple(with_texts(own)), textless(own)
        shown = {key: str(path) for key, path in mapping.items()}
        return LogReading(OWN, shown, lists, len(lists), 0, 0, textless=bare, filled=bare - textless(lists))
    _check_paths(paths or {}, records[:TRIED], mapping, name)
    cases: list[Case] = []
    examples: list[str] = []
    skipped, seen = Counter[str](), Counter[str]()
    met = lost = unscored = repeated = 0
    for record in records:
        found = _list_of(record, mapping)
        if isinstance(found, str):
            skipped[found] += 1
            continue
        query_id, query, rows, scored, again = found
        repeated += again
        unscored += not scored
        seen[query_id] += 1
        if seen[query_id] > 1:
            query_id = f"{query_id}-{seen[query_id]}"
        grades, here, gone = _grades(record, mapping, rows)
        met, lost, examples = met + here, lost + len(gone), [*examples, *gone][:5]
        for row in rows:
            if row["id"] in grades:
                row["relevant"] = grades.pop(row["id"])
        line = {"id": query_id, "query": query, "labels": grades, "candidates": rows, **_order(rows)}
        try:
            cases.append(read_case(line, f"{name}, question {query_id[:80]!r}", query_id))
        except InputError as error:
            skipped[str(error).partition(" has ")[2][:120] or "no list"] += 1
    if not cases:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in skipped.most_common(3)) or "it holds no record"
        raise InputError(f"{name} gives no list by {preset}: {reasons}, expected another preset or --map")
    shown = {key: str(path) for key, path in mapping.items() if key != "where"}
    bare, whole = textless(cases), tuple(with_texts(cases))
    return LogReading(
        preset, shown, whole, len(records), met, lost, dict(skipped.most_common()), unscored, tuple(examples),
        bare, bare - textless(whole), repeated,
    )  # fmt: skip


def _check_paths(paths: Mapping[str, str], records: Sequence[Any], mapping: Mapping[str, Any], name: str) -> None:
    """An InputError for a path at which nothing stands in any of these records, or in any of their hits."""
    of_record = FIELDS[: FIELDS.index("relevant") + 1]
    listed = [look_up(record, mapping["hits"]) for record in records] if "hits" in mapping else []
    hits = [hit for one in listed if isinstance(one, list) for hit in one]
    listing = [one.strip() for one in str(mapping.get("hits", "")).split("|") if one.strip()]
    for key, path in paths.items():
        if any(re.match(rf"{re.escape(one)}\.\d+(\.|$)", path) for one in listing):
            raise InputError(f"{key} is {path[:60]}, which leads into one hit alone, expected a path inside every hit")
        among = [*records, *hits] if key == "relevant" else records if key in of_record else hits
        if among and all(look_up(one, path) is None for one in among):
            known = ", ".join(sorted({str(key) for one in among if isinstance(one, Mapping) for key in one})[:20])
            raise InputError(
                f"{name} has nothing at {path[:60]} for {key}, expected a path that leads to it from {known}"
            )


def likely_preset(records: Sequence[Any], name: str) -> str:
    """The preset that makes lists of most of the first records; an InputError with the keys where none does."""
    tried = {
        preset: sum(not isinstance(_list_of(record, mapping), str) for record in records[:TRIED])
        for preset, mapping in presets().items()
    }
    best = max(tried, key=lambda preset: tried[preset])
    if not tried[best]:
        keys = ", ".join(sorted({str(key) for record in records[:TRIED] for key in record})[:20])
        raise InputError(f"{name} has records of {keys[:200] or 'nothing'}, expected --map query=PATH hits=PATH")
    return best


def paths_of(content: bytes, name: str) -> tuple[list[str], dict[str, list[str]]]:
    """Paths of a file's first records, and those of lists → paths within their hits (none: plain texts)."""
    plain: dict[str, None] = {}
    lists: dict[str, dict[str, None]] = {}

    def walk(value: Any, path: str, into: dict[str, None], level: int) -> None:
        if len(into) >= MANY or level > DEEP:
            return
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(_opened(inner), f"{path}.{key}" if path else str(key), into, level + 1)
        elif path and isinstance(value, list) and into is plain:
            within = lists.setdefault(path, {})
            for hit in value[:TRIED]:
                walk(hit, "", within, level)
        elif path and value is not None:
            into[path] = None

    for record in islice(records_of(content, name), TRIED):
        walk(record, "", plain, 0)
    return list(plain), {path: list(within) for path, within in lists.items()}


def likely_paths(fields: Sequence[str], paths: Sequence[str]) -> dict[str, str]:
    """Field → the path that most likely holds it, by its last word; fields that none fits are missing."""
    likely = {}
    for name in fields:
        places = {path.rpartition(".")[2].lower(): path for path in reversed(paths)}
        likely[name] = next((places[word] for word in USUAL.get(name, (name,)) if word in places), "")
    return {name: path for name, path in likely.items() if path}


def likely_id(content: bytes, name: str, hits: str, inner: Sequence[str]) -> str:
    """The path whose values are short texts that stand once in a list, as ids do; '' where none is."""
    found = (look_up(record, hits) for record in islice(records_of(content, name), TRIED))
    lists = [one for one in found if isinstance(one, list)]
    for path in inner:
        values = [[look_up(hit, path) for hit in one] for one in lists]
        every = [one for row in values for one in row]
        short = all(isinstance(one, str) and re.fullmatch(r"(?!-?\d*\.\d)\S{1,80}", one) for one in every)
        if short and sum(len(set(row)) == len(row) > 1 for row in values) > 0.8 * len(values):
            return path
    return ""


def records_of(content: bytes, name: str) -> Iterator[Mapping[str, Any]]:
    """The records of a file, by its ending and its first sign; runs inside runs are records too."""
    if name.endswith(".parquet") or content[:4] == b"PAR1":
        import pyarrow.parquet  # a quarter of a second that only this format waits for

        yield from pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()
        return
    text = decode(content, name)
    if name.endswith((".csv", ".tsv")):
        usual = csv.field_size_limit(10_000_000)  # of the whole process: documents are held to the usual one
        try:
            rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if name.endswith(".tsv") else ","))
        finally:
            csv.field_size_limit(usual)
        yield from rows
        return
    first = text.lstrip()[:1]
    try:
        whole = [json.loads(text)] if first in "[{" and first else []
    except ValueError:  # one object a line
        whole = []
    values = whole or [parse_json(line, f"{name} line {number}") for number, line in lines(text)]
    stack = list(reversed(values))
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack += reversed(value)
        elif isinstance(value, Mapping):
            inner = next((value[key] for key in WRAPPED if isinstance(value.get(key), list)), None)
            if inner is not None and "input" not in value and "inputs" not in value:
                stack += reversed(inner)
                continue
            if isinstance(value.get("results"), Mapping):  # promptfoo's own are two deep
                stack.append(value["results"])
                continue
            yield value
            stack += reversed(value.get("child_runs") or [])


def look_up(record: Any, path: str) -> Any:
    """What stands at a path: the first of its alternatives that is there; None for nothing."""
    for one in path.split("|"):
        found = _at(record, one.strip())
        if found not in (None, "", [], {}):
            return found
    return None


def _at(value: Any, path: str) -> Any:
    value = _opened(value)
    if not path:
        return value
    if isinstance(value, list) and (head := path.partition("."))[0].isdigit():
        at = int(head[0])
        return _at(value[at], head[2]) if at < len(value) else None
    if not isinstance(value, Mapping):
        return None
    parts = path.split(".")
    for end in range(len(parts), 0, -1):  # keys hold dots themselves: attributes.input.value
        key = ".".join(parts[:end])
        if key in value:
            found = _at(value[key], ".".join(parts[end:]))
            if found is not None:
                return found
    flat: dict[int, dict[str, Any]] = {}
    for key, inner in value.items():
        match = FLAT.match(str(key))
        if match and match[1] == path:
            flat.setdefault(int(match[2]), {})[match[3]] = inner
    return [flat[place] for place in sorted(flat)] or None


def _opened(value: Any) -> Any:
    """A value that stands in a text as JSON or as Python prints it, opened; any other as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value


def _list_of(record: Any, mapping: Mapping[str, Any]) -> tuple[str, str, list[dict[str, Any]], bool, int] | str:
    """(query id, query, rows, whether they have scores, hits that came again) of a record, or why it is no list."""
    for path, values in (mapping.get("where") or {}).items():
        if _at(record, path) not in values:
            return f"{path} is not {' or '.join(values)}"
    query = look_up(record, mapping.get("query", "query"))
    if not isinstance(query, str) or not query.strip():
        return f"no question at {mapping.get('query', 'query')}"
    hits = look_up(record, mapping["hits"]) if "hits" in mapping else None
    if hits is None and ("ids" in mapping or "texts" in mapping):
        columns = {
            name: look_up(record, mapping[plural])
            for name, plural in (("id", "ids"), ("text", "texts"), ("score", "scores"))
            if plural in mapping
        }
        lists = {name: list(column) for name, column in columns.items() if isinstance(column, list)}
        longest = max(map(len, lists.values()), default=0)
        hits = [{name: column[at] for name, column in lists.items() if at < len(column)} for at in range(longest)]
    if not isinstance(hits, list) or not hits:
        return f"no hit at {mapping.get('hits') or mapping.get('ids') or 'hits'}"
    rows: dict[str, dict[str, Any]] = {}
    for hit in hits:
        row = _row(hit, mapping)
        if row is None:
            return "a hit has neither an id nor a text"
        rows.setdefault(row["id"], row)
    kept = list(rows.values())
    common = set.intersection(*(set(row) & set(SCORES) for row in kept))
    for rank, row in enumerate(kept, 1):
        for kind in set(SCORES) & set(row) - common:
            del row[kind]
        if not common:
            row["score"] = 1 / rank
    query_id = look_up(record, mapping["query_id"]) if "query_id" in mapping else None
    return str(query_id or f"q-{text_hash(query)[:12]}"), query.strip(), kept, bool(common), len(hits) - len(kept)


def _row(hit: Any, mapping: Mapping[str, Any]) -> dict[str, Any] | None:
    if isinstance(hit, str):
        hit = {"text": hit}
    text = look_up(hit, f"{mapping.get('text', 'text')} | text")
    identity = look_up(hit, f"{mapping.get('id', 'id')} | id")
    text = text if isinstance(text, str) else ""
    if identity is None and not text:
        return None
    row: dict[str, Any] = {
        "id": str(identity if identity is not None else f"text-{text_hash(text)[:16]}"),
        "text": text,
    }
    if "relevant" in mapping and (grade := look_up(hit, mapping["relevant"])) is not None:
        row["relevant"] = grade
    title = look_up(hit, mapping.get("title", "title"))
    if isinstance(title, str):
        row["title"] = title
    for kind in SCORES:
        value = look_up(hit, mapping.get(kind, kind))
        value = float(value) if isinstance(value, str) and re.fullmatch(r"-?[\d.]+(e-?\d+)?", value) else value
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            row[kind] = float(value)
    return row


def _order(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """`order: fused` where the list does not stand in the order of the first score that all have: as it was logged."""
    kind = next((kind for kind in SCORES if all(kind in row for row in rows)), None)
    values = [row[kind] for row in rows] if kind else []
    right = sorted(values) if kind == "distance" else sorted(values, reverse=True)
    return {} if values == right else {"order": "fused"}


def _grades(record: Any, mapping: Mapping[str, Any], rows: Sequence[Any]) -> tuple[dict[str, int], int, list[str]]:
    """(chunk id → grade, references that met a chunk of the list, texts of those that met none)."""
    grades: dict[str, int] = {}
    met, lost = 0, []
    references = look_up(record, mapping["references"]) if "references" in mapping else None
    if isinstance(references, list):
        pieces = FragmentIndex({row["id"]: row["text"] for row in rows if row["text"]})
        by_hash = {text_hash(row["text"]): row["id"] for row in rows if row["text"]}
        for one in (one for one in references if isinstance(one, str) and one.strip()):
            same = by_hash.get(text_hash(one))
            names = [same] if same else list(pieces.meet(one))
            met += bool(names)
            if not names:
                lost.append(one[:80])
                names = [f"text-{text_hash(one)[:16]}"]  # it is relevant and was not found: recall must know
            grades.update(dict.fromkeys(names, GRADE))
    relevant = look_up(record, mapping["relevant"]) if "relevant" in mapping else None
    stack, ids = [relevant], {row["id"] for row in rows}
    while stack:
        value = stack.pop()
        stack += value if isinstance(value, list) else []
        if isinstance(value, str):
            grades[value] = GRADE
            met += value in ids
            lost += [] if value in ids else [value[:80]]
    for row in rows:
        given = row.pop("relevant", None)
        if given is not None and relevant is None:
            grade = _grade(given)
            met += grade is not None
            if grade is None:
                lost.append(f"{given!r:.80}")
            else:
                grades[row["id"]] = grade
    return grades, met, lost


def _grade(given: Any) -> int | None:
    """A grade of a hit: a whole number of at least 0, also in a text; true and false count as 1 and 0."""
    text = str(int(given)) if isinstance(given, bool) else str(given)
    return int(float(text)) if re.fullmatch(r"\d{1,6}(\.0*)?", text) else None
