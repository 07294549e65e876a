"""Real corpora as lists of nearest chunks with labels, for the benchmarks that tune on them. Nothing is measured here.

Reads Cranfield, ADI, a cut of BEIR's DBpedia, questions on code, HotpotQA, questions with excerpts on five texts, the
operations of an API and the lists of another tool from the folder WINNOW_SHARED (else ../shared), embeds with the
bundled model and keeps the vectors in the system's temporary folder.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rag_core.corpus import load
from rag_core.index.embed import BundledEmbedder
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

DATA = Path(os.environ.get("WINNOW_SHARED", Path(__file__).parents[3] / "shared")) / "data"
CACHE = Path(tempfile.gettempdir()) / "winnow-benchmark-vectors"
DEPTH = 100


@dataclass(frozen=True)
class Corpus:
    """Texts by id, questions by id, grades by question."""

    name: str
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]
    titles: Mapping[str, str] = field(default_factory=dict)  # by id, where texts have one of their own


def cranfield(titles: bool = False) -> Corpus:
    """1,400 abstracts, 225 questions. The labels number questions by position; grades 1 to 4 all mean relevant.

    Abstracts begin with their title; `titles` puts it in front once more.
    """
    folder = DATA / "cranfield"
    wanted = "TW" if titles else "W"
    documents = {
        number: "\n".join(parts[letter] for letter in wanted) for number, parts in smart(folder / "cran.all.1400")
    }
    queries = {str(at): parts["W"] for at, (_, parts) in enumerate(smart(folder / "cran.qry"), 1)}
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, grade = line.split()[:3]
        grades.setdefault(query, {})[document] = int(int(grade) > 0)
    headed = {number: " ".join(parts["T"].split()) for number, parts in smart(folder / "cran.all.1400")}
    return Corpus("Cranfield", documents, queries, grades, headed)


def smart(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The records of a SMART file: the number and the parts by letter."""
    for record in re.split(r"^\.I ", path.read_text(), flags=re.M)[1:]:
        number, _, rest = record.partition("\n")
        parts = re.split(r"^\.([TABW])\s*$", rest, flags=re.M)
        yield number.strip().lstrip("0"), dict(zip(parts[1::2], parts[2::2], strict=True))


def adi() -> Corpus:
    """82 abstracts of papers on documentation with their titles, 35 questions."""
    folder = DATA / "adi"
    documents = {number: f"{parts['T']}\n{parts['W']}" for number, parts in smart(folder / "ADI.ALL")}
    grades: dict[str, dict[str, int]] = {}
    for query, document, *_ in map(str.split, filter(str.strip, (folder / "ADI.REL").read_text().splitlines())):
        grades.setdefault(query, {})[document] = 1
    headed = {number: " ".join(parts["T"].split()) for number, parts in smart(folder / "ADI.ALL")}
    return Corpus("ADI", documents, {number: parts["W"] for number, parts in smart(folder / "ADI.QRY")}, grades, headed)


def hotpotqa() -> Corpus:
    """991 paragraphs of Wikipedia by their titles, 100 questions that need two of them each."""
    rows = json.loads((DATA / "hotpotqa-100" / "hotpot_dev_distractor_first100.json").read_text())
    documents = {
        title: title + "\n" + "".join(sentences)
        for row in rows
        for title, sentences in zip(row["context"]["title"], row["context"]["sentences"], strict=True)
    }
    grades = {str(at): dict.fromkeys(row["supporting_facts"]["title"], 1) for at, row in enumerate(rows)}
    headed = {title: title for title in documents}
    return Corpus("HotpotQA", documents, {str(at): row["question"] for at, row in enumerate(rows)}, grades, headed)


def dbpedia() -> Corpus:
    """5,000 entities, 50 questions of which 40 have labels."""
    folder = DATA / "beir-dbpedia-5k"
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    grades: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / "test.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    documents = {row["_id"]: f"{row['title']}\n{row['text']}" for row in rows}
    headed = {row["_id"]: row["title"] for row in rows}
    return Corpus("DBpedia 5k", documents, {row["_id"]: row["text"] for row in asked}, grades, headed)


def code_chunks() -> Corpus:
    """737 pieces of source text, 248 questions with one to seven right pieces."""
    folder = DATA / "code-chunks"
    documents = {
        f"{document['original_uuid']}#{chunk['original_index']}": chunk["content"]
        for document in json.loads((folder / "codebase_chunks.json").read_text())
        for chunk in document["chunks"]
    }
    with gzip.open(folder / "evaluation_set.jsonl.gz", "rt") as file:
        asked = [json.loads(line) for line in file]
    grades = {
        str(at): {f"{uuid}#{index}": 1 for uuid, index in row["golden_chunk_uuids"]} for at, row in enumerate(asked)
    }
    return Corpus("code-chunks", documents, {str(at): row["query"] for at, row in enumerate(asked)}, grades)


def spotify() -> Corpus:
    """The operations and schemas of an API's description, 57 questions with the operations that answer them."""
    folder = DATA / "restbench-spotify"
    chunks = load([folder / "spotify_oas.json"]).chunks
    by_call = {
        f"{chunk.metadata['method']} {chunk.metadata['path']}": chunk.id
        for chunk in chunks
        if chunk.type == "operation"
    }
    rows = json.loads((folder / "spotify.json").read_text(encoding="utf-8"))
    grades = {str(at): {by_call.get(call, call): 1 for call in row["solution"]} for at, row in enumerate(rows)}
    documents = {chunk.id: f"{chunk.title}\n{chunk.text}" for chunk in chunks}
    headed = {chunk.id: chunk.title for chunk in chunks}
    return Corpus("Spotify", documents, {str(at): row["query"] for at, row in enumerate(rows)}, grades, headed)


PIECE = 900
"""Characters of a piece that the five texts are cut to, at the ends of lines or sentences."""


def excerpts() -> Corpus:
    """Five texts cut to pieces, 472 questions; a piece is relevant where it overlaps one of a question's excerpts."""
    folder = DATA / "chunking-evaluation"
    pieces: dict[str, list[tuple[int, int]]] = {}
    documents = {}
    for path in sorted((folder / "corpora").glob("*.md")):
        text = path.read_text()
        ends = [match.end() for match in re.finditer(r"\n+|(?<=[.!?])\s+", text)] + [len(text)]
        start, before = 0, 0
        for end in ends:
            if end - start > PIECE and before > start:
                pieces.setdefault(path.stem, []).append((start, before))
                start = before
            before = end
        pieces.setdefault(path.stem, []).append((start, len(text)))
        documents |= {f"{path.stem}#{at}": text[one:two] for at, (one, two) in enumerate(pieces[path.stem])}
    with (folder / "questions_df.csv").open() as file:
        rows = list(csv.DictReader(file))
    grades = {
        str(at): {
            f"{row['corpus_id']}#{place}": 1
            for excerpt in json.loads(row["references"])
            for place, (start, end) in enumerate(pieces[row["corpus_id"]])
            if excerpt["start_index"] < end and start < excerpt["end_index"]
        }
        for at, row in enumerate(rows)
    }
    return Corpus("chunking-evaluation", documents, {str(at): row["question"] for at, row in enumerate(rows)}, grades)


LABELLED = (adi, spotify, hotpotqa, code_chunks, cranfield, excerpts, dbpedia)
"""The labelled corpora, the smallest first."""


def vectors(texts: Sequence[str]) -> np.ndarray:
    """Vectors of the texts, from the temporary folder where they were made before."""
    model = BundledEmbedder()
    key = hashlib.sha256("\0".join([model.name, *texts]).encode()).hexdigest()[:24]
    path = CACHE / f"{key}.npy"
    if not path.is_file():
        CACHE.mkdir(exist_ok=True)
        made = model.embed(texts)
        partial = path.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, made)
        partial.rename(path)
    return np.load(path)


def captured(corpus: Corpus, depth: int = DEPTH) -> list[Case]:
    """The nearest chunks of every labelled question, exact, as recorded lists with title and text."""
    ids, texts = list(corpus.documents), list(corpus.documents.values())
    asked = [(id_, text) for id_, text in corpus.queries.items() if corpus.grades.get(id_)]
    distances = 1.0 - vectors([text for _, text in asked]).astype(np.float64) @ vectors(texts).T.astype(np.float64)
    chunks = [Chunk(id_, corpus.titles.get(id_, ""), text) for id_, text in zip(ids, texts, strict=True)]
    cases = []
    for (id_, text), row in zip(asked, distances, strict=True):
        nearest = np.argsort(row, kind="stable")[:depth]
        hits = tuple(Hit(chunks[at], rank, {"distance": float(row[at])}) for rank, at in enumerate(nearest, 1))
        query = Query(id_, " ".join(text.split()))
        cases.append(Case(query, corpus.grades[id_], Candidates(query, hits, metric=Metric.COSINE, recorded=True)))
    return cases
