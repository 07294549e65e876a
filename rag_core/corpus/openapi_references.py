"""References inside API documents: where they stand and what they point at, among documents already in memory.

Nothing is ever fetched: a reference to an address, to a document that was not given, or to a place that does not exist
resolves to a sentence that says so. Which places are chunks is for rag_core.corpus.openapi.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Documents = Mapping[str, Any]
"""Document name (its path inside the folder it came with) → its parsed content, keys all text."""

DATA = frozenset({"example", "default", "enum", "const", "value"})
"""Keywords whose content is data: a `$ref` in there is part of an example."""

NAMED = frozenset(
    [
        "properties",
        "patternProperties",
        "dependentSchemas",
        "definitions",
        "$defs",
        "schemas",
        "responses",
        "headers",
        "parameters",
        "examples",
        "requestBodies",
        "callbacks",
        "links",
        "content",
        "encoding",
        "variables",
        "paths",
        "pathItems",
        "webhooks",
        "securitySchemes",
        "securityDefinitions",
    ]
)
"""Keywords whose content maps free names: a property may be called `example` or even `$ref`."""

LONGEST_CHAIN = 50


@dataclass(frozen=True, slots=True)
class Target:
    """A place that a reference points at: document, JSON pointer (unescaped parts) and what stands there."""

    document: str
    pointer: tuple[str, ...]
    value: Any


def references(value: Any) -> Iterator[str]:
    """Every reference text inside a part of a document, in its order: `$ref` and a discriminator's mapping."""
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, is_named = stack.pop()
        if isinstance(item, Mapping) and not is_named:
            yield from _own(item)
        stack.extend(reversed(list(_inside(item, is_named))))


def _own(item: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(item.get("$ref"), str):
        yield item["$ref"]
    discriminator = item.get("discriminator")
    mapping = discriminator.get("mapping") if isinstance(discriminator, Mapping) else None
    for target in mapping.values() if isinstance(mapping, Mapping) else ():
        if isinstance(target, str):
            yield f"#/components/schemas/{target}" if re.fullmatch(r"[\w-]+", target) else target


def _inside(item: Any, is_named: bool) -> Iterator[tuple[Any, bool]]:
    """What to look through below an item, and whether its keys are free names."""
    if isinstance(item, list):
        yield from ((child, False) for child in item)
    elif isinstance(item, Mapping) and is_named:
        yield from ((child, False) for child in item.values())
    elif isinstance(item, Mapping):
        for key, child in item.items():
            if key not in DATA and not (key == "examples" and isinstance(child, list)):
                yield child, key in NAMED


def resolve(reference: str, source: str, documents: Documents) -> Target | str:
    """The place a reference in document `source` points at, or a clause that says why there is none."""
    location, _, fragment = reference.partition("#")
    if re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:|//", location):
        return "is remote and was not fetched"
    name = posixpath.normpath(posixpath.join(posixpath.dirname(source), unquote(location))) if location else source
    if name not in documents:
        return "names a document that was not given"
    if fragment and not fragment.startswith("/"):
        return "is no JSON pointer"
    parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in unquote(fragment).split("/")[1:])
    return _at(name, parts, documents[name])


def _at(name: str, parts: tuple[str, ...], value: Any) -> Target | str:
    for part in parts:
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return "points at nothing"
    return Target(name, parts, value)


def follow(value: Any, source: str, documents: Documents) -> tuple[Mapping[str, Any], str]:
    """The mapping behind a value that may be a reference, and its document; an empty one where there is none."""
    for _ in range(LONGEST_CHAIN):
        if not isinstance(value, Mapping):
            break
        if not isinstance(value.get("$ref"), str):
            return value, source
        target = resolve(value["$ref"], source, documents)
        if isinstance(target, str):
            break
        value, source = target.value, target.document
    return {}, source


def name_of(reference: str) -> str:
    """The last part of a reference, which is the name of what it points at."""
    last = unquote(reference).rstrip("/").rsplit("/", 1)[-1]
    return last.replace("~1", "/").replace("~0", "~")
