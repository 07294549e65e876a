"""OpenAPI 3 and Swagger 2.0 → chunks: one per operation, one per schema, with references between them as `ref_ids`.

Documents given together may refer to each other by their relative paths. Nothing else is read and nothing is fetched: a
reference to an address, to a document that was not given, or to a place that does not exist becomes a warning.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from rag_core.corpus.jsonl import cleaned
from rag_core.corpus.names import Names, document_name, slug
from rag_core.errors import InputError
from rag_core.files import parse_json, parse_yaml
from rag_core.types import Chunk

Documents = Mapping[str, Any]
"""Document name (its path inside the folder it came with) → its parsed content, keys all text."""

DATA = frozenset({"example", "default", "enum", "const", "value"})
"""Keywords whose content is data: a `$ref` in there is part of an example."""

NAMED = frozenset((
    "properties", "patternProperties", "dependentSchemas", "definitions", "$defs", "schemas", "responses", "headers",
    "parameters", "examples", "requestBodies", "callbacks", "links", "content", "encoding", "variables", "paths",
    "pathItems", "webhooks", "securitySchemes", "securityDefinitions",
))  # fmt: skip
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
    value = documents[name]
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


DEEPEST = 4  # how far inline objects are unfolded; the rest is named by its type
LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "pattern {}",
    "default": "default {}",
}
FLAGS = {"nullable": "may be null", "readOnly": "read only", "writeOnly": "write only", "deprecated": "deprecated"}


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one: documents are untrusted."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def words(value: Any) -> str:
    """A text without white space around it; nothing for whatever is no text."""
    return value.strip() if isinstance(value, str) else ""


def operation_text(
    method: str, path: str, operation: Mapping[str, Any], shared: Sequence[Any], source: str, documents: Documents
) -> str:
    """Method and path, summary, description, security, parameters, body and responses, a line each.

    `shared` are the parameters of the path; one of the same name and place in the operation stands for it.
    """
    named = f" ({words(operation.get('operationId'))})" if words(operation.get("operationId")) else ""
    listed = [follow(item, source, documents)[0] for item in (*shared, *sequence(operation.get("parameters")))]
    parameters = {(str(item.get("name")), str(item.get("in"))): item for item in listed if item}.values()
    body = [item for item in parameters if item.get("in") in ("body", "formData")]
    lines = [
        f"{method.upper()} {path}{named}",
        words(operation.get("summary")),
        words(operation.get("description")),
        "Deprecated." if operation.get("deprecated") is True else "",
        _security(operation, documents.get(source)),
        *_block("Parameters:", [_parameter(item) for item in parameters if item not in body]),
        *_block("Request body:", [_parameter(item) for item in body if item.get("in") == "formData"]),
        *(_content_line("Request body", item, source, documents) for item in body if item.get("in") == "body"),
        *_request_body(operation.get("requestBody"), source, documents),
        *_block("Responses:", list(_responses(operation.get("responses"), source, documents))),
    ]
    return "\n".join(line for line in lines if line)


def _block(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *lines] if lines else []


def _security(operation: Mapping[str, Any], document: Any) -> str:
    """How a call is authorised: the schemes asked for, with their scopes; an empty list means none."""
    schemes = operation.get("security", mapping(document).get("security"))
    if schemes == []:
        return "Authorization: none"
    ways = [
        " and ".join(
            name + (f" ({', '.join(map(str, sequence(scopes)))})" if sequence(scopes) else "")
            for name, scopes in way.items()
        )
        for way in map(mapping, sequence(schemes))
        if way
    ]
    return f"Authorization: {' or '.join(ways)}" if ways else ""


def _parameter(item: Mapping[str, Any]) -> str:
    schema = mapping(item.get("schema")) or item
    place = [words(item.get("in")), "required" if item.get("required") is True else "", type_of(schema)]
    return _line(str(item.get("name", "")), [*place, *limits(schema)], item.get("description"))


def _request_body(body: Any, source: str, documents: Documents) -> Iterator[str]:
    found, place = follow(body, source, documents)
    for media_type, content in mapping(found.get("content")).items():
        yield _content_line(f"Request body ({media_type})", mapping(content), place, documents)
    if words(found.get("description")):
        yield words(found["description"])


def _content_line(title: str, content: Mapping[str, Any], source: str, documents: Documents) -> str:
    schema = mapping(content.get("schema"))
    fields = ", ".join(field_names(schema, source, documents))
    return f"{title}: {type_of(schema)}" + (f" with the fields {fields}" if fields else "")


def field_names(schema: Mapping[str, Any], source: str, documents: Documents) -> list[str]:
    """The names of a body's fields at its top: of the object itself, of a list's items, of all parts of an allOf."""
    found, place = follow(schema, source, documents)
    if "items" in found:
        found, place = follow(found["items"], place, documents)
    parts = [found, *(follow(part, place, documents)[0] for part in sequence(found.get("allOf")))]
    return list(dict.fromkeys(name for part in parts for name in mapping(part.get("properties"))))


def _responses(responses: Any, source: str, documents: Documents) -> Iterator[str]:
    for code, response in mapping(responses).items():
        found, _ = follow(response, source, documents)
        schemas = [mapping(content).get("schema") for content in mapping(found.get("content")).values()]
        types = dict.fromkeys(type_of(schema) for schema in map(mapping, [found.get("schema"), *schemas]) if schema)
        yield _line(code, [], " ".join(filter(None, [words(found.get("description")), *(f"→ {one}" for one in types)])))


def schema_text(name: str, schema: Mapping[str, Any]) -> str:
    """Name, description, type with its limits and, for objects, a line per field."""
    lines = [
        f"Schema {name}: {', '.join([type_of(schema), *limits(schema)])}",
        words(schema.get("description")),
        *_block("Fields:", list(_fields(schema, 1))),
    ]
    return "\n".join(line for line in lines if line)


def _fields(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    """A line per field; those of inline objects, of lists of them and of allOf parts stand below, set in."""
    required = sequence(schema.get("required"))
    for name, field in mapping(schema.get("properties")).items():
        inner = mapping(field)
        notes = [type_of(inner), "required" if name in required else "", *limits(inner)]
        yield "  " * (depth - 1) + _line(name, notes, inner.get("description"))
        if depth < DEEPEST:
            yield from _fields(inner, depth + 1)
            yield from _fields(mapping(inner.get("items")), depth + 1)
    for part in sequence(schema.get("allOf")):
        if depth < DEEPEST:
            yield from _fields(mapping(part), depth)


def _line(name: str, notes: Sequence[str], description: Any) -> str:
    inside = ", ".join(note for note in notes if note)
    about = " ".join(words(description).split())
    return f"- {name}" + (f" ({inside})" if inside else "") + (f": {about}" if about else "")


def type_of(schema: Mapping[str, Any], depth: int = 0) -> str:
    """A schema in a few words: a name, `list of Name`, `A or B`, `string (date-time)`."""
    if isinstance(schema.get("$ref"), str):
        return name_of(schema["$ref"])
    for keyword, joint in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        parts = [type_of(mapping(part), depth + 1) for part in sequence(schema.get(keyword)) if depth < DEEPEST]
        if parts:
            return joint.join(dict.fromkeys(parts))
    kinds = schema.get("type")
    kind = " or ".join(map(str, kinds)) if isinstance(kinds, list) else words(kinds)
    if schema.get("items") is not None and depth < DEEPEST:
        return f"list of {type_of(mapping(schema['items']), depth + 1)}"
    if isinstance(schema.get("enum"), list):
        return f"{kind or 'value'}: {' | '.join(map(str, schema['enum']))}"
    if mapping(schema.get("additionalProperties")) and depth < DEEPEST:
        return f"map of {type_of(mapping(schema['additionalProperties']), depth + 1)}"
    if words(schema.get("format")):
        return f"{kind} ({words(schema['format'])})".strip()
    return kind or ("object" if "properties" in schema else "any value")


def limits(schema: Mapping[str, Any]) -> list[str]:
    """Bounds, default and flags of a schema in words."""
    bounds = [
        text.format(schema[key]) for key, text in LIMITS.items() if isinstance(schema.get(key), str | int | float)
    ]
    return [*bounds, *(text for key, text in FLAGS.items() if schema.get(key) is True)]


METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
DEEPEST_DOCUMENT = 100  # levels of nesting; real documents have about twenty
LONGEST_NAME = 200
SCHEMA_PLACES = (("components", "schemas"), ("definitions",))
PATH_PLACES = ("paths", "webhooks")

Place = tuple[str, tuple[str, ...]]
"""Document and JSON pointer of a chunk."""


def read_openapi(texts: Mapping[str, str]) -> tuple[list[Chunk], list[str]]:
    """The chunks of one or more API documents and a sentence per reference that leads nowhere.

    `texts` maps a document's path inside its folder (it becomes part of ids) to its YAML or JSON; an InputError names
    the one that is no API document. Ids are `document#operation/name` (the operationId, else method and path) and
    `document#schema/name`. `ref_ids` of a chunk are the chunks it refers to directly, or through a shared parameter,
    response, header or body; a chunk that refers to itself names itself.
    """
    documents = {name: parse_document(text, name) for name, text in texts.items()}
    warnings = []
    for name, content in documents.items():
        for reference in references(content):
            why = resolve(reference, name, documents)
            if isinstance(why, str):
                warnings.append(f"{name} has the reference {reference[:120]!r}, which {why}")
    return list(_chunks(documents, _places(documents))), list(dict.fromkeys(warnings))


def parse_document(text: str, name: str) -> Mapping[str, Any]:
    """The content of an OpenAPI 3 or Swagger 2.0 document with text for every key, or an InputError for others."""
    parsed = parse_json(text, name) if text.lstrip().startswith("{") else parse_yaml(text, name)
    content = _plain(parsed, name, 0)
    if not isinstance(content, Mapping):
        raise InputError(f"{name} holds no mapping, expected an OpenAPI 3 or Swagger 2.0 document")
    version = str(content.get("openapi") or content.get("swagger") or "nothing")
    if not re.match(r"3\.|2\.0" if "openapi" not in content else r"3\.", version):
        raise InputError(f"{name} says version {version[:20]!r}, expected openapi 3.x or swagger 2.0")
    return content


def _plain(value: Any, name: str, depth: int) -> Any:
    """The value with text keys and no type that JSON lacks (YAML has dates); too deep a nesting is refused."""
    if depth > DEEPEST_DOCUMENT:
        raise InputError(f"{name} is nested too deeply, expected at most {DEEPEST_DOCUMENT} levels")
    if isinstance(value, Mapping):
        return {str(cleaned(str(key))): _plain(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, name, depth + 1) for item in value]
    return cleaned(value) if value is None or isinstance(value, str | int | float) else str(value)


def _places(documents: Documents) -> dict[Place, str]:
    """Where a chunk stands → its id, operations first, in the order of each document."""
    found: dict[Place, str] = {}
    for name, content in documents.items():
        names = Names()
        for place in PATH_PLACES:  # every method of every path, and of the webhooks that version 3.1 knows
            for path, item in mapping(content.get(place)).items():
                for method, operation in mapping(item).items():
                    if method in METHODS and isinstance(operation, Mapping):
                        called = words(operation.get("operationId")) or slug(f"{method} {path}")
                        found[name, (place, path, method)] = names.of(_id(name, "operation", called))
        for parts in SCHEMA_PLACES:
            held: Any = content
            for part in parts:
                held = mapping(held).get(part)
            found |= {(name, (*parts, one)): names.of(_id(name, "schema", one)) for one in mapping(held)}
    return found


def _id(document: str, kind: str, name: str) -> str:
    """The id a name gives; `~` is written as %7E, because it numbers names that stand twice."""
    plain = re.sub(r"[\x00-\x1f\x7f]", "", document_name(name)).replace("~", "%7E")
    return f"{document_name(document)}#{kind}/{plain[:LONGEST_NAME]}"


def _chunks(documents: Documents, places: Mapping[Place, str]) -> Iterator[Chunk]:
    positions: Counter[str] = Counter()
    for (name, pointer), identity in places.items():
        part: Any = documents[name]
        for step in pointer[:-1]:
            part = part[step]
        beside, part = mapping(part), mapping(part[pointer[-1]])
        if pointer[0] in PATH_PLACES:
            _, path, method = pointer
            shared = sequence(beside.get("parameters"))
            called = words(part.get("operationId"))
            title = words(part.get("summary")) or called or f"{method.upper()} {path}"
            text = operation_text(method, path, part, shared, name, documents)
            tags = [str(tag) for tag in sequence(part.get("tags"))]
            metadata: dict[str, Any] = {"method": method.upper(), "path": path, "operation": called, "tags": tags}
        else:
            shared, title = (), pointer[-1]
            text, metadata = schema_text(title, part), {"schema": title}
        positions[name] += 1
        api = words(mapping(documents[name].get("info")).get("title"))
        yield Chunk(
            id=identity,
            title=title,
            text=text,
            type="operation" if pointer[0] in PATH_PLACES else "schema",
            ref_ids=_referred([*shared, part], name, documents, places),
            metadata={"source": name, "position": positions[name], "api": api, **metadata},
        )


def _referred(value: Any, source: str, documents: Documents, places: Mapping[Place, str]) -> tuple[str, ...]:
    """Ids of the chunks that a part of a document refers to, looking through what is shared but no chunk itself."""
    pending = deque((reference, source) for reference in references(value))
    seen: set[Place] = set()
    found: dict[str, None] = {}
    while pending:
        reference, origin = pending.popleft()
        target = resolve(reference, origin, documents)
        if isinstance(target, str) or (target.document, target.pointer) in seen:
            continue
        seen.add((target.document, target.pointer))
        above = ((target.document, target.pointer[:length]) for length in range(len(target.pointer), 0, -1))
        owner = next(
            (places[place] for place in above if place in places), None
        )  # the chunk there or the nearest above
        if owner is not None:
            found[owner] = None
        elif target.pointer:  # a whole document is no answer to what one chunk needs
            pending.extend((inner, target.document) for inner in references(target.value))
    return tuple(found)
