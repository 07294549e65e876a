"""A small collection with a family that crowds lists, and labelled queries for it, in a workspace of a test's own."""

import json

from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest_chunks
from rag_core.types import Chunk

NAME = "small"
SQUARES = range(3, 9)
FOREIGN = "![x](http://foreign.invalid/a.png) <b>Shields</b>"


def table_id(armor):
    return f"cleric-{armor}"


def chunks(rule=None):
    """Six attack tables of one family, the one of armor class 3 with `rule`, and two entries outside of it."""
    title = "ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class {}"
    text = "What a cleric needs to roll to hit an opponent of armor class {}, by level."
    tables = [
        Chunk(table_id(armor), title.format(armor), text.format(armor), query_must=rule if armor == 3 else None)
        for armor in SQUARES
    ]
    return [
        *tables,
        Chunk("shields", FOREIGN, "A shield makes a fighter or cleric harder to hit."),
        Chunk("strength", "Strength of a cleric", "A strength of 17 adds one to the roll to hit."),
    ]


def build(workspace, rule=None):
    """The collection and the eval set of the same name."""
    ingest_chunks(chunks(rule), NAME, workspace, BundledEmbedder())
    folder = workspace / "eval_sets" / NAME
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {NAME}\ntitle: Small tables\n")
    queries = {
        "six": "What does a cleric need to roll to hit armor class 6?",
        "three": "What does a druid need to hit AC 3?",
        "shield": "How does a shield help?",
    }
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"id": identity, "query": text}) for identity, text in queries.items())
    )
    labels = [("six", "cleric-6", 2), ("six", "strength", 1), ("six", "cleric-5", 0), ("three", "cleric-3", 2)]
    labels.append(("shield", "shields", 2))
    rows = "\n".join(f"{query}\t{chunk}\t{grade}" for query, chunk, grade in labels)
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}\n")
