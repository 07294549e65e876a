"""Make an entity structure from one's own data: the classes and races of the D&D 5e SRD as an example.

    python -m docs.examples.structure_from_srd FOLDER OUT.json
    python -m rag_core entities "can a barbarian rage twice" --structure OUT.json

FOLDER holds the JSON files of the open 5e database in English (5e-SRD-Classes.json and so on); nothing of it comes with
this program. Classes and races become entities; subclasses, proficiencies and sub-races their members; features, traits
and spells their abilities. The result is checked, and what lint finds is printed on stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_core.entities import parse_structure
from rag_core.entities.lint import lint_structure
from rag_core.errors import InputError
from rag_core.files import parse_json, read_text, write_whole

ROLE_WORDS = ["spellcasting", "feature", "improvement", "style", "training", "proficiency", "domain", "oath", "circle"]


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The records of one file of the database."""
    path = folder / f"5e-SRD-{name}.json"
    found: list[dict[str, Any]] = parse_json(read_text(path), str(path))
    return found


def names(references: list[dict[str, Any]]) -> list[str]:
    """The names of references to other records."""
    return [reference["name"] for reference in references]


def belongings(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(entity, heading, item): which class or race owns what."""
    for row in rows(folder, "Subclasses"):
        yield row["class"]["name"], "members", row["name"]
    for row in rows(folder, "Features"):
        yield row["class"]["name"], "features", row["name"].split(" (")[0]
    for row in rows(folder, "Spells"):
        for owner in names(row["classes"]):
            yield owner, "spells", row["name"]
    for row in rows(folder, "Traits"):
        for owner in names(row["races"]):
            yield owner, "traits", row["name"]
    for row in rows(folder, "Races"):
        for subrace in names(row.get("subraces", [])):
            yield row["name"], "members", subrace


def structure_of(folder: Path) -> dict[str, Any]:
    """The structure as plain data, in the form of a structure file."""
    entities: dict[str, dict[str, Any]] = {
        row["name"]: {"members": [], "abilities": {}} for row in (*rows(folder, "Classes"), *rows(folder, "Races"))
    }
    for owner, heading, item in belongings(folder):
        entity = entities[owner]
        held = entity["members"] if heading == "members" else entity["abilities"].setdefault(heading, [])
        if item not in held:
            held.append(item)
    for name, entity in entities.items():
        entity["members"] = entity["members"] or [f"{name} adventurer"]  # a structure needs a member to show
    return {"name": "SRD classes and races", "version": 1, "role_words": ROLE_WORDS, "entities": entities}


def main(arguments: list[str]) -> int:
    """Read the folder, write the file, say what lint thinks."""
    if len(arguments) != 2:
        sys.stderr.write("usage: structure_from_srd.py FOLDER OUT.json\n")
        return 2
    folder, out = map(Path, arguments)
    try:
        data = structure_of(folder)
        structure = parse_structure(data, str(out))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    write_whole(out, json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    findings = lint_structure(structure)
    sys.stderr.write(f"{len(structure.entities)} entities written; lint: {len(findings)} findings\n")
    for finding in findings[:10]:
        sys.stderr.write(f"  {finding.kind}: {finding.text[:160]}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
