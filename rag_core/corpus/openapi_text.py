"""API operations and schemas as readable text: what a person, an embedder and a language model read.

A schema is named where it is referred to and never unfolded, so a text is finite whatever refers to whatever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_core.corpus.openapi_references import Documents, follow, name_of

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
    parameters = _parameters([*shared, *sequence(operation.get("parameters"))], source, documents)
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
    asked = operation.get("security", mapping(document).get("security"))
    if asked == []:
        return "Authorization: none"
    ways = [" and ".join(map(_scheme, way.items())) for way in map(mapping, sequence(asked)) if way]
    return f"Authorization: {' or '.join(ways)}" if ways else ""


def _scheme(asked: tuple[str, Any]) -> str:
    name, scopes = asked
    return name + (f" ({', '.join(map(str, sequence(scopes)))})" if sequence(scopes) else "")


def _parameters(listed: Sequence[Any], source: str, documents: Documents) -> list[Mapping[str, Any]]:
    found = [follow(item, source, documents)[0] for item in listed]
    return list({(str(item.get("name")), str(item.get("in"))): item for item in found if item}.values())


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
    return _plain_type(schema, depth)


def _plain_type(schema: Mapping[str, Any], depth: int) -> str:
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
