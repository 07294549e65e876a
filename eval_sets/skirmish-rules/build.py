"""Rebuild the skirmish rules: corpus.jsonl from documents/, qrels.tsv from judgements.yaml, keywords.yaml from headers.

Run from the project's root: `python eval_sets/skirmish-rules/build.py`. Needs neither network nor model.
Judgements name headers; ids are what the Markdown chunker gives at header level 4.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))  # run as a script from anywhere

from rag_core.corpus.load import load
from rag_core.files import parse_yaml, read_text, write_whole
from rag_core.types import Chunk

HEADER_LEVEL = 4
SHORTEST_KEYWORD = 4
KINDS = {"core-rules.md": "core", "weapon-keywords.md": "keyword"}


def chunks() -> tuple[Chunk, ...]:
    """Every chunk of the documents; SystemExit where two share a header, since judgements name headers."""
    found = load([FOLDER / "documents"], header_level=HEADER_LEVEL).chunks
    titles = [chunk.title for chunk in found]
    repeated = sorted({title for title in titles if titles.count(title) > 1})
    if repeated:
        raise SystemExit(f"headers stand more than once: {', '.join(repeated)}")
    return found


def corpus(found: Sequence[Chunk]) -> str:
    """One JSON object a chunk."""
    return "".join(json.dumps(record(chunk), ensure_ascii=False) + "\n" for chunk in found)


def record(chunk: Chunk) -> dict[str, Any]:
    """A chunk as a line of corpus.jsonl: its header line is the title and does not stand in the text again."""
    source = chunk.metadata["source"]
    return {
        "id": chunk.id,
        "title": chunk.title,
        "text": body(chunk.text) or chunk.title,  # a header with nothing below it is found by its words alone
        "type": KINDS.get(source, "faction"),
        "source": source,
        "level": chunk.metadata["level"],
    }


def body(text: str) -> str:
    """What stands below the header line or lines a chunk opens with."""
    lines = text.strip().splitlines()
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        lines = lines[1:]
    return "\n".join(lines)


def qrels(found: Sequence[Chunk], judgements: Mapping[str, Mapping[str, int]]) -> str:
    """The labels as BEIR lines, in the order of the judgements; SystemExit for a header that does not exist."""
    by_title = {chunk.title: chunk.id for chunk in found}
    named = {title for grades in judgements.values() for title in grades}
    if named - set(by_title):
        raise SystemExit(f"judgements name headers that are not there: {', '.join(sorted(named - set(by_title)))}")
    rows = [
        f"{query}\t{by_title[title]}\t{grade}"
        for query, grades in judgements.items()
        for title, grade in grades.items()
    ]
    return "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n"


def keywords(found: Sequence[Chunk]) -> str:
    """The headers a question's words may be normalised to, in the capitals of the documents."""
    titles = sorted({chunk.title for chunk in found if len(chunk.title) >= SHORTEST_KEYWORD}, key=str.casefold)
    lines = "".join(f"  - {json.dumps(title, ensure_ascii=False)}\n" for title in titles)
    return "# Taken from the headers by build.py.\nkeywords:\n" + lines


if __name__ == "__main__":
    everything = chunks()
    labels = parse_yaml(read_text(FOLDER / "judgements.yaml"), "judgements.yaml")
    write_whole(FOLDER / "corpus.jsonl", corpus(everything))
    write_whole(FOLDER / "qrels.tsv", qrels(everything, labels))
    write_whole(FOLDER / "keywords.yaml", keywords(everything))
