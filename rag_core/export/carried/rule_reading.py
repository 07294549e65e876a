"""Rules as collections hold them: a mapping, its text, flat lists. One that cannot be read drops nothing."""

from __future__ import annotations

import ast
import functools
import json
import math
from typing import Any

from rag_core.export.carried.words import tokenize

KEYS = ("contain_one_of", "contain_all_of", "contain", "number_in", "when_named")
MAX_CHARACTERS, MAX_TERMS, MAX_TERM, MAX_WORDS = 100_000, 200, 200, 20


class BadRule(ValueError):
    """A rule that cannot be read."""


def read_rule(raw: Any) -> Any:
    """The rule as (groups, all terms, literal, numbers, values when named), or None where there is none to be read."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    try:
        text = raw if isinstance(raw, str) else json.dumps(raw, sort_keys=True, ensure_ascii=False)
        return _read_text(text)
    except (ValueError, TypeError, RecursionError):
        return None


@functools.lru_cache(maxsize=16384)
def _read_text(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise BadRule("too long")
    try:
        raw = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except ValueError:
        raw = _python_literal(text)
    if isinstance(raw, dict) and len(raw) == 1 and isinstance(raw.get("query_must"), dict):
        raw = raw["query_must"]
    return _rule(_loosened(raw))


def _python_literal(text: str) -> Any:
    """A dict or list as str() writes it, with JSON's types and no key twice."""
    if text.lstrip()[:1] not in ("{", "["):
        raise BadRule("no JSON")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        for node in ast.walk(tree):
            keys = [ast.dump(key) for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
            if len(set(keys)) < len(keys):
                raise BadRule("a key stands twice")
        return json.loads(json.dumps(ast.literal_eval(tree)))
    except (TypeError, SyntaxError, MemoryError, RecursionError):
        raise BadRule("no JSON") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadRule("a key stands twice")
    return found


def _refused(name: str) -> Any:
    raise BadRule(name)


def _loosened(raw: Any) -> Any:
    """The strict shape: flat lists become groups, bare values become lists."""
    if isinstance(raw, list):
        raw = {"contain_one_of": raw}
    if not isinstance(raw, dict):
        return raw
    loose = dict(raw)
    groups = loose.get("contain_one_of")
    if groups is not None:
        groups = groups if isinstance(groups, list) else [groups]
        flat = not any(isinstance(group, list) for group in groups)
        loose["contain_one_of"] = [groups] if flat and groups else groups
    for key in ("contain_all_of", "number_in", "when_named"):
        if loose.get(key) is not None and not isinstance(loose[key], list):
            loose[key] = [loose[key]]
    single = loose.get("contain")
    if isinstance(single, list) and len(single) == 1:
        loose["contain"] = single[0]
    return loose


def _rule(raw: Any) -> Any:
    if not isinstance(raw, dict) or not raw or any(key not in KEYS for key in raw):
        raise BadRule("not a rule")
    groups = tuple(_group(group) for group in _listed(raw, "contain_one_of"))
    together = _group(raw["contain_all_of"]) if "contain_all_of" in raw else ()
    literal = _term(raw["contain"]) if "contain" in raw else None
    numbers = tuple(_number_in(element) for element in _listed(raw, "number_in"))
    named = tuple(_when_named(element) for element in _listed(raw, "when_named"))
    terms = sum(len(group) for group in groups) + len(together)
    terms += sum(len(group) for element in numbers for group in element[0])
    terms += sum(len(group) for element in named for group in element)
    if terms > MAX_TERMS:
        raise BadRule("too many terms")
    return groups, together, literal, numbers, named


def _listed(raw: dict[str, Any], key: str) -> list[Any]:
    value = raw.get(key, ())
    if key in raw and (not isinstance(value, list) or not value):
        raise BadRule(key)
    return list(value)


def _group(raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list) or not raw:
        raise BadRule("a group")
    return tuple(_term(term) for term in raw)


def _term(raw: Any) -> str:
    """A term as text; a number is read as text, and a term without a word or number counts as empty."""
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        raise BadRule("a term")
    if isinstance(raw, float):
        if not math.isfinite(raw):
            raise BadRule("a term")
        raw = repr(int(raw) if raw == int(raw) else raw)
    text = raw if isinstance(raw, str) else str(raw)
    words = tokenize(text) if len(text) <= MAX_TERM else ()
    if not words or len(words) > MAX_WORDS:
        raise BadRule("a term")
    return text


def _number_in(raw: Any) -> Any:
    """A number condition as (label groups, least, most, summed)."""
    if not isinstance(raw, dict) or any(key not in ("label", "sum_of", "min", "max") for key in raw):
        raise BadRule("number_in")
    if ("label" in raw) == ("sum_of" in raw):
        raise BadRule("number_in")
    low, high = _limit(raw, "min"), _limit(raw, "max")
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        raise BadRule("number_in")
    if "label" in raw:
        return (_group(raw["label"]),), low, high, False
    return tuple(_group(group) for group in _listed(raw, "sum_of")), low, high, True


def _when_named(raw: Any) -> Any:
    """A value asked for only where one among its kind is named, as (its terms, the terms of all)."""
    if not isinstance(raw, dict) or set(raw) != {"one_of", "among"}:
        raise BadRule("when_named")
    return _group(raw["one_of"]), _group(raw["among"])


def _limit(raw: dict[str, Any], key: str) -> float | None:
    if key not in raw:
        return None
    value = raw[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRule(key)
    try:
        number = float(value)
    except OverflowError:
        raise BadRule(key) from None
    if not math.isfinite(number):
        raise BadRule(key)
    return number
