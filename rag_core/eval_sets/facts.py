"""What eval sets hold: queries, labels in their files, chunks. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_core.errors import InputError
from rag_core.eval_sets.reading import SHIPPED, EvalSet, folders, read_set
from rag_core.eval_sets.writing import guidelines
from rag_core.files import lines, read_text
from rag_core.records import parse_json_line
from rag_core.types import Case, Query, chunks_in

RECORDED, CORPUS, QUERIES_ONLY = "recorded lists", "corpus", "queries only"

LOG = "log"
"""What questions taken from a log are marked with."""


@dataclass(frozen=True)
class SetFacts:
    """One eval set in numbers. `judged` queries have a label; `problem`: it cannot be read."""

    name: str
    title: str = ""
    own: bool = False
    holds: str = ""
    queries: int = 0
    judged: int = 0
    labels: int = 0
    split: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    guidelines: bool = False
    problem: str = ""

    def to_text(self) -> str:
        """The set with its counts, in one line."""
        if self.problem:
            return f"{self.name}: {self.problem}"
        split = ", ".join(f"{count} {side}" for side, count in self.split.items()) or "no split"
        tags = f"{len(self.tags)} tags" if self.tags else "no tags"
        counts = f"{self.queries} queries ({self.judged} judged, {self.labels} labels)"
        return f"{self.name}: {counts}, {split}, {tags}, {self.holds}{'' if self.own else ', shipped'}"


def as_it_is(eval_set: EvalSet) -> EvalSet:
    """The set with the labels in its files alone."""
    return eval_set


def list_sets(workspace: Path, labelled: Callable[[EvalSet], EvalSet] = as_it_is) -> list[SetFacts]:
    """Every eval set, shipped ones first; one that cannot be read is listed with its problem.

    `labelled` lays over a set what labels were given elsewhere.
    """
    return [facts_of(name, folder, labelled) for name, folder in folders(workspace).items()]


def facts_of(name: str, folder: Path, labelled: Callable[[EvalSet], EvalSet] = as_it_is) -> SetFacts:
    """The numbers of the set in a folder."""
    own = folder.parent != SHIPPED
    try:
        found = labelled(read_set(folder))
    except InputError as error:
        return SetFacts(name, own=own, problem=str(error))
    queries = [case.query for case in found.cases]
    return SetFacts(
        name=name,
        title=found.title,
        own=own,
        holds=RECORDED if found.cases and found.recorded else CORPUS if found.corpus else QUERIES_ONLY,
        queries=len(queries),
        judged=sum(bool(case.grades) for case in found.cases),
        labels=sum(len(case.grades) for case in found.cases),
        split=dict(sorted(Counter(_split(query) for query in queries if _split(query)).items())),
        tags=dict(sorted(Counter(tag for query in queries for tag in query.tags).items())),
        guidelines=bool(guidelines(folder)),
    )


def _split(query: Query) -> str:
    return str(query.metadata.get("split") or "")


def chunk_texts(eval_set: EvalSet) -> dict[str, str]:
    """Chunk id → text of all chunks that come with a set, in its corpus or its lists."""
    return {chunk_id: text for chunk_id, (_, text) in _chunks(eval_set).items()}


def _chunks(eval_set: EvalSet) -> dict[str, tuple[str, str]]:
    """Chunk id → title and text, of the corpus, else of the recorded lists."""
    if eval_set.corpus is not None:
        rows = (
            parse_json_line(line, f"{eval_set.corpus} line {number}")
            for number, line in lines(read_text(eval_set.corpus))
        )
        return {str(row.get("id")): (str(row.get("title") or ""), str(row.get("text") or "")) for row in rows}
    return {chunk_id: (chunk.title, chunk.text) for chunk_id, chunk in chunks_in(eval_set.cases).items()}


def made_counts(cases: Iterable[Case]) -> dict[str, int]:
    """How many of the cases are generated, and how many are from a log."""
    origins = Counter(case.query.made_from for case in cases)
    return {"generated": origins.total() - origins[""] - origins[LOG], "from_log": origins[LOG]}


def made_said(cases: Iterable[Case]) -> str:
    """`made_counts` in words, '' where people asked all of them here."""
    counts = made_counts(cases)
    said = [f"{counts['generated']:,} generated"] if counts["generated"] else []
    return ", ".join([*said, *([f"{counts['from_log']:,} from a log"] if counts["from_log"] else [])])
