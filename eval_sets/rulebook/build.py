"""Rebuild the demo rulebook: corpus.jsonl from tables and prose, qrels.tsv from facts and judgements.

Run from the project's root: `python eval_sets/rulebook/build.py`. Needs neither network nor model. Prose is one entry
per `## Title` in prose/*.md; ids come from the document's name and the heading and stay the same from run to run.
Labels of the parametric queries are the generator's facts; the rest are the judgements kept in judgements.yaml.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1])]  # run as a script from anywhere

from tables import attack_matrices, encounter_tables, psionic_tables  # noqa: E402

from rag_core.files import write_whole  # noqa: E402

Record = dict[str, Any]
KINDS = {"rules": "rule", "classes": "class", "spells": "spell", "monsters": "monster"}


def prose_entries(document: str) -> Iterator[Record]:
    """The entries of one prose document, in order."""
    text = (FOLDER / "prose" / f"{document}.md").read_text(encoding="utf-8")
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        yield {
            "id": f"{document}/{slug(title)}",
            "title": title.strip(),
            "text": body.strip(),
            "type": KINDS[document],
            "family": "",
        }


def slug(title: str) -> str:
    """Lower-case letters and digits of a heading, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower().replace("'", "")
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def corpus() -> list[Record]:
    """Every chunk: tables first, then prose; ids are unique."""
    records = [*attack_matrices(), *psionic_tables(), *encounter_tables()]
    for document in KINDS:
        if (FOLDER / "prose" / f"{document}.md").is_file():
            records += prose_entries(document)
    ids = [record["id"] for record in records]
    repeated = sorted({one for one in ids if ids.count(one) > 1})
    if repeated:
        raise SystemExit(f"ids stand more than once: {', '.join(repeated)}")
    return records


def json_lines(records: list[Record]) -> str:
    """One JSON object a line; empty values are left out."""
    kept = ({key: value for key, value in record.items() if value not in ("", None, [])} for record in records)
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)


if __name__ == "__main__":
    write_whole(FOLDER / "corpus.jsonl", json_lines(corpus()))
