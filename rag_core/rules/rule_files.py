"""Rules in files: a YAML document chunk id → rule, and rules as other stores keep them in metadata.

Format version 1: `{version: 1, rules: {chunk id: rule}}`. Checking the rules is in proposals.py.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rag_core.errors import RuleError
from rag_core.files import parse_json, parse_yaml, read_text, write_whole
from rag_core.rules.model import Rule
from rag_core.rules.parsing import read_rule
from rag_core.text import some
from rag_core.types import Chunk

VERSION = 1
FIELD = "query_must"
FLAT_FIELDS = ("contain_one_of", "contain_all_of", "contain", "number_in")


def stored_rules(chunks: Iterable[Chunk]) -> tuple[dict[str, Rule], dict[str, str]]:
    """The rules chunks carry, and per chunk what is wrong with one that cannot be read.

    Read from the chunk's own rule, else from its metadata as vector stores keep it: a JSON string or flat lists under
    `query_must`, or flat lists under `query_must_contain_one_of` and the like.
    """
    rules: dict[str, Rule] = {}
    wrong: dict[str, str] = {}
    for chunk in chunks:
        found = read_rule(_raw_of(chunk))
        if isinstance(found, Rule):
            rules[chunk.id] = found
        elif found is not None:
            wrong[chunk.id] = found
    return rules, wrong


def _raw_of(chunk: Chunk) -> Any:
    """The rule as it is stored, wherever it is."""
    if chunk.query_must is not None:
        return chunk.query_must
    if chunk.metadata.get(FIELD) is not None:
        return chunk.metadata[FIELD]
    flat = {key: chunk.metadata.get(f"{FIELD}_{key}") for key in FLAT_FIELDS}
    return {key: value for key, value in flat.items() if value not in (None, "", [])} or None


def write_rules(rules: Mapping[str, Rule]) -> str:
    """The rules as a YAML text, by chunk id; `read_rules` gives the same rules back."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.allow_unicode = True
    yaml.default_flow_style = None
    yaml.width = 110
    out = io.StringIO()
    yaml.dump(
        {"version": VERSION, "rules": {identity: rules[identity].as_mapping() for identity in sorted(rules)}}, out
    )
    return out.getvalue()


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
    """Write rules whole, as YAML or as JSON by the file's ending."""
    if path.suffix == ".json":
        plain = {identity: rules[identity].as_mapping() for identity in sorted(rules)}
        write_whole(path, json.dumps({"version": VERSION, "rules": plain}, ensure_ascii=False, indent=1) + "\n")
    else:
        write_whole(path, write_rules(rules))


def unreadable_lines(wrong: Mapping[str, str], reasons: int = 3) -> list[str]:
    """What `stored_rules` could not read, a line a reason, the most frequent first: rules mostly fail alike."""
    chunks: dict[str, list[str]] = {}
    for identity, text in wrong.items():
        chunks.setdefault(text, []).append(identity)
    alike = sorted(chunks.items(), key=lambda pair: -len(pair[1]))
    lines = [f"cannot be read, {some(ids)}: {text}" for text, ids in alike[:reasons]]
    others = sum(len(ids) for _, ids in alike[reasons:])
    return [*lines, f"cannot be read, for {len(alike) - reasons} other reasons: {others} chunks"] if others else lines
