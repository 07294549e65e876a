"""What a model is asked, whoever asks it: messages, the schema of the answer, and passages fenced as data.

Chunk text is untrusted: it stands between lines that carry a mark made from the content of the prompt, every line of it
is marked, and characters that do not show are taken out. The mark is a hash, so equal content gives an equal prompt and
a stored answer is found again. Nothing is asked here; answers come back as text, `json_values` finds what they hold.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rag_core.types import Chunk, Query

CHARACTERS_PER_TOKEN = 4
"""A rough count for English with common tokenizers; the endpoint's own count is reported where it gives one."""

TEMPLATE_TOKENS = 64  # what a chat template may add to a message, at most
LEAST_TEXT = 200  # characters of a passage that are always shown
MAX_LINE = 200  # characters of a title, type or file
MAX_STARTS = 20  # places of an answer where JSON is looked for


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call: what is sent, what it is about, and who the numbers 1 … n in it are."""

    messages: tuple[Mapping[str, str], ...]  # role and content
    query: Query
    chunks: tuple[Chunk, ...] = ()  # in the order of their numbers
    schema: Mapping[str, Any] | None = None  # of the answer, None where text is wanted
    answer_tokens: int = 0  # expected of the answer
    shortened: int = 0  # passages whose text was shortened
    second: bool = False  # the same passages in another order, to check the first answer
    positions: tuple[int, ...] = field(default=(), compare=False)  # of the passages in the list asked about

    @property
    def tokens(self) -> int:
        """The estimated size of the prompt."""
        return estimate_tokens("".join(message["content"] for message in self.messages))

    @property
    def most_tokens(self) -> int:
        """What the prompt can be counted as at most: no tokenizer in use makes more tokens than bytes."""
        texts = [message["content"] for message in self.messages]
        written = "".join(texts) + (json.dumps(self.schema) if self.schema else "")
        return len(written.encode("utf-8", "replace")) + TEMPLATE_TOKENS * len(texts)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, estimated: a quarter of its characters, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def clean(text: str) -> str:
    """The text as it is shown to the model: NFC, no controls but the newline, no characters that do not show."""
    kept = (
        character if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co") else " "
        for character in unicodedata.normalize("NFC", text.replace("\r\n", "\n"))
    )
    return "".join(kept)


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Clean text on one line, shortened with an ellipsis."""
    line = " ".join(clean(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def quoted(header: str, text: str) -> str:
    """A passage's own lines: the header that we wrote, then its text with a mark before every line."""
    return header + "\n" + "\n".join("| " + line for line in text.split("\n"))


def shortened(text: str, room: int) -> tuple[str, bool]:
    """The text, or its beginning with a line that says how much is left out. Each line costs two characters more."""
    if len(text) + 2 * text.count("\n") <= room:
        return text, False
    kept, used = 0, 0
    for line in text.split("\n"):
        if used + len(line) + 3 > room - 60:
            kept += max(0, room - 60 - used - 3)
            break
        used += len(line) + 3
        kept += len(line) + 1
    kept = min(kept, len(text))
    return f"{text[:kept].rstrip()}\n[… {len(text) - kept:,} characters left out …]", True


def mark_of(parts: Sequence[str]) -> str:
    """Sixteen hexadecimal digits that stand in none of the texts and change with any of them.

    A text that holds its own prompt's mark would be a fixed point of the hash; should one occur, the next is taken.
    """
    content = "\x00".join(parts)
    for attempt in range(1000):
        mark = hashlib.sha256(f"{attempt}\x00{content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        if mark not in content:
            return mark
    raise AssertionError("a thousand hashes of a text cannot all stand in it")


# The form of an answer

SHAPE = ("type", "properties", "items", "enum", "anyOf", "description")
"""What strict validators have in common; lengths and ranges are checked when the answer is read."""


def object_schema(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties, as strict validators want it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def strict(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The schema in the subset that every strict validator takes: one type a place, references written out, every
    property required (an optional one may be null), no other property, no lengths and no ranges.

    Sources: OpenAI, "Structured outputs: supported schemas"; llama.cpp, grammars/README; vLLM, xgrammar backend.
    """
    known = definitions if definitions is not None else schema.get("$defs", {})
    if "$ref" in schema:
        return strict(known[str(schema["$ref"]).rsplit("/", 1)[-1]], known)
    made = {name: value for name, value in schema.items() if name in SHAPE}
    if "oneOf" in schema:
        made["anyOf"] = schema["oneOf"]
    if isinstance(made.get("type"), list):
        made["anyOf"] = [{"type": name} for name in made.pop("type")]
    elif made.get("type") in ("object", "array"):
        made.pop("anyOf", None)  # which properties go together is checked when the answer is read
    if "properties" in made:
        needed = schema.get("required", ())
        each = {name: strict(value, known) for name, value in made["properties"].items()}
        made["properties"] = {
            name: value if name in needed else {"anyOf": [value, {"type": "null"}]} for name, value in each.items()
        }
        made |= {"required": list(each), "additionalProperties": False}
    if "items" in made:
        made["items"] = strict(made["items"], known)
    if "anyOf" in made:
        made["anyOf"] = [strict(value, known) for value in made["anyOf"]]
    return made


_COMPLETE = re.compile(r"\{[^{}]{0,2000}\}")


def json_values(text: str, opening: str = "{", pairs: Callable[[list[tuple[str, Any]]], Any] = dict) -> Iterator[Any]:
    """Every JSON value that begins with one of `opening` in an answer, whatever stands around; never raises.

    Where the first is cut off, its innermost complete objects come together as one list. `pairs` makes an object of
    its pairs: a reader that minds a key that stands twice makes another than a dict.
    """
    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=lambda name: None)
    starts, at = re.compile(f"[{re.escape(opening)}]"), 0
    for attempt in range(MAX_STARTS):
        if (start := starts.search(text, at)) is None:
            return
        try:
            value, at = decoder.raw_decode(text, start.start())
            yield value
        except RecursionError:
            return
        except ValueError:
            at = start.start() + 1
            if attempt == 0:
                complete = list[Any]()
                for match in _COMPLETE.finditer(text[at:]):
                    with suppress(ValueError, RecursionError):
                        complete.append(decoder.decode(match.group()))
                yield complete
