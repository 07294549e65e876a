"""Two rulebooks that nobody wrote for us, a chunk an entry or row of a table, with questions written by hand.

The questions are ours (benchmarks/questions): one a line, with a regular expression of the titles that answer it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.parts.real_lists import DATA, Corpus

QUESTIONS = Path(__file__).parents[1] / "questions"


def said(value: Any) -> str:
    """A record as lines of text."""
    if isinstance(value, list):
        return "\n".join(map(said, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {said(one)}" for key, one in value.items() if one not in (None, "", [], {}))
    return str(value)


def span_of(level: Any) -> str:
    return f"{level[0]}-{level[-1]}" if isinstance(level, list) and len(level) > 1 else said(level)


def basic_fantasy(folder: Path) -> Iterator[tuple[str, str]]:
    """(title, text) of every entry and of every row of the tables by level."""
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    for name, title in (("monsters", "name"), ("spells", "name"), ("magic_items", "name"), ("weapons", "weapon")):
        yield from ((row[title], said(row)) for row in read[name])
    for name, table in (("saving_throws", "Saving Throws"), ("class_tables", "Class Table")):
        for kind, rows in read[name].items():
            who = kind.replace("_", "-").title()
            yield from ((f"{table}: {who}, level {span_of(row['level'])}", said(row)) for row in rows)
    yield from ((f"Thief Abilities, level {row['thief_level']}", said(row)) for row in read["thief_abilities"])
    for row in read["turning_undead"]["rows"]:
        yield f"Turning Undead, cleric level {row['cleric_level']}", said(row)
    for kind, tables in read["encounter_tables"].items():
        for table in tables:
            for at, head in enumerate(table["headers"][1:], 1):
                mark = ", " if kind == "dungeon" else ": "
                yield f"{kind.title()} Encounters{mark}{head}", said([f"{row[0]} {row[at]}" for row in table["rows"]])
    for name, table in read["treasure_types"].items():
        for row in table["rows"] if isinstance(table, dict) and "rows" in table else ():
            yield (
                f"Treasure Type {row[0]}",
                said({"kind": name, **dict(zip(table["headers"][1:], row[1:], strict=False))}),
            )


def srd(folder: Path) -> Iterator[tuple[str, str]]:
    """(title, text) of every named record, and of every class by level."""
    for path in sorted(folder.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8")):
            plain = {
                key: value for key, value in row.items() if key not in ("index", "url", "name", "updated_at", "image")
            }
            if "name" in row:
                yield row["name"], said(plain)[:4000]
            elif "level" in row:
                yield f"{(row.get('subclass') or row['class'])['name']}, level {row['level']}", said(plain)[:4000]


RULEBOOKS = {"basic-fantasy-rpg": basic_fantasy, "dnd5e-srd-2014": srd}


def rulebook(name: str) -> Corpus:
    """The chunks of a rulebook, and its questions: an entry whose title answers one is relevant."""
    entries = {f"c{at:04}": entry for at, entry in enumerate(RULEBOOKS[name](DATA / name))}
    rows = [json.loads(line) for line in (QUESTIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    grades = {
        str(at): {id_: 1 for id_, (title, _) in entries.items() if re.match(row["titles"], title)}
        for at, row in enumerate(rows)
    }
    titles = {id_: title for id_, (title, _) in entries.items()}
    documents = {id_: text for id_, (_, text) in entries.items()}
    return Corpus(name, documents, {str(at): row["query"] for at, row in enumerate(rows)}, grades, titles)
