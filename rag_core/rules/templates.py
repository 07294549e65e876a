"""Rules from titles, without a model: families of chunks described in YAML, a title pattern with captures → a rule.

The families that ship are in families.yaml, which also explains the format. Patterns are compiled by RE2 alone, so a
pattern of anyone's cannot run away. What a rule means is in model.py; checking proposals against labels is left to
whoever stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any

import re2

from rag_core.errors import InputError, RuleError
from rag_core.files import MAX_YAML_BYTES, parse_yaml, read_text
from rag_core.rules.rule import Rule, parse_rule
from rag_core.text import tokenize
from rag_core.types import Candidates, Case

VERSION = 1
SHIPPED = Path(__file__).parent / "families.yaml"
MAX_PATTERN = 2_000  # characters
_KEYS = {"name", "about", "title", "details", "terms", "rule"}


@dataclass(frozen=True)
class TemplateFamily:
    """One family: its patterns (the first matching title pattern decides, details add captures) and its rule."""

    name: str
    title: tuple[Any, ...]
    details: tuple[Any, ...]
    terms: Mapping[str, Mapping[str, Sequence[str]]]
    rule: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RuleProposal:
    """A rule that a family's template proposes for a title."""

    family: str
    rule: Rule


def propose(title: str, families: Sequence[TemplateFamily] | None = None) -> RuleProposal | None:
    """The rule of the first family whose title pattern matches, or None where none does or nothing is left to ask."""
    for family in shipped_families() if families is None else families:
        captures = _captures(family, title)
        if captures is None:
            continue
        filled = _filled(family.rule, captures, family.terms)
        if filled:
            return RuleProposal(family.name, parse_rule(filled, f"family {family.name}"))
    return None


@lru_cache(maxsize=1)
def shipped_families() -> tuple[TemplateFamily, ...]:
    """The families that come with the product."""
    return read_families(SHIPPED)


def read_families(path: Path) -> tuple[TemplateFamily, ...]:
    """The families of a template file, or an InputError that says what is wrong and where."""
    return parse_families(read_text(path, limit=MAX_YAML_BYTES), path.name)


def parse_families(text: str, where: str) -> tuple[TemplateFamily, ...]:
    """The families of a template text: checked whole, every pattern compiled, every example title tried."""
    raw = parse_yaml(text, where)
    if not isinstance(raw, Mapping) or set(raw) != {"version", "families"}:
        raise RuleError(f"{where} has other keys, expected version and families")
    if raw["version"] != VERSION:
        raise RuleError(f"{where} has version {raw['version']!r:.80}, expected {VERSION}")
    if not isinstance(raw["families"], list) or not raw["families"]:
        raise RuleError(f"{where}: families is no list with elements, expected at least one family")
    families = tuple(_family(entry, where) for entry in raw["families"])
    names = [family.name for family in families]
    if len(set(names)) < len(names):
        raise RuleError(f"{where}: two families share a name, expected different names")
    return families


def _family(entry: Any, where: str) -> TemplateFamily:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise RuleError(f"{where}: a family is {type(entry).__name__} without a name, expected a mapping with name")
    place = f"{where}: family {entry['name'][:80]!r}"
    for key in entry:
        if key not in _KEYS:
            raise RuleError(f"{place} has unknown key {str(key)[:80]!r}, expected {', '.join(sorted(_KEYS))}")
    rule = entry.get("rule")
    if not isinstance(rule, Mapping) or not rule:
        raise RuleError(f"{place}, rule is {type(rule).__name__}, expected a mapping")
    family = TemplateFamily(
        name=entry["name"],
        title=_patterns(entry.get("title"), f"{place}, title"),
        details=_patterns(entry.get("details", []), f"{place}, details"),
        terms=_terms(entry.get("terms", {}), place),
        rule=rule,
    )
    if not family.title:
        raise RuleError(f"{place} has no title pattern, expected at least one")
    # The rule is filled once with every capture as "1": what cannot give a rule is refused when it is read.
    names = {name for pattern in (*family.title, *family.details) for name in pattern.groupindex}
    unknown = set(_placeholders(family.rule)) - names
    if unknown:
        raise RuleError(f"{place} uses {{{min(unknown)}}}, expected a capture of its patterns")
    parse_rule(_filled(family.rule, dict.fromkeys(names, "1"), {}), place)
    return family


def _patterns(raw: Any, place: str) -> tuple[Any, ...]:
    """RE2 patterns, case-insensitive, from one pattern or a list of them."""
    listed = [raw] if isinstance(raw, str) else raw
    if not isinstance(listed, list):
        raise RuleError(f"{place} is {type(raw).__name__}, expected a pattern or a list of patterns")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    patterns = []
    for pattern in listed:
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
            raise RuleError(f"{place} holds no pattern of at most {MAX_PATTERN:,} characters")
        try:
            patterns.append(re2.compile(pattern, options=options))
        except re2.error as error:
            said = error.args[0] if error.args else b""  # RE2's own words, which come as bytes
            text = (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))[:120]
            raise RuleError(f"{place} holds a pattern that RE2 refuses ({text})") from None
    return tuple(patterns)


def _terms(raw: Any, place: str) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Per capture: each value it may have → the terms it stands for, with the values folded."""
    if not isinstance(raw, Mapping) or not all(isinstance(values, Mapping) for values in raw.values()):
        raise RuleError(f"{place}: terms is {type(raw).__name__}, expected capture → value → list of terms")
    for values in raw.values():
        for terms in values.values():
            if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
                raise RuleError(f"{place}: terms holds {terms!r:.80}, expected a list of texts")
    return {name: {_canonical(str(value)): list(terms) for value, terms in raw[name].items()} for name in raw}


def _placeholders(value: Any) -> Iterable[str]:
    """The names of all placeholders in a part of a rule."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return [name for item in value for name in _placeholders(item)]
    if not isinstance(value, str):
        return []
    try:
        return [name for _, name, _, _ in Formatter().parse(value) if name is not None]
    except ValueError:
        raise InputError(f"the template text {value[:80]!r} has a brace too many or too few") from None


def _captures(family: TemplateFamily, title: str) -> dict[str, str] | None:
    """What the family's patterns capture from a title, or None where no title pattern matches."""
    first = next((match for pattern in family.title if (match := pattern.search(title))), None)
    if first is None:
        return None
    found = dict(first.groupdict())
    for pattern in family.details:
        match = pattern.search(title)
        for name, value in match.groupdict().items() if match else ():
            found[name] = found.get(name) or value
    return {name: _canonical(value) for name, value in found.items() if value}


def _canonical(value: str) -> str:
    """A captured text as its words and numbers: "−7" and "–7" become "-7", "Rough  Hills" becomes "rough hills"."""
    return " ".join(token.text for token in tokenize(value))


def _filled(value: Any, captures: Mapping[str, str], terms: Mapping[str, Mapping[str, Sequence[str]]]) -> Any:
    """A part of a rule with its placeholders filled; what names a missing capture is left out, emptied parts too.

    An element of a list may stand for all terms of a captured value. `min` and `max` become numbers, and a number
    condition that lost both is left out.
    """
    if isinstance(value, Mapping):
        filled = {key: _filled(item, captures, terms) for key, item in value.items()}
        kept = {key: item for key, item in filled.items() if item is not None}
        if {"label", "sum_of"} & set(value) and not {"min", "max"} & set(kept):
            return None
        for key in {"min", "max"} & set(kept):
            tokens = tokenize(kept[key]) if isinstance(kept[key], str) else ()
            number = tokens[0].value if tokens else kept[key]
            kept[key] = int(number) if isinstance(number, float) and number == int(number) else number
        return kept or None
    if isinstance(value, list):
        parts: list[Any] = []
        for item in value:
            name = item[1:-1] if isinstance(item, str) and item.startswith("{") and item.endswith("}") else ""
            if name in terms:
                parts += terms[name].get(captures[name], [captures[name]]) if name in captures else ()
            elif (part := _filled(item, captures, terms)) is not None:
                parts.append(part)
        return parts or None
    if not isinstance(value, str):
        return value
    return value.format(**captures) if all(name in captures for name in _placeholders(value)) else None


def with_rules(cases: Iterable[Case], families: Sequence[TemplateFamily]) -> list[Case]:
    """The cases with the templates' rules on every candidate that carries none and whose title a family matches."""
    return [replace(case, candidates=_ruled(case.candidates, families)) for case in cases]


def _ruled(candidates: Candidates | None, families: Sequence[TemplateFamily]) -> Candidates | None:
    if candidates is None:
        return None
    hits = []
    for hit in candidates.hits:
        proposal = propose(hit.chunk.title, families) if hit.chunk.query_must is None else None
        if proposal is not None:
            hit = replace(hit, chunk=replace(hit.chunk, query_must=proposal.rule.as_mapping()))
        hits.append(hit)
    return replace(candidates, hits=tuple(hits))
