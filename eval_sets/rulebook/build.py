"""Rebuild the demo rulebook: corpus.jsonl from tables and prose, qrels.tsv from facts and judgements, and in
queries.jsonl the answers that are read off the tables.

Run from the project's root: `python eval_sets/rulebook/build.py`. Needs neither network nor model. Prose is one entry
per `## Title` in prose/*.md; ids come from the document's name and the heading and stay the same from run to run.
Rules are what the shipped templates write from the tables' titles. Labels: facts and judgements of judgements.yaml,
0 for every other table of a parametric query and for whatever else pool.json says was looked at.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1])]  # run as a script from anywhere

from tables import attack_matrices, encounter_tables, psionic_tables

from rag_core.files import parse_yaml, read_text, write_whole
from rag_core.rules.templates import propose

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


def with_rule(record: Record) -> Record:
    """A table with the rule that the shipped templates propose for its title; SystemExit where they know it not."""
    proposal = propose(record["title"])
    if proposal is None:
        raise SystemExit(f"no shipped template knows the title of {record['id']}")
    return {**record, "query_must": proposal.rule.as_mapping()}


def slug(title: str) -> str:
    """Lower-case letters and digits of a heading, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower().replace("'", "")
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def corpus() -> list[Record]:
    """Every chunk: tables first, then prose; ids are unique."""
    records = [with_rule(record) for record in (*attack_matrices(), *psionic_tables(), *encounter_tables())]
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


def holds(record: Record, wanted: Mapping[str, Any]) -> bool:
    """Whether a table has the fields a fact names; `total` means that its range holds the number."""
    fields = {key: value for key, value in wanted.items() if key != "total"}
    if any(record.get(key, "") != value for key, value in fields.items()):
        return False
    return "total" not in wanted or record.get("total_min", 99) <= wanted["total"] <= record.get("total_max", -99)


def grades_of(
    query: str, records: Sequence[Record], labels: Mapping[str, Any], pooled: Sequence[str]
) -> dict[str, int]:
    """Every judged chunk of one query: 0 for what was looked at, then facts, then judgements."""
    fact = labels["facts"].get(query, {})
    right = {record["id"]: 3 for wanted in fact.get("tables", ()) for record in records if holds(record, wanted)}
    family = {record.get("family") for record in records if record["id"] in right}
    siblings = [record["id"] for record in records if record["family"] and record["family"] in family]
    positive = {**right, **fact.get("also", {}), **labels["judged"].get(query, {})}
    known = {record["id"] for record in records}
    if set(positive) - known:
        raise SystemExit(f"query {query} grades chunks that are not there: {', '.join(sorted(set(positive) - known))}")
    if len(right) != len(fact.get("tables", ())):
        raise SystemExit(f"the facts of query {query} name {len(fact['tables'])} tables and match {len(right)}")
    return {**dict.fromkeys([*siblings, *(one for one in pooled if one in known)], 0), **positive}


def qrels(records: Sequence[Record]) -> str:
    """The labels of all queries as BEIR lines, best grade first."""
    labels = parse_yaml(read_text(FOLDER / "judgements.yaml"), "judgements.yaml")
    pool = json.loads(read_text(FOLDER / "pool.json"))
    queries = [json.loads(line)["id"] for line in read_text(FOLDER / "queries.jsonl").splitlines()]
    stray = (set(labels["facts"]) | set(labels["judged"])) ^ set(queries)
    if stray:
        raise SystemExit(f"queries and judgements differ in: {', '.join(sorted(stray))}")
    lines = ["query-id\tcorpus-id\tscore"]
    for query in queries:
        grades = grades_of(query, records, labels, pool.get(query, ()))
        lines += [
            f"{query}\t{one}\t{grade}" for one, grade in sorted(grades.items(), key=lambda item: (-item[1], item[0]))
        ]
    return "\n".join(lines) + "\n"


def answers(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """By question the answer that its tables give, and the chunks it takes where the tables alone are not enough.

    One table gives a number, several give one each; an encounter table gives its creatures.
    """
    by_query = {}
    for query, fact in parse_yaml(read_text(FOLDER / "judgements.yaml"), "judgements.yaml")["facts"].items():
        tables = [next(record for record in records if holds(record, wanted)) for wanted in fact.get("tables", ())]
        if "rows" in fact:
            read = [number_at(table, row) for table, row in zip(tables, fact["rows"], strict=True)]
            numbers = [number - fact.get("bonus", 0) for number in read]
            expected: Any = numbers[0] if len(numbers) == 1 else [str(number) for number in dict.fromkeys(numbers)]
        elif tables and tables[0]["family"] == "encounter":
            expected = [creature.partition(" (")[0] for table in tables for _, creature in cells(table)]
        else:
            continue
        by_query[query] = {"expected_answer": expected}
        if "bonus" in fact:
            by_query[query]["needs"] = [*(table["id"] for table in tables), *fact["also"]]
    return by_query


def cells(record: Record) -> list[tuple[str, str]]:
    """(label, value) of each row of a table."""
    return re.findall(r"^\| (?!---)([^|]+?) \| ([^|]+?) \|$", record["text"], flags=re.MULTILINE)[1:]


def number_at(record: Record, wanted: int) -> int:
    """The number in the row whose label (7, 4-6, 19+) holds `wanted`."""
    for label, value in cells(record):
        low, _, high = label.rstrip("+").partition("-")
        if int(low) <= wanted <= (10**6 if label.endswith("+") else int(high or low)):
            return int(value)
    raise SystemExit(f"{record['id']} has no row for {wanted}")


def queries(records: Sequence[Record]) -> str:
    """queries.jsonl with today's answers; everything else as it stands there."""
    expected, lines = answers(records), []
    for line in read_text(FOLDER / "queries.jsonl").splitlines():
        query = {key: value for key, value in json.loads(line).items() if key not in ("expected_answer", "needs")}
        lines.append(json.dumps({**query, **expected.get(query["id"], {})}, ensure_ascii=False) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    chunks = corpus()
    write_whole(FOLDER / "queries.jsonl", queries(chunks))
    write_whole(FOLDER / "corpus.jsonl", json_lines(chunks))
    write_whole(FOLDER / "qrels.tsv", qrels(chunks))
