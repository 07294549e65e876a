"""The two readers of a query_must rule: strict where rules are stored, tolerant elsewhere.

`parse_rule` refuses what it does not know; `read_rule` accepts the shapes collections hold (a mapping, a JSON string,
the text of a Python dict, flat lists) and answers with a sentence instead of an error, so that a broken rule never
drops its chunk. Both take one wrapper `{"query_must": …}` off. What they give is in model.py.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rag_core.errors import InputError, RuleError
from rag_core.files import parse_json
from rag_core.rules.model import Group, NumberIn, Rule, WhenNamed
from rag_core.rules.reading import compiled

KEYS = ("contain_one_of", "contain_all_of", "contain", "number_in", "when_named")
WRAPPER = "query_must"
MAX_CHARACTERS = 100_000  # of a rule written as JSON
MAX_TERMS = 200  # of all parts together, and
MAX_TERM = 200  # characters, and
MAX_WORDS = 20  # of a term: what keeps the longest query on the worst rule a matter of milliseconds


class _Fault(Exception):
    """What is wrong with a rule: the key and the sentence's second half."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key} {problem}")


def parse_rule(raw: Any, where: str) -> Rule:
    """The rule from its parsed JSON object, or a RuleError that names the chunk (`where`), the key and the value."""
    try:
        return _rule(_unwrapped(raw))
    except _Fault as fault:
        raise RuleError(f"query_must of {where}: {fault}") from None


def parse_text(text: str, where: str) -> Any:
    """What a rule's text holds: JSON, or Python's own way to write a dict; an InputError says why it is no JSON."""
    try:
        return parse_json(text, where)
    except InputError:
        value = _python_literal(text)
        if value is None:
            raise
        return value


def _python_literal(text: str) -> Any:
    """A dict or list as `str()` writes it, with JSON's types and no key twice; None where the text is no such thing."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
        for node in ast.walk(tree):
            keys = [ast.dump(key) for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
            if len(set(keys)) < len(keys):
                return None
        return json.loads(json.dumps(ast.literal_eval(tree)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _unwrapped(raw: Any) -> Any:
    """The rule without the wrapper that the original design stores it in; one level, and only where nothing else is."""
    if isinstance(raw, Mapping) and len(raw) == 1 and isinstance(raw.get(WRAPPER), Mapping):
        return raw[WRAPPER]
    return raw


def read_rule(raw: Any) -> Rule | str | None:
    """A rule as found in a recorded list or a collection: the rule, None where there is none, or what is wrong.

    Accepts a mapping, bare or as the value of `query_must`, its text as JSON or as Python writes a dict, a list of
    terms (one group), a list of lists (groups), and bare values where a list is expected.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    if isinstance(raw, str):
        return _read_text(raw)
    groups = _groups_alone(raw)
    if groups is not None:
        return _read_groups(groups)
    try:
        return _read_text(json.dumps(raw, sort_keys=True, ensure_ascii=False, default=_jsonable))
    except (TypeError, ValueError, RecursionError) as error:
        return f"the rule is no JSON value ({type(error).__name__})"


def _groups_alone(raw: Any) -> tuple[Group, ...] | None:
    """The groups of a rule that holds nothing else, all of text: the common shape, which needs no writing as JSON."""
    if type(raw) is not dict or len(raw) != 1 or type(raw.get("contain_one_of")) is not list:
        return None
    groups = raw["contain_one_of"]
    try:
        for group in groups:
            if type(group) is not list:
                return None
            "".join(group)  # a number in a group is a TypeError
    except TypeError:
        return None
    return tuple(map(tuple, groups))


@lru_cache(maxsize=16384)
def _read_groups(groups: tuple[Group, ...]) -> Rule | str:
    return _read_text(json.dumps({"contain_one_of": groups}, ensure_ascii=False))


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


@lru_cache(maxsize=16384)
def _read_text(text: str) -> Rule | str:
    """The rule of a JSON text, or what is wrong with it; remembered, since families repeat and runs repeat more."""
    if len(text) > MAX_CHARACTERS:
        return f"the rule has {len(text):,} characters, expected at most {MAX_CHARACTERS:,}"
    try:
        return _rule(_loosened(_unwrapped(parse_text(text, "the rule"))))
    except _Fault as fault:
        return str(fault)
    except InputError as error:
        return str(error)
    except RecursionError:
        return "the rule is nested too deeply"


def _loosened(raw: Any) -> Any:
    """The strict shape of what collections hold: flat lists become groups, bare values become lists."""
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


def _rule(raw: Any) -> Rule:
    if not isinstance(raw, Mapping):
        raise _Fault("the rule", f"is {_shown(raw)}, expected a mapping with {', '.join(KEYS)}")
    for key in raw:
        if key not in KEYS:
            raise _Fault(_shown(key), f"is an unknown key with value {_shown(raw[key])}, expected {', '.join(KEYS)}")
    if not raw:
        raise _Fault("the rule", f"is empty, expected at least one of {', '.join(KEYS)}")
    groups = [_group(group, "contain_one_of") for group in _list(raw, "contain_one_of")]
    rule = Rule(
        contain_one_of=tuple(groups),
        contain_all_of=_group(raw["contain_all_of"], "contain_all_of") if "contain_all_of" in raw else (),
        contain=_term(raw["contain"], "contain") if "contain" in raw else None,
        number_in=tuple(_number_in(element) for element in _list(raw, "number_in")),
        when_named=tuple(_when_named(element) for element in _list(raw, "when_named")),
    )
    terms = sum(map(len, rule.contain_one_of)) + len(rule.contain_all_of)
    terms += sum(len(group) for element in rule.number_in for group in element.labels)
    terms += sum(len(element.one_of) + len(element.among) for element in rule.when_named)
    if terms > MAX_TERMS:
        raise _Fault("the rule", f"has {terms:,} terms, expected at most {MAX_TERMS}")
    return rule


def _list(raw: Mapping[str, Any], key: str) -> Sequence[Any]:
    """The non-empty list under a key, or nothing where the key is absent."""
    if key not in raw:
        return ()
    value = raw[key]
    if not isinstance(value, list | tuple):
        raise _Fault(key, f"is {_shown(value)}, expected a list")
    if not value:
        raise _Fault(key, "is an empty list, expected at least one element")
    return value


def _group(raw: Any, key: str) -> Group:
    if not isinstance(raw, list | tuple):
        raise _Fault(key, f"holds {_shown(raw)}, expected a list of terms")
    if not raw:
        raise _Fault(key, "holds an empty group [], expected at least one term")
    return tuple(_term(term, key) for term in raw)


def _term(raw: Any, key: str) -> str:
    """A term as text; a number is read as text, and a term without a word or number counts as empty."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise _Fault(key, f"holds {_shown(raw)}, expected a term (text or a number)")
    if isinstance(raw, float):
        if not math.isfinite(raw):
            raise _Fault(key, f"holds {_shown(raw)}, expected a finite number")
        raw = repr(int(raw) if raw.is_integer() else raw)
    text = raw if isinstance(raw, str) else _digits(raw, key)
    if len(text) > MAX_TERM:
        raise _Fault(key, f"holds a term of {len(text):,} characters, expected at most {MAX_TERM}")
    if not compiled(text).texts:
        raise _Fault(key, f"holds the empty term {_shown(text)}, expected a word or a number in it")
    if len(compiled(text).texts) > MAX_WORDS:
        raise _Fault(key, f"holds a term of {len(compiled(text).texts)} words, expected at most {MAX_WORDS}")
    return text


def _digits(number: float, key: str) -> str:
    try:
        return str(number)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        raise _Fault(key, "holds a number of thousands of digits, expected a term") from None


def _number_in(raw: Any) -> NumberIn:
    if not isinstance(raw, Mapping):
        raise _Fault("number_in", f"holds {_shown(raw)}, expected a mapping with label or sum_of, min and max")
    for key in raw:
        if key not in ("label", "sum_of", "min", "max"):
            raise _Fault("number_in", f"holds the unknown key {_shown(key)}, expected label or sum_of, min, max")
    if ("label" in raw) == ("sum_of" in raw):
        raise _Fault("number_in", f"holds {_shown(dict(raw))}, expected either label or sum_of")
    low, high = _limit(raw, "min"), _limit(raw, "max")
    if low is None and high is None:
        raise _Fault("number_in", f"holds {_shown(dict(raw))}, expected min, max or both")
    if low is not None and high is not None and low > high:
        raise _Fault("number_in", f"has min {low:g} above max {high:g}")
    if "label" in raw:
        return NumberIn((_group(raw["label"], "number_in.label"),), low, high)
    groups = tuple(_group(group, "number_in.sum_of") for group in _list(raw, "sum_of"))
    return NumberIn(groups, low, high, summed=True)


def _when_named(raw: Any) -> WhenNamed:
    if not isinstance(raw, Mapping) or set(raw) != {"one_of", "among"}:
        raise _Fault("when_named", f"holds {_shown(raw)}, expected a mapping with one_of and among")
    return WhenNamed(_group(raw["one_of"], "when_named.one_of"), _group(raw["among"], "when_named.among"))


def _limit(raw: Mapping[str, Any], key: str) -> float | None:
    value = raw.get(key)
    if key not in raw:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise _Fault(f"number_in.{key}", f"is {_shown(value)}, expected a number")
    return float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _shown(value: Any) -> str:
    """A value for a message: its JSON-like form, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "…"
