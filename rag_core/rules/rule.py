"""The query_must rule as a frozen value, its two readers, and rules in files and in chunks' metadata.

`parse_rule` refuses what it does not know; `read_rule` accepts the shapes collections hold (a mapping, a JSON string,
the text of a Python dict, flat lists) and answers with a sentence instead of an error, so that a broken rule never
drops its chunk. Both take one wrapper `{"query_must": …}` off. Whether a query satisfies a rule is in match.py.
"""

from __future__ import annotations

import ast
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, RuleError
from rag_core.files import parse_json, parse_yaml, read_text, write_whole
from rag_core.text import is_number, some, tokenize
from rag_core.types import Chunk

Group = tuple[str, ...]

KEYS = ("contain_one_of", "contain_all_of", "contain", "number_in", "when_named")
WRAPPER = "query_must"
MAX_CHARACTERS = 100_000  # of a rule written as JSON
MAX_TERMS = 200  # of all parts together, and
MAX_TERM = 200  # characters, and
MAX_WORDS = 20  # of a term: what keeps the longest query on the worst rule a matter of milliseconds


@dataclass(frozen=True, slots=True)
class NumberIn:
    """A number the query gives for a label, or the sum of one number per label, in a closed range.

    `labels` holds one group of terms per number: one group for `label`, all of them for `sum_of`.
    """

    labels: tuple[Group, ...]
    minimum: float | None = None
    maximum: float | None = None
    summed: bool = False

    def holds(self, number: float) -> bool:
        """Whether the number lies in the closed range."""
        low_enough = self.maximum is None or number <= self.maximum
        return low_enough and (self.minimum is None or number >= self.minimum)

    def as_mapping(self) -> dict[str, Any]:
        """The element as it stands in a file."""
        groups = [list(group) for group in self.labels]
        found: dict[str, Any] = {"sum_of": groups} if self.summed else {"label": groups[0]}
        for key, limit in (("min", self.minimum), ("max", self.maximum)):
            if limit is not None:
                found[key] = int(limit) if limit == int(limit) else limit
        return found


@dataclass(frozen=True, slots=True)
class WhenNamed:
    """A value asked for only where the query names some value of its kind: one of `one_of`, if it holds any of `among`.

    For words that questions often leave out ("Which dragons breathe cold?"): such a question drops none of the family.
    """

    one_of: Group
    among: Group

    def as_mapping(self) -> dict[str, Any]:
        """The element as it stands in a file."""
        return {"one_of": list(self.one_of), "among": list(self.among)}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a query must hold for the chunk to be returned; every part present must be satisfied."""

    contain_one_of: tuple[Group, ...] = ()
    contain_all_of: Group = ()
    contain: str | None = None
    number_in: tuple[NumberIn, ...] = ()
    when_named: tuple[WhenNamed, ...] = ()

    def as_mapping(self) -> dict[str, Any]:
        """The rule as it stands in a file; `parse_rule` gives the same rule back."""
        parts: dict[str, Any] = {
            "contain_one_of": [list(group) for group in self.contain_one_of],
            "contain_all_of": list(self.contain_all_of),
            "contain": self.contain,
            "number_in": [element.as_mapping() for element in self.number_in],
            "when_named": [element.as_mapping() for element in self.when_named],
        }
        return {key: value for key, value in parts.items() if value}

    def as_json(self) -> str:
        """The rule as one line of canonical JSON: how a store without nested metadata keeps it."""
        return json.dumps(self.as_mapping(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Term:
    """A term of a rule, tokenised."""

    texts: tuple[str, ...]
    breaks: tuple[bool, ...]  # whether a sentence ends before each token inside the term itself
    ends_in_number: bool

    @cached_property
    def needs(self) -> frozenset[str]:
        """The words every occurrence holds."""
        return frozenset(self.texts)


@lru_cache(maxsize=65536)
def compiled(term: str) -> Term:
    """The term in tokens."""
    tokens = tokenize(term)
    breaks = tuple(at > 0 and token.sentence != tokens[at - 1].sentence for at, token in enumerate(tokens))
    return Term(tuple(token.text for token in tokens), breaks, bool(tokens) and is_number(tokens[-1]))


# ---------------------------------------------------------------- the two readers


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


def read_rule(raw: Any) -> Rule | str | None:
    """A rule as it stands in a recorded list or a collection: the rule, None where there is none, or what is wrong.

    Accepts a mapping, bare or as the value of `query_must`, its text as JSON or as Python writes a dict, a list of
    terms (one group), a list of lists (groups), and bare values where a list is expected.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return None
    if isinstance(raw, str):
        return _read_text(raw)
    try:
        return _read_text(json.dumps(raw, sort_keys=True, ensure_ascii=False, default=_mapping_of))
    except (TypeError, ValueError, RecursionError) as error:
        return f"the rule is no JSON value ({type(error).__name__})"


def _mapping_of(value: Any) -> Any:
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
    except (_Fault, InputError) as error:
        return str(error)
    except RecursionError:
        return "the rule is nested too deeply"


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
    rule = Rule(
        contain_one_of=tuple(_group(group, "contain_one_of") for group in _list(raw, "contain_one_of")),
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
    if isinstance(raw, float) and not math.isfinite(raw):
        raise _Fault(key, f"holds {_shown(raw)}, expected a finite number")
    try:
        text = str(int(raw) if isinstance(raw, float) and raw.is_integer() else raw)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        raise _Fault(key, "holds a number of thousands of digits, expected a term") from None
    if len(text) > MAX_TERM:
        raise _Fault(key, f"holds a term of {len(text):,} characters, expected at most {MAX_TERM}")
    words = len(compiled(text).texts)
    if not words:
        raise _Fault(key, f"holds the empty term {_shown(text)}, expected a word or a number in it")
    if words > MAX_WORDS:
        raise _Fault(key, f"holds a term of {words} words, expected at most {MAX_WORDS}")
    return text


def _number_in(raw: Any) -> NumberIn:
    if not isinstance(raw, Mapping):
        raise _Fault("number_in", f"holds {_shown(raw)}, expected a mapping with label or sum_of, min and max")
    for key in raw:
        if key not in ("label", "sum_of", "min", "max"):
            raise _Fault("number_in", f"holds the unknown key {_shown(key)}, expected label or sum_of, min, max")
    if ("label" in raw) == ("sum_of" in raw):
        raise _Fault("number_in", f"holds {_shown(dict(raw))}, expected either label or sum_of")
    limits: dict[str, float] = {}
    for key in ("min", "max"):
        if key in raw:
            value = raw[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
                raise _Fault(f"number_in.{key}", f"is {_shown(value)}, expected a number")
            limits[key] = float(value)
    low, high = limits.get("min"), limits.get("max")
    if not limits:
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


def _shown(value: Any) -> str:
    """A value for a message: its JSON-like form, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "…"


# ---------------------------------------------------------------- rules in metadata and in files

VERSION = 1


def stored_rules(chunks: Iterable[Chunk]) -> tuple[dict[str, Rule], dict[str, str]]:
    """The rules chunks carry, and per chunk what is wrong with one that cannot be read.

    Read from the chunk's own rule, else from its metadata as vector stores keep it: a JSON string or flat lists under
    `query_must`, or flat lists under `query_must_contain_one_of` and the like.
    """
    rules: dict[str, Rule] = {}
    wrong: dict[str, str] = {}
    for chunk in chunks:
        raw = chunk.query_must if chunk.query_must is not None else chunk.metadata.get(WRAPPER)
        if raw is None:
            flat = {key: chunk.metadata.get(f"{WRAPPER}_{key}") for key in KEYS}
            raw = {key: value for key, value in flat.items() if value not in (None, "", [])} or None
        rule = read_rule(raw)
        if isinstance(rule, Rule):
            rules[chunk.id] = rule
        elif rule is not None:
            wrong[chunk.id] = rule
    return rules, wrong


def unreadable_lines(wrong: Mapping[str, str], reasons: int = 3) -> list[str]:
    """What `stored_rules` could not read, a line a reason, the most frequent first: rules mostly fail alike."""
    chunks: dict[str, list[str]] = {}
    for identity, text in wrong.items():
        chunks.setdefault(text, []).append(identity)
    alike = sorted(chunks.items(), key=lambda pair: -len(pair[1]))
    lines = [f"cannot be read, {some(ids)}: {text}" for text, ids in alike[:reasons]]
    others = sum(len(ids) for _, ids in alike[reasons:])
    return [*lines, f"cannot be read, for {len(alike) - reasons} other reasons: {others} chunks"] if others else lines


def read_rules(path: Path) -> dict[str, Any]:
    """Chunk id → rule as it stands in the file (YAML, or JSON by its ending), not yet checked."""
    text = read_text(path)
    raw = parse_json(text, path.name) if path.suffix == ".json" else parse_yaml(text, path.name)
    if not isinstance(raw, Mapping) or set(raw) != {"version", "rules"}:
        raise RuleError(f"{path.name} has other keys, expected version and rules")
    if raw["version"] != VERSION:
        raise RuleError(f"{path.name} has version {raw['version']!r:.80}, expected {VERSION}")
    if not isinstance(raw["rules"], Mapping):
        raise RuleError(f"{path.name}: rules is {type(raw['rules']).__name__}, expected chunk id → rule")
    return {str(identity): rule for identity, rule in raw["rules"].items()}


def save_rules(path: Path, rules: Mapping[str, Rule]) -> None:
    """Write rules by chunk id whole, as YAML or as JSON by the file's ending; `read_rules` gives them back."""
    document = {"version": VERSION, "rules": {identity: rules[identity].as_mapping() for identity in sorted(rules)}}
    if path.suffix == ".json":
        write_whole(path, json.dumps(document, ensure_ascii=False, indent=1) + "\n")
        return
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.allow_unicode = True
    yaml.default_flow_style = None
    yaml.width = 110
    out = io.StringIO()
    yaml.dump(document, out)
    write_whole(path, out.getvalue())
