"""Questions made from slots: a family of near-duplicate chunks asks for one member each, and the labels come along.

The member that is asked for is relevant, its siblings are not; a sibling that the question may mean as well gets no
label. Such questions satisfy the rules of their own slots by construction, so they never judge those: `check` of
slots.py leaves them out. Adding the questions to a project is the project's.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rag_core.rules.slots import (
    MADE_FROM,
    Member,
    Slot,
    SlotFamily,
    enumerated,
    read_title,
    repeated_titles,
    text_of,
    units_of,
)
from rag_core.text import STOP_WORDS, words
from rag_core.types import Chunk, Query

TAG = "generated"
ANSWERS, NOT = 3, 0  # grades of the member that is asked for, and of its siblings
SHARED = 0.6  # share of a family's texts that have a field, from which it is a subject to ask for
LONGEST_FIELD = 30  # characters
LONGEST_VALUE = 60
MARKUP = frozenset(("id", "index", "name", "url", "desc", "description", "title", "text", "type"))  # fields of a record
_FIELD = re.compile(rf"(?:^|;)[\W_]*([A-Za-z][A-Za-z _'-]{{2,{LONGEST_FIELD}}}?)\**[ ]*[:|]([^;\n]*)", re.MULTILINE)
_WORDINGS = ("What {be} the {field} of the {title}?", "{title}: {field}?", "{field} for the {title}")
_PLAIN = ("What does it say about the {title}?", "{title}", "Tell me about the {title}.")


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question with its labels, chunk id → grade, and the title it asks for."""

    query: Query
    grades: dict[str, int]
    title: str

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"id": self.query.id, "query": self.query.text, "title": self.title, "grades": self.grades}


def make_questions(families: Sequence[SlotFamily], chunks: Sequence[Chunk], count: int) -> list[MadeQuestion]:
    """At most `count` questions, in turn from each family and spread over its members: the same for the same chunks.

    Left out: members without a rule of their own, titles and values that several chunks share, and titles whose slot
    stands in brackets or in the text's first line.
    """
    texts = {chunk.id: chunk.text for chunk in chunks}
    shared = {chunk for ids in repeated_titles(chunks).values() for chunk in ids}
    each = [_of_family(family, texts, shared) for family in families]
    found: dict[str, MadeQuestion] = {}
    for question in (one for turn in zip_longest(*each) for one in turn if one is not None):
        if len(found) < count:
            found.setdefault(question.query.text.casefold(), question)
    return list(found.values())


def _of_family(family: SlotFamily, texts: dict[str, str], shared: set[str]) -> list[MadeQuestion]:
    members = [one for one in family.members if one.chunk_id in family.rules and one.chunk_id not in shared]
    same = Counter(one.values for one in family.members)
    members = [one for one in members if same[one.values] == 1]
    fields = _fields(members, texts, family.slots)
    made = []
    left, spread = members, []
    while left:  # the first ones far apart: every other one of those that are left, again and again
        spread += left[len(left) // 2 :: max(2, len(left) // 3)]
        left = [one for one in left if one not in spread]
    for at, member in enumerate(spread):
        title = _said(member, family.slots, at)
        if title is None:
            continue
        field = fields[at % len(fields)] if fields else ""
        wording = (_WORDINGS if field else _PLAIN)[at % 3]
        several = field.endswith("s") and not field.endswith(("ss", "us", "is"))
        text = wording.format(title=title, field=field, be="are" if several else "is")
        asked = set(words(text))
        grades = {}
        for sibling in family.members:
            values = [pair for pair in zip(family.slots, sibling.values, strict=True) if pair[1]]
            if not all(_may_mean(slot, value, asked) for slot, value in values):
                grades[sibling.chunk_id] = NOT
        grades[member.chunk_id] = ANSWERS
        name = f"{MADE_FROM}: {family.name}"
        identity = "slot-" + hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:12]
        metadata = {"made_from": MADE_FROM, "family": name}
        query = Query(identity, text[:1].upper() + text[1:], tags=(TAG,), metadata=metadata)
        made.append(MadeQuestion(query, grades, member.title))
    return made


def _fields(members: Sequence[Member], texts: Mapping[str, str], slots: Sequence[Slot]) -> list[str]:
    """What most of the texts have a line of, as a subject to ask for: "Hit dice: 3", or the first column of a table.

    Left out are labels of slots, and fields that say the same everywhere, repeat the title or hold a whole paragraph.
    """
    values: dict[str, set[str]] = {}
    seen: Counter[str] = Counter()
    for member in members:
        title = set(words(member.title))
        found = {" ".join(words(name)): value.strip(" |*") for name, value in _FIELD.findall(texts[member.chunk_id])}
        for field, value in found.items():
            repeated = set(words(value)) <= title or set(field.split()) <= title
            if value and len(value) <= LONGEST_VALUE and not repeated:
                seen[field] += 1
                values.setdefault(field, set()).add(value)
    known = {label for slot in slots for label in slot.labels} | MARKUP
    some = [field for field in seen if field and field not in known and not set(field.split()) <= STOP_WORDS]
    some = [field for field in some if seen[field] >= SHARED * len(members) and 2 * len(values[field]) > seen[field]]
    return sorted(some, key=lambda field: (-seen[field], field))[:5]


def _said(member: Member, slots: Sequence[Slot], at: int) -> str | None:
    """The member's title as a question says it: one item of a list, one number of a range, "Dragon, Black" turned."""
    units = list(read_title(member.title).units)
    for slot, value in zip(slots, member.values, strict=True):
        if not value:
            continue
        spans = ((start, end) for start in range(len(units)) for end in range(start + 1, len(units) + 1))
        span = next((span for span in spans if text_of(units[slice(*span)]) == value), None)
        if span is None:
            return None
        start, end = span
        if slot.kind == "list":
            items = enumerated(units[start:end])
            first, *rest = items[at % len(items)]
            units[start:end] = [first._replace(gap=units[start].gap), *rest]
        elif slot.kind == "number" and (low := units[end - 1].low) is not None:
            units[end - 1] = units[end - 1]._replace(text=f"{low:g}")
        elif slot.kind == "code":
            units[start:end] = [unit._replace(text=unit.text.upper()) for unit in units[start:end]]
    parts: list[str] = []
    for unit in units:
        if unit.gap or not parts:
            parts.append(unit.text)
        else:
            parts[-1] += " " + unit.text
    commas = [unit.gap for unit in units[1:] if unit.gap]
    if commas == [","] and all(unit.kind == "word" for unit in units):
        return f"{parts[1]} {parts[0]}"
    return ", ".join(parts)


def _may_mean(slot: Slot, value: str, asked: set[str]) -> bool:
    """Whether a question of these words may mean the value of a slot too."""
    units = units_of(value)
    if slot.kind == "list":
        return any(asked.issuperset(text_of(item).split()) for item in enumerated(units))
    number = units[-1] if units else None
    if slot.kind == "number" and number is not None and number.low is not None:
        high = float("inf") if number.high is None else number.high
        return any(number.low <= float(word) <= high for word in asked if re.fullmatch(r"-?\d+(\.\d+)?", word))
    return asked.issuperset(value.split())
